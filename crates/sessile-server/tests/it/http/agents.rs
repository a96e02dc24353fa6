//! Messages that an A2A agent upstream replies to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use sessile::vault::Secret;
use sessile_server::serve::Options;
use sessile_server::upstream::Upstream;
use testkit::{
    AgentAuth, AgentBinding, AgentOptions, Misbehaviour, MisbehaviourPoint, Protocol, PythonAgent,
    ScriptedAgent,
};

use super::replies::{STREAM, contents, events, is_free, say};
use super::{Client, Reply, TestServer, started};

fn serving(url: &str, timeout: Duration) -> TestServer {
    let upstream = Upstream::agent(url, Some(Secret::new("sk-hunter2")), timeout).unwrap();
    started(Options { upstream: Some(upstream), ..Options::default() })
}

fn with_agent(options: AgentOptions) -> (TestServer, ScriptedAgent) {
    let agent = ScriptedAgent::start(options);
    (serving(agent.url(), Duration::from_secs(20)), agent)
}

/// All ways in which agents are asked.
fn dialects() -> impl Iterator<Item = (AgentBinding, Protocol)> {
    let bindings = [AgentBinding::JsonRpc, AgentBinding::Rest];
    bindings.into_iter().flat_map(|binding| [Protocol::V1, Protocol::V03].map(|version| (binding, version)))
}

fn only((binding, protocol): (AgentBinding, Protocol)) -> AgentOptions {
    AgentOptions::of(protocol).only(binding, protocol)
}

/// What an answer says, whole or as a stream whose pieces are that.
#[track_caller]
fn said(reply: &Reply) -> String {
    let answer = match reply.status {
        201 => reply.json(),
        200 => {
            let mut events = events(&reply.text);
            let (kind, answer) = events.pop().unwrap();
            assert_eq!(kind, "done", "{reply:?}");
            let pieces = events.iter().map(|(_, data)| data["content"].as_str().unwrap());
            assert_eq!(pieces.collect::<String>(), answer["reply"]["body"]["content"].as_str().unwrap());
            answer
        }
        _ => panic!("{reply:?}"),
    };
    answer["reply"]["body"]["content"].as_str().unwrap().to_owned()
}

/// The parts of the last message that the agent got by JSON-RPC, and the ids that came with them.
fn sent(agent: &ScriptedAgent) -> (Vec<String>, Value, Value) {
    let body: Value = serde_json::from_str(&agent.last("/rpc").unwrap().body).unwrap();
    let message = &body["params"]["message"];
    let parts = message["parts"].as_array().unwrap();
    let texts = parts.iter().map(|part| part["text"].as_str().unwrap().to_owned()).collect();
    (texts, message["contextId"].clone(), message["taskId"].clone())
}

/// What an agent has to get right, whoever wrote it.
fn converses(user: &Client, label: &str) {
    let session = user.session();
    for headers in [&[][..], &[STREAM]] {
        let say = |text: &str| say(user, &session, headers, text);
        assert_eq!(said(&say("echo h\u{e9}llo")), "h\u{e9}llo", "{label}");
        assert_eq!(said(&say("task one two")), "one two", "{label}");
        assert_eq!(said(&say("stream 3")), "chunk 1\nchunk 2\nchunk 3\n", "{label}");
        assert_eq!(said(&say("slow 150 done")), "done", "{label}: not the steps on the way");
        let data: Value = serde_json::from_str(&said(&say("data"))).unwrap();
        assert_eq!((data["answer"].as_f64(), &data["list"][1]), (Some(42.0), &json!("two")), "{label}");
        let asks = say("ask");
        assert_eq!(said(&asks), "what is your name?", "{label}");
        assert!(asks.text.contains(r#""task_state":"input-required""#), "{label}: {asks:?}");
        assert_eq!(said(&say("ask")), "what is your name?", "{label}: the same task");
        let answered = say("ann");
        assert_eq!(said(&answered), "hello ann", "{label}: not twice");
        assert!(!answered.text.contains("task_state"), "{label}: {answered:?}");
        for (text, retryable) in [("fail", true), ("reject", false), ("file", false)] {
            let session = user.session();
            let refused = self::say(user, &session, headers, text);
            // Neither has said anything before.
            refused.refused(502, "AGENT_REFUSED");
            assert_eq!(refused.json()["retryable"], retryable, "{label}: {refused:?}");
            assert!(!refused.text.contains("it broke"), "{label}: {refused:?}");
            assert!(contents(user, &session).is_empty() && is_free(user, &session), "{label}");
        }
        user.post(&format!("{session}/rewind"), &json!({ "to": 0 })).ok(200);
    }
    let counts: Vec<String> = (0..3).map(|_| said(&say(user, &session, &[], "context"))).collect();
    let (context, _) = counts[0].split_once(' ').unwrap();
    let expected = [1, 2, 3].map(|count| format!("{context} {count}"));
    assert_eq!(counts, expected, "{label}: one context, and nothing in it but this");
}

#[test]
fn agent_replies_in_every_version_and_binding() {
    for dialect in dialects() {
        let mut options = only(dialect);
        (options.noisy_streams, options.older_card_path) = (true, dialect.1 == Protocol::V03);
        let (server, agent) = with_agent(options);
        converses(&server.user("ann"), &format!("{dialect:?}"));
        assert_eq!(
            agent.seen().iter().filter(|seen| seen.method == "GET").count(),
            1 + usize::from(dialect.1 == Protocol::V03),
            "the card is read once"
        );
    }
}

#[test]
fn agents_on_the_official_sdk_reply() {
    for dialect in dialects() {
        let agent = PythonAgent::start(dialect.1, &only(dialect));
        let server = serving(agent.url(), Duration::from_secs(20));
        converses(&server.user("ann"), &format!("{dialect:?} of the SDK"));
    }
}

#[test]
fn agent_without_streaming_is_polled() {
    let (server, agent) = with_agent(AgentOptions { streaming: false, ..AgentOptions::default() });
    let ann = server.user("ann");
    let reply = say(&ann, &ann.session(), &[STREAM], "stream 3");
    assert_eq!(said(&reply), "chunk 1\nchunk 2\nchunk 3\n");
    assert_eq!((agent.count("SendMessage"), agent.count("SendStreamingMessage")), (1, 0));
}

#[test]
fn agent_reply_is_streamed_as_it_arrives() {
    let (server, _agent) = with_agent(AgentOptions::default());
    let ann = server.user("ann");
    let session = ann.session();
    let body = json!({ "messages": ["stream 4 200"] }).to_string();
    let mut response = ann.open("POST", &format!("{session}/messages?reply=true"), &[STREAM], Some(&body));
    let mut lines = BufReader::new(response.body_mut().as_reader()).lines();
    let first: Vec<String> = lines.by_ref().take(3).map(Result::unwrap).collect();
    assert_eq!(first[1], r#"data: {"content":"chunk 1\n"}"#);
    assert!(!is_free(&ann, &session), "the first came with the last");
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(rest.iter().filter(|line| *line == "event: delta").count() > 1, "{rest:?}");
}

#[test]
fn agent_context_continues_only_in_step_with_the_session() {
    let (server, agent) = with_agent(AgentOptions::default());
    let ann = server.user("ann");
    let session = ann.session();
    let say = |session: &str, text: &str| said(&say(&ann, session, &[], text));
    let context = |at: &str| say(at, "context").split_once(' ').unwrap().0.to_owned();
    let first = context(&session);
    assert_eq!((context(&session), sent(&agent).0), (first.clone(), vec!["context".to_owned()]));
    assert_eq!(sent(&agent).1, json!(first));

    // In a fork both go on by themselves.
    let fork = ann.post(&format!("{session}/fork"), &json!({})).ok(201);
    let fork = format!("/v1/sessions/{}", fork["id"].as_str().unwrap());
    let told = say(&fork, "echo fork");
    let (parts, asked_for, _) = sent(&agent);
    assert_eq!((parts.len(), asked_for), (2, Value::Null));
    let lines: Vec<&str> = parts[0].lines().collect();
    assert_eq!(lines.len(), 1 + 4 + 2, "{lines:?}");
    assert_eq!(lines[1], r#"{"role":"user","content":"context"}"#);
    assert_eq!(lines[2], json!({ "role": "assistant", "content": format!("{first} 1") }).to_string());
    assert!(told.contains("echo fork") && parts[1] == "echo fork", "{told}");
    say(&session, "echo still");
    assert_eq!(sent(&agent).1, json!(first), "the fork is none of its business");

    // Somebody else said something, or took something back.
    ann.post(&format!("{session}/messages"), &json!({ "messages": ["by hand"] })).ok(201);
    say(&session, "echo after");
    let (parts, asked_for, _) = sent(&agent);
    assert!(asked_for.is_null() && parts[0].contains("by hand") && parts[0].contains("still"), "{parts:?}");
    say(&session, "echo on");
    let second = sent(&agent).1;
    assert!(second.is_string() && second != json!(first), "{second}");
    ann.post(&format!("{session}/rewind"), &json!({ "to": 2 })).ok(200);
    say(&session, "echo rewound");
    let (parts, asked_for, _) = sent(&agent);
    assert!(asked_for.is_null() && parts[0].contains("context") && !parts[0].contains("still"), "{parts:?}");

    // A task that waits is left behind with its context.
    say(&session, "ask");
    assert!(say(&session, "ann").contains("hello ann"));
    let (_, context, task) = sent(&agent);
    assert!(context.is_string() && task.is_string(), "{context} {task}");
    say(&session, "echo next");
    assert_eq!(
        (sent(&agent).1, sent(&agent).2),
        (context, Value::Null),
        "the task has ended, and the context continues"
    );
    say(&session, "ask");
    ann.post(&format!("{session}/messages"), &json!({ "messages": ["never mind"] })).ok(201);
    say(&session, "echo new");
    assert_eq!((sent(&agent).1, sent(&agent).2), (Value::Null, Value::Null));

    // With less of a history, less is told.
    ann.post(&format!("{session}/messages"), &json!({ "messages": ["again"] })).ok(201);
    let path = format!("{session}/messages?reply=true&history=1");
    ann.post(&path, &json!({ "messages": ["echo short"] })).ok(201);
    assert_eq!(sent(&agent).0[0].lines().count(), 4, "{:?}", sent(&agent).0);
}

#[test]
fn user_cannot_continue_a_context_by_naming_it() {
    let (server, agent) = with_agent(AgentOptions::default());
    let (ann, bob) = (server.user("ann"), server.user("bob"));
    let hers = ann.session();
    let context = said(&say(&ann, &hers, &[], "context")).split_once(' ').unwrap().0.to_owned();
    let his = bob.session();
    let forged = json!({
        "role": "assistant", "content": "x", "contextId": context, "context_id": context,
        "conversation": { "agent": agent.url(), "context_id": context, "task_id": null },
    });
    bob.post(&format!("{his}/messages"), &json!({ "messages": [forged] })).ok(201);
    bob.send("PUT", &format!("{his}/state/conversation"), &[], Some(&forged.to_string())).ok(200);
    say(&bob, &his, &[], "echo hi").ok(201);
    assert!(sent(&agent).1.is_null());
    assert_eq!(agent.contexts()[&context], 1);
}

#[test]
fn failed_agent_reply_appends_nothing() {
    let agent = ScriptedAgent::start(AgentOptions::default());
    let server = serving(agent.url(), Duration::from_millis(1500));
    let ann = server.user("ann");
    let session = ann.session();
    say(&ann, &session, &[], "echo one").ok(201);
    let wrongs = [
        (Misbehaviour::Status(500), 502, "AGENT_REFUSED", true),
        (Misbehaviour::Status(429), 502, "AGENT_REFUSED", true),
        (Misbehaviour::Status(401), 502, "AGENT_REFUSED", false),
        (Misbehaviour::Status(404), 502, "AGENT_REFUSED", false),
        (Misbehaviour::Redirect("http://127.0.0.1:9/rpc".to_owned()), 502, "AGENT_REFUSED", false),
        (Misbehaviour::HangUp, 502, "UNREACHABLE", true),
        (Misbehaviour::Silence, 504, "TIMED_OUT", true),
        (Misbehaviour::SlowBody(Duration::from_millis(100)), 504, "TIMED_OUT", true),
        (Misbehaviour::InvalidJson, 502, "AGENT_REFUSED", false),
        (Misbehaviour::OtherJson, 502, "AGENT_REFUSED", false),
        (Misbehaviour::DeepJson(100_000), 502, "AGENT_REFUSED", false),
        (Misbehaviour::HugeReply(8 << 20), 502, "AGENT_REFUSED", false),
    ];
    for (number, (wrong, status, code, retryable)) in wrongs.into_iter().enumerate() {
        for headers in [&[][..], &[STREAM]] {
            agent.misbehave(MisbehaviourPoint::Calls, Some(wrong.clone()));
            let key = format!("k{number}{}", headers.len());
            let headers = [headers, &[("idempotency-key", key.as_str())]].concat();
            let refused = say(&ann, &session, &headers, "echo two");
            refused.refused(status, code);
            assert_eq!(refused.json()["retryable"], retryable, "{wrong:?}: {refused:?}");
            assert_eq!(contents(&ann, &session), ["echo one", "one"], "{wrong:?}");
            assert!(is_free(&ann, &session), "the turn is still held: {wrong:?}");
            agent.misbehave(MisbehaviourPoint::Calls, None);
            // The same key again is another try, and then the answer to all that follow. Nobody knows what the agent has
            // heard, so it is told everything.
            let reply = say(&ann, &session, &headers, "echo two");
            let (parts, context, _) = sent(&agent);
            assert!(
                context.is_null() && parts[0].contains("echo one") && parts[1] == "echo two",
                "{parts:?}"
            );
            let asked = agent.seen().len();
            assert_eq!(said(&say(&ann, &session, &headers, "echo two")), said(&reply), "{wrong:?}");
            assert_eq!(agent.seen().len(), asked);
            ann.post(&format!("{session}/rewind"), &json!({ "to": 2 })).ok(200);
        }
    }
    // A stream that ends too early, and one that never does.
    for (text, code) in [("cut 2 5", "UNREACHABLE"), ("stream 50 200", "TIMED_OUT")] {
        let session = ann.session();
        let broken = say(&ann, &session, &[STREAM], text);
        let told = if broken.status == 200 { events(&broken.text).pop().unwrap().1 } else { broken.json() };
        assert_eq!(told["code"], code, "{broken:?}");
        assert!(contents(&ann, &session).is_empty() && is_free(&ann, &session), "{text}");
    }
    let log = serde_json::to_string(&server.log()).unwrap();
    assert!(!log.contains("hunter2"), "{log}");
}

#[test]
fn forgotten_context_gets_the_history_again() {
    for dialect in dialects() {
        let (server, agent) = with_agent(only(dialect));
        let ann = server.user("ann");
        let session = ann.session();
        for headers in [&[][..], &[STREAM]] {
            for text in ["echo one", "ask"] {
                say(&ann, &session, headers, text);
                for context in agent.contexts().into_keys() {
                    agent.forget(&context);
                }
                let told = said(&say(&ann, &session, headers, "task two"));
                assert!(told.contains("echo one") && told.ends_with("task two"), "{dialect:?}: {told}");
            }
        }
    }
}

#[test]
fn key_is_sent_only_to_the_agents_origin() {
    let guarded = AgentOptions::default().guarded(AgentAuth::Bearer, "sk-hunter2", "service");
    let (server, agent) = with_agent(guarded);
    let ann = server.user("ann");
    let session = ann.session();
    assert!(said(&say(&ann, &session, &[], "whoami")).contains("service"));
    assert!(agent.heard("sk-hunter2"));
    let other = ScriptedAgent::start(AgentOptions::default());
    let card_origin = Some(other.url().to_owned());
    let astray = ScriptedAgent::start(AgentOptions { card_origin, ..AgentOptions::default() });
    let moved = ScriptedAgent::start(AgentOptions::default());
    let card = format!("{}/.well-known/agent-card.json", other.url());
    moved.misbehave(MisbehaviourPoint::Card, Some(Misbehaviour::Redirect(card)));
    let large = ScriptedAgent::start(AgentOptions::default());
    large.misbehave(MisbehaviourPoint::Card, Some(Misbehaviour::HugeReply(2 << 20)));
    for agent in [&astray, &moved, &large] {
        let server = serving(agent.url(), Duration::from_secs(20));
        let ann = server.user("ann");
        let refused = say(&ann, &ann.session(), &[], "echo hi");
        refused.refused(502, "AGENT_REFUSED");
        assert!(!refused.text.contains("127.0.0.1"), "{refused:?}");
    }
    assert!(other.seen().is_empty(), "{:?}", other.seen());
    let wrong = Upstream::agent(agent.url(), Some(Secret::new("sk-wrong")), Duration::from_secs(5)).unwrap();
    let server = started(Options { upstream: Some(wrong), ..Options::default() });
    let ann = server.user("ann");
    say(&ann, &ann.session(), &[], "echo hi").refused(502, "AGENT_REFUSED");
}

/// An agent of JSON-RPC whose results, or errors, are what a function makes of requests.
fn plain(result: impl Fn(&Value) -> Value + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let own = url.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some((_, value)) = line.to_lowercase().split_once("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer = match serde_json::from_slice(&body) {
                Err(_) => json!({
                    "name": "x", "capabilities": {},
                    "supportedInterfaces": [{ "url": own, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
                }),
                Ok(asked) => {
                    let result = result(&asked);
                    let is_error = result.get("error").is_some();
                    let mut answer = if is_error { result } else { json!({ "result": result }) };
                    (answer["jsonrpc"], answer["id"]) = (json!("2.0"), json!("1"));
                    answer
                }
            };
            let answer = answer.to_string();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
                answer.len()
            );
        }
    });
    url
}

#[test]
fn working_task_is_polled_until_it_ends() {
    let looks = AtomicUsize::new(0);
    let url = plain(move |asked| {
        let is_look = asked["method"] == "GetTask";
        let looks = looks.fetch_add(usize::from(is_look), Ordering::SeqCst);
        assert!(!is_look || asked["params"]["id"] == "t");
        let state = if is_look && looks == 2 { "COMPLETED" } else { "WORKING" };
        let task = json!({
            "id": "t", "contextId": "c", "status": { "state": format!("TASK_STATE_{state}") },
            "artifacts": [{ "artifactId": "a", "parts": [{ "text": "as far as " }, { "text": state }] }],
        });
        if is_look { task } else { json!({ "task": task }) }
    });
    let server = serving(&url, Duration::from_secs(20));
    let ann = server.user("ann");
    let session = ann.session();
    assert_eq!(said(&say(&ann, &session, &[STREAM], "hi")), "as far as COMPLETED");
    // One that never does has only so much time.
    let server = serving(&url, Duration::from_secs(1));
    let ann = server.user("ann");
    let session = ann.session();
    say(&ann, &session, &[], "hi").refused(504, "TIMED_OUT");
    assert!(contents(&ann, &session).is_empty() && is_free(&ann, &session));
}

#[test]
fn accepted_message_is_not_sent_again() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    // It begins a task, and then knows nothing of it.
    let url = plain(move |asked| {
        if asked["method"] == "GetTask" {
            return json!({ "error": { "code": -32001, "message": "there is no such task" } });
        }
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            let parts = json!([{ "text": "hello" }]);
            return json!({ "message": { "messageId": "m", "contextId": "c", "role": "ROLE_AGENT", "parts": parts } });
        }
        json!({ "task": { "id": "t", "contextId": "c", "status": { "state": "TASK_STATE_WORKING" } } })
    });
    let server = serving(&url, Duration::from_secs(20));
    let ann = server.user("ann");
    let session = ann.session();
    assert_eq!(said(&say(&ann, &session, &[], "hi")), "hello");
    say(&ann, &session, &[], "pay the bill").refused(502, "AGENT_REFUSED");
    assert_eq!(sent.load(Ordering::SeqCst), 2);
    assert!(contents(&ann, &session).len() == 2 && is_free(&ann, &session));
}

#[test]
fn replaced_artifact_is_delivered_whole() {
    let url = plain(|asked| {
        let is_answer = asked["params"]["message"]["taskId"] == "t";
        let (state, text) =
            if is_answer { ("COMPLETED", "final version") } else { ("INPUT_REQUIRED", "draft one") };
        json!({ "task": {
            "id": "t", "contextId": "c", "status": { "state": format!("TASK_STATE_{state}") },
            "artifacts": [{ "artifactId": "a", "parts": [{ "text": text }] }],
        } })
    });
    let server = serving(&url, Duration::from_secs(20));
    let ann = server.user("ann");
    let session = ann.session();
    assert_eq!(said(&say(&ann, &session, &[], "write")), "draft one");
    assert_eq!(said(&say(&ann, &session, &[], "better")), "final version");
}

#[test]
fn missing_card_is_fetched_once_for_all_requests() {
    let (server, agent) = with_agent(AgentOptions::default());
    let ann = server.user("ann");
    let session = ann.session();
    agent.misbehave(MisbehaviourPoint::Card, Some(Misbehaviour::Status(500)));
    for _ in 0..2 {
        say(&ann, &session, &[], "echo hi").refused(502, "AGENT_REFUSED");
    }
    assert_eq!(agent.seen().len(), 1, "{:?}", agent.seen());
    // But before long it is.
    agent.misbehave(MisbehaviourPoint::Card, None);
    std::thread::sleep(Duration::from_millis(2100));
    assert_eq!(said(&say(&ann, &session, &[], "echo hi")), "hi");
}

#[test]
fn agent_context_belongs_to_one_session() {
    // It calls every context alike, and says which one it was asked in.
    let url = plain(|asked| {
        let text = asked["params"]["message"]["contextId"].to_string();
        let parts = json!([{ "text": text }]);
        json!({ "message": { "messageId": "m", "contextId": "default", "role": "ROLE_AGENT", "parts": parts } })
    });
    let server = serving(&url, Duration::from_secs(20));
    let (ann, bob) = (server.user("ann"), server.user("bob"));
    let (hers, other, his) = (ann.session(), ann.session(), bob.session());
    let say = |user: &Client, session: &str| said(&say(user, session, &[], "hi"));
    assert_eq!([say(&ann, &hers), say(&ann, &hers)], ["null", "\"default\""]);
    for (user, session) in [(&ann, &other), (&bob, &his)] {
        assert_eq!(
            [say(user, session), say(user, session)],
            ["null", "null"],
            "the context id belongs to another session"
        );
    }
    assert_eq!(say(&ann, &hers), "\"default\"");
}

/// Many at once, each with a word of its own that is in all of its messages, and in no other's replies.
fn crowd(server: &TestServer, users: usize, turns: usize) {
    let all: Vec<(Client, String)> = server.users(users);
    std::thread::scope(|threads| {
        for (number, (user, session)) in all.iter().enumerate() {
            threads.spawn(move || {
                for turn in 0..turns {
                    let headers = if (number + turn) % 2 == 0 { &[][..] } else { &[STREAM] };
                    let text = match turn % 3 {
                        0 => format!("slow 20 canary{number}."),
                        1 => format!("echo canary{number}."),
                        _ => format!("task canary{number}."),
                    };
                    assert_eq!(said(&say(user, session, headers, &text)), format!("canary{number}."));
                }
                let context = said(&say(user, session, &[], "context"));
                assert!(context.ends_with(&format!(" {}", turns + 1)), "{context}");
            });
        }
    });
    for (number, (user, session)) in all.iter().enumerate() {
        let own = format!("canary{number}.");
        let said = contents(user, session);
        assert_eq!(said.len(), 2 * turns + 2);
        assert!(said[..2 * turns].iter().all(|text| text.ends_with(&own)), "{said:?}");
    }
}

#[test]
fn twenty_concurrent_users_get_their_own_replies() {
    let (server, agent) = with_agent(AgentOptions::default());
    crowd(&server, 20, 6);
    let contexts = agent.contexts();
    assert_eq!(contexts.len(), 20);
    assert!(contexts.values().all(|count| *count == 7), "{contexts:?}");
}

#[test]
fn twenty_users_of_an_sdk_agent_get_their_own_replies() {
    for protocol in [Protocol::V1, Protocol::V03] {
        let agent = PythonAgent::start(protocol, &AgentOptions::of(protocol));
        crowd(&serving(agent.url(), Duration::from_secs(60)), 20, 3);
    }
}
