//! The tools. One table; what a tool does to state is said in the table of effects, by its command.

use sessile::settings::DEFAULT_LOCK_TIMEOUT;

use super::tool::{Field, Input, InputTarget, Limit, Shape, Tool, has, may_have, needs, takes};

/// Every tool. Their whole description stays below 12 kB: a model reads it in every conversation.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        about: "Where you are: session, context, and why.",
        output: &[
            has("logged_in", "boolean"),
            has("os_user", "string"),
            may_have("user"),
            may_have("current_context"),
        ],
        ..tool("status", "status", &[SESSION])
    },
    Tool {
        about: "Contexts: named targets such as staging, with their guards.",
        shape: Shape::List("contexts"),
        ..tool("list_contexts", "context list", &[])
    },
    Tool {
        about: "What a context binds: settings, tools, variables.",
        output: &[has("name", "string"), has("guard", "string")],
        ..tool("show_context", "context show", &[needs("context", InputTarget::Word, "")])
    },
    Tool {
        about: "Live sessions, each with its conversations.",
        output: &[has("id", "string"), has("conversations", "array")],
        shape: Shape::List("sessions"),

        always: &["--conversations"],
        ..tool("list_sessions", "session list", &[])
    },
    Tool {
        about: "Start a session, pinned to a context for its whole life. Its id goes into other tools.",
        output: &[has("id", "string")],
        ..tool("start_session", "session start", &[takes("name", InputTarget::Flag("--name"), ""), CONTEXT])
    },
    Tool {
        about: "A session whole: life, settings, tools' state, conversations.",
        output: &[has("id", "string"), has("state", "string")],
        ..tool("show_session", "session show", &[takes("session", InputTarget::Word, "")])
    },
    Tool {
        about: "Stop a session and what runs in it.",
        output: &[has("id", "string")],
        ..tool("stop_session", "session stop", &[needs("session", InputTarget::Word, "id or name")])
    },
    Tool {
        about: "Settings explained: value, origin, what is shadowed or ignored.",
        shape: Shape::List("settings"),
        always: &["--effective"],
        ..tool("get_settings", "config show", &[KEY, SESSION, CONTEXT])
    },
    Tool {
        about: "Set a setting in the session.",
        output: &[has("key", "string"), has("layer", "string")],
        needs_session: true,
        ..tool(
            "set_setting",
            "config set",
            &[needs("key", InputTarget::Word, ""), needs("value", InputTarget::Word, ""), SESSION],
        )
    },
    Tool {
        about: "Values the session keeps, each with its revision.",
        shape: Shape::List("values"),
        ..tool("get_state", "session state list", &[KEY, SESSION])
    },
    Tool {
        about: "Keep a JSON value in the session.",
        output: &[has("key", "string"), has("revision", "integer")],
        // The value goes through standard input: an argument has the kernel's limit, and shows in `ps`.
        always: &["--file=-"],
        ..tool(
            "set_state",
            "session state set",
            &[
                needs("key", InputTarget::Word, ""),
                needs("value", InputTarget::Stdin, "").anything(),
                takes("if_revision", InputTarget::Flag("--if-revision"), "0: none yet").number(),
                SESSION,
            ],
        )
    },
    Tool {
        about: "Locks held, by whom, until when.",
        shape: Shape::List("locks"),
        ..tool("list_locks", "lock list", &[])
    },
    Tool {
        about: "Take a lock that excludes other agents, for a time.",
        output: &[has("name", "string"), has("token", "integer")],
        limit: Limit::Longer("wait", DEFAULT_LOCK_TIMEOUT),
        ..tool(
            "acquire_lock",
            "lock acquire",
            &[
                LOCK,
                takes("ttl", InputTarget::Flag("--ttl"), "default 10m"),
                takes("wait", InputTarget::Flag("--lock-timeout"), "default 5s"),
                takes("shared", InputTarget::Flag("--shared"), "beside other shared holders").switch(),
                SESSION,
            ],
        )
    },
    Tool {
        about: "Begin the time of a lock anew.",
        output: &[has("name", "string"), has("expires_at", "string")],
        ..tool("renew_lock", "lock renew", &[LOCK, TOKEN, takes("ttl", InputTarget::Flag("--ttl"), "")])
    },
    Tool {
        about: "Give a lock back.",
        output: &[has("name", "string")],
        ..tool("release_lock", "lock release", &[LOCK, TOKEN])
    },
    Tool {
        about: "Run a command in a session, with tools' state of its own. 32 kB of each stream are kept.",
        output: &[
            may_have("exit_code"),
            has("stdout", "string"),
            has("stderr", "string"),
            has("timed_out", "boolean"),
            may_have("truncated"),
        ],
        shape: Shape::Captured,
        limit: Limit::Given("timeout", "2m"),
        ..tool(
            "run",
            "run",
            &[
                needs("command", InputTarget::Word, "program and arguments; no shell").words(),
                SESSION,
                CONTEXT,
                takes("stdin", InputTarget::Stdin, ""),
                takes("directory", InputTarget::Directory, ""),
                takes("timeout", InputTarget::Flag("--timeout"), "default 2m"),
            ],
        )
    },
    Tool {
        about: "A2A agents that have a name.",
        shape: Shape::List("agents"),
        ..tool("list_agents", "agent list", &[SESSION])
    },
    Tool {
        about: "What an agent says it is and can do.",
        output: &[has("name", "string")],
        limit: AGENT_LIMIT,
        ..tool("get_agent_card", "agent card", &[needs("agent", InputTarget::Word, AGENT_IS), SESSION])
    },
    Tool {
        about: "Whether an agent's card is right.",
        output: &[has("valid", "boolean"), has("problems", "array")],
        limit: AGENT_LIMIT,
        ..tool("validate_agent_card", "agent validate", &[needs("agent", InputTarget::Word, ""), SESSION])
    },
    Tool {
        about: "Send a message to an agent, get the reply. In a session their last conversation goes on.",
        output: &[has("text", "string"), may_have("state"), may_have("context_id"), may_have("task_id")],
        always: &["-"],
        limit: AGENT_LIMIT,
        ..tool(
            "send_message",
            "message send",
            &[
                needs("agent", InputTarget::Flag("--url"), ""),
                needs("text", InputTarget::Stdin, ""),
                SESSION,
                CONTEXT,
                takes("conversation", InputTarget::Flag("--conversation"), "by name"),
                takes("new", InputTarget::Flag("--new"), "begin another").switch(),
                takes("context_id", InputTarget::Flag("--context-id"), ""),
                takes("task_id", InputTarget::Flag("--task-id"), ""),
                takes("no_wait", InputTarget::Flag("--no-wait"), "").switch(),
                TIMEOUT,
            ],
        )
    },
    Tool {
        about: "Conversations of the session; without one, of all.",
        output: &[
            has("id", "string"),
            has("agent_url", "string"),
            may_have("context_id"),
            may_have("task_id"),
            may_have("has_credentials"),
        ],
        shape: Shape::List("conversations"),
        ..tool(
            "list_conversations",
            "conversation list",
            &[SESSION, takes("agent", InputTarget::Flag("--agent"), ""), LIMIT],
        )
    },
    Tool {
        about: "A conversation and what was said.",
        output: &[has("id", "string"), has("agent_url", "string"), has("messages", "array")],
        ..tool("show_conversation", "conversation show", &[CONVERSATION, SESSION])
    },
    Tool {
        about: "Forget a conversation.",
        output: &[has("cleared", "array")],
        // The conversation must be named, so the call itself is the confirmation; nobody can be asked here.
        always: &["--yes"],
        ..tool("clear_conversation", "conversation clear", &[CONVERSATION, SESSION])
    },
    Tool {
        about: "An agent's tasks.",
        shape: Shape::List("tasks"),
        limit: AGENT_LIMIT,
        ..tool(
            "list_tasks",
            "task list",
            &[
                needs("agent", InputTarget::Word, ""),
                takes("state", InputTarget::Flag("--state"), ""),
                LIMIT,
                SESSION,
            ],
        )
    },
    Tool {
        about: "A task as it is now.",
        output: TASK_FIELDS,
        limit: AGENT_LIMIT,
        ..tool("get_task", "task get", &[TASK, OF_AGENT, SESSION])
    },
    Tool {
        about: "Call a task off.",
        output: TASK_FIELDS,
        limit: AGENT_LIMIT,
        ..tool("cancel_task", "task cancel", &[TASK, OF_AGENT, SESSION])
    },
    Tool {
        about: "Who is told when a task changes.",
        shape: Shape::List("notifications"),
        limit: AGENT_LIMIT,
        ..tool("get_task_notification", "task notification list", &[TASK, OF_AGENT, SESSION])
    },
    Tool {
        about: "Have a URL told when a task changes.",
        output: &[has("url", "string")],
        limit: AGENT_LIMIT,
        ..tool(
            "set_task_notification",
            "task notification set",
            &[TASK, needs("url", InputTarget::Word, ""), OF_AGENT, SESSION],
        )
    },
    Tool {
        about: "What was changed, when, by whom; newest first.",
        shape: Shape::List("operations"),
        ..tool("list_history", "history", &[SESSION, takes("since", InputTarget::Flag("--since"), ""), LIMIT])
    },
];

const AGENT_IS: &str = "name or URL";

const SESSION: Input = takes("session", InputTarget::Flag("--session"), "");
const CONTEXT: Input = takes("context", InputTarget::Flag("--context"), "");
const KEY: Input = takes("key", InputTarget::Word, "else all");
const LIMIT: Input = takes("limit", InputTarget::Flag("--limit"), "").number();
const LOCK: Input = needs("name", InputTarget::Word, "");
const TOKEN: Input = needs("token", InputTarget::Flag("--token"), "").number();
const TASK: Input = needs("task_id", InputTarget::Word, "");
const OF_AGENT: Input = takes("agent", InputTarget::Flag("--url"), "");
const CONVERSATION: Input = needs("conversation", InputTarget::Word, "id or name");
const TIMEOUT: Input = takes("timeout", InputTarget::Flag("--timeout"), "default 5m");
const AGENT_LIMIT: Limit = Limit::Given("timeout", "5m");

const TASK_FIELDS: &[Field] = &[has("task_id", "string"), has("state", "string"), has("text", "string")];

/// A tool that calls a command, with what most have in common.
const fn tool(name: &'static str, command: &'static str, input: &'static [Input]) -> Tool {
    Tool {
        name,
        command,
        about: "",
        input,
        output: &[],
        shape: Shape::Object,
        always: &[],
        needs_session: false,
        limit: Limit::Usual,
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::JsonObject;
    use serde_json::{Value, json};

    use super::super::arguments::{BaseFlags, ToolCaller, invocation};
    use super::super::tool::InputKind;
    use super::*;
    use crate::effects;

    /// Sample arguments of a tool.
    fn sample(tool: &Tool) -> JsonObject {
        let value = |input: &Input| match (input.kind, input.name) {
            (InputKind::Text, "ttl" | "wait" | "timeout" | "idle" | "since") => json!("10m"),
            (InputKind::Text, "directory") => json!("/"),
            (InputKind::Text, _) => json!("-x"),
            (InputKind::Number, _) => json!(7),
            (InputKind::Switch, _) => json!(true),
            (InputKind::Words, _) => json!(["--yes", "two"]),
            (InputKind::Anything, _) => json!(null),
        };
        // These exclude each other.
        let apart = ["new", "context_id", "task_id", "conversation"];
        tool.input
            .iter()
            .filter(|input| tool.name != "send_message" || !apart.contains(&input.name))
            .map(|input| (input.name.to_owned(), value(input)))
            .collect()
    }

    #[test]
    fn every_tool_is_a_command_that_there_is() {
        for tool in TOOLS {
            assert!(effects::entry(tool.command).is_some(), "{}", tool.name);
            for arguments in [sample(tool), required(tool)] {
                let caller = ToolCaller { client: Some("a client"), session_exists: true };
                let made = invocation(tool, &arguments, &BaseFlags::default(), caller);
                let made =
                    made.or_else(|_| invocation(tool, &sample(tool), &BaseFlags::default(), caller)).unwrap();
                let words = std::iter::once("sessile".to_owned()).chain(made.args.clone());
                let parsed = crate::parse::parse(&words.map(Into::into).collect::<Vec<_>>());
                assert!(parsed.is_ok(), "{}: {:?} {}", tool.name, made.args, parsed.unwrap_err());
            }
        }
    }

    fn required(tool: &Tool) -> JsonObject {
        let needed = |name: &str| tool.input.iter().any(|input| input.name == name && input.required);
        sample(tool).into_iter().filter(|(name, _)| needed(name)).collect()
    }

    #[test]
    fn what_is_given_is_never_a_flag() {
        for tool in TOOLS {
            let made = invocation(tool, &sample(tool), &BaseFlags::default(), ToolCaller::default()).unwrap();
            let flags = made.args.iter().take_while(|word| *word != "--");
            for flag in flags.filter(|word| *word == "-x" || *word == "--yes") {
                assert!(tool.always.contains(&flag.as_str()), "{}: {:?}", tool.name, made.args);
            }
        }
    }

    #[test]
    fn what_is_not_taken_is_refused() {
        let stop = TOOLS.iter().find(|tool| tool.name == "stop_session").unwrap();
        let refusal = |given: Value| {
            let given = given.as_object().unwrap().clone();
            invocation(stop, &given, &BaseFlags::default(), ToolCaller::default()).unwrap_err().message
        };
        assert_eq!(refusal(json!({})), "stop_session needs the argument \"session\"");
        assert_eq!(refusal(json!({ "session": null })), refusal(json!({})));
        assert_eq!(refusal(json!({ "session": 7 })), "the argument \"session\" must be text, not 7");
        assert!(refusal(json!({ "sesion": "x" })).contains("did you mean \"session\"?"));
        assert!(refusal(json!({ "session": "a\0b" })).contains("NUL"));
        assert!(refusal(json!({ "session": "x".repeat(200_000) })).contains("too long"));
    }

    #[test]
    fn all_of_them_are_described_in_less_than_12_kb() {
        let listed: Vec<_> = TOOLS.iter().map(Tool::listed).collect();
        let size =
            json!({ "jsonrpc": "2.0", "id": 1_000_000, "result": { "tools": listed } }).to_string().len();
        assert!(size < 12_000, "{size}");
    }

    #[test]
    fn the_annotations_are_those_of_the_commands() {
        let of = |name: &str| {
            let listed = TOOLS.iter().find(|tool| tool.name == name).unwrap().listed();
            serde_json::to_value(listed.annotations).unwrap()
        };
        assert_eq!(of("status"), json!({ "readOnlyHint": true, "openWorldHint": false }));
        assert_eq!(of("get_agent_card"), json!({ "readOnlyHint": true }));
        // It may be a session of a service.
        assert_eq!(of("stop_session"), json!({ "destructiveHint": true, "idempotentHint": true }));
        assert_eq!(of("set_setting")["destructiveHint"], false);
        assert_eq!(of("set_setting")["openWorldHint"], false);
        assert_eq!(of("run"), json!({ "destructiveHint": true }));
        for tool in TOOLS {
            let reads = effects::entry(tool.command)
                .is_some_and(|entry| entry.effect == effects::CommandEffect::Read);
            assert_eq!(of(tool.name)["readOnlyHint"] == true, reads, "{}", tool.name);
        }
    }
}
