//! Each client with a server on the official SDK, and ours with servers that misbehave.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::{Value, json};

use super::fetched;
use crate::{Call, Home, Inspector, McpClient, PythonMcpClient, Revision};

fn home() -> Home {
    Home::new(fetched("mcp/bin/python"))
}

/// The server on the SDK.
fn counterpart(home: &Home) -> Call {
    home.call(&["-I", "-B", "-c", include_str!("server.py")]).env("GREETING", "hi")
}

/// A server that does what these lines of Python say.
fn script(lines: &str) -> McpClient {
    let home = home();
    let client = McpClient::start(home.call(&["-I", "-c", &format!("import sys, time\n{lines}")]).cwd("/"));
    client.patience(Duration::from_secs(10))
}

/// Message of a panic.
fn complaint(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("a panic");
    panic.downcast::<String>().map_or_else(|_| String::new(), |text| *text)
}

#[test]
fn our_client_speaks_after_a_handshake() {
    let home = home();
    let mut client = McpClient::start(counterpart(&home));
    client.on_elicitation(|params| {
        assert_eq!(params["message"], "what is your name?");
        json!({"action": "accept", "content": {"name": "Ada"}})
    });
    let server = client.initialize("2025-06-18");
    assert_eq!(server["protocolVersion"], "2025-06-18");
    assert_eq!(server["serverInfo"]["name"], "counterpart");
    assert!(client.tools().iter().any(|tool| tool["name"] == "add"));
    assert_eq!(client.call("add", json!({"a": 2, "b": 3}))["structuredContent"], json!({"sum": 5}));
    assert_eq!(client.call("fail", json!({"text": "no"}))["isError"], true);
    assert_eq!(client.call("greet", json!({}))["structuredContent"]["result"], "hello Ada");
    assert_eq!(client.asked().len(), 1);
    assert_eq!(client.asked()[0]["method"], "elicitation/create");
    let set = client.call("variable", json!({"name": "GREETING"}));
    assert_eq!(set["structuredContent"]["result"], "hi");
    let error = client.try_request("no/such", json!({})).expect_err("an error");
    assert_eq!(error["code"], -32601);
    assert_eq!(client.close().code(), Some(0));
}

#[test]
fn our_client_speaks_without_a_handshake() {
    let home = home();
    for discovers in [true, false] {
        let mut client = McpClient::start(counterpart(&home));
        client.on_elicitation(|_| json!({"action": "decline"}));
        if discovers {
            let server = client.discover("2026-07-28");
            assert!(server["supportedVersions"].as_array().expect("a list").contains(&json!("2026-07-28")));
        } else {
            client.speak("2026-07-28");
        }
        let result = client.call("add", json!({"a": 2, "b": 3}));
        assert_eq!(result["resultType"], "complete");
        assert_eq!(client.call("greet", json!({}))["structuredContent"]["result"], "decline");
        // The question was part of a result.
        assert_eq!(client.asked().len(), 1);
        assert_eq!(client.asked()[0].get("id"), None);
        assert!(client.close().success());
    }
}

#[test]
fn responses_match_their_calls() {
    let home = home();
    let mut client = McpClient::start(counterpart(&home));
    client.initialize("2025-11-25");
    let slow = client.call_async("count", json!({"steps": 3, "millis": 300}));
    let long = client.call_async("count", json!({"steps": 2, "millis": 60_000}));
    let quick = client.call_async("add", json!({"a": 1, "b": 1}));
    assert_eq!(client.answer(quick).expect("a result")["structuredContent"]["sum"], 2);
    assert!(client.progress(slow).len() < 3, "the quick one was not waited for first");
    assert_eq!(client.answer(slow).expect("a result")["structuredContent"]["result"], 3);
    let steps: Vec<&Value> = client.progress(slow).iter().map(|told| &told["message"]).collect();
    assert_eq!(steps, ["step 1", "step 2", "step 3"]);
    assert_eq!(client.progress(long).len(), 1);
    assert_eq!(client.notifications().len(), 4);
    assert!(complaint(|| drop(client.answer(slow))).contains("its response was read"));
    client.notify("notifications/cancelled", json!({"requestId": long}));
    assert!(client.close().success());
}

#[test]
fn raw_bytes_are_answered_out_of_turn() {
    let home = home();
    let mut client = McpClient::start(counterpart(&home));
    client.initialize("2025-11-25");
    client.silent_for(Duration::from_millis(100));
    client.send_raw("{\"jsonrpc\": \"2.0\", \"id\": \"mine\", \"method\": \"ping\"}\n");
    let answer = client.read_message(Duration::from_secs(10)).expect("an answer");
    assert_eq!(answer["id"], "mine");
    assert_eq!(client.strays(), [answer]);
    client.send_raw("{\"jsonrpc\": \"2.0\", \"id\": \"again\", \"method\": \"ping\"}\n");
    assert!(complaint(|| client.silent_for(Duration::from_secs(10))).contains("again"));
}

#[test]
fn dead_server_is_reported_with_its_standard_error() {
    let home = home();
    let mut client = McpClient::start(counterpart(&home));
    client.initialize("2025-11-25");
    let told = complaint(|| drop(client.call("die", json!({"text": "out of luck"}))));
    assert!(told.contains("out of luck") && told.contains("exit status: 3"), "{told}");
    let mut client = McpClient::start(counterpart(&home));
    client.initialize("2025-11-25");
    let process = format!("/proc/{}", client.pid());
    assert!(std::fs::exists(&process).expect("an answer"));
    client.kill();
    assert!(!std::fs::exists(&process).expect("an answer"));
    assert_eq!(client.wait().code(), None);
}

#[test]
fn invalid_message_is_a_failure() {
    let ask = |client: &mut McpClient| drop(client.request("x", json!({})));
    for (lines, told) in [
        ("print('hello')", "no message: expected value"),
        ("print()", "no message"),
        ("print('{\"jsonrpc\": \"2.0\", \"method\": \"x\"}', end='')", "ended within a line"),
        ("print('{\"jsonrpc\": \"2.0\", \"id\": 7, \"result\": {}}')", "answered what was not asked"),
        (
            "print('{\"jsonrpc\": \"2.0\", \"id\": 1, \"error\": {\"code\": 1, \"message\": \"m\"}}')",
            "x failed",
        ),
        ("pass", "without an answer to request 1"),
    ] {
        let mut client = script(&format!("sys.stdin.readline()\nprint('why', file=sys.stderr)\n{lines}"));
        let complaint = complaint(|| ask(&mut client));
        assert!(complaint.contains(told) && complaint.contains("why"), "{lines}: {complaint}");
    }
}

#[test]
fn nothing_is_waited_for_without_end() {
    let mut client = script("time.sleep(60)").patience(Duration::from_millis(300));
    assert!(complaint(|| drop(client.request("x", json!({})))).contains("still runs"));
    // More than a pipe holds.
    client.send_raw(vec![b'x'; 1 << 20]);
    assert!(complaint(|| _ = client.close()).contains("nothing more in time"));
    let mut client = script("sys.stdout.close()\nimport os\nos.close(1)\ntime.sleep(60)");
    client = client.patience(Duration::from_secs(2));
    assert!(complaint(|| _ = client.close()).contains("did not end in time"));
}

#[test]
fn the_official_client_speaks_every_revision() {
    let home = home();
    for revision in Revision::ALL {
        let report = PythonMcpClient::new(revision)
            .answer(json!({"action": "accept", "content": {"name": "Ada"}}))
            .answer(json!({"action": "cancel"}))
            .run(
                &counterpart(&home),
                &[
                    ("add", json!({"a": 1, "b": 2})),
                    ("count", json!({"steps": 2, "millis": 1})),
                    ("greet", json!({})),
                    ("greet", json!({})),
                    ("fail", json!({"text": "no"})),
                    ("variable", json!({"name": "cwd"})),
                ],
            );
        let version = match revision {
            Revision::Auto | Revision::Modern => "2026-07-28",
            Revision::Handshake(version) => version,
        };
        assert_eq!(report["protocolVersion"], version);
        let name = &report["serverInfo"]["name"];
        assert!(name == "counterpart" || revision == Revision::Modern, "{revision:?}: {report}");
        assert!(report["tools"].as_array().expect("a list").iter().any(|tool| tool["name"] == "add"));
        let results = &report["results"];
        assert_eq!(results[0]["content"][0]["type"], "text");
        assert_eq!(results[4]["isError"], true);
        let told = json!({"call": 1, "progress": 2.0, "total": 2.0, "message": "step 2"});
        assert_eq!(report["progress"][1], told, "{revision:?}");
        // Older ones know neither questions nor structured content.
        if version >= "2025-06-18" {
            assert_eq!(results[0]["structuredContent"], json!({"sum": 3}), "{revision:?}");
            assert_eq!(report["elicitations"][1]["message"], "what is your name?", "{revision:?}");
            assert!(results[2].to_string().contains("hello Ada"), "{revision:?}: {report}");
            assert!(results[3].to_string().contains("cancel"), "{revision:?}: {report}");
        } else {
            assert_eq!(report["elicitations"], json!([]), "{revision:?}");
        }
        assert!(results[5].to_string().contains(&home.dir().display().to_string()), "{revision:?}: {report}");
    }
}

#[test]
fn the_official_client_tells_what_is_wrong() {
    let home = home();
    let report = PythonMcpClient::new(Revision::Auto).run(&counterpart(&home), &[("greet", json!({}))]);
    assert!(report["results"][0].to_string().contains("elicitation"), "{report}");
    // Not what the schema says, and no schema.
    let wrong = |schema: &str, result: &str| {
        let lines = format!(
            "import sys, json
info = {{'protocolVersion': '2025-11-25', 'capabilities': {{'tools': {{}}}}, 'serverInfo': {{'name': 'x', 'version': '1'}}}}
tool = {{'name': 't', 'inputSchema': {{'type': 'object'}}, 'outputSchema': {schema}}}
called = {{'content': [], 'structuredContent': {result}}}
answers = {{'initialize': info, 'tools/list': {{'tools': [tool]}}, 'tools/call': called}}
for line in sys.stdin:
    asked = json.loads(line)
    if 'id' in asked:
        known = answers.get(asked['method'])
        answer = {{'result': known}} if known else {{'error': {{'code': -32601, 'message': 'no'}}}}
        print(json.dumps({{'jsonrpc': '2.0', 'id': asked['id'], **answer}}), flush=True)"
        );
        let server = home.call(&["-I", "-c", &lines]);
        PythonMcpClient::new(Revision::Auto).try_run(&server, &[("t", json!({}))])
    };
    let schema = "{'type': 'object', 'properties': {'a': {'type': 'integer'}}}";
    let report = wrong(schema, "{'a': 1}").exit(0).json();
    assert_eq!(report["protocolVersion"], "2025-11-25");
    let done = wrong(schema, "{'a': 'x'}").exit(1);
    assert!(done.stderr().contains("Invalid structured content"), "{}", done.told());
    let done = wrong("{'type': 'object', 'properties': {'a': {'type': 'objekt'}}}", "{}").exit(1);
    assert!(done.stderr().contains("a schema of the tool t is not valid"), "{}", done.told());
}

#[test]
fn the_inspector_lists_and_calls() {
    let home = home();
    for inspector in [Inspector::Legacy, Inspector::Auto, Inspector::Modern] {
        let tools = inspector.list(&counterpart(&home));
        assert!(tools.iter().any(|tool| tool["name"] == "add"), "{tools:?}");
        let result = inspector.call(&counterpart(&home), "add", &[("a", "1"), ("b", "2")]);
        assert_eq!(result["structuredContent"]["sum"], 3, "{result}");
    }
    let result = Inspector::Auto.call(&counterpart(&home), "fail", &[("text", "no")]);
    assert_eq!(result["isError"], true, "{result}");
    let result = Inspector::Auto.call(&counterpart(&home), "variable", &[("name", "GREETING")]);
    assert_eq!(result["structuredContent"]["result"], "hi", "{result}");
    let done = Inspector::Auto.run(&counterpart(&home), "tools/call", &["--tool-name", "none"]);
    assert_ne!(done.status(), Some(0));
}
