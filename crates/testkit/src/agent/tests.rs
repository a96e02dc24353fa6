//! Each agent answers in each version and binding, as HTTP shows it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::{AgentAuth, AgentOptions, Binding, Misbehaviour, Protocol, PythonAgent, ScriptedAgent, Where};

/// A request without TLS: the status, and the head and body as they came.
#[track_caller]
fn call(method: &str, url: &str, headers: &str, body: &str) -> (u16, String) {
    let rest = url.strip_prefix("http://").expect("a plain address");
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(authority).expect("the agent listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    let length = body.len();
    write!(
        stream,
        "{method} /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
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
fn send(base: &str, way: (Binding, Protocol), stream: bool, text: &str, extra: &Value) -> (u16, String) {
    let mut message = match way {
        (_, Protocol::V1) => json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}),
        (Binding::Rest, Protocol::V03) => {
            json!({"messageId": "m", "role": "ROLE_USER", "content": [{"text": text}]})
        }
        (Binding::JsonRpc, Protocol::V03) => json!({
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
        (Binding::Rest, Protocol::V1) => (format!("/rest/message:{action}"), params),
        (Binding::Rest, Protocol::V03) => (format!("/rest/v1/message:{action}"), params),
        (Binding::JsonRpc, protocol) => {
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
fn converse(base: &str, way: (Binding, Protocol)) {
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

#[test]
fn the_official_sdk_converses_in_both_versions() {
    let mut options = AgentOptions::of(Protocol::V1);
    options.interfaces.push((Binding::JsonRpc, Protocol::V03));
    options.tenant = Some("acme".to_owned());
    options.extended_card = true;
    let agent = PythonAgent::start(Protocol::V1, &options);
    let (status, card) = call("GET", &format!("{}/.well-known/agent-card.json", agent.url()), "", "");
    assert!(status == 200 && card.contains("supportedInterfaces") && card.contains("acme"), "{card}");
    for protocol in [Protocol::V1, Protocol::V03] {
        converse(agent.url(), (Binding::JsonRpc, protocol));
        converse(agent.url(), (Binding::Rest, protocol));
    }
}

#[test]
fn the_older_official_sdk_converses_with_those_it_knows() {
    let secret = AgentOptions::of(Protocol::V03).guarded(AgentAuth::Bearer, "s3cret", "ada");
    let agent = PythonAgent::start(Protocol::V03, &secret);
    let (status, answer) = send(agent.url(), (Binding::JsonRpc, Protocol::V03), false, "echo x", &json!({}));
    assert!(status == 401 && answer.contains("www-authenticate: Bearer"), "{answer}");
    let address = agent.url()["http://".len()..].to_owned();
    drop(agent);
    assert!(TcpStream::connect(address).is_err());
    let agent = PythonAgent::start(Protocol::V03, &AgentOptions::of(Protocol::V03));
    converse(agent.url(), (Binding::JsonRpc, Protocol::V03));
    converse(agent.url(), (Binding::Rest, Protocol::V03));
}

const WAYS: [(Binding, Protocol); 4] = [
    (Binding::JsonRpc, Protocol::V1),
    (Binding::Rest, Protocol::V1),
    (Binding::JsonRpc, Protocol::V03),
    (Binding::Rest, Protocol::V03),
];

fn every_way() -> AgentOptions {
    AgentOptions { interfaces: WAYS.to_vec(), ..AgentOptions::default() }
}

/// The id of the first task in an answer.
#[track_caller]
fn task_id(answer: &str) -> String {
    let (_, rest) = answer.split_once("task-").expect("a task");
    format!("task-{}", &rest[..16])
}

#[test]
fn our_own_converses_in_every_way() {
    let agent = ScriptedAgent::start(every_way());
    for way in WAYS {
        converse(agent.url(), way);
        let context = format!("{way:?}");
        let (_, answer) = send(agent.url(), way, false, "forget", &json!({"contextId": context}));
        assert!(answer.contains("forgotten"), "{way:?}: {answer}");
        let (_, answer) = send(agent.url(), way, true, "echo x", &json!({"contextId": context}));
        assert!(answer.contains("has expired"), "{way:?}: {answer}");
    }
    assert_eq!(agent.count("message/send"), agent.count("SendMessage"));
    assert_eq!(agent.last("/rpc").expect("a request").header("A2A-Version"), Some("0.3"));
    assert!(agent.heard("Ada") && !agent.heard("s3cret"));
}

#[test]
fn a_stream_that_was_cut_goes_on() {
    let agent = ScriptedAgent::start(every_way());
    for way in WAYS {
        let (_, answer) = send(agent.url(), way, true, "cut 3 4 50", &json!({}));
        assert!(answer.contains("chunk 1") && !answer.contains("chunk 4"), "{way:?}: {answer}");
        assert!(!answer.ends_with("0\r\n\r\n"), "{way:?}: {answer}");
        let id = task_id(&answer);
        let (method, path, body) = match way {
            (Binding::JsonRpc, Protocol::V1) => ("POST", "/rpc".to_owned(), "SubscribeToTask"),
            (Binding::JsonRpc, Protocol::V03) => ("POST", "/rpc".to_owned(), "tasks/resubscribe"),
            (Binding::Rest, Protocol::V1) => ("GET", format!("/rest/tasks/{id}:subscribe"), ""),
            (Binding::Rest, Protocol::V03) => ("GET", format!("/rest/v1/tasks/{id}:subscribe"), ""),
        };
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": body, "params": {"id": id}}).to_string();
        let body = if method == "GET" { "" } else { &body };
        let url = format!("{}{path}", agent.url());
        let (_, answer) = call(method, &url, version(way.1), body);
        assert!(answer.contains("chunk 4") && answer.ends_with("0\r\n\r\n"), "{way:?}: {answer}");
        let (_, answer) = call(method, &url, version(way.1), body);
        assert!(answer.contains("is in terminal state"), "{way:?}: {answer}");
    }
}

#[test]
fn it_lets_in_whom_it_knows() {
    let key = AgentAuth::ApiKeyQuery("key".to_owned());
    let cookie = AgentAuth::ApiKeyCookie("key".to_owned());
    let header = AgentAuth::ApiKeyHeader("X-Key".to_owned());
    for (auth, secret, headers, query) in [
        (AgentAuth::Bearer, "s3cret", "Authorization: Bearer s3cret\r\n", ""),
        (AgentAuth::Basic, "ada:pass", "Authorization: Basic YWRhOnBhc3M=\r\n", ""),
        (header, "s3cret", "x-key: s3cret\r\n", ""),
        (cookie, "s3cret", "Cookie: a=b; key=s3cret\r\n", ""),
        (key, "s 3", "", "?key=s%203"),
    ] {
        let agent = ScriptedAgent::start(every_way().guarded(auth.clone(), secret, "ada"));
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "whoami"}]});
        let body = json!({"message": message}).to_string();
        let url = format!("{}/rest/message:send{query}", agent.url());
        let (status, answer) = call("POST", &url, &format!("{headers}A2A-Version: 1.0\r\n"), &body);
        assert!(status == 200 && answer.contains("ada"), "{auth:?}: {answer}");
        let (status, _) = send(agent.url(), WAYS[0], false, "whoami", &json!({}));
        assert_eq!(status, 401, "{auth:?}");
        let (status, _) = call("GET", &format!("{}/.well-known/agent-card.json", agent.url()), "", "");
        assert_eq!(status, 200, "{auth:?}");
    }
}

#[test]
fn a_hundred_may_wait_at_once() {
    let agent = ScriptedAgent::start(AgentOptions::default());
    std::thread::scope(|clients| {
        let ask = |_| clients.spawn(|| send(agent.url(), WAYS[0], false, "hold on", &json!({})).1);
        let asked = (0..100).map(ask).collect::<Vec<_>>();
        while agent.count("SendMessage") < 100 {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(agent.connections() >= 100);
        agent.release();
        for answer in asked {
            assert!(answer.join().expect("a client").contains("TASK_STATE_COMPLETED"));
        }
    });
    assert_eq!(agent.contexts().len(), 100);
}

#[test]
fn it_misbehaves_only_where_it_is_told() {
    let agent = ScriptedAgent::start(AgentOptions::default());
    let card = format!("{}/.well-known/agent-card.json", agent.url());
    agent.misbehave(Where::Card, Some(Misbehaviour::Redirect("http://127.0.0.1:1/".to_owned())));
    let (status, answer) = call("GET", &card, "", "");
    assert!(status == 307 && answer.contains("Location: http://127.0.0.1:1/\r\n"), "{answer}");
    agent.misbehave(Where::Card, Some(Misbehaviour::HugeReply(1 << 20)));
    assert!(call("GET", &card, "", "").1.len() > 1 << 20);
    agent.misbehave(Where::Card, None);
    assert!(call("GET", &card, "", "").1.contains("supportedInterfaces"));
    agent.misbehave(Where::Calls, Some(Misbehaviour::InvalidJson));
    assert!(send(agent.url(), WAYS[0], false, "echo x", &json!({})).1.contains("oops"));
    agent.misbehave(Where::Calls, None);
    let (_, answer) = send(agent.url(), WAYS[0], false, "escapes", &json!({}));
    assert!(answer.contains("\\u001b]0;owned"), "{answer}");
}
