//! Following a session.

use std::io::{BufRead, BufReader, Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sessile_server::retention::{self, RetentionPolicy};
use sessile_server::serve::Options;
use testkit::quickest_within;

use super::{Client, server, started, with};

/// A stream that is read event by event.
struct EventReader(Box<dyn BufRead + Send>);

impl EventReader {
    fn open(client: &Client, path: &str, headers: &[(&str, &str)]) -> Self {
        let response = client.open("GET", path, headers, None);
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        EventReader(Box::new(BufReader::new(response.into_body().into_reader())))
    }

    /// The next event: its id, its kind, what it says; nothing if the stream has ended.
    fn next(&mut self) -> Option<(i64, String, Value)> {
        let (mut id, mut kind, mut data) = (None, String::new(), Value::Null);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end().split_once(": ") {
                Some(("id", number)) => id = number.parse().ok(),
                Some(("event", name)) => kind = name.to_owned(),
                Some(("data", text)) => data = serde_json::from_str(text).unwrap(),
                _ if line == "\n" && id.is_some() => return Some((id?, kind, data)),
                _ => {}
            }
        }
    }
}

#[test]
fn events_are_followed_and_resumed() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    let path = format!("{session}/events");
    let mut first = EventReader::open(&ann, &path, &[]);
    assert_eq!(first.next().unwrap().1, "session.started");
    ann.append(&session, &["a", "b"]);
    let (id, kind, data) = first.next().unwrap();
    assert_eq!((id, kind.as_str()), (2, "messages.appended"));
    assert_eq!((&data["number"], &data["body"]["last"]), (&json!(2), &json!(2)));
    drop(first);
    ann.append(&session, &["c"]);
    let mut second = EventReader::open(&ann, &path, &[("last-event-id", "2")]);
    let mut third = EventReader::open(&ann, &format!("{path}?after=1"), &[]);
    assert_eq!(third.next().unwrap().0, 2);
    let token = ann.turn(&session);
    ann.delete(&format!("{session}/turns/{token}")).ok(204);
    ann.delete(&session).ok(200);
    for stream in [&mut second, &mut third] {
        let seen: Vec<(i64, String)> =
            std::iter::from_fn(|| stream.next()).map(|(id, kind, _)| (id, kind)).collect();
        let kinds = [(3, "messages.appended"), (4, "turn.began"), (5, "session.ended")];
        assert_eq!(seen, kinds.map(|(id, kind)| (id, kind.to_owned())), "and then it ends");
    }
    assert_eq!(ann.send("GET", &path, &[("last-event-id", "5")], None).status, 204, "nothing is to come");
    ann.send("GET", &path, &[("last-event-id", "99")], None).refused(400, "INVALID_VALUE");
    ann.send("GET", &path, &[("last-event-id", "x")], None).refused(400, "INVALID_VALUE");
}

#[test]
fn events_of_another_process_are_streamed() {
    let server = server();
    let here = server.user("ann");
    let there = server.twin(&here);
    let session = here.session();
    let mut stream = EventReader::open(&there, &format!("{session}/events"), &[("last-event-id", "1")]);
    std::thread::sleep(Duration::from_millis(150));
    quickest_within(Duration::from_secs(1), || {
        let began = Instant::now();
        here.append(&session, &["a"]);
        assert_eq!(stream.next().unwrap().1, "messages.appended");
        began.elapsed()
    });
}

#[test]
fn many_followers_of_one_session_get_every_event() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    let path = format!("{session}/events");
    let streams: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = EventReader::open(&ann, &path, &[]);
            std::thread::spawn(move || {
                std::iter::from_fn(|| stream.next()).map(|(id, ..)| id).collect::<Vec<_>>()
            })
        })
        .collect();
    for _ in 0..400 {
        ann.append(&session, &["x"]);
    }
    ann.delete(&session).ok(200);
    for stream in streams {
        let seen = stream.join().unwrap();
        assert!(seen.iter().copied().eq(1..=402), "{seen:?}");
    }
}

#[test]
fn streams_are_limited_and_counted() {
    let server = with(|limits| limits.streams = 2);
    let ann = server.user("ann");
    let path = format!("{}/events", ann.session());
    let (one, _two) = (EventReader::open(&ann, &path, &[]), EventReader::open(&ann, &path, &[]));
    ann.get(&path).refused(429, "RATE_LIMITED");
    assert!(ann.get("/metrics").text.contains("sessile_event_streams 2\n"));
    drop(one);
    let began = Instant::now();
    while !ann.get("/metrics").text.contains("sessile_event_streams 1\n") {
        assert!(began.elapsed() < Duration::from_secs(30), "a client that went away is let go");
    }
}

/// Bytes of memory that this process has: the server, and here its clients too.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

#[test]
fn many_streams_use_bounded_memory() {
    let count: usize = std::env::var("SESSILE_TEST_STREAMS").map_or(300, |count| count.parse().unwrap());
    let server = with(|limits| {
        (limits.rate, limits.burst) = (1e9, 1e9);
        (limits.streams, limits.connections, limits.concurrent) = (count, count + 100, count);
    });
    let ann = server.user("ann");
    let secret = ann.secret.clone().unwrap();
    let sessions: Vec<String> = (0..count.div_ceil(10)).map(|_| ann.session()).collect();
    let before = resident();
    let mut streams: Vec<_> = (0..count)
        .map(|number| {
            let session = &sessions[number % sessions.len()];
            let mut stream = server.connect();
            let head = "host: x\r\nlast-event-id: 1";
            write!(
                stream,
                "GET {session}/events HTTP/1.1\r\n{head}\r\nauthorization: Bearer {secret}\r\n\r\n"
            )
            .unwrap();
            stream
        })
        .collect();
    let mut buffer = [0; 4096];
    for stream in &mut streams {
        let read = stream.read(&mut buffer).unwrap();
        assert!(buffer[..read].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&buffer[..read]));
    }
    let each = resident().saturating_sub(before) / count;
    let began = Instant::now();
    for session in &sessions {
        ann.append(session, &["x"]);
    }
    for stream in &mut streams {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains("event: messages.appended") {
            let read = stream.read(&mut buffer).unwrap();
            assert_ne!(read, 0);
            seen.extend_from_slice(&buffer[..read]);
        }
    }
    println!("{count} streams: {each} bytes each; all heard within {:?}", began.elapsed());
    assert!(each < 64 << 10, "{each}");
}

#[test]
fn reads_are_audited_when_enabled() {
    for audit_reads in [true, false] {
        let actions = audited_actions(audit_reads);
        for (action, outcome) in [
            ("start_session", "done"),
            ("session", "no_session"),
            ("DELETE /v1/sessions/{session}", "out_of_scope"),
        ] {
            assert!(actions.contains(&(action.to_owned(), outcome.to_owned())), "{action} in {actions:?}");
        }
        for action in ["session", "last_messages"] {
            let is_recorded = actions.contains(&(action.to_owned(), "done".to_owned()));
            assert_eq!(is_recorded, audit_reads, "{action} in {actions:?}");
        }
    }
}

/// What is in the audit log after some changes, reads and refusals: actions and outcomes.
fn audited_actions(audit_reads: bool) -> Vec<(String, String)> {
    let mut server = started(Options { audit_reads, ..Options::default() });
    let ann = server.user("ann");
    let session = ann.session();
    ann.get(&session).ok(200);
    ann.get(&format!("{session}/messages?last=3")).ok(200);
    ann.get("/v1/sessions/nope").refused(404, "SESSION_NOT_FOUND");
    let (reader, id) = server.token("ann", &[sessile_server::account::TokenScope::Read], None);
    reader.delete(&session).refused(403, "CREDENTIAL_REJECTED");
    server.send_sigterm();
    server.ended();
    let connection = rusqlite::Connection::open(server.dir().join("service.db")).unwrap();
    let mut statement = connection.prepare("SELECT action, outcome, token FROM audit ORDER BY id").unwrap();
    let rows: Vec<(String, String, Option<String>)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(rows.iter().any(|row| row.1 == "out_of_scope" && row.2.as_ref() == Some(&id)));
    rows.into_iter().map(|(action, outcome, _)| (action, outcome)).collect()
}

#[test]
fn expired_events_answer_gone() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    (0..3).for_each(|_| drop(ann.append(&session, &["x"])));
    let path = format!("{session}/events");
    let long_after = i64::MAX / 2;
    let keep = RetentionPolicy {
        audit: Duration::from_millis(u64::try_from(long_after).unwrap()),
        ..RetentionPolicy::default()
    };
    // Four events and no key.
    assert_eq!(server.block_on(retention::sweep(&server.db, &keep, long_after)).unwrap(), 4);
    for gone in ["?after=0", "?after=2"] {
        let refused = ann.get(&format!("{path}{gone}"));
        refused.refused(410, "EVENTS_GONE");
        assert_eq!(refused.json()["retryable"], false);
    }
    ann.send("GET", &path, &[("last-event-id", "3")], None).refused(410, "EVENTS_GONE");
    ann.get(&format!("{path}?after=5")).refused(400, "INVALID_VALUE");
    ann.append(&session, &["y"]);
    ann.get(&format!("{path}?after=3")).refused(410, "EVENTS_GONE");
    ann.delete(&session).ok(200);
    for follows in ["?after=4", ""] {
        let told = ann.get(&format!("{path}{follows}"));
        assert_eq!(told.status, 200, "{told:?}");
        let ids: Vec<&str> = told.text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
        assert_eq!(ids, ["5", "6"], "{follows}");
    }
    assert_eq!(ann.get(&format!("{path}?after=6")).status, 204);
}
