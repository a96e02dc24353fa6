//! Our own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::{WAYS, call, converse, send, version};
use crate::agent::{
    AgentAuth, AgentBinding, AgentOptions, Misbehaviour, MisbehaviourPoint, Protocol, ScriptedAgent,
};

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
    let check = |way: (AgentBinding, Protocol)| {
        let (_, answer) = send(agent.url(), way, true, "cut 3 4 200", &json!({}));
        assert!(answer.contains("chunk 1") && !answer.contains("chunk 4"), "{way:?}: {answer}");
        assert!(!answer.ends_with("0\r\n\r\n"), "{way:?}: {answer}");
        let id = task_id(&answer);
        let (method, path, body) = match way {
            (AgentBinding::JsonRpc, Protocol::V1) => ("POST", "/rpc".to_owned(), "SubscribeToTask"),
            (AgentBinding::JsonRpc, Protocol::V03) => ("POST", "/rpc".to_owned(), "tasks/resubscribe"),
            (AgentBinding::Rest, Protocol::V1) => ("GET", format!("/rest/tasks/{id}:subscribe"), ""),
            (AgentBinding::Rest, Protocol::V03) => ("GET", format!("/rest/v1/tasks/{id}:subscribe"), ""),
        };
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": body, "params": {"id": id}}).to_string();
        let body = if method == "GET" { "" } else { &body };
        let url = format!("{}{path}", agent.url());
        let (_, answer) = call(method, &url, version(way.1), body);
        assert!(answer.contains("chunk 4") && answer.ends_with("0\r\n\r\n"), "{way:?}: {answer}");
        let (_, answer) = call(method, &url, version(way.1), body);
        assert!(answer.contains("is in terminal state"), "{way:?}: {answer}");
    };
    std::thread::scope(|checks| {
        let started = WAYS.map(|way| checks.spawn(move || check(way)));
        started.into_iter().for_each(|check| check.join().expect("it holds"));
    });
}

#[test]
fn agent_accepts_its_credential_only() {
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
fn agent_misbehaves_only_where_configured() {
    let agent = ScriptedAgent::start(AgentOptions::default());
    let card = format!("{}/.well-known/agent-card.json", agent.url());
    agent.misbehave(MisbehaviourPoint::Card, Some(Misbehaviour::Redirect("http://127.0.0.1:1/".to_owned())));
    let (status, answer) = call("GET", &card, "", "");
    assert!(status == 307 && answer.contains("Location: http://127.0.0.1:1/\r\n"), "{answer}");
    agent.misbehave(MisbehaviourPoint::Card, Some(Misbehaviour::HugeReply(1 << 20)));
    assert!(call("GET", &card, "", "").1.len() > 1 << 20);
    agent.misbehave(MisbehaviourPoint::Card, None);
    assert!(call("GET", &card, "", "").1.contains("supportedInterfaces"));
    agent.misbehave(MisbehaviourPoint::Calls, Some(Misbehaviour::InvalidJson));
    assert!(send(agent.url(), WAYS[0], false, "echo x", &json!({})).1.contains("oops"));
    agent.misbehave(MisbehaviourPoint::Calls, None);
    let (_, answer) = send(agent.url(), WAYS[0], false, "escapes", &json!({}));
    assert!(answer.contains("\\u001b]0;owned"), "{answer}");
}

#[test]
fn noise_is_only_around_the_events() {
    let agent = ScriptedAgent::start(AgentOptions { noisy_streams: true, ..every_way() });
    let (_, quiet) = send(agent.url(), WAYS[1], true, "bare 2", &json!({}));
    let pieces = quiet.split_once("\r\n\r\n").expect("a body").1.split("\r\n7\r\n").collect::<String>();
    assert!(pieces.contains("id: 7\nretry: 10") && pieces.contains("data:{\"statusUpdate\""), "{quiet}");
    assert!(!pieces.contains("data:{\"task\""), "{quiet}");
}

#[test]
fn endless_reply_ends_with_the_agent() {
    let short = Duration::from_millis(1);
    for how in [
        Misbehaviour::Endless,
        Misbehaviour::SlowHead(short),
        Misbehaviour::SlowBody(short),
        Misbehaviour::Silence,
        Misbehaviour::HugeReply(1 << 40),
    ] {
        let agent = ScriptedAgent::start(AgentOptions::default());
        agent.misbehave(MisbehaviourPoint::Calls, Some(how.clone()));
        let mut stream = TcpStream::connect(&agent.url()["http://".len()..]).expect("the agent listens");
        stream.write_all(b"POST /rest/message:stream HTTP/1.1\r\n\r\n").expect("the agent reads");
        let mut some = [0; 20];
        if how != Misbehaviour::Silence {
            stream.read_exact(&mut some).expect("a beginning");
            assert!(some.starts_with(b"HTTP/1.1 200 OK"), "{how:?}");
        }
        drop(agent);
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
        let ended = std::io::copy(&mut stream, &mut std::io::sink());
        let late = |error: std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(!ended.is_err_and(late), "{how:?}");
    }
}
