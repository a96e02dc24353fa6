//! Nothing is done that was not said: what is missing destroys nothing, and what is named is what is meant.

use serde_json::{Value, json};
use testkit::{Home, McpClient};

use super::{agent, code, names, refusal, result, serve};
use crate::{home, home_with, live, start};

/// The tools that only look.
const READERS: [&str; 17] = [
    "status",
    "list_contexts",
    "show_context",
    "list_sessions",
    "show_session",
    "get_settings",
    "get_state",
    "list_locks",
    "list_agents",
    "get_agent_card",
    "validate_agent_card",
    "list_conversations",
    "show_conversation",
    "list_tasks",
    "get_task",
    "get_task_notification",
    "list_history",
];

/// Everything that could be lost.
fn kept(home: &Home) -> Value {
    let told = |args: &[&str]| home.call(args).args(&["-ojson"]).ok().json();
    json!([
        live(home),
        told(&["conversation", "list", "--all"]),
        told(&["lock", "list"]),
        told(&["session", "state", "list", "--session", "work"]),
        told(&["context", "list"]),
        told(&["history"]),
    ])
}

/// A home with a session, a value, a lock and a conversation with an agent that has a task.
fn furnished(agent: &str) -> (Home, Value) {
    let home = home_with(&["dev", "prod"]);
    start(&home, &["--name", "work", "--context", "dev"]);
    home.call(&["session", "state", "set", "k", "1", "--session", "work"]).ok();
    home.call(&["lock", "acquire", "deploy", "--ttl", "1h"]).ok();
    let sent = home.call(&["message", "send", agent, "ask", "--session", "work", "-ojson"]).ok().json();
    (home, sent)
}

#[test]
fn call_with_a_missing_argument_destroys_nothing() {
    let agent = agent();
    let (home, sent) = furnished(agent.url());
    // In the session itself too, where there would be something to take for meant.
    for flags in [&["--allow-run"][..], &["--allow-run", "--session", "work"]] {
        let mut client = serve(&home, flags);
        let before = kept(&home);
        for tool in client.tools() {
            let name = tool["name"].as_str().unwrap();
            let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
            if READERS.contains(&name) || required.is_empty() {
                assert!(
                    READERS.contains(&name) || name == "start_session",
                    "{name} takes nothing and changes something"
                );
                continue;
            }
            let mut nulls = json!({});
            for argument in tool["inputSchema"]["properties"].as_object().unwrap().keys() {
                nulls[argument] = Value::Null;
            }
            for given in [json!({}), nulls] {
                let told = refusal(&mut client, name, given.clone());
                assert_eq!(told["code"], "USAGE", "{name} {given}: {told}");
                assert!(told["message"].as_str().unwrap().contains("requires the argument"), "{told}");
            }
            // One that is missing, of several.
            for left_out in &required {
                let mut given = json!({});
                for argument in required.iter().filter(|one| *one != left_out) {
                    given[argument.as_str().unwrap()] = match argument.as_str().unwrap() {
                        "token" => json!(1),
                        "name" => json!("deploy"),
                        "task_id" => sent["task_id"].clone(),
                        "command" => json!(["touch", "ran"]),
                        _ => json!("k"),
                    };
                }
                assert_eq!(code(&mut client, name, given.clone()), "USAGE", "{name} {given}");
            }
        }
        assert_eq!(kept(&home), before);
    }
    assert!(!home.path("ran").exists());
    assert_eq!(
        agent.task(sent["task_id"].as_str().unwrap()).unwrap()["status"]["state"],
        "TASK_STATE_INPUT_REQUIRED"
    );
}

#[test]
fn empty_name_is_refused() {
    let agent = agent();
    let (home, _) = furnished(agent.url());
    let mut client = serve(&home, &["--session", "work"]);
    let before = kept(&home);
    for (tool, given) in [
        ("stop_session", json!({ "session": "" })),
        ("clear_conversation", json!({ "conversation": "" })),
        ("clear_conversation", json!({ "conversation": "--all" })),
        ("clear_conversation", json!({ "conversation": "*" })),
        ("release_lock", json!({ "name": "", "token": 1 })),
        ("release_lock", json!({ "name": "deploy", "token": 0 })),
        ("release_lock", json!({ "name": "deploy", "token": -1 })),
        ("cancel_task", json!({ "task_id": "" })),
        ("stop_session", json!({ "session": "wor" })),
    ] {
        refusal(&mut client, tool, given);
    }
    assert_eq!(kept(&home), before);
}

/// In which session a command finds itself.
fn session_of_run(client: &mut McpClient, given: Value) -> String {
    let mut given = given;
    given["command"] = json!(["sh", "-c", "echo $SESSILE_SESSION"]);
    result(client, "run", given)["stdout"].as_str().unwrap().trim().to_owned()
}

#[test]
fn named_session_overrides_the_servers_session() {
    let home = home_with(&["dev", "prod"]);
    let (work, other) =
        (start(&home, &["--name", "work", "--context", "dev"]), start(&home, &["--name", "other"]));
    let by_flag = home.call(&["mcp", "--allow-run", "--session", "work"]);
    let by_variable = home.call(&["mcp", "--allow-run"]).env("SESSILE_SESSION", &work);
    for call in [by_flag, by_variable] {
        let mut client = McpClient::start(call);
        let greeted = client.initialize(super::USUAL);
        assert!(greeted["instructions"].as_str().unwrap().contains("works in session work"), "{greeted}");
        let status = result(&mut client, "status", json!({}));
        assert_eq!(
            (&status["session"], &status["current_context"]),
            (&json!(work), &json!("dev")),
            "{status}"
        );
        assert_eq!(result(&mut client, "show_session", json!({}))["id"], work);
        assert_eq!(session_of_run(&mut client, json!({})), work);
        result(&mut client, "set_state", json!({ "key": "mine", "value": 1 }));
        // Named, it is another one.
        for handle in ["other", &other] {
            assert_eq!(session_of_run(&mut client, json!({ "session": handle })), other);
            assert_eq!(result(&mut client, "status", json!({ "session": handle }))["session"], other);
            assert_eq!(result(&mut client, "show_session", json!({ "session": handle }))["id"], other);
            assert_eq!(result(&mut client, "get_state", json!({ "session": handle }))["count"], 0);
        }
        assert_eq!(result(&mut client, "get_state", json!({}))["values"][0]["key"], "mine");
        let fixed = json!({ "command": ["touch", "ran"], "context": "prod" });
        assert_eq!(code(&mut client, "run", fixed), "CONTEXT_FIXED");
        let fixed = json!({ "command": ["touch", "ran"], "context": "prod", "session": "work" });
        assert_eq!(code(&mut client, "run", fixed), "CONTEXT_FIXED");
        let same = json!({ "context": "dev" });
        assert_eq!(session_of_run(&mut client, same), work);
        assert!(!home.path("ran").exists());
        // Another one that is named is stopped, and not the server's own.
        result(&mut client, "start_session", json!({ "name": "short" }));
        result(&mut client, "stop_session", json!({ "session": "short" }));
        assert_eq!(live(&home).len(), 2);
    }
    let mut lost = McpClient::start(home.call(&["mcp", "--allow-run", "--session", "work"]));
    lost.initialize(super::USUAL);
    home.call(&["session", "stop", "work"]).ok();
    for (tool, given) in [("get_state", json!({})), ("run", json!({ "command": ["touch", "ran"] }))] {
        let told = refusal(&mut lost, tool, given);
        assert!(
            told["code"].as_str().unwrap().starts_with("SESSION_"),
            "{tool} does not continue in another session: {told}"
        );
    }
    assert!(!home.path("ran").exists());
}

#[test]
fn servers_context_is_the_default() {
    let home = home_with(&["dev", "prod"]);
    start(&home, &["--name", "pinned", "--context", "prod"]);
    let mut client = serve(&home, &["--context", "dev"]);
    assert_eq!(result(&mut client, "status", json!({}))["current_context"], "dev");
    assert_eq!(result(&mut client, "status", json!({ "session": "pinned" }))["current_context"], "prod");
    assert_eq!(result(&mut client, "start_session", json!({ "name": "a" }))["context"], "dev");
    assert_eq!(
        result(&mut client, "start_session", json!({ "name": "b", "context": "prod" }))["context"],
        "prod"
    );
}

#[test]
fn a_handle_of_another_home_is_not_found() {
    let agent = agent();
    let ((theirs, sent), mine) = (furnished(agent.url()), home());
    let id = live(&theirs).remove(0);
    let before = kept(&theirs);
    let mut client = serve(&mine, &["--allow-run"]);
    for (tool, given, expected) in [
        ("show_session", json!({ "session": id }), "SESSION_NOT_FOUND"),
        ("stop_session", json!({ "session": id }), "SESSION_NOT_FOUND"),
        ("get_state", json!({ "session": id }), "SESSION_NOT_FOUND"),
        ("set_state", json!({ "session": id, "key": "k", "value": 2 }), "SESSION_NOT_FOUND"),
        ("run", json!({ "session": id, "command": ["true"] }), "SESSION_NOT_FOUND"),
        ("show_conversation", json!({ "conversation": sent["conversation"] }), "CONVERSATION_NOT_FOUND"),
        ("clear_conversation", json!({ "conversation": sent["conversation"] }), "CONVERSATION_NOT_FOUND"),
        ("show_context", json!({ "context": "dev" }), "CONTEXT_NOT_FOUND"),
    ] {
        assert_eq!(code(&mut client, tool, given), expected, "{tool}");
    }
    refusal(&mut client, "release_lock", json!({ "name": "deploy", "token": 1 }));
    refusal(&mut client, "renew_lock", json!({ "name": "deploy", "token": 1 }));
    assert_eq!(kept(&theirs), before);
}

#[test]
fn disabled_tool_is_neither_listed_nor_run() {
    let home = home_with(&["dev"]);
    let mut plain = serve(&home, &[]);
    assert!(!names(&mut plain).contains(&"run".to_owned()));
    let told = refusal(&mut plain, "run", json!({ "command": ["touch", "ran"] }));
    assert_eq!(
        (&told["code"], told["message"].as_str().unwrap().contains("--allow-run")),
        (&json!("CONFIRMATION_REQUIRED"), true)
    );

    start(&home, &["--name", "work"]);
    let before = (home.tree_of_people(), kept(&home));
    let all = names(&mut serve(&home, &["--allow-run"]));
    let mut looking = serve(&home, &["--read-only"]);
    assert_eq!(
        names(&mut looking),
        all.iter().filter(|name| READERS.contains(&name.as_str())).cloned().collect::<Vec<_>>()
    );
    for name in all.iter().filter(|name| !READERS.contains(&name.as_str())) {
        let error = looking.try_call(name, json!({ "session": "work" })).unwrap_err();
        assert_eq!(error["code"], -32602, "{name}");
        assert!(error["message"].as_str().unwrap().contains("is off"), "{error}");
    }
    assert_eq!(result(&mut looking, "list_sessions", json!({}))["count"], 1);
    assert!(
        (home.tree_of_people(), kept(&home)) == before && !home.path("ran").exists(),
        "nothing was changed"
    );
    home.call(&["mcp", "--read-only", "--allow-run"]).run().exit(2);
}

#[test]
fn named_session_keeps_its_context_and_new_gets_the_servers() {
    let home = home_with(&["dev", "staging"]);
    start(&home, &["--name", "there", "--context", "dev"]);
    let by_flag = home.call(&["mcp", "--allow-run", "--context", "staging"]);
    let by_variable = home.call(&["mcp", "--allow-run"]).env("SESSILE_CONTEXT", "staging");
    for (server, new) in [(by_flag, "one"), (by_variable, "two")] {
        let mut client = McpClient::start(server);
        client.initialize(super::USUAL);
        for (session, context) in [("there", "dev"), (new, "staging")] {
            let given = json!({ "command": ["true"], "session": session });
            assert_eq!(result(&mut client, "run", given)["exit_code"], 0, "{session}");
            let shown = result(&mut client, "show_session", json!({ "session": session }));
            assert_eq!(shown["context"], context, "{session}");
        }
        let set = result(&mut client, "set_state", json!({ "key": "k", "value": 1, "session": "there" }));
        assert_eq!(set["context"], "dev", "the result of a change names the context");
    }
}

#[test]
fn server_starts_before_its_session_exists() {
    let home = home_with(&["dev"]);
    let mut client = serve(&home, &["--allow-run", "--session", "later", "--context", "dev"]);
    assert_eq!(code(&mut client, "get_state", json!({})), "SESSION_NOT_FOUND");
    assert_eq!(result(&mut client, "run", json!({ "command": ["true"] }))["exit_code"], 0);
    assert_eq!(result(&mut client, "get_state", json!({}))["count"], 0);
}

#[test]
fn settings_are_set_in_a_session_and_nowhere_else() {
    let home = home();
    home.call(&["config", "set", "lock-timeout", "9s", "--dir"]).ok();
    let before = home.tree();
    let mut client = serve(&home, &[]);
    let given = json!({ "key": "lock-timeout", "value": "3s" });
    assert_eq!(code(&mut client, "set_setting", given.clone()), "SESSION_REQUIRED");
    assert_eq!(home.tree(), before);
    start(&home, &["--name", "work"]);
    let mut inside = serve(&home, &["--session", "work"]);
    assert_eq!(result(&mut inside, "set_setting", given)["layer"], "session");
    // What keeps credentials may be a program.
    let helper = json!({ "key": "vault.helper", "value": "/bin/true" });
    assert_eq!(code(&mut inside, "set_setting", helper), "IN_SESSION");
}
