//! The endpoint for agents: the protocol in its revisions, and what is refused. That the clients which people have can use
//! it is tested with the program.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sessile::vault::Secret;
use sessile_server::account::TokenScope;
use sessile_server::serve::Options;
use sessile_server::upstream::Upstream;

use super::upstream::ScriptedUpstream;
use super::{Client, Reply, TestServer, server, started, with};

const INLINE: &str = "2026-07-28";
const GREETING: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn post(client: &Client, headers: &[(&str, &str)], message: &Value) -> Reply {
    client.send("POST", "/mcp", headers, Some(&message.to_string()))
}

fn request(method: &str, params: Value) -> Value {
    let mut request = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
    request["params"] = params;
    request
}

/// Calls a tool as clients of older revisions do.
#[track_caller]
fn call(client: &Client, tool: &str, arguments: Value) -> Value {
    let mut params = json!({ "name": tool });
    params["arguments"] = arguments;
    let answer = post(client, &[], &request("tools/call", params)).ok(200);
    assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(1)), "{answer}");
    answer["result"].clone()
}

/// What a call that must succeed gives.
#[track_caller]
fn content(client: &Client, tool: &str, arguments: Value) -> Value {
    let result = call(client, tool, arguments);
    assert_eq!(result["isError"], false, "{tool}: {result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    match result.get("structuredContent") {
        Some(content) => {
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *content);
            content.clone()
        }
        None => json!(text),
    }
}

/// The error of a call that must fail.
#[track_caller]
fn refused(client: &Client, tool: &str, arguments: Value) -> Value {
    let result = call(client, tool, arguments);
    assert_eq!(result["isError"], true, "{tool}: {result}");
    assert!(result.get("structuredContent").is_none(), "{result}");
    let told: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    told["error"].clone()
}

#[track_caller]
fn names(client: &Client) -> Vec<String> {
    let tools = post(client, &[], &request("tools/list", json!({}))).ok(200)["result"]["tools"].clone();
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn meta(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// Sends a request as clients of the newest revision do.
fn inline(client: &Client, method: &str, name: Option<&str>, mut params: Value) -> Reply {
    params["_meta"] = meta(INLINE);
    let mut headers = vec![("mcp-protocol-version", INLINE), ("mcp-method", method)];
    headers.extend(name.map(|name| ("mcp-name", name)));
    post(client, &headers, &request(method, params))
}

#[test]
fn initialize_answers_in_the_requested_revision() {
    let server = server();
    let ann = server.user("ann");
    let greet = |version: &str| {
        let client = json!({ "name": "x", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        post(&ann, &[], &request("initialize", params)).ok(200)["result"].clone()
    };
    for version in GREETING {
        let greeted = greet(version);
        assert_eq!(greeted["protocolVersion"], version);
        assert_eq!(greeted["serverInfo"], json!({ "name": "sessile", "version": env!("CARGO_PKG_VERSION") }));
        assert!(greeted["capabilities"]["tools"].is_object() && greeted["instructions"].is_string());
        let headers = [("mcp-protocol-version", version)];
        let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let accepted = post(&ann, &headers, &begun);
        assert_eq!((accepted.status, accepted.text.as_str()), (202, ""));
        assert_eq!(post(&ann, &headers, &request("ping", json!({}))).ok(200)["result"], json!({}));
        let listed = post(&ann, &headers, &request("tools/list", json!({}))).ok(200);
        assert!(listed["result"]["tools"].as_array().unwrap().len() > 15);
        assert!(listed["result"].get("resultType").is_none());
        assert!(accepted.header("mcp-session-id").is_none());
    }
    for version in ["1999-01-01", "2099-01-01", "", INLINE] {
        assert_eq!(greet(version)["protocolVersion"], "2025-11-25", "instead of {version:?}");
    }
    let wrong = post(&ann, &[], &request("initialize", json!({ "protocolVersion": 7 }))).ok(200);
    assert_eq!(wrong["error"]["code"], -32602);
}

#[test]
fn newest_revision_needs_no_initialize() {
    let server = server();
    let ann = server.user("ann");
    let found = inline(&ann, "server/discover", None, json!({})).ok(200)["result"].clone();
    assert_eq!(found["supportedVersions"][0], INLINE);
    assert_eq!((&found["resultType"], &found["cacheScope"]), (&json!("complete"), &json!("private")));
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "sessile");
    let tools = inline(&ann, "tools/list", None, json!({})).ok(200)["result"].clone();
    assert!(tools["ttlMs"].is_u64() && tools["resultType"] == "complete");
    let start = json!({ "name": "start_session", "arguments": {} });
    let started = inline(&ann, "tools/call", Some("start_session"), start.clone()).ok(200)["result"].clone();
    assert!(started["structuredContent"]["id"].is_string() && started["resultType"] == "complete");
    let wrapped = inline(&ann, "tools/call", Some("=?base64?c3RhcnRfc2Vzc2lvbg==?="), start.clone()).ok(200);
    assert_eq!(wrapped["result"]["isError"], false);

    let code = |reply: Reply, status: u16| reply.ok(status)["error"]["code"].as_i64().unwrap();
    assert_eq!(code(inline(&ann, "ping", None, json!({})), 404), -32601, "the method was removed");
    assert_eq!(code(inline(&ann, "no/such", None, json!({})), 404), -32601);
    assert_eq!(code(inline(&ann, "tools/call", None, start.clone()), 400), -32020, "no name");
    assert_eq!(code(inline(&ann, "tools/call", Some("stop_session"), start), 400), -32020, "another name");
    let list = |headers: &[(&str, &str)], params: Value| post(&ann, headers, &request("tools/list", params));
    let says = |version| json!({ "_meta": meta(version) });
    let (told, method) = (("mcp-protocol-version", INLINE), ("mcp-method", "tools/list"));
    assert_eq!(code(list(&[told, method], json!({})), 400), -32602, "the parameters lack the revision");
    let half = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": INLINE } });
    assert_eq!(code(list(&[told, method], half), 400), -32602);
    assert_eq!(code(list(&[method], says(INLINE)), 400), -32020, "no header");
    assert_eq!(code(list(&[told], says(INLINE)), 400), -32020, "no method");
    assert_eq!(code(list(&[told, ("mcp-method", "ping")], says(INLINE)), 400), -32020);
    assert_eq!(code(list(&[told, method], says("2025-11-25")), 400), -32020, "two revisions");
    let future = list(&[("mcp-protocol-version", "2099-01-01"), method], says("2099-01-01")).ok(400);
    assert_eq!(future["error"]["code"], -32022);
    assert_eq!(future["error"]["data"]["supported"][0], INLINE);
    assert_eq!(code(list(&[("mcp-protocol-version", "1999-01-01")], json!({})), 400), -32022);
    let twice = list(&[told, told, method], says(INLINE));
    twice.refused(400, "USAGE");
}

#[test]
fn tools_act_like_the_api_for_the_same_user() {
    let server = server();
    let (ann, bob) = (server.user("ann"), server.user("bob"));
    let session = content(&ann, "start_session", json!({ "name": "work", "labels": { "team": "a" } }));
    let id = session["id"].as_str().unwrap();
    let path = format!("/v1/sessions/{id}");
    assert_eq!(ann.get(&path).ok(200), session);
    content(&ann, "append_messages", json!({ "session": id, "messages": ["one", { "n": 2 }] }));
    let read = content(&ann, "read_messages", json!({ "session": id, "last": 1 }));
    assert_eq!(read["messages"][0]["body"], json!({ "n": 2 }));
    assert_eq!(
        content(&ann, "list_sessions", json!({ "label": "team=a", "live": true }))["sessions"][0]["id"],
        id
    );
    assert_eq!(content(&ann, "list_sessions", json!({ "label": "team=b" }))["sessions"], json!([]));
    let key = "a/b?c=%2F #\u{e9}";
    let set = |value: Value, revision: i64| json!({ "session": id, "key": key, "value": value, "if_revision": revision });
    assert_eq!(content(&ann, "set_state", set(json!({ "step": 1 }), 0))["revision"], 1);
    assert_eq!(refused(&ann, "set_state", set(json!(2), 0))["code"], "REVISION_CONFLICT");
    assert_eq!(content(&ann, "set_state", set(Value::Null, 1))["value"], Value::Null);
    assert_eq!(content(&ann, "get_state", json!({ "session": id, "key": key }))["key"], key);
    assert_eq!(content(&ann, "delete_state", json!({ "session": id, "key": key })), "done");
    assert_eq!(refused(&ann, "get_state", json!({ "session": id, "key": key }))["code"], "ENTRY_NOT_FOUND");

    let once = json!({ "session": id, "messages": ["once"], "idempotency_key": "k" });
    let first = content(&ann, "append_messages", once.clone());
    assert_eq!(content(&ann, "append_messages", once), first);
    let other = json!({ "session": id, "messages": ["other"], "idempotency_key": "k" });
    assert_eq!(refused(&ann, "append_messages", other)["status"], 422);
    assert_eq!(ann.get(&path).ok(200)["messages"], 3);

    // Another's is what nobody has.
    let nobody = "0199aaaa-0000-7000-8000-00000000dead";
    for (tool, more) in [
        ("show_session", json!({})),
        ("stop_session", json!({})),
        ("read_messages", json!({})),
        ("append_messages", json!({ "messages": [1] })),
        ("begin_turn", json!({ "wait_ms": 0 })),
        ("list_state", json!({})),
        ("set_state", json!({ "key": "k", "value": 1 })),
        ("fork_session", json!({})),
    ] {
        let of = |id: &str| {
            let mut given = more.clone();
            given["session"] = json!(id);
            refused(&bob, tool, given)
        };
        assert_eq!(of(id)["code"], "SESSION_NOT_FOUND", "{tool}");
        assert_eq!(of(id), of(nobody), "{tool}");
    }
    assert_eq!(content(&bob, "list_sessions", json!({}))["sessions"], json!([]));
    assert_eq!(refused(&bob, "show_session", json!({ "session": "work" }))["code"], "SESSION_NOT_FOUND");
    content(&ann, "acquire_lock", json!({ "name": "deploy", "session": id }));
    let stopped = content(&ann, "stop_session", json!({ "session": id, "reason": "done" }));
    assert_eq!((&stopped["end_reason"], &stopped["released_locks"]), (&json!("done"), &json!(["deploy"])));
    assert_eq!(
        refused(&ann, "append_messages", json!({ "session": id, "messages": [1] }))["code"],
        "SESSION_EXPIRED"
    );
}

#[test]
fn tool_list_depends_on_the_scopes() {
    let server = server();
    let ann = server.user("ann");
    let (reader, _) = server.token("ann", &[TokenScope::Read], None);
    let id = content(&ann, "start_session", json!({}))["id"].clone();
    assert_eq!(
        names(&reader),
        ["list_sessions", "show_session", "read_messages", "list_state", "get_state", "list_locks"]
    );
    assert_eq!(content(&reader, "show_session", json!({ "session": id }))["id"], id);
    let told = refused(&reader, "stop_session", json!({ "session": id }));
    assert_eq!((&told["code"], &told["status"]), (&json!("CREDENTIAL_REJECTED"), &json!(403)));
    assert!(content(&ann, "show_session", json!({ "session": id }))["ended_ms"].is_null());

    let list = request("tools/list", json!({}));
    let nobody = post(&server.nobody(), &[], &list);
    nobody.refused(401, "CREDENTIAL_REJECTED");
    assert_eq!(nobody.header("www-authenticate"), Some("Bearer realm=\"sessile\""));
    let stranger = Client { secret: Some("sst_no".to_owned()), ..ann.clone() };
    post(&stranger, &[], &list).refused(401, "CREDENTIAL_REJECTED");
    assert!(!names(&ann).contains(&"send_message".to_owned()), "no upstream would reply");
    let error =
        post(&ann, &[], &request("tools/call", json!({ "name": "send_message", "arguments": {} }))).ok(200);
    assert_eq!(error["error"]["code"], -32602);
}

#[test]
fn send_message_is_offered_only_with_an_upstream() {
    let scripted = ScriptedUpstream::start();
    let key = Some(Secret::new("sk-hunter2"));
    let upstream = Upstream::new(&scripted.url(), "small", key, Duration::from_secs(20)).unwrap();
    let server = started(Options { upstream: Some(upstream), ..Options::default() });
    let ann = server.user("ann");
    let id = content(&ann, "start_session", json!({}))["id"].clone();
    let said = json!({ "session": id, "messages": [{ "role": "user", "content": "hello" }], "idempotency_key": "k" });
    let replied = content(&ann, "send_message", said.clone());
    assert_eq!(replied["reply"]["body"], json!({ "role": "assistant", "content": "hello" }));
    assert_eq!(content(&ann, "send_message", said), replied);
    assert_eq!(scripted.asked().len(), 1);
    // The reply says what it was told, so who may not read cannot have one.
    assert!(names(&ann).contains(&"send_message".to_owned()));
    let (writer, _) = server.token("ann", &[TokenScope::Write], None);
    let listed = names(&writer);
    assert!(
        listed.contains(&"append_messages".to_owned()) && !listed.contains(&"send_message".to_owned()),
        "{listed:?}"
    );
}

#[test]
fn invalid_json_rpc_message_is_answered_with_an_error() {
    let server = with(|limits| limits.body_bytes = 20_000);
    let ann = server.user("ann");
    let raw = |body: &str| ann.send("POST", "/mcp", &[], Some(body));
    for wrong in ["", "{", "nul", "{\"jsonrpc\":", "\u{1}", "1e999", "{\"a\":\"\\ud800\"}"] {
        let told = raw(wrong).ok(400);
        assert_eq!((&told["error"]["code"], &told["id"]), (&json!(-32700), &Value::Null), "{wrong}");
    }
    for (wrong, id) in [
        (json!(7), Value::Null),
        (json!("x"), Value::Null),
        (json!({}), Value::Null),
        (json!({ "id": 3, "method": "ping" }), json!(3)),
        (json!({ "jsonrpc": "1.0", "id": "x", "method": "ping" }), json!("x")),
        (json!({ "jsonrpc": "2.0", "id": 3 }), json!(3)),
        (json!({ "jsonrpc": "2.0", "id": 3, "method": 7 }), json!(3)),
        (json!({ "jsonrpc": "2.0", "id": 3, "method": "ping", "params": [] }), json!(3)),
        (json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }), Value::Null),
        (json!({ "jsonrpc": "2.0", "id": 1.5, "method": "ping" }), Value::Null),
        (json!([]), Value::Null),
    ] {
        let told = post(&ann, &[], &wrong).ok(400);
        assert_eq!((&told["error"]["code"], &told["id"]), (&json!(-32600), &id), "{wrong}");
    }
    for id in [json!("text"), json!(""), json!(-7), json!(i64::MAX)] {
        let pong = post(&ann, &[], &json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).ok(200);
        assert_eq!(pong["id"], id);
    }
    for method in ["no/such", "tools", "resources/list", ""] {
        assert_eq!(post(&ann, &[], &request(method, json!({}))).ok(200)["error"]["code"], -32601, "{method}");
    }
    for params in [json!({}), json!({ "name": 7 }), json!({ "name": "list_locks", "arguments": [] })] {
        assert_eq!(post(&ann, &[], &request("tools/call", params)).ok(200)["error"]["code"], -32602);
    }
    let near = post(&ann, &[], &request("tools/call", json!({ "name": "list_lock" }))).ok(200);
    assert_eq!(near["error"]["message"], "tool \"list_lock\" not found; did you mean list_locks?");
    for silent in [
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
        json!({ "jsonrpc": "2.0", "method": "no/such" }),
        json!({ "jsonrpc": "2.0", "id": 7, "result": {} }),
    ] {
        assert_eq!(post(&ann, &[], &silent).status, 202, "{silent}");
    }
    assert_eq!(refused(&ann, "stop_session", json!({}))["code"], "USAGE");
    assert_eq!(refused(&ann, "stop_session", json!({ "sessoin": "x" }))["code"], "USAGE");
    assert_eq!(
        refused(&ann, "acquire_lock", json!({ "name": "l", "ttl_ms": "long" }))["code"],
        "INVALID_VALUE"
    );
    assert_eq!(refused(&ann, "acquire_lock", json!({ "name": "x".repeat(300) }))["code"], "INVALID_VALUE");

    raw(&json!({ "x": "x".repeat(30_000) }).to_string()).refused(413, "INVALID_VALUE");
    raw(&"[".repeat(5000)).refused(400, "INVALID_VALUE");
    ann.send("GET", "/mcp", &[("accept", "text/event-stream")], None).refused(405, "USAGE");
    let gone = ann.send("DELETE", "/mcp", &[], None);
    gone.refused(405, "USAGE");
    assert_eq!(gone.header("allow"), Some("POST"));
    let list = request("tools/list", json!({}));
    post(&ann, &[("accept", "text/event-stream")], &list).refused(406, "USAGE");
    post(&ann, &[("accept", "application/json, text/event-stream")], &list).ok(200);
    let lines = [("accept", "text/event-stream"), ("accept", "application/json")];
    post(&ann, &lines, &list).ok(200);
    post(&ann, &[lines[0], ("accept", "text/html")], &list).refused(406, "USAGE");
    let secret = ann.secret.as_ref().unwrap();
    let plain = format!(
        "POST /mcp HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\ncontent-type: text/plain\r\n\
         connection: close\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    assert!(server.raw(plain.as_bytes()).starts_with("HTTP/1.1 415"));
    assert!(names(&ann).len() > 15);
}

#[test]
fn foreign_origin_is_refused() {
    let server = server();
    let ann = server.user("ann");
    let list = request("tools/list", json!({}));
    let from = |origin: &str| post(&ann, &[("origin", origin)], &list);
    from("http://localhost:6274").ok(200);
    from(&ann.base).ok(200);
    from("http://[::1]:6274").ok(200);
    for foreign in [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://[::1]evil.example",
        "http://[::1].evil.example",
        "http://localhost:1@evil.example",
        "http://localhost@evil.example",
        "http://127.0.0.1:80.evil.example",
        "http://localhost/evil.example",
        "://localhost",
        "localhost",
    ] {
        from(foreign).refused(403, "USAGE");
    }
    post(&ann, &[("origin", "http://evil.example"), ("host", "evil.example")], &list).refused(403, "USAGE");
}

#[test]
fn batch_is_answered_in_revisions_with_batches() {
    let server = with(|limits| (limits.rate, limits.burst) = (0.001, 5.0));
    let ann = server.user("ann");
    let ask = |id: u32| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "list_locks" } });
    let batch = json!([
        { "jsonrpc": "2.0", "id": "p", "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/initialized" },
        ask(1), ask(2), { "id": 4, "method": "ping" }, "nonsense",
    ]);
    // One for the request, which has one call in it, and one for the other call.
    let answers = post(&ann, &[("mcp-protocol-version", "2025-03-26")], &batch).ok(200);
    let of = |id: Value| answers.as_array().unwrap().iter().find(|one| one["id"] == id).unwrap();
    assert_eq!(answers.as_array().unwrap().len(), 5, "{answers}");
    assert_eq!(of(json!("p"))["result"], json!({}));
    assert_eq!(of(json!(2))["result"]["structuredContent"]["locks"], json!([]));
    assert_eq!(of(json!(4))["error"]["code"], -32600);
    let newer = post(&ann, &[("mcp-protocol-version", "2025-06-18")], &batch).ok(400);
    assert_eq!(newer["error"]["code"], -32600);
    // Three are used up: of these three calls one is too many.
    let answers = post(&ann, &[], &json!([ask(1), ask(2), ask(3)])).ok(200);
    assert_eq!(answers[1]["result"]["isError"], false, "{answers}");
    assert_eq!(answers[2]["result"]["isError"], true, "{answers}");
    assert!(answers[2]["result"]["content"][0]["text"].as_str().unwrap().contains("RATE_LIMITED"));
    let late = post(&ann, &[], &ask(1));
    late.refused(429, "RATE_LIMITED");
    assert!(late.header("retry-after").is_some());
}

fn calling(id: u32, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

#[test]
fn refused_batch_runs_no_call() {
    let server = server();
    let ann = server.user("ann");
    let id = content(&ann, "start_session", json!({}))["id"].clone();
    let append = calling(1, "append_messages", &json!({ "session": id, "messages": ["one"] }));
    let greet = request("initialize", json!({ "protocolVersion": "2025-03-26", "capabilities": {} }));
    let told = post(&ann, &[], &json!([append, greet])).ok(400);
    assert_eq!(told["error"]["code"], -32600, "{told}");
    let messages = || content(&ann, "show_session", json!({ "session": id }))["messages"].clone();
    assert_eq!(messages(), 0);
    let many: Vec<&Value> = std::iter::repeat_n(&append, 21).collect();
    assert_eq!(post(&ann, &[], &json!(many)).ok(400)["error"]["code"], -32600);
    assert_eq!(messages(), 0);
    post(&ann, &[], &json!([append])).ok(200);
    assert_eq!(messages(), 1);
}

#[test]
fn oversized_tool_result_is_an_error() {
    let server = with(|limits| (limits.page, limits.page_bytes, limits.body_bytes) = (1, 1000, 10_000));
    let ann = server.user("ann");
    let id = content(&ann, "start_session", json!({}))["id"].clone();
    let path = format!("/v1/sessions/{}", id.as_str().unwrap());
    for number in 0..5 {
        content(&ann, "show_session", json!({ "session": id }));
        let settings = json!({ "settings": { format!("s{number}"): "x".repeat(9000) } });
        ann.send("PATCH", &path, &[], Some(&settings.to_string())).ok(200);
    }
    let told = refused(&ann, "show_session", json!({ "session": id }));
    assert_eq!((&told["code"], &told["status"]), (&json!("INVALID_VALUE"), &json!(413)), "{told}");
}

#[test]
fn batch_results_are_bounded_by_a_page() {
    let server = with(|limits| limits.page_bytes = 10_000);
    let ann = server.user("ann");
    let id = content(&ann, "start_session", json!({}))["id"].clone();
    content(&ann, "append_messages", json!({ "session": id, "messages": ["x".repeat(6000)] }));
    let read = |number| calling(number, "read_messages", &json!({ "session": id }));
    let append = calling(4, "append_messages", &json!({ "session": id, "messages": ["late"] }));
    let ping = json!({ "jsonrpc": "2.0", "id": 5, "method": "ping" });
    let answers = post(&ann, &[], &json!([read(1), read(2), read(3), append, ping])).ok(200);
    let failed: Vec<&Value> = (0..4).map(|at| &answers[at]["result"]["isError"]).collect();
    assert_eq!(failed, [false, false, true, true], "{answers}");
    assert!(
        answers[3]["result"]["content"][0]["text"].as_str().unwrap().contains("was not executed"),
        "{answers}"
    );
    assert_eq!(answers[4]["result"], json!({}));
    assert_eq!(content(&ann, "show_session", json!({ "session": id }))["messages"], 1);
    // By itself each is answered.
    assert_eq!(post(&ann, &[], &json!([read(3)])).ok(200)[0]["result"]["isError"], false);
}

fn until(server: &TestServer, line: &str) {
    let started = Instant::now();
    while !server.nobody().get("/metrics").text.contains(line) {
        assert!(started.elapsed() < Duration::from_secs(10), "never {line}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn disconnected_mcp_waiter_releases_its_place() {
    let server = with(|limits| limits.concurrent = 1);
    let ann = server.user("ann");
    let id = content(&ann, "start_session", json!({}))["id"].clone();
    let first = content(&ann, "begin_turn", json!({ "session": id }))["token"].clone();
    let waits = request(
        "tools/call",
        json!({ "name": "begin_turn", "arguments": { "session": id, "wait_ms": 60_000 } }),
    );
    let waits = waits.to_string();
    let mut gone = server.connect();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        ann.secret.as_ref().unwrap(),
        waits.len()
    );
    gone.write_all(format!("{head}{waits}").as_bytes()).unwrap();
    until(&server, "sessile_waiting 1\n");
    // There is one place for those who are served at once, and the one who waits has it not.
    assert_eq!(content(&ann, "list_locks", json!({}))["locks"], json!([]));
    drop(gone);
    until(&server, "sessile_waiting 0\n");
    assert_eq!(content(&ann, "abandon_turn", json!({ "session": id, "token": first })), "done");
    // Nobody is before this one.
    let next = content(&ann, "begin_turn", json!({ "session": id, "busy": "reject" }));
    let committed =
        content(&ann, "commit_turn", json!({ "session": id, "token": next["token"], "messages": ["x"] }));
    assert_eq!(committed, json!({ "first": 1, "last": 1 }));
}

#[test]
fn tool_call_is_logged_and_audited_as_its_request() {
    let mut server = started(Options { audit_reads: true, ..Options::default() });
    let ann = server.user("ann");
    let params = json!({ "name": "list_locks", "arguments": {} });
    post(&ann, &[("x-request-id", "mine")], &request("tools/call", params)).ok(200);
    content(&ann, "start_session", json!({}));
    server.send_sigterm();
    server.ended();
    let log = server.log();
    let mine: Vec<(&str, &str)> = log
        .iter()
        .filter(|line| line["request_id"] == "mine" && line["user"] == "ann" && line["peer"].is_string())
        .map(|line| (line["method"].as_str().unwrap(), line["route"].as_str().unwrap()))
        .collect();
    assert_eq!(mine, [("GET", "/v1/locks"), ("POST", "/mcp")]);
    assert!(log.iter().any(|line| line["route"] == "/v1/sessions" && line["status"] == 201));
    let connection = rusqlite::Connection::open(server.dir().join("service.db")).unwrap();
    let count: i64 = connection
        .query_row(
            "SELECT count(*) FROM audit WHERE user = 'ann' AND action IN ('locks', 'start_session')",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(count, 2);
}

/// Messages of a stream of server-sent events.
fn events(reply: &Reply) -> Vec<Value> {
    assert_eq!(reply.header("content-type"), Some("text/event-stream"), "{reply:?}");
    let data = reply.text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn slow_call_tells_its_progress_by_events() {
    let server = server();
    let ann = server.user("ann");
    content(&ann, "acquire_lock", json!({ "name": "l" }));
    let wait = |token: Value| {
        let arguments = json!({ "name": "l", "wait_ms": 2500 });
        request(
            "tools/call",
            json!({ "name": "acquire_lock", "arguments": arguments, "_meta": { "progressToken": token } }),
        )
    };
    let both = [("accept", "application/json, text/event-stream")];
    let told = events(&post(&ann, &both, &wait(json!("slow"))));
    let (answer, progress) = told.split_last().unwrap();
    assert_eq!(answer["id"], 1);
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("TIMED_OUT"), "{answer}");
    assert!((1..=3).contains(&progress.len()), "{told:?}");
    for told in progress {
        assert_eq!(told["method"], "notifications/progress");
        assert_eq!(told["params"]["progressToken"], "slow");
        assert!(told["params"]["progress"].as_f64().unwrap() >= 0.9, "{told}");
    }
    // A quick call has no progress to tell, and one that is not asked for gets JSON.
    let quick = request("tools/call", json!({ "name": "list_locks", "_meta": { "progressToken": 7 } }));
    assert_eq!(events(&post(&ann, &both, &quick)).len(), 1);
    let plain = request("tools/call", json!({ "name": "list_locks" }));
    assert_eq!(post(&ann, &both, &plain).header("content-type"), Some("application/json"));
    assert_eq!(
        post(&ann, &[("accept", "application/json")], &quick).header("content-type"),
        Some("application/json")
    );
    // Refusals of the transport keep their status.
    let wrong = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "1999-01-01")];
    assert_eq!(post(&ann, &wrong, &quick).status, 400);
}

#[test]
fn instructions_name_only_allowed_tools() {
    let server = server();
    let ann = server.user("ann");
    let (reader, _) = server.token("ann", &[TokenScope::Read], None);
    let text = |client: &Client| {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
        let greeted = post(client, &[], &request("initialize", params)).ok(200);
        greeted["result"]["instructions"].as_str().unwrap().to_owned()
    };
    let all = names(&ann);
    for client in [&ann, &reader] {
        let (text, offered) = (text(client), names(client));
        let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        for tool in all.iter().filter(|tool| !offered.contains(tool)) {
            assert!(!words.contains(&tool.as_str()), "{tool}: {text}");
        }
    }
    assert!(text(&ann).contains("begin_turn"));
}
