//! Messages that the upstream replies to.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sessile::vault::Secret;
use sessile_server::account::TokenScope;
use sessile_server::serve::Options;
use sessile_server::upstream::Upstream;

use super::upstream::{Mood, ScriptedUpstream};
use super::{Client, Reply, TestServer, server, started};

fn with_upstream(timeout: Duration) -> (TestServer, ScriptedUpstream) {
    let scripted = ScriptedUpstream::start();
    let key = Some(Secret::new("sk-hunter2"));
    let upstream = Upstream::new(&scripted.url(), "small", key, timeout).unwrap();
    (started(Options { upstream: Some(upstream), ..Options::default() }), scripted)
}

fn patient() -> (TestServer, ScriptedUpstream) {
    with_upstream(Duration::from_secs(20))
}

pub(super) fn say(user: &Client, session: &str, headers: &[(&str, &str)], text: &str) -> Reply {
    let body = json!({ "messages": [{ "role": "user", "content": text }] }).to_string();
    user.send("POST", &format!("{session}/messages?reply=true"), headers, Some(&body))
}

pub(super) fn contents(user: &Client, session: &str) -> Vec<String> {
    let page = user.get(&format!("{session}/messages?limit=1000")).ok(200);
    let content = |message: &Value| message["body"]["content"].as_str().unwrap().to_owned();
    page["messages"].as_array().unwrap().iter().map(content).collect()
}

/// Until nobody has the turn.
pub(super) fn is_free(user: &Client, session: &str) -> bool {
    let turn = user.post(&format!("{session}/turns"), &json!({ "busy": "reject" }));
    if turn.status == 201 {
        user.delete(&format!("{session}/turns/{}", turn.json()["token"])).ok(204);
    }
    turn.status == 201
}

/// The events of a stream, with their data.
pub(super) fn events(text: &str) -> Vec<(String, Value)> {
    let event = |block: &str| {
        let (kind, data) = block.split_once("\ndata: ").unwrap();
        (kind.strip_prefix("event: ").unwrap().to_owned(), serde_json::from_str(data).unwrap())
    };
    text.split("\n\n").filter(|block| !block.is_empty() && *block != ":").map(event).collect()
}

pub(super) const STREAM: (&str, &str) = ("accept", "text/event-stream");

#[test]
fn reply_is_made_from_the_sessions_messages() {
    let (server, scripted) = patient();
    let ann = server.user("ann");
    let session = ann.session();
    let first = say(&ann, &session, &[], "one").ok(201);
    assert_eq!(first["reply"], json!({ "number": 2, "body": { "role": "assistant", "content": "one" } }));
    ann.post(&format!("{session}/messages"), &json!({ "messages": ["plain", { "n": 1 }] })).ok(201);
    let second = say(&ann, &session, &[], "two").ok(201);
    assert_eq!((&second["first"], &second["last"]), (&json!(5), &json!(6)));
    assert_eq!(second["messages"], json!([{ "number": 5, "body": { "role": "user", "content": "two" } }]));
    assert_eq!(second["reply"]["body"]["content"], "one|one|plain|{\"n\":1}|two");
    let asked = scripted.asked();
    assert_eq!((&asked[1]["model"], &asked[1]["key"]), (&json!("small"), &json!("Bearer sk-hunter2")));
    assert_eq!(asked[1]["messages"][1], json!({ "role": "assistant", "content": "one" }));
    let body = json!({ "messages": ["three"] });
    let short = ann.post(&format!("{session}/messages?reply=true&history=1"), &body).ok(201);
    assert_eq!(short["reply"]["body"]["content"], "one|one|plain|{\"n\":1}|two|three");
    let all = ann.get(&format!("{session}/messages?limit=100")).ok(200);
    let tokens: Vec<i64> =
        all["messages"].as_array().unwrap()[4..].iter().map(|one| one["token"].as_i64().unwrap()).collect();
    assert!(tokens[0] == tokens[1] && tokens[0] > 0 && tokens[2] > tokens[1], "{tokens:?}");
}

#[test]
fn invalid_reply_request_never_reaches_the_upstream() {
    let (server, scripted) = patient();
    let ann = server.user("ann");
    let session = ann.session();
    let body = json!({ "messages": ["x"] });
    let post = |query: &str| ann.post(&format!("{session}/messages?{query}"), &body);
    post("reply=maybe").refused(400, "INVALID_VALUE");
    post("reply=true&busy=shout").refused(400, "INVALID_VALUE");
    post("busy=reject").refused(400, "USAGE");
    post("reply=true&color=red").refused(400, "USAGE");
    ann.post(&format!("{session}/messages?reply=true"), &json!({ "messages": [] }))
        .refused(400, "INVALID_VALUE");
    let stale = json!({ "messages": ["x"], "if_last": 7 });
    ann.post(&format!("{session}/messages?reply=true"), &stale).refused(409, "REVISION_CONFLICT");
    let (writer, _) = server.token("ann", &[TokenScope::Write], None);
    say(&writer, &session, &[], "what did ann say?").refused(403, "CREDENTIAL_REJECTED");
    say(&server.user("bob"), &session, &[], "x").refused(404, "SESSION_NOT_FOUND");
    assert!(scripted.asked().is_empty() && contents(&ann, &session).is_empty());
    let bare = self::server();
    let eve = bare.user("eve");
    say(&eve, &eve.session(), &[], "x").refused(400, "USAGE");
}

#[test]
fn failed_upstream_reply_appends_nothing() {
    let (server, scripted) = with_upstream(Duration::from_millis(400));
    let ann = server.user("ann");
    let session = ann.session();
    say(&ann, &session, &[], "one").ok(201);
    let told = "Incorrect API key provided: sk-hunter2".to_owned();
    let refuse = |status| Mood { refuse: Some((status, told.clone())), ..Mood::default() };
    let moods = [
        (refuse(401), 502, "AGENT_REFUSED", false),
        (refuse(302), 502, "AGENT_REFUSED", false),
        (refuse(500), 502, "AGENT_REFUSED", true),
        (refuse(429), 502, "AGENT_REFUSED", true),
        (Mood { think: Duration::from_secs(1), ..Mood::default() }, 504, "TIMED_OUT", true),
        (Mood { break_off: Some(1), ..Mood::default() }, 502, "UNREACHABLE", true),
        (Mood { say: Some("x".repeat(300_000)), ..Mood::default() }, 502, "AGENT_REFUSED", false),
    ];
    for (mood, status, code, retryable) in moods {
        scripted.mood(mood.clone());
        for headers in [&[][..], &[STREAM]] {
            let refused = say(&ann, &session, headers, "two");
            // What a stream has begun it can only end with an error.
            if refused.status == 200 {
                let events = events(&refused.text);
                let (kind, problem) = events.last().unwrap();
                assert_eq!(
                    (kind.as_str(), &problem["code"]),
                    ("error", &json!(code)),
                    "{mood:?}: {refused:?}"
                );
                assert_eq!(events.len() > 1, mood.break_off.is_some(), "{refused:?}");
            } else {
                refused.refused(status, code);
                assert_eq!(refused.json()["retryable"], retryable, "{refused:?}");
            }
            assert!(!refused.text.contains("hunter2"), "{refused:?}");
            assert_eq!(contents(&ann, &session), ["one", "one"], "{mood:?}");
            assert!(is_free(&ann, &session), "the turn is still held: {mood:?}");
        }
    }
    scripted.mood(Mood::default());
    assert_eq!(say(&ann, &session, &[], "two").ok(201)["reply"]["body"]["content"], "one|one|two");
    let log = serde_json::to_string(&server.log()).unwrap();
    assert!(log.contains("Incorrect API key provided: (the key)") && !log.contains("hunter2"), "{log}");
}

#[test]
fn missing_upstream_is_reported_as_unreachable() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let upstream = Upstream::new(&format!("http://{gone}"), "m", None, Duration::from_secs(5)).unwrap();
    let server = started(Options { upstream: Some(upstream), ..Options::default() });
    let ann = server.user("ann");
    let session = ann.session();
    say(&ann, &session, &[], "one").refused(502, "UNREACHABLE");
    assert!(contents(&ann, &session).is_empty() && is_free(&ann, &session));
}

#[test]
fn same_key_gets_the_same_reply_once() {
    let (server, scripted) = patient();
    let ann = server.user("ann");
    let session = ann.session();
    let key = [("idempotency-key", "k1")];
    let first = say(&ann, &session, &key, "one").ok(201);
    assert_eq!(say(&ann, &session, &key, "one").ok(201), first);
    assert_eq!(scripted.asked().len(), 1);
    let streamed = say(&ann, &session, &[key[0], STREAM], "one");
    assert_eq!(
        events(&streamed.text),
        [("delta".to_owned(), json!({ "content": "one" })), ("done".to_owned(), first.clone())]
    );
    say(&ann, &session, &key, "another").refused(422, "INVALID_VALUE");
    let append = json!({ "messages": ["x"] }).to_string();
    ann.send("POST", &format!("{session}/messages"), &key, Some(&append)).refused(422, "INVALID_VALUE");
    // What failed was not answered: the key is free for another try.
    let again = [("idempotency-key", "k2")];
    scripted.mood(Mood { refuse: Some((500, String::new())), ..Mood::default() });
    say(&ann, &session, &again, "two").refused(502, "AGENT_REFUSED");
    scripted.mood(Mood { think: Duration::from_millis(300), ..Mood::default() });
    // Many at once, as clients do that lose patience.
    let threads: Vec<_> = (0..5)
        .map(|_| {
            let (ann, session) = (ann.clone(), session.clone());
            std::thread::spawn(move || say(&ann, &session, &[("idempotency-key", "k2")], "two").ok(201))
        })
        .collect();
    let replies: Vec<Value> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert!(replies.windows(2).all(|pair| pair[0] == pair[1]), "{replies:?}");
    assert_eq!(scripted.asked().len(), 3);
    assert_eq!(contents(&ann, &session), ["one", "one", "two", "one|one|two"]);
    // The answer outlives the messages.
    ann.post(&format!("{session}/rewind"), &json!({ "to": 0 })).ok(200);
    assert_eq!(say(&ann, &session, &key, "one").ok(201), first);
}

#[test]
fn reply_is_streamed_as_it_arrives() {
    let (server, scripted) = patient();
    let ann = server.user("ann");
    let session = ann.session();
    let say_it = "Zw\u{f6}lf|Boxk\u{e4}mpfer|\u{1f600}|jagen|Viktor".to_owned();
    scripted.mood(Mood { rest: Duration::from_secs(1), say: Some(say_it.clone()), ..Mood::default() });
    let began = Instant::now();
    let body = json!({ "messages": ["hi"] }).to_string();
    let mut response = ann.open("POST", &format!("{session}/messages?reply=true"), &[STREAM], Some(&body));
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    let mut lines = BufReader::new(response.body_mut().as_reader()).lines();
    lines.by_ref().take(2).for_each(|line| drop(line.unwrap()));
    assert!(began.elapsed() < Duration::from_secs(4), "the first token waited for the last");
    assert!(!is_free(&ann, &session));
    let rest: Vec<String> = lines.map(|line| line.unwrap()).collect();
    let events = events(rest.join("\n").trim_start());
    let (kind, done) = events.last().unwrap();
    assert_eq!((kind.as_str(), &done["reply"]["body"]["content"]), ("done", &json!(say_it)));
    let pieces: Vec<&str> = events
        .iter()
        .filter(|(kind, _)| kind == "delta")
        .map(|(_, data)| data["content"].as_str().unwrap())
        .collect();
    assert!(pieces.len() > 2 && say_it.ends_with(&pieces.concat()), "{pieces:?}");
    let stored = ann.get(&format!("{session}/messages")).ok(200);
    assert_eq!(stored["messages"][1]["body"]["content"], say_it.as_str());
}

#[test]
fn reply_is_committed_after_the_client_disconnects() {
    let (server, scripted) = patient();
    let ann = server.user("ann");
    let session = ann.session();
    scripted.mood(Mood {
        think: Duration::from_millis(300),
        rest: Duration::from_millis(50),
        ..Mood::default()
    });
    for accept in ["application/json", "text/event-stream"] {
        let mut stream = server.connect();
        let body = r#"{"messages":["hi"]}"#;
        Write::write_all(
            &mut stream,
            format!(
                "POST {session}/messages?reply=true HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\naccept: {accept}\r\n\
                 idempotency-key: {accept}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                ann.secret.as_ref().unwrap(),
                body.len()
            )
            .as_bytes(),
        )
        .unwrap();
        let asked = scripted.asked().len();
        scripted.until_asked(asked.max(1));
        if accept == "text/event-stream" {
            let _ = stream.read(&mut [0; 64]);
        }
        drop(stream);
        let body = r#"{"messages":["hi"]}"#;
        let path = format!("{session}/messages?reply=true");
        ann.send("POST", &path, &[("idempotency-key", accept)], Some(body)).ok(201);
    }
    assert_eq!(scripted.asked().len(), 2, "the upstream gets one request per key");
    assert_eq!(ann.get(&format!("{session}/messages")).ok(200)["messages"].as_array().unwrap().len(), 4);
}

#[test]
fn reply_obeys_the_busy_policy() {
    let (server, scripted) = patient();
    let ann = server.user("ann");
    let session = ann.session();
    scripted.mood(Mood { think: Duration::from_millis(600), ..Mood::default() });
    let first = {
        let (ann, session) = (ann.clone(), session.clone());
        std::thread::spawn(move || say(&ann, &session, &[], "first"))
    };
    scripted.until_asked(1);
    let post = |query: &str| {
        ann.post(&format!("{session}/messages?reply=true&{query}"), &json!({ "messages": [query] }))
    };
    post("busy=reject").refused(409, "LOCK_HELD");
    post("wait_ms=50").refused(408, "TIMED_OUT");
    ann.post(&format!("{session}/messages"), &json!({ "messages": ["x"] })).refused(409, "LOCK_HELD");
    post("busy=interrupt").ok(201);
    first.join().unwrap().refused(409, "LOCK_LOST");
    let stored = ann.get(&format!("{session}/messages")).ok(200);
    assert_eq!(stored["messages"][1]["body"]["content"], "busy=interrupt");
}

#[test]
fn turn_is_renewed_while_the_upstream_works() {
    let scripted = ScriptedUpstream::start();
    // Longer than the lease, which is renewed after a third of it: a busy machine may be four seconds late.
    scripted.mood(Mood { think: Duration::from_secs(7), ..Mood::default() });
    let upstream = Upstream::new(&scripted.url(), "m", None, Duration::from_secs(60)).unwrap();
    let mut options = Options { upstream: Some(upstream), ..Options::default() };
    options.limits.ttl_ms = 6_000;
    let server = started(options);
    let ann = server.user("ann");
    let session = ann.session();
    assert_eq!(say(&ann, &session, &[], "one").ok(201)["reply"]["body"]["content"], "one");
}

#[test]
fn reply_contains_no_messages_of_another_user() {
    let (server, scripted) = patient();
    scripted.mood(Mood { think: Duration::from_millis(3), ..Mood::default() });
    let (users, turns) = (12, 4);
    let all: Vec<(Client, String)> = server.users(users);
    std::thread::scope(|threads| {
        for (number, (user, session)) in all.iter().enumerate() {
            for turn in 0..turns {
                threads.spawn(move || {
                    let headers = if turn % 2 == 0 { &[][..] } else { &[STREAM] };
                    let said = say(user, session, headers, &format!("u{number}."));
                    assert!(matches!(said.status, 200 | 201), "{said:?}");
                    let own = format!("u{number}.");
                    let reply = match said.status {
                        200 => events(&said.text).pop().unwrap().1,
                        _ => said.json(),
                    };
                    let content = reply["reply"]["body"]["content"].as_str().unwrap().to_owned();
                    assert!(content.split('|').all(|word| word == own), "{own}: {content}");
                });
            }
        }
    });
    for (number, (user, session)) in all.iter().enumerate() {
        let mut expected: Vec<String> = Vec::new();
        for _ in 0..turns {
            expected.push(format!("u{number}."));
            expected.push(expected.join("|"));
        }
        assert_eq!(contents(user, session), expected);
    }
    assert_eq!(scripted.asked().len(), users * turns);
}

#[test]
fn shutdown_waits_for_awaited_replies() {
    let (mut server, scripted) = patient();
    let (ann, bob) = (server.user("ann"), server.user("bob"));
    let (hers, his) = (ann.session(), bob.session());
    scripted.mood(Mood { think: Duration::from_secs(15), ..Mood::default() });
    let gone = server.connect();
    let body = r#"{"messages":["hi"]}"#;
    write!(
        &gone,
        "POST {his}/messages?reply=true HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        bob.secret.as_ref().unwrap(),
        body.len()
    )
    .unwrap();
    scripted.until_asked(1);
    drop(gone);
    scripted.mood(Mood { think: Duration::from_millis(700), ..Mood::default() });
    let stays = std::thread::spawn(move || say(&ann, &hers, &[], "one"));
    scripted.until_asked(2);
    let began = Instant::now();
    server.send_sigterm();
    assert_eq!(stays.join().unwrap().ok(201)["reply"]["body"]["content"], "one");
    server.ended();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let connection = rusqlite::Connection::open(server.dir().join("service.db")).unwrap();
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((count("SELECT count(*) FROM message"), count("SELECT count(*) FROM place")), (2, 0));
}

#[test]
fn upstream_connection_is_reused_for_the_same_user_only() {
    let (server, scripted) = patient();
    scripted.mood(Mood { keep_alive: true, ..Mood::default() });
    let (ann, bob) = (server.user("ann"), server.user("bob"));
    let (first, second) = (ann.session(), ann.session());
    for (turn, session) in [&first, &second, &first, &second].into_iter().enumerate() {
        let headers: &[_] = if turn % 2 == 0 { &[STREAM] } else { &[] };
        say(&ann, session, headers, "one");
        // The rest of a response is read after the reply is complete.
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!((scripted.asked().len(), scripted.connections()), (4, 1));
    say(&bob, &bob.session(), &[], "one").ok(201);
    assert_eq!(scripted.connections(), 2);
}

#[test]
fn upstream_that_closes_connections_still_replies() {
    let (server, scripted) = patient();
    let ann = server.user("ann");
    let session = ann.session();
    scripted.mood(Mood { keep_alive: true, drop_second: true, ..Mood::default() });
    for round in 1..=5 {
        let body = say(&ann, &session, &[], "hello").ok(201);
        assert_eq!(body["last"], 2 * round);
        std::thread::sleep(Duration::from_millis(100));
    }
    // Each connection served one request and closed at the second, which was sent again.
    assert_eq!((scripted.asked().len(), scripted.connections()), (5, 5));
}
