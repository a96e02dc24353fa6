//! Turns.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::json;

use testkit::quickest_within;

use super::{Client, TestServer, server};

/// Until so many wait.
fn until_waiting(server: &TestServer, count: i64) {
    let started = Instant::now();
    let line = format!("sessile_waiting {count}\n");
    while !server.nobody().get("/metrics").text.contains(&line) {
        assert!(started.elapsed() < Duration::from_secs(30), "never {count}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn turn_is_committed_renewed_or_abandoned() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    ann.append(&session, &["a", "b"]);
    let body = json!({ "history": 1, "holder": "worker-1", "ttl_ms": 30_000 });
    let turn = ann.post(&format!("{session}/turns"), &body).ok(201);
    assert_eq!((&turn["holder"], &turn["history"][0]["body"]), (&json!("worker-1"), &json!("b")));
    let token = turn["token"].as_i64().unwrap();
    ann.post(&format!("{session}/messages"), &json!({ "messages": [1] })).refused(409, "LOCK_HELD");
    ann.post(&format!("{session}/rewind"), &json!({ "to": 0 })).refused(409, "LOCK_HELD");
    ann.post(&format!("{session}/turns"), &json!({ "busy": "reject" })).refused(409, "LOCK_HELD");
    let renewed = ann.post(&format!("{session}/turns/{token}/renew"), &json!({ "ttl_ms": 60_000 })).ok(200);
    assert!(renewed["expires_ms"].as_i64() > turn["expires_ms"].as_i64());
    let commit =
        |token: i64| ann.post(&format!("{session}/turns/{token}/commit"), &json!({ "messages": ["c", "d"] }));
    assert_eq!(commit(token).ok(200), json!({ "first": 3, "last": 4 }));
    commit(token).refused(409, "LOCK_LOST");
    assert_eq!(ann.texts(&session), ["a", "b", "c", "d"]);
    let second = ann.turn(&session);
    assert!(second > token);
    ann.delete(&format!("{session}/turns/{second}")).ok(204);
    ann.delete(&format!("{session}/turns/{second}")).refused(409, "LOCK_LOST");
    commit(second).refused(409, "LOCK_LOST");
    ann.post(&format!("{session}/turns/x/commit"), &json!({ "messages": [] })).refused(400, "INVALID_VALUE");
    let third = ann.turn(&session);
    let fourth = ann.post(&format!("{session}/turns"), &json!({ "busy": "interrupt" })).ok(201);
    commit(third).refused(409, "LOCK_LOST");
    commit(fourth["token"].as_i64().unwrap()).ok(200);
}

#[test]
fn expired_turn_goes_to_the_next_waiter() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    let lost = ann.post(&format!("{session}/turns"), &json!({ "ttl_ms": 200 })).ok(201);
    // A client waits for up to 30 seconds.
    let began = Instant::now();
    let next = ann.post(&format!("{session}/turns"), &json!({})).ok(201);
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert!(next["token"].as_i64() > lost["token"].as_i64());
    let late = format!("{session}/turns/{}/commit", lost["token"]);
    ann.post(&late, &json!({ "messages": ["late"] })).refused(409, "LOCK_LOST");
    assert!(ann.texts(&session).is_empty());
}

#[test]
fn waiters_are_served_in_order() {
    let server = server();
    let ann = server.user("ann");
    // Each waiter is woken. Sixteen that look by themselves take seconds.
    quickest_within(Duration::from_millis(900), || serve_sixteen_waiters(&server, &ann));
}

/// Time from the release of a turn until sixteen waiters had it, one after the other.
fn serve_sixteen_waiters(server: &TestServer, ann: &Client) -> Duration {
    let session = ann.session();
    let token = ann.turn(&session);
    let mut waiting = Vec::new();
    for number in 0..16 {
        let (ann, session) = (ann.clone(), session.clone());
        waiting.push(std::thread::spawn(move || {
            let turn = ann.post(&format!("{session}/turns"), &json!({})).ok(201);
            let commit = format!("{session}/turns/{}/commit", turn["token"]);
            ann.post(&commit, &json!({ "messages": [number.to_string()] })).ok(200);
        }));
        until_waiting(server, number + 1);
        // Counted is a moment before placed.
        std::thread::sleep(Duration::from_millis(30));
    }
    let began = Instant::now();
    ann.delete(&format!("{session}/turns/{token}")).ok(204);
    for one in waiting {
        one.join().unwrap();
    }
    let took = began.elapsed();
    assert_eq!(ann.texts(&session), (0..16).map(|number| number.to_string()).collect::<Vec<_>>());
    took
}

#[test]
fn waiters_at_another_process_are_served() {
    let server = server();
    let here = server.user("ann");
    let there = server.twin(&here);
    let session = here.session();
    let token = here.turn(&session);
    let waits = {
        let (there, session) = (there.clone(), session.clone());
        std::thread::spawn(move || there.turn(&session))
    };
    std::thread::sleep(Duration::from_millis(200));
    let began = Instant::now();
    here.post(&format!("{session}/turns/{token}/commit"), &json!({ "messages": ["here"] })).ok(200);
    let next = waits.join().unwrap();
    assert!(next > token && began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    there
        .post(&format!("{session}/turns/{token}/commit"), &json!({ "messages": ["late"] }))
        .refused(409, "LOCK_LOST");
    here.post(&format!("{session}/turns/{next}/commit"), &json!({ "messages": ["there"] })).ok(200);
    assert_eq!(there.texts(&session), ["here", "there"]);
}

#[test]
fn timed_out_waiter_leaves_no_place() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    let token = ann.turn(&session);
    let began = Instant::now();
    let over = ann.post(&format!("{session}/turns"), &json!({ "wait_ms": 300 }));
    over.refused(408, "TIMED_OUT");
    assert_eq!(over.json()["retryable"], true);
    assert!(began.elapsed() >= Duration::from_millis(300));
    // One that goes away while it waits.
    let mut stream = server.connect();
    write!(
        stream,
        "POST {session}/turns HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: 2\r\n\r\n{{}}",
        ann.secret.as_ref().unwrap()
    )
    .unwrap();
    until_waiting(&server, 1);
    std::thread::sleep(Duration::from_millis(50));
    drop(stream);
    until_waiting(&server, 0);
    ann.delete(&format!("{session}/turns/{token}")).ok(204);
    // A place that waits or holds would make this one be refused.
    let turn = ann.post(&format!("{session}/turns"), &json!({ "busy": "reject" })).ok(201);
    let places = turn["place"].as_i64().unwrap();
    assert!(places > token);
}

#[test]
fn repeated_request_in_time_keeps_its_place() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    let token = ann.turn(&session);
    let ask = |key: &'static str, wait_ms: i64| {
        let (ann, path) = (ann.clone(), format!("{session}/turns"));
        let body = json!({ "wait_ms": wait_ms }).to_string();
        std::thread::spawn(move || ann.send("POST", &path, &[("idempotency-key", key)], Some(&body)))
    };
    ask("first", 100).join().unwrap().refused(408, "TIMED_OUT");
    let second = ask("second", 60_000);
    until_waiting(&server, 1);
    std::thread::sleep(Duration::from_millis(100));
    let first = ask("first", 60_000);
    until_waiting(&server, 2);
    std::thread::sleep(Duration::from_millis(100));
    ann.delete(&format!("{session}/turns/{token}")).ok(204);
    let first = first.join().unwrap().ok(201);
    ann.delete(&format!("{session}/turns/{}", first["token"])).ok(204);
    let second = second.join().unwrap().ok(201);
    assert!(first["token"].as_i64() < second["token"].as_i64());
}

#[test]
fn end_of_a_session_dismisses_its_waiters() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    ann.turn(&session);
    let waits = {
        let (ann, session) = (ann.clone(), session.clone());
        std::thread::spawn(move || ann.post(&format!("{session}/turns"), &json!({})))
    };
    until_waiting(&server, 1);
    std::thread::sleep(Duration::from_millis(50));
    // Without a wake-up the request waits for 30 seconds.
    let began = Instant::now();
    ann.delete(&session).ok(200);
    waits.join().unwrap().refused(410, "SESSION_EXPIRED");
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[test]
fn repeated_turn_request_gets_the_same_turn() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    let path = format!("{session}/turns");
    let ask = |key| ann.send("POST", &path, &[("idempotency-key", key)], Some("{}"));
    let (first, again) = (ask("a").ok(201), ask("a").ok(201));
    assert_eq!(first["token"], again["token"]);
    let waits = {
        let (ann, path) = (ann.clone(), path.clone());
        std::thread::spawn(move || ann.send("POST", &path, &[("idempotency-key", "b")], Some("{}")).ok(201))
    };
    until_waiting(&server, 1);
    ann.delete(&format!("{path}/{}", first["token"])).ok(204);
    let second = waits.join().unwrap();
    assert_eq!(ask("b").ok(201)["token"], second["token"]);
}

#[test]
fn released_turn_is_not_returned_by_its_key() {
    let server = server();
    let ann = server.user("ann");
    let take = |key| ann.send("POST", "/v1/locks/deploy", &[("idempotency-key", key)], Some("{}"));
    let first = take("a").ok(201);
    ann.delete(&format!("/v1/locks/deploy?token={}", first["token"])).ok(204);
    take("b").ok(201);
    take("a").refused(409, "LOCK_LOST");
    let path = format!("{}/turns", ann.session());
    let begin = |key| ann.send("POST", &path, &[("idempotency-key", key)], Some(r#"{"ttl_ms":300}"#));
    begin("c").ok(201);
    std::thread::sleep(Duration::from_millis(350));
    begin("c").refused(409, "LOCK_LOST");
}

/// A turn that says what it saw.
fn one_turn(user: &Client, session: &str, mark: &str) {
    let turn = user.post(&format!("{session}/turns"), &json!({ "history": 1000 })).ok(201);
    let seen = turn["history"].as_array().unwrap().len();
    for message in turn["history"].as_array().unwrap() {
        let (owner, _) = mark.split_once(' ').unwrap();
        assert!(message["body"].as_str().unwrap().starts_with(owner), "{message} is not {mark}'s");
    }
    let messages = json!({ "messages": [format!("{mark} after {seen}"), format!("{mark} reply")] });
    user.post(&format!("{session}/turns/{}/commit", turn["token"]), &messages).ok(200);
}

#[test]
fn turns_of_many_users_are_neither_lost_nor_doubled_nor_mixed() {
    let server = server();
    let users: Vec<(Client, String)> = (0..6)
        .map(|number| {
            let user = server.user(&format!("u{number}"));
            let session = user.session();
            (user, session)
        })
        .collect();
    let mut threads = Vec::new();
    for (number, (user, session)) in users.iter().enumerate() {
        for turn in 0..8 {
            let (user, session) = (user.clone(), session.clone());
            threads
                .push(std::thread::spawn(move || one_turn(&user, &session, &format!("u{number} t{turn}"))));
        }
    }
    for thread in threads {
        thread.join().unwrap();
    }
    for (user, session) in &users {
        let texts = user.texts(session);
        assert_eq!(texts.len(), 16);
        for (at, pair) in texts.chunks(2).enumerate() {
            let (mark, seen) = pair[0].rsplit_once(" after ").unwrap();
            assert_eq!(seen, (at * 2).to_string());
            assert_eq!(pair[1], format!("{mark} reply"));
        }
    }
}
