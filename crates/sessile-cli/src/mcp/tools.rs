//! Table of the tools. The table of effects has the effect of each, by its command.

use sessile::settings::DEFAULT_LOCK_TIMEOUT;

use super::tool::{Field, Input, InputTarget, Limit, Shape, Tool, has, may_have, needs, takes};

/// Every tool. Their whole description stays below 13 kB: a model reads it in every conversation, often without the
/// server's instructions and without the schemas of results.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        about: "Show the current session, context and account, and where each comes from.",
        output: &[
            has("logged_in", "boolean"),
            has("os_user", "string"),
            may_have("user"),
            may_have("current_context"),
        ],
        ..tool("status", "status", &[SESSION])
    },
    Tool {
        about: "List contexts: named targets such as staging. One with guard `approval` requires a person's approval.",
        ..list("list_contexts", "context list", "contexts", "name", &[LIMIT, CURSOR])
    },
    Tool {
        about: "Show a context: settings, tool bindings, variables, guard.",
        ..tool("show_context", "context show", &[needs("context", InputTarget::Word, "")])
    },
    Tool {
        about: "List live sessions, newest first, each with its conversations.",
        always: &["--conversations"],
        ..list("list_sessions", "session list", "sessions", "id", &[LIMIT, CURSOR])
    },
    Tool {
        about: "Start a session pinned to one context. Pass the returned `id` as `session` to other tools; end it with \
                stop_session.",
        output: &[has("id", "string")],
        ..tool("start_session", "session start", &[takes("name", InputTarget::Flag("--name"), ""), CONTEXT])
    },
    Tool {
        about: "Show a session: life, settings, tool state, conversations.",
        output: &[has("id", "string"), has("state", "string")],
        ..tool("show_session", "session show", &[takes("session", InputTarget::Word, "")])
    },
    Tool {
        about: "Stop a session: ends its processes and releases its locks (`released_locks`).",
        output: &[has("id", "string")],
        ..tool("stop_session", "session stop", &[needs("session", InputTarget::Word, "id or name")])
    },
    Tool {
        about: "Show settings with their origins, and shadowed or ignored values.",
        always: &["--effective"],
        ..list("get_settings", "config show", "settings", "key", &[KEY, SESSION, CONTEXT, LIMIT, CURSOR])
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
        about: "List the session's values, each with its revision.",
        ..list("get_state", "session state list", "values", "key", &[KEY, SESSION, LIMIT, CURSOR])
    },
    Tool {
        about: "Store a JSON value in the session.",
        output: &[has("key", "string"), has("revision", "integer")],
        // The value goes through standard input: an argument has the kernel's limit, and shows in `ps`.
        always: &["--file=-"],
        ..tool(
            "set_state",
            "session state set",
            &[
                needs("key", InputTarget::Word, ""),
                needs("value", InputTarget::Stdin, "").anything(),
                takes("if_revision", InputTarget::Flag("--if-revision"), "0: only if new").number(),
                SESSION,
            ],
        )
    },
    Tool {
        about: "List held locks with holders and expiry.",
        // Whoever knows a token can release the lock.
        hidden: Some("token"),
        ..list("list_locks", "lock list", "locks", "name", &[LIMIT, CURSOR])
    },
    Tool {
        about: "Acquire a lock that keeps other agents out. Keep the returned `token`. It is held until release_lock, the \
                end of its ttl, or the stop of its session.",
        output: &[has("name", "string"), has("token", "integer")],
        limit: Limit::Longer("wait", DEFAULT_LOCK_TIMEOUT),
        ..tool(
            "acquire_lock",
            "lock acquire",
            &[
                LOCK,
                takes("ttl", InputTarget::Flag("--ttl"), "default 10m"),
                takes("wait", InputTarget::Flag("--lock-timeout"), "--lock-timeout in hints; default 5s"),
                takes("shared", InputTarget::Flag("--shared"), "beside other shared holders").switch(),
                takes("session", InputTarget::Flag("--session"), "owner; its stop releases the lock"),
            ],
        )
    },
    Tool {
        about: "Extend a lock's lease.",
        output: &[has("name", "string"), has("expires_at", "string")],
        ..tool("renew_lock", "lock renew", &[LOCK, TOKEN, takes("ttl", InputTarget::Flag("--ttl"), "")])
    },
    Tool {
        about: "Release a lock. stop_session does it too.",
        ..tool("release_lock", "lock release", &[LOCK, TOKEN])
    },
    Tool {
        about: "Run a command in a session: its kube context, cloud profile and accounts are the session's own. Returns exit_code, \
                stdout and stderr, 32 kB of each.",
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
                takes("session", InputTarget::Flag("--session"), "id or name; a new name starts one"),
                takes("context", InputTarget::Flag("--context"), "target of a new session"),
                takes("stdin", InputTarget::Stdin, ""),
                takes("directory", InputTarget::Directory, ""),
                takes("timeout", InputTarget::Flag("--timeout"), "default 2m"),
            ],
        )
    },
    Tool {
        about: "List named A2A agents.",
        ..list("list_agents", "agent list", "agents", "name", &[SESSION, LIMIT, CURSOR])
    },
    Tool {
        about: "Show an agent's card: description, skills and interfaces.",
        limit: AGENT_LIMIT,
        ..tool(
            "get_agent_card",
            "agent card",
            &[
                needs("agent", InputTarget::Word, AGENT_IS),
                takes("extended", InputTarget::Flag("--extended"), "").switch(),
                SESSION,
            ],
        )
    },
    Tool {
        about: "Check an agent's card.",
        output: &[has("valid", "boolean"), has("problems", "array")],
        limit: AGENT_LIMIT,
        ..tool(
            "validate_agent_card",
            "agent validate",
            &[needs("agent", InputTarget::Word, "name, URL, or file of a card"), SESSION],
        )
    },
    Tool {
        about: "Send a message to an agent and return the reply. With a session it continues their last conversation.",
        output: &[has("text", "string"), may_have("state"), may_have("context_id"), may_have("task_id")],
        always: &["-"],
        limit: AGENT_LIMIT,
        ..tool(
            "send_message",
            "message send",
            &[
                takes("agent", InputTarget::Flag("--url"), "else that of the conversation or session"),
                needs("text", InputTarget::Stdin, ""),
                SESSION,
                CONTEXT,
                takes("conversation", InputTarget::Conversation, "id, or name"),
                takes("new", InputTarget::Flag("--new"), "begin another").switch(),
                takes(
                    "context_id",
                    InputTarget::Flag("--context-id"),
                    "the agent's own id, unlike `context`",
                ),
                takes("task_id", InputTarget::Flag("--task-id"), ""),
                takes("files", InputTarget::PathFlag("--file"), "paths in the server's directory").words(),
                takes("data", InputTarget::Flag("--data"), "JSON to send along").anything(),
                takes("save_artifacts", InputTarget::PathFlag("--save-artifacts"), "directory"),
                takes("push_url", InputTarget::Flag("--push-url"), ""),
                takes("no_wait", InputTarget::Flag("--no-wait"), "").switch(),
                TIMEOUT,
            ],
        )
    },
    Tool {
        about: "List conversations of the session; without one, of all.",
        ..list(
            "list_conversations",
            "conversation list",
            "conversations",
            "id",
            &[SESSION, takes("agent", InputTarget::Flag("--agent"), ""), LIMIT, CURSOR],
        )
    },
    Tool {
        about: "Show a conversation with its messages.",
        output: &[has("id", "string"), has("agent_url", "string"), has("messages", "array")],
        ..tool("show_conversation", "conversation show", &[CONVERSATION, SESSION])
    },
    Tool {
        about: "Delete a conversation.",
        // The conversation must be named, so the call itself is the confirmation; nobody can be asked here.
        always: &["--yes"],
        ..tool("clear_conversation", "conversation clear", &[CONVERSATION, SESSION])
    },
    Tool {
        about: "List an agent's tasks.",
        shape: Shape::List("tasks"),
        limit: AGENT_LIMIT,
        ..tool(
            "list_tasks",
            "task list",
            &[
                needs("agent", InputTarget::Word, ""),
                takes("state", InputTarget::Flag("--state"), ""),
                takes("context_id", InputTarget::Flag("--context-id"), ""),
                takes("history_length", InputTarget::Flag("--history-length"), "").number(),
                takes("artifacts", InputTarget::Flag("--include-artifacts"), "").switch(),
                takes("limit", InputTarget::Flag("--limit"), "").number(),
                CURSOR,
                takes("all", InputTarget::Flag("--all"), "instead of limit").switch(),
                SESSION,
            ],
        )
    },
    Tool {
        about: "Show a task.",
        output: TASK_FIELDS,
        limit: AGENT_LIMIT,
        ..tool(
            "get_task",
            "task get",
            &[
                TASK,
                OF_AGENT,
                takes("history_length", InputTarget::Flag("--history-length"), "").number(),
                takes("wait", InputTarget::Flag("--wait"), "until it ends or needs input").switch(),
                takes("save_artifacts", InputTarget::PathFlag("--save-artifacts"), "directory"),
                SESSION,
                TIMEOUT,
            ],
        )
    },
    Tool {
        about: "Cancel a task.",
        output: TASK_FIELDS,
        limit: AGENT_LIMIT,
        ..tool("cancel_task", "task cancel", &[TASK, OF_AGENT, SESSION])
    },
    Tool {
        about: "List a task's push notifications.",
        shape: Shape::List("notifications"),
        limit: AGENT_LIMIT,
        ..tool("get_task_notification", "task notification list", &[TASK, OF_AGENT, SESSION])
    },
    Tool {
        about: "Notify a URL when a task changes.",
        limit: AGENT_LIMIT,
        ..tool(
            "set_task_notification",
            "task notification set",
            &[TASK, needs("url", InputTarget::Word, ""), OF_AGENT, SESSION],
        )
    },
    Tool {
        about: "Delete a push notification of a task.",
        limit: AGENT_LIMIT,
        ..tool(
            "delete_task_notification",
            "task notification remove",
            &[TASK, needs("notification_id", InputTarget::Word, ""), OF_AGENT, SESSION],
        )
    },
    Tool {
        about: "List state changes, newest first, with time and actor.",
        ..list(
            "list_history",
            "history",
            "operations",
            "id",
            &[SESSION, takes("since", InputTarget::Flag("--since"), ""), LIMIT, CURSOR],
        )
    },
];

const AGENT_IS: &str = "name or URL";

const SESSION: Input = takes("session", InputTarget::Flag("--session"), "");
const CONTEXT: Input = takes("context", InputTarget::Flag("--context"), "name of a target");
const KEY: Input = takes("key", InputTarget::Word, "else all");
const LIMIT: Input = takes("limit", InputTarget::PageLimit, "").number();
const CURSOR: Input = takes("cursor", InputTarget::Flag("--cursor"), "`next_cursor` of the last page");
const LOCK: Input = needs("name", InputTarget::Word, "");
const TOKEN: Input = needs("token", InputTarget::Flag("--token"), "from acquire_lock").number();
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
        page_key: None,
        hidden: None,
        always: &[],
        needs_session: false,
        limit: Limit::Usual,
    }
}

/// A tool that lists items, page by page.
const fn list(
    name: &'static str,
    command: &'static str,
    items: &'static str,
    key: &'static str,
    input: &'static [Input],
) -> Tool {
    Tool { shape: Shape::List(items), page_key: Some(key), ..tool(name, command, input) }
}

#[cfg(test)]
mod tests {
    use rmcp::model::JsonObject;
    use serde_json::{Value, json};

    use super::super::arguments::{BaseFlags, ToolCaller, invocation};
    use super::super::tool::InputKind;
    use super::*;
    use crate::effects;
    use crate::parse::AfterUse;

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
        // These exclude each other, or must exist.
        let apart = ["new", "context_id", "task_id", "conversation"];
        let is_left_out = |name: &str| match tool.name {
            "send_message" => apart.contains(&name) || ["files", "save_artifacts"].contains(&name),
            "get_task" => name == "save_artifacts",
            "list_tasks" => name == "all",
            _ => false,
        };
        tool.input
            .iter()
            .filter(|input| !is_left_out(input.name))
            .map(|input| (input.name.to_owned(), value(input)))
            .collect()
    }

    #[test]
    fn every_tool_is_an_existing_command() {
        for tool in TOOLS {
            assert!(effects::entry(tool.command).is_some(), "{}", tool.name);
            for arguments in [sample(tool), required(tool)] {
                let caller = ToolCaller { client: Some("a client"), session_exists: true };
                let made = invocation(tool, &arguments, &BaseFlags::default(), caller);
                let made =
                    made.or_else(|_| invocation(tool, &sample(tool), &BaseFlags::default(), caller)).unwrap();
                let words = std::iter::once("sessile".to_owned()).chain(made.args.clone());
                let parsed = crate::parse::parse(&words.map(Into::into).collect::<Vec<_>>(), AfterUse::Drop);
                assert!(parsed.is_ok(), "{}: {:?} {}", tool.name, made.args, parsed.unwrap_err());
            }
        }
    }

    fn required(tool: &Tool) -> JsonObject {
        let needed = |name: &str| tool.input.iter().any(|input| input.name == name && input.required);
        sample(tool).into_iter().filter(|(name, _)| needed(name)).collect()
    }

    #[test]
    fn argument_value_is_never_a_flag() {
        for tool in TOOLS {
            let made = invocation(tool, &sample(tool), &BaseFlags::default(), ToolCaller::default()).unwrap();
            let flags = made.args.iter().take_while(|word| *word != "--");
            for flag in flags.filter(|word| *word == "-x" || *word == "--yes") {
                assert!(tool.always.contains(&flag.as_str()), "{}: {:?}", tool.name, made.args);
            }
        }
    }

    #[test]
    fn unknown_argument_is_refused() {
        let stop = TOOLS.iter().find(|tool| tool.name == "stop_session").unwrap();
        let refusal = |given: Value| {
            let given = given.as_object().unwrap().clone();
            invocation(stop, &given, &BaseFlags::default(), ToolCaller::default()).unwrap_err().message
        };
        assert_eq!(refusal(json!({})), "stop_session requires the argument \"session\"");
        assert_eq!(refusal(json!({ "session": null })), refusal(json!({})));
        assert_eq!(refusal(json!({ "session": 7 })), "the argument \"session\" must be text, not 7");
        assert!(refusal(json!({ "sesion": "x" })).contains("did you mean \"session\"?"));
        assert!(refusal(json!({ "session": "a\0b" })).contains("NUL"));
        assert!(refusal(json!({ "session": "x".repeat(200_000) })).contains("too long"));
    }

    #[test]
    fn tool_descriptions_stay_under_13_kb() {
        let listed: Vec<_> = TOOLS.iter().map(Tool::listed).collect();
        let size =
            json!({ "jsonrpc": "2.0", "id": 1_000_000, "result": { "tools": listed } }).to_string().len();
        assert!(size < 13_000, "{size}");
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
