//! The service as agents use it: by the official MCP clients, over HTTP, two users at once.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use testkit::{Home, Inspector, McpUrl, PythonMcpClient, Revision};

use super::{Client, Service, Store};
use crate::home;
use crate::probe::server::Server;

/// A user of a service, with something for every tool to find.
struct User<'a> {
    home: &'a Home,
    name: &'static str,
    url: String,
    client: Client,
}

impl<'a> User<'a> {
    fn new(store: &Store<'a>, service: &Service, name: &'static str) -> Self {
        let client = service.client(&store.user(name));
        User { home: store.home, name, url: format!("http://{}/mcp", service.address), client }
    }

    fn server(&self) -> McpUrl {
        McpUrl::new(self.home.call(&[]), &self.url, &self.client.token)
    }

    fn started(&self) -> (String, String) {
        let path = self.client.session();
        self.client.ok("POST", &format!("{path}/messages"), &json!({ "messages": [self.name, "b", "c"] }));
        self.client.ok("PUT", &format!("{path}/state/found"), &json!({ "of": self.name }));
        (path.rsplit('/').next().unwrap().to_owned(), path)
    }

    /// A call of each tool. None needs another to be called before it.
    fn calls(&self, tag: &str) -> Vec<(&'static str, Value)> {
        let (id, path) = self.started();
        let (busy, busy_path) = self.started();
        let (old, _) = self.started();
        // Longer than a machine with much to do takes for all of them.
        let long = json!({ "ttl_ms": 600_000 });
        let turn = |path: &str| self.client.ok("POST", &format!("{path}/turns"), &long)["token"].clone();
        let lock = |name: &str| self.client.ok("POST", &format!("/v1/locks/{name}"), &long)["token"].clone();
        let (renewed, released) = (format!("renewed-{tag}"), format!("released-{tag}"));
        let held = turn(&busy_path);
        let (other, other_path) = self.started();
        let (third, third_path) = self.started();
        let (fourth, _) = self.started();
        self.client.ok("PUT", &format!("{path}/state/gone"), &json!(1));
        vec![
            ("list_sessions", json!({ "limit": 5 })),
            (
                "start_session",
                json!({ "name": format!("new-{tag}"), "labels": { "made": "here" }, "idle_ms": 60_000 }),
            ),
            ("show_session", json!({ "session": id })),
            ("stop_session", json!({ "session": old, "reason": "done" })),
            ("fork_session", json!({ "session": id, "at": 1 })),
            ("read_messages", json!({ "session": id, "last": 2 })),
            (
                "append_messages",
                json!({ "session": id, "messages": [{ "n": 1 }, "two"], "idempotency_key": format!("k-{tag}") }),
            ),
            (
                "send_message",
                json!({ "session": fourth, "messages": [{ "role": "user", "content": "hi" }], "history": 5 }),
            ),
            ("begin_turn", json!({ "session": id, "ttl_ms": 1000, "history": 1, "holder": self.name })),
            ("renew_turn", json!({ "session": busy, "token": held })),
            ("commit_turn", json!({ "session": other, "token": turn(&other_path), "messages": ["x"] })),
            ("abandon_turn", json!({ "session": third, "token": turn(&third_path) })),
            ("list_state", json!({ "session": id })),
            ("get_state", json!({ "session": id, "key": "found" })),
            ("set_state", json!({ "session": id, "key": "a/b", "value": { "step": 2 }, "if_revision": 0 })),
            ("delete_state", json!({ "session": id, "key": "gone" })),
            ("list_locks", json!({})),
            ("acquire_lock", json!({ "name": format!("l-{tag}"), "wait_ms": 1000 })),
            ("renew_lock", json!({ "name": renewed, "token": lock(&renewed), "ttl_ms": 90_000 })),
            ("release_lock", json!({ "name": released, "token": lock(&released) })),
        ]
    }
}

/// A service with an upstream that says one thing.
fn service<'a>(store: &Store<'a>) -> (Service, Server) {
    let upstream = Server::start(|_, _| {
        (200, json!({ "choices": [{ "message": { "content": "an answer" } }] }).to_string())
    });
    let url = format!("{}/v1", upstream.url());
    (Service::start_with(store, &["--upstream", &url, "--upstream-model", "small"]), upstream)
}

fn names<'v>(tools: impl IntoIterator<Item = &'v Value>) -> BTreeSet<&'v str> {
    tools.into_iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// What a result says, which must not be an error.
#[track_caller]
fn content(what: &str, result: &Value) -> Value {
    assert_ne!(result["isError"], true, "{what}: {result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    match result.get("structuredContent") {
        Some(content) => {
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *content, "{what}");
            content.clone()
        }
        None => json!(text),
    }
}

#[test]
fn official_mcp_client_calls_every_tool_in_every_revision() {
    let home = home();
    let store = Store::file(&home);
    let (service, _upstream) = service(&store);
    let (ann, bob) = (User::new(&store, &service, "ann"), User::new(&store, &service, "bob"));
    for (number, revision) in Revision::ALL.into_iter().enumerate() {
        let report = |user: &User<'_>| {
            let calls = user.calls(&format!("python-{number}"));
            let report = PythonMcpClient::new(revision).run(&user.server(), &calls);
            (calls, report)
        };
        let (of_ann, of_bob) = std::thread::scope(|scope| {
            let other = scope.spawn(|| report(&bob));
            (report(&ann), other.join().unwrap())
        });
        for (user, other, (calls, report)) in [("ann", "bob", of_ann), ("bob", "ann", of_bob)] {
            let version = match revision {
                Revision::Auto | Revision::Modern => "2026-07-28",
                Revision::Handshake(version) => version,
            };
            assert_eq!(report["protocolVersion"], version);
            assert_eq!(
                names(report["tools"].as_array().unwrap()),
                calls.iter().map(|(tool, _)| *tool).collect()
            );
            let results = report["results"].as_array().unwrap();
            assert_eq!(results.len(), calls.len());
            for ((tool, _), result) in calls.iter().zip(results) {
                content(&format!("{revision:?} {tool}"), result);
                assert!(!result.to_string().contains(other), "{user} {tool}: {result}");
            }
            let of = |tool: &str| &results[calls.iter().position(|(other, _)| *other == tool).unwrap()]["structuredContent"];
            assert_eq!(of("send_message")["reply"]["body"]["content"], "an answer");
            assert_eq!(of("get_state")["value"]["of"], user);
            assert_eq!(of("append_messages"), &json!({ "first": 4, "last": 5 }));
            if revision != Revision::Modern {
                assert_eq!(report["serverInfo"]["name"], "sessile");
                assert!(report["instructions"].as_str().unwrap().contains("begin_turn"));
            }
        }
    }
}

#[test]
fn session_of_another_user_is_not_found() {
    let home = home();
    let store = Store::file(&home);
    let (service, _upstream) = service(&store);
    let (ann, bob) = (User::new(&store, &service, "ann"), User::new(&store, &service, "bob"));
    // What ann calls, bob calls with ann's ids; and with one that nobody has.
    let calls: Vec<(&str, Value)> =
        ann.calls("x").into_iter().filter(|(_, given)| given.get("session").is_some()).collect();
    assert_eq!(calls.len(), 14);
    let nobodys: Vec<(&str, Value)> = calls
        .iter()
        .map(|(tool, given)| {
            let mut given = given.clone();
            given["session"] = json!("0199aaaa-0000-7000-8000-00000000dead");
            (*tool, given)
        })
        .collect();
    let results = |calls: &[(&str, Value)]| {
        PythonMcpClient::new(Revision::Auto).run(&bob.server(), calls)["results"].as_array().unwrap().clone()
    };
    let (anns, nobodys) = (results(&calls), results(&nobodys));
    for (((tool, _), result), other) in calls.iter().zip(&anns).zip(&nobodys) {
        assert_eq!(result["isError"], true, "{tool}: {result}");
        let told: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        let (code, status) = (&told["error"]["code"], &told["error"]["status"]);
        assert_eq!((code, status), (&json!("SESSION_NOT_FOUND"), &json!(404)), "{tool}");
        assert_eq!(result["content"], other["content"], "{tool}");
    }
    assert_eq!(bob.client.get("/v1/sessions")["sessions"], json!([]));
}

#[test]
fn mcp_inspector_calls_every_tool() {
    let home = home();
    let store = Store::file(&home);
    let (service, _upstream) = service(&store);
    let ann = User::new(&store, &service, "ann");
    for (inspector, tag) in [(Inspector::Legacy, "legacy"), (Inspector::Modern, "modern")] {
        let tools = inspector.list(&ann.server());
        let calls = ann.calls(tag);
        assert_eq!(names(&tools), calls.iter().map(|(tool, _)| *tool).collect(), "{inspector:?}");
        // One revision calls them all, the other one that takes each kind.
        let some = ["set_state", "list_sessions", "renew_lock", "release_lock", "append_messages"];
        for (tool, given) in calls.into_iter().filter(|(tool, _)| tag == "modern" || some.contains(tool)) {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let typed: Vec<(&str, String)> =
                given.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), text(value))).collect();
            let typed: Vec<(&str, &str)> = typed.iter().map(|(name, text)| (*name, text.as_str())).collect();
            content(&format!("{inspector:?} {tool}"), &inspector.call(&ann.server(), tool, &typed));
        }
    }
    let stranger = McpUrl::new(home.call(&[]), &ann.url, "sst_nobody");
    let refused = Inspector::Modern.run(&stranger, "tools/list", &[]);
    assert_ne!(refused.status(), Some(0), "{}", refused.told());
}
