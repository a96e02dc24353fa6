//! Each agent answers in each version and binding, as HTTP shows it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::{AgentBinding, Protocol};

mod official;
mod ours;

/// A request without TLS: the status, and the head and body as they came.
#[track_caller]
fn call(method: &str, url: &str, headers: &str, body: &str) -> (u16, String) {
    let rest = url.strip_prefix("http://").expect("a plain address");
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(authority).expect("the agent listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    let length = body.len();
    let kind = if headers.contains("Content-Type") { "" } else { "Content-Type: application/json\r\n" };
    write!(
        stream,
        "{method} /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{kind}{headers}\r\n{body}"
    )
    .expect("the agent reads");
    let mut answer = Vec::new();
    // A stream may be cut on purpose.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, answer)
}

fn version(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::V1 => "A2A-Version: 1.0\r\n",
        Protocol::V03 => "A2A-Version: 0.3\r\n",
    }
}

/// Sends a text; `extra` goes into the message. The status and the answer.
#[track_caller]
fn send(base: &str, way: (AgentBinding, Protocol), stream: bool, text: &str, extra: &Value) -> (u16, String) {
    let mut message = match way {
        (_, Protocol::V1) => json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}),
        (AgentBinding::Rest, Protocol::V03) => {
            json!({"messageId": "m", "role": "ROLE_USER", "content": [{"text": text}]})
        }
        (AgentBinding::JsonRpc, Protocol::V03) => json!({
            "kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": text}],
        }),
    };
    for (name, value) in extra.as_object().into_iter().flatten() {
        message[name] = value.clone();
    }
    let mut params = json!({"message": message});
    if way.1 == Protocol::V03 {
        params["configuration"] = json!({"blocking": true});
    }
    let action = if stream { "stream" } else { "send" };
    let (path, body) = match way {
        (AgentBinding::Rest, Protocol::V1) => (format!("/rest/message:{action}"), params),
        (AgentBinding::Rest, Protocol::V03) => (format!("/rest/v1/message:{action}"), params),
        (AgentBinding::JsonRpc, protocol) => {
            let method = match (protocol, stream) {
                (Protocol::V1, false) => "SendMessage",
                (Protocol::V1, true) => "SendStreamingMessage",
                (Protocol::V03, false) => "message/send",
                (Protocol::V03, true) => "message/stream",
            };
            ("/rpc".to_owned(), json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        }
    };
    call("POST", &format!("{base}{path}"), version(way.1), &body.to_string())
}

/// What every agent does in every way.
#[track_caller]
fn converse(base: &str, way: (AgentBinding, Protocol)) {
    let (status, answer) = send(base, way, false, "echo hi there", &json!({}));
    assert!(status == 200 && answer.contains("\"hi there\""), "{way:?}: {answer}");
    let (status, answer) = send(base, way, true, "stream 3", &json!({}));
    assert!(status == 200 && answer.contains("text/event-stream"), "{way:?}: {answer}");
    assert!(answer.contains("chunk 1") && answer.contains("chunk 3"), "{way:?}: {answer}");
    assert!(answer.contains("completed") || answer.contains("TASK_STATE_COMPLETED"), "{way:?}: {answer}");
    let (_, answer) = send(base, way, false, "ask", &json!({}));
    assert!(answer.contains("what is your name?"), "{way:?}: {answer}");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let body: Value = serde_json::from_str(body).expect("JSON");
    let task = [&body["result"], &body["result"]["task"], &body["task"]];
    let task = task.into_iter().find(|task| task["status"].is_object()).expect("a task");
    let ids = json!({"taskId": task["id"], "contextId": task["contextId"]});
    let (_, answer) = send(base, way, false, "Ada", &ids);
    assert!(answer.contains("hello Ada"), "{way:?}: {answer}");
    let (_, answer) = send(base, way, false, "more", &ids);
    assert!(answer.contains("is in terminal state"), "{way:?}: {answer}");
    let (_, answer) = send(base, way, false, "x", &json!({"taskId": "never"}));
    assert!(answer.contains("-32001") || answer.contains("404 Not Found"), "{way:?}: {answer}");
}

const WAYS: [(AgentBinding, Protocol); 4] = [
    (AgentBinding::JsonRpc, Protocol::V1),
    (AgentBinding::Rest, Protocol::V1),
    (AgentBinding::JsonRpc, Protocol::V03),
    (AgentBinding::Rest, Protocol::V03),
];
