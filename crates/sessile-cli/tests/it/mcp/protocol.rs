//! The protocol in all its revisions, and what is said out of turn.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Home, McpClient};

use super::{INLINE, USUAL, content, refused, result, serve, still_answers};
use crate::home;

const SOON: Duration = Duration::from_secs(20);

/// A server before its client has initialized it.
fn ungreeted(home: &Home) -> McpClient {
    McpClient::start(home.call(&["mcp"]))
}

fn code_of(answer: Result<Value, Value>) -> i64 {
    answer.unwrap_err()["code"].as_i64().unwrap()
}

/// Sends a line, and reads the answer to it.
fn ask_raw(client: &mut McpClient, line: &Value) -> Value {
    client.send_raw(format!("{line}\n"));
    client.read_message(SOON).unwrap()
}

#[test]
fn requested_revision_is_used() {
    let home = home();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", USUAL] {
        let mut client = ungreeted(&home);
        let greeted = client.initialize(version);
        assert_eq!(greeted["protocolVersion"], version);
        assert_eq!(greeted["serverInfo"], json!({ "name": "sessile", "version": env!("CARGO_PKG_VERSION") }));
        assert!(greeted["capabilities"]["tools"].is_object());
        assert!(greeted["instructions"].as_str().unwrap().contains("works in no session"));
        assert_eq!(client.request("ping", json!({})), json!({}));
        still_answers(&mut client);
        assert!(client.close().success());
    }
    for version in ["1999-01-01", "2099-01-01", "", "x", INLINE] {
        let mut client = ungreeted(&home);
        assert_eq!(client.initialize(version)["protocolVersion"], USUAL, "instead of {version:?}");
        still_answers(&mut client);
    }
}

#[test]
fn the_newest_revision_needs_no_greeting() {
    let home = home();
    let mut client = ungreeted(&home);
    let found = client.discover(INLINE);
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!(INLINE)), "{found}");
    let status = client.call("status", json!({}));
    assert_eq!(status["resultType"], "complete");
    content(&status);
    assert_eq!(client.discover(INLINE)["supportedVersions"], found["supportedVersions"]);
    assert!(client.close().success());

    let mut client = ungreeted(&home);
    client.speak(INLINE);
    still_answers(&mut client);
    assert!(!client.tools().is_empty());
    // What does not say who asks is not answered by guessing.
    let bare = ask_raw(&mut client, &json!({ "jsonrpc": "2.0", "id": "x", "method": "tools/list" }));
    assert_eq!((&bare["id"], &bare["error"]["code"]), (&json!("x"), &json!(-32602)));
    still_answers(&mut client);

    // A look around does not decide: a greeting may still follow.
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": INLINE,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let look =
        json!({ "jsonrpc": "2.0", "id": "look", "method": "server/discover", "params": { "_meta": meta } });
    let mut client = ungreeted(&home);
    assert_eq!(ask_raw(&mut client, &look)["result"]["supportedVersions"], found["supportedVersions"]);
    assert_eq!(client.initialize("2025-06-18")["protocolVersion"], "2025-06-18");
    still_answers(&mut client);
    let wrong = json!({
        "io.modelcontextprotocol/protocolVersion": "2099-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let request = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": { "_meta": wrong } });
    let mut client = ungreeted(&home);
    let told = ask_raw(&mut client, &request);
    assert!(told["error"]["data"]["supported"].as_array().unwrap().contains(&json!(INLINE)), "{told}");
    client.speak(INLINE);
    still_answers(&mut client);
}

#[test]
fn a_batch_is_answered_by_one_line() {
    let home = home();
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": 1, "progress": 1 } },
        { "jsonrpc": "2.0", "id": "two", "method": "tools/call", "params": { "name": "status", "arguments": {} } },
        { "jsonrpc": "2.0", "id": 3, "method": "no/such" },
        { "id": 4, "method": "ping" },
        "nonsense",
    ]);
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" },
    } });
    let silent = json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }]);
    let ping = json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" });
    let lines = format!("{hello}\n{silent}\n{batch}\n[]\n{ping}\n");
    let done = home.call(&["mcp"]).stdin(lines).ok();
    let said: Vec<Value> = done.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(said.len(), 4, "{}", done.told());
    let of = |id: Value| said.iter().find(|one| one.is_object() && one["id"] == id).unwrap();
    assert_eq!(of(json!(0))["result"]["protocolVersion"], "2025-03-26");
    assert_eq!(of(json!(5))["result"], json!({}));
    assert_eq!(of(Value::Null)["error"]["code"], -32600, "an empty batch is none");
    let answers = said.iter().find_map(Value::as_array).unwrap();
    assert_eq!(answers.len(), 5, "{answers:?}");
    let of = |id: Value| answers.iter().find(|one| one["id"] == id).unwrap();
    assert_eq!(of(json!(1))["result"], json!({}));
    assert!(of(json!("two"))["result"]["structuredContent"]["os_user"].is_string());
    assert_eq!(of(json!(3))["error"]["code"], -32601);
    assert_eq!(of(json!(4))["error"]["code"], -32600);
    assert_eq!(of(Value::Null)["error"]["code"], -32600);
}

#[test]
fn message_before_initialize_keeps_the_server() {
    let home = home();
    let early = [
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
        json!({ "jsonrpc": "2.0", "method": "no/such" }),
        json!({ "jsonrpc": "2.0", "id": 7, "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 7, "error": { "code": 1, "message": "x" } }),
    ];
    let mut client = ungreeted(&home);
    for said in &early {
        client.send_raw(format!("{said}\n"));
    }
    assert_eq!(client.request("ping", json!({})), json!({}));
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "status", "arguments": {} })),
        ("no/such", json!({})),
        ("initialize", json!({ "protocolVersion": 7 })),
        ("initialize", json!({})),
    ] {
        assert!(client.try_request(method, params).is_err(), "{method}");
        for said in &early {
            client.send_raw(format!("{said}\n"));
        }
    }
    assert_eq!(client.request("ping", json!({})), json!({}));
    client.initialize(USUAL);
    still_answers(&mut client);
    assert!(client.strays().is_empty(), "{:?}", client.strays());
    assert!(client.close().success());
}

#[test]
fn a_second_greeting_changes_nothing_for_the_worse() {
    let home = home();
    let mut client = serve(&home, &[]);
    assert_eq!(client.initialize("2025-06-18")["protocolVersion"], "2025-06-18");
    still_answers(&mut client);
    client.initialize("2099-01-01");
    still_answers(&mut client);
    assert!(client.close().success());
}

#[test]
fn unknown_method_is_an_error() {
    let home = home();
    let mut client = serve(&home, &[]);
    for method in ["no/such", "tools", "resources/write", "sampling/createMessage", ""] {
        assert_eq!(code_of(client.try_request(method, json!({}))), -32601, "{method}");
    }
    let near = client.try_call("list_session", json!({})).unwrap_err();
    assert_eq!(near["code"], -32602);
    assert_eq!(near["message"], "tool \"list_session\" not found; did you mean list_sessions?");
    for name in ["", "../status", "status ", "STATUS", "\u{1b}[2J"] {
        let error = client.try_call(name, json!({})).unwrap_err();
        assert_eq!(error["code"], -32602, "{name:?}");
        assert!(!error["message"].as_str().unwrap().contains('\u{1b}'), "{error}");
    }
    for params in [
        json!({}),
        json!({ "name": 7 }),
        json!({ "name": null }),
        json!({ "name": "status", "arguments": [] }),
        json!({ "name": "status", "arguments": "x" }),
        json!({ "name": ["status"] }),
    ] {
        assert_eq!(code_of(client.try_request("tools/call", params.clone())), -32602, "{params}");
    }
    for params in [json!([]), json!("x"), json!(7), json!(null)] {
        let line = json!({ "jsonrpc": "2.0", "id": "odd", "method": "tools/call", "params": params });
        let told = ask_raw(&mut client, &line);
        assert_eq!(told["id"], "odd", "{told}");
        assert!(told["error"]["code"] == -32602 || told["error"]["code"] == -32600, "{told}");
    }
    // Without arguments, and with none, is the same.
    assert!(client.try_request("tools/call", json!({ "name": "status" })).is_ok());
    assert!(client.try_request("tools/call", json!({ "name": "status", "arguments": null })).is_ok());
    assert_eq!(refused(&client.call("show_context", json!({})))["code"], "USAGE");
    still_answers(&mut client);
}

#[test]
fn piped_requests_get_all_responses() {
    let home = home();
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": USUAL, "capabilities": {}, "clientInfo": { "name": "x", "version": "1" },
    } });
    let call = |id: usize| {
        let params = json!({ "name": "status", "arguments": {} });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    let lines: Vec<String> = std::iter::once(hello.to_string()).chain((1..=10).map(call)).collect();
    // The last line has no end.
    let done = home.call(&["mcp"]).stdin(lines.join("\r\n")).ok();
    let mut ids: Vec<u64> = done
        .stdout()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .inspect(|one| assert!(one["result"].is_object(), "{one}"))
        .map(|one| one["id"].as_u64().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..=10).collect::<Vec<u64>>());
    assert_eq!(done.stderr(), "");
    // A server without any client exits successfully.
    let alone = home.call(&["mcp"]).ok();
    assert_eq!(alone.told(), "exit 0\n--- stdout\n--- stderr\n");
}

#[test]
fn ids_come_back_as_they_went() {
    let home = home();
    let mut client = serve(&home, &[]);
    for id in [json!("text"), json!(""), json!("7"), json!(-7), json!(0), json!(i64::MAX), json!("ü\u{0}")] {
        let answer = ask_raw(&mut client, &json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        assert_eq!((&answer["id"], &answer["result"]), (&id, &json!({})));
    }
    for id in [json!(null), json!(1.5), json!({}), json!([1]), json!(true)] {
        let answer = ask_raw(&mut client, &json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)), "{id}");
    }
    result(&mut client, "status", json!({}));
}

#[test]
fn instructions_name_only_offered_tools() {
    let home = home();
    let known: Vec<String> = {
        let mut client = serve(&home, &["--allow-run"]);
        super::names(&mut client)
    };
    crate::start(&home, &["--name", "web"]);
    for flags in [&[][..], &["--allow-run"], &["--read-only"], &["--session", "web"], &["--session", "later"]]
    {
        let mut client = McpClient::start(home.call(&["mcp"]).args(flags));
        let greeted = client.initialize(USUAL);
        let text = greeted["instructions"].as_str().unwrap();
        let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let offered = super::names(&mut client);
        for tool in known.iter().filter(|tool| tool.contains('_') && !offered.contains(tool)) {
            assert!(!words.contains(&tool.as_str()), "{flags:?} name {tool}: {text}");
        }
        assert_eq!(text.contains("`run`"), offered.contains(&"run".to_owned()), "{flags:?}: {text}");
        assert_ne!(
            text.contains("runs no commands"),
            offered.contains(&"run".to_owned()),
            "{flags:?}: {text}"
        );
        let is_there = flags.contains(&"web");
        assert_eq!(text.contains("works in session web"), is_there, "{flags:?}: {text}");
        assert_eq!(
            text.contains("session \"later\", which was not found"),
            flags.contains(&"later"),
            "{flags:?}: {text}"
        );
    }
}
