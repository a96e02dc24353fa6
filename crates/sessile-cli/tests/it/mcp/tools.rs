//! Every tool, by the clients that people have: listed, called, and its result held against its schema.

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::{Value, json};
use testkit::{Call, Home, Inspector, PythonMcpClient, Revision, ScriptedAgent};

use super::{agent, content, names, result, serve};
use crate::{home, home_with};

/// A home in which every tool finds something, and a call of each that must succeed. `tag` tells what one client makes
/// from what another does.
struct World {
    home: Home,
    agent: ScriptedAgent,
}

impl World {
    fn new() -> Self {
        let (home, agent) = (home_with(&["dev"]), agent());
        home.call(&["session", "start", "--name", "work", "--context", "dev"]).ok();
        home.call(&["config", "set", "--global", "agents.bot.url", agent.url()]).ok();
        World { home, agent }
    }

    fn server(&self) -> Call {
        self.home.call(&["mcp", "--allow-run"])
    }

    fn json(&self, args: &[&str]) -> Value {
        self.home.call(args).args(&["-ojson"]).ok().json()
    }

    /// A call of each tool. None needs another to be called before it.
    fn calls(&self, tag: &str) -> Vec<(&'static str, Value)> {
        let (own, old, gone) = (format!("own-{tag}"), format!("old-{tag}"), format!("gone-{tag}"));
        self.json(&["session", "start", "--name", &old]);
        let lock = |name: &str| self.json(&["lock", "acquire", name])["token"].clone();
        let (renewed, released) = (format!("renewed-{tag}"), format!("released-{tag}"));
        let (renew, release) = (lock(&renewed), lock(&released));
        let say = |text: &str, name: &str| {
            let words =
                ["message", "send", "bot", text, "--session", "work", "--new", "--conversation", name];
            self.json(&words)["task_id"].clone()
        };
        let (asked, off) = (say("ask", &own), say("ask", &gone));
        let hook = format!("hook-{tag}");
        let task = asked.as_str().unwrap();
        let url = ["https://example.com/gone", "--url", "bot", "--id", &hook];
        self.json(&[&["task", "notification", "set", task][..], &url].concat());
        let mut calls = self.readers(&own, &asked);
        calls.extend([
            ("start_session", json!({ "name": format!("new-{tag}"), "context": "dev" })),
            ("stop_session", json!({ "session": old })),
            ("set_setting", json!({ "key": "env.COLOUR", "value": "red", "session": "work" })),
            ("set_state", json!({ "key": tag, "value": { "step": 2 }, "if_revision": 0, "session": "work" })),
            (
                "acquire_lock",
                json!({ "name": format!("l-{tag}"), "ttl": "1m", "wait": "1s", "session": "work" }),
            ),
            ("renew_lock", json!({ "name": renewed, "token": renew, "ttl": "2m" })),
            ("release_lock", json!({ "name": released, "token": release })),
            ("run", json!({ "command": ["cat"], "stdin": "as it is", "session": "work", "directory": "." })),
            ("send_message", json!({ "agent": "bot", "text": "echo hello", "session": "work" })),
            ("clear_conversation", json!({ "conversation": gone, "session": "work" })),
            ("cancel_task", json!({ "task_id": off, "agent": self.agent.url() })),
            (
                "set_task_notification",
                json!({ "task_id": asked, "url": "https://example.com/hook", "agent": "bot" }),
            ),
            (
                "delete_task_notification",
                json!({ "task_id": asked, "notification_id": hook, "agent": "bot" }),
            ),
        ]);
        calls
    }

    fn readers(&self, conversation: &str, task: &Value) -> Vec<(&'static str, Value)> {
        vec![
            ("status", json!({ "session": "work" })),
            ("list_contexts", json!({})),
            ("show_context", json!({ "context": "dev" })),
            ("list_sessions", json!({})),
            ("show_session", json!({ "session": "work" })),
            ("get_settings", json!({ "session": "work" })),
            ("get_state", json!({ "session": "work" })),
            ("list_locks", json!({})),
            ("list_agents", json!({})),
            ("get_agent_card", json!({ "agent": "bot" })),
            ("validate_agent_card", json!({ "agent": self.agent.url() })),
            ("list_conversations", json!({ "session": "work", "agent": "bot", "limit": 10 })),
            ("show_conversation", json!({ "conversation": conversation, "session": "work" })),
            ("list_tasks", json!({ "agent": "bot", "limit": 5 })),
            ("get_task", json!({ "task_id": task, "agent": "bot", "session": "work" })),
            ("get_task_notification", json!({ "task_id": task, "agent": "bot" })),
            ("list_history", json!({ "limit": 5, "since": "1h" })),
        ]
    }
}

fn set<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    names.collect()
}

fn listed(tools: &Value) -> BTreeSet<&str> {
    set(tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()))
}

#[test]
fn the_official_client_calls_every_tool_by_every_revision() {
    let world = World::new();
    for (number, revision) in Revision::ALL.into_iter().enumerate() {
        let calls = world.calls(&format!("python-{number}"));
        let report = PythonMcpClient::new(revision).run(&world.server(), &calls);
        let version = match revision {
            Revision::Auto | Revision::Modern => super::INLINE,
            Revision::Handshake(version) => version,
        };
        assert_eq!(report["protocolVersion"], version);
        assert_eq!(listed(&report["tools"]), set(calls.iter().map(|(tool, _)| *tool)), "{revision:?}");
        for ((tool, arguments), result) in calls.iter().zip(report["results"].as_array().unwrap()) {
            assert_eq!(result["isError"], false, "{revision:?} {tool} {arguments}: {result}");
            content(result);
        }
        let ran = calls.iter().position(|(tool, _)| *tool == "run").unwrap();
        assert_eq!(report["results"][ran]["structuredContent"]["stdout"], "as it is");
        if revision != Revision::Modern {
            assert_eq!(report["serverInfo"]["name"], "sessile");
            assert!(report["instructions"].as_str().unwrap().contains("start_session"));
        }
    }
}

#[test]
fn the_inspector_calls_every_tool() {
    let world = World::new();
    for (inspector, tag) in [(Inspector::Legacy, "legacy"), (Inspector::Modern, "modern")] {
        let tools = json!(inspector.list(&world.server()));
        let calls = world.calls(tag);
        assert_eq!(listed(&tools), set(calls.iter().map(|(tool, _)| *tool)), "{inspector:?}");
        // Each call is a server of its own: one revision calls them all, the other one that takes each kind.
        let some = ["run", "set_state", "send_message", "list_sessions", "renew_lock"];
        let calls = calls.into_iter().filter(|(tool, _)| tag == "modern" || some.contains(tool));
        let calls = Mutex::new(calls);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let next = calls.lock().unwrap().next();
                        let Some((tool, arguments)) = next else { return };
                        let typed = as_texts(&arguments);
                        let typed: Vec<(&str, &str)> =
                            typed.iter().map(|(name, text)| (*name, text.as_str())).collect();
                        let result = inspector.call(&world.server(), tool, &typed);
                        assert_ne!(result["isError"], true, "{inspector:?} {tool} {arguments}: {result}");
                        content(&result);
                    }
                });
            }
        });
    }
}

/// Arguments as they are typed.
fn as_texts(arguments: &Value) -> Vec<(&str, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    arguments.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), text(value))).collect()
}

#[test]
fn tool_list_stays_under_13_kb_on_the_wire() {
    let world = World::new();
    for allow in [&["--allow-run"][..], &[]] {
        let mut client = serve(&world.home, allow);
        client.send_raw("{\"jsonrpc\":\"2.0\",\"id\":\"list\",\"method\":\"tools/list\"}\n");
        let answer = client.read_message(std::time::Duration::from_secs(10)).unwrap();
        let tools = answer["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 29 + allow.len());
        assert!(answer.to_string().len() < 13_000, "{}", answer.to_string().len());
        for tool in tools {
            assert!(tool["description"].as_str().unwrap().len() > 10, "{tool}");
            assert_eq!(tool["inputSchema"]["type"], "object");
            assert!(tool.get("outputSchema").is_none_or(|schema| schema["type"] == "object"), "{tool}");
        }
    }
}

#[test]
fn sessions_and_conversations_are_listed_with_their_state() {
    let world = World::new();
    let mut client = serve(&world.home, &[]);
    assert_eq!(result(&mut client, "list_conversations", json!({}))["count"], 0);
    for (session, text) in [("work", "task one"), ("work", "ask"), ("other", "echo hi")] {
        let words = json!({ "agent": "bot", "text": text, "session": session, "new": true });
        result(&mut client, "send_message", words);
    }
    let sessions = result(&mut client, "list_sessions", json!({}));
    assert_eq!((&sessions["count"], sessions["sessions"].as_array().unwrap().len()), (&json!(2), 2));
    let work = sessions["sessions"].as_array().unwrap().iter().find(|one| one["name"] == "work").unwrap();
    assert_eq!(work["context"], "dev");
    let inside = work["conversations"].as_array().unwrap();
    let all = result(&mut client, "list_conversations", json!({ "session": "work" }));
    assert_eq!((&all["count"], inside.len()), (&json!(2), 2));
    let members = ["id", "agent_url", "context_id", "task_id", "has_credentials"];
    for one in inside.iter().chain(all["conversations"].as_array().unwrap()) {
        for member in members {
            assert!(one.get(member).is_some(), "{member} is not in {one}");
        }
        assert_eq!(one["agent_url"].as_str().unwrap().trim_end_matches('/'), world.agent.url());
        assert_eq!(one["has_credentials"], false);
        assert!(one["context_id"].is_string() && one["task_id"].is_string(), "{one}");
    }
    assert_eq!(
        result(&mut client, "list_conversations", json!({}))["count"],
        3,
        "conversations of all sessions are listed"
    );
    let keep = ["auth", "set", "--url", world.agent.url(), "--bearer-token-stdin"];
    world.home.call(&keep).stdin("s3cret-token").ok();
    let sessions = result(&mut client, "list_sessions", json!({}));
    let all = result(&mut client, "list_conversations", json!({}));
    assert!(!format!("{sessions}{all}").contains("s3cret"));
    for one in all["conversations"].as_array().unwrap() {
        assert_eq!(one["has_credentials"], true, "{one}");
    }
    assert_eq!(sessions["sessions"][0]["conversations"][0]["has_credentials"], true, "{sessions}");
    assert_eq!(names(&mut client).len(), 29);
}

/// Every item of a list tool, page by page.
fn all_pages(client: &mut testkit::McpClient, tool: &str, list: &str, mut arguments: Value) -> Vec<Value> {
    let mut items = Vec::new();
    loop {
        let page = result(client, tool, arguments.clone());
        let found = page[list].as_array().unwrap();
        assert!(found.len() <= 2 && page["count"] == found.len(), "{tool}: {page}");
        items.extend(found.iter().cloned());
        match page["next_cursor"].as_str() {
            Some(cursor) => arguments["cursor"] = json!(cursor),
            None => return items,
        }
    }
}

#[test]
fn lists_have_pages_with_a_cursor() {
    let world = World::new();
    let home = &world.home;
    for n in 0..5 {
        home.call(&["session", "start", "--name", &format!("s{n}")]).ok();
        home.call(&["context", "create", &format!("c{n}")]).ok();
        home.call(&["lock", "acquire", &format!("l{n}")]).ok();
        home.call(&["session", "state", "set", &format!("k{n}"), "1", "--session", "work"]).ok();
        home.call(&["message", "send", "bot", "echo x", "--session", "work", "--new"]).ok();
    }
    let mut client = serve(home, &[]);
    let few = json!({ "limit": 2 });
    for (tool, list, key, arguments, least) in [
        ("list_sessions", "sessions", "id", few.clone(), 6),
        ("list_contexts", "contexts", "name", few.clone(), 6),
        ("list_locks", "locks", "name", few.clone(), 5),
        ("get_state", "values", "key", json!({ "limit": 2, "session": "work" }), 5),
        ("list_conversations", "conversations", "id", json!({ "limit": 2, "session": "work" }), 5),
        ("list_history", "operations", "id", few.clone(), 12),
        ("list_agents", "agents", "name", few.clone(), 1),
        ("get_settings", "settings", "key", few, 3),
    ] {
        let items = all_pages(&mut client, tool, list, arguments);
        let keys: BTreeSet<String> = items.iter().map(|item| item[key].to_string()).collect();
        assert!(items.len() >= least, "{tool}: {}", items.len());
        assert_eq!(keys.len(), items.len(), "{tool}: an item came twice");
    }
    for limit in [0, -1] {
        let told = super::refusal(&mut client, "list_sessions", json!({ "limit": limit }));
        assert_eq!(told["code"], "USAGE", "{limit}: {told}");
    }
}

#[test]
fn files_and_data_are_sent_along() {
    let world = World::new();
    world.home.write("note.txt", "from a file");
    let mut client = serve(&world.home, &[]);
    let given = json!({
        "agent": "bot", "text": "parts", "files": ["note.txt"], "data": { "answer": 42 }, "save_artifacts": "made",
    });
    result(&mut client, "send_message", given);
    assert!(world.agent.heard("note.txt") && world.agent.heard("\"answer\":42"));
    std::fs::write(world.home.path("../outside"), "x").unwrap();
    for outside in ["../outside", "/etc/passwd"] {
        let given = json!({ "agent": "bot", "text": "parts", "files": [outside] });
        let told = super::refusal(&mut client, "send_message", given);
        assert!(told["message"].as_str().unwrap().contains("not in the server's directory"), "{told}");
    }
}

#[test]
fn message_that_times_out_names_its_task() {
    let (home, agent) = (home(), agent());
    let mut client = serve(&home, &[]);
    let given = json!({ "agent": agent.url(), "text": "hold the end", "timeout": "3s" });
    let told = super::refusal(&mut client, "send_message", given);
    let command = told["fix_command"].as_str().unwrap_or_else(|| panic!("{told}"));
    let task = command.split(' ').nth(3).unwrap();
    agent.release();
    let given = json!({ "task_id": task, "agent": agent.url(), "wait": true });
    assert_eq!(result(&mut client, "get_task", given)["text"], "the end", "{told}");
}

#[test]
fn reply_whose_files_cannot_be_saved_is_a_result() {
    let (home, agent) = (home(), agent());
    home.write("out/report.txt", "");
    for number in 2..1000 {
        home.write(format!("out/report-{number}.txt"), "");
    }
    let mut client = serve(&home, &[]);
    let given = json!({ "agent": agent.url(), "text": "files", "save_artifacts": "out" });
    let reply = result(&mut client, "send_message", given);
    assert_eq!(reply["state"], "completed", "{reply}");
    assert!(reply["warning"].as_str().unwrap().contains("its files were not saved"), "{reply}");
}

#[test]
fn conversation_is_continued_by_the_id_that_lists_have() {
    let (home, agent) = (home(), agent());
    home.call(&["agent", "add", "bot", agent.url(), "--global"]).ok();
    home.call(&["session", "start", "--name", "work"]).ok();
    home.call(&["agent", "use", "bot", "--session", "work"]).ok();
    let mut client = serve(&home, &[]);
    // The session has a default agent.
    let first = result(&mut client, "send_message", json!({ "text": "context", "session": "work" }));
    let other = json!({ "text": "context", "session": "work", "new": true });
    result(&mut client, "send_message", other);
    let listed = result(&mut client, "list_conversations", json!({ "session": "work" }));
    let ids: Vec<&Value> = listed["conversations"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert!(ids.contains(&&first["conversation"]), "{listed}");
    let again = json!({ "text": "context", "session": "work", "conversation": first["conversation"] });
    let again = result(&mut client, "send_message", again);
    assert_eq!(again["context_id"], first["context_id"]);
    assert!(again["text"].as_str().unwrap().ends_with(" 2"), "{again}");
    let refused = super::refusal(&mut client, "send_message", json!({ "text": "echo x" }));
    assert!(refused["message"].as_str().unwrap().contains("no agent selected"), "{refused}");
}

#[test]
fn tasks_of_an_agent_come_in_pages() {
    let (home, agent) = (home(), agent());
    let mut client = serve(&home, &[]);
    for number in 0..3 {
        let given = json!({ "agent": agent.url(), "text": format!("task {number}") });
        result(&mut client, "send_message", given);
    }
    let (mut found, mut cursor) = (BTreeSet::new(), Value::Null);
    for page in 0..3 {
        let given = json!({ "agent": agent.url(), "limit": 1, "cursor": cursor });
        let listed = result(&mut client, "list_tasks", given);
        found.insert(listed["tasks"][0]["task_id"].as_str().unwrap().to_owned());
        cursor = listed["next_cursor"].clone();
        assert_eq!(cursor.is_null(), page == 2, "{listed}");
    }
    assert_eq!(found.len(), 3);
}
