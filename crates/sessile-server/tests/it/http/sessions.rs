//! Sessions.

use serde_json::{Value, json};

use super::{server, with};

#[test]
fn session_is_started_read_edited_and_ended() {
    let server = server();
    let ann = server.user("ann");
    let body = json!({ "name": "work", "context": "staging", "labels": { "team": "web" }, "settings": { "model": "small" } });
    let started = ann.post("/v1/sessions", &body);
    assert_eq!(started.header("etag"), Some("\"1\""));
    let started = started.ok(201);
    let path = format!("/v1/sessions/{}", started["id"].as_str().unwrap());
    assert_eq!(ann.get(&path).ok(200), started);
    assert_eq!(ann.get("/v1/sessions/work").ok(200), started);
    assert_eq!(ann.send("GET", &path, &[("if-none-match", "\"1\"")], None).status, 304);
    let edit = json!({ "name": "other", "settings": { "model": null, "top": 1 } }).to_string();
    let edited = |tag| ann.send("PATCH", &path, &[("if-match", tag)], Some(&edit));
    edited("\"7\"").refused(412, "REVISION_CONFLICT");
    edited("what").refused(400, "USAGE");
    let edited = edited("\"1\"");
    assert_eq!(edited.header("etag"), Some("\"2\""));
    let edited = edited.ok(200);
    assert_eq!((&edited["name"], &edited["settings"]), (&json!("other"), &json!({ "top": 1 })));
    let ended = ann.delete(&format!("{path}?reason=all%20done")).ok(200);
    assert_eq!(ended["end_reason"], "all done");
    assert_eq!(ann.delete(&path).ok(200)["end_reason"], "all done", "once is enough");
    ann.post(&format!("{path}/messages"), &json!({ "messages": [1] })).refused(410, "SESSION_EXPIRED");
    ann.get("/v1/sessions/0199aaaa-0000-7000-8000-000000000000").refused(404, "SESSION_NOT_FOUND");
    ann.get("/v1/sessions/nope").refused(404, "SESSION_NOT_FOUND");
}

#[test]
fn fractions_in_settings_come_back_exactly() {
    let server = server();
    let ann = server.user("ann");
    let sent = r#"{"settings":{"a":0.46553161784373165,"b":-913025419286945.1}}"#;
    let started = ann.send("POST", "/v1/sessions", &[], Some(sent)).ok(201);
    assert_eq!(started["settings"].to_string(), r#"{"a":0.46553161784373165,"b":-913025419286945.1}"#);
}

#[test]
fn too_many_or_large_settings_are_refused() {
    let server = server();
    let ann = server.user("ann");
    let path = ann.session();
    let edit =
        |settings: Value| ann.send("PATCH", &path, &[], Some(&json!({ "settings": settings }).to_string()));
    let some = |from: usize, to: usize| -> Value {
        (from..to)
            .map(|number| (format!("s{number}"), json!(number)))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    edit(json!({ "large": "x".repeat(20_000) })).refused(413, "INVALID_VALUE");
    edit(some(0, 60)).ok(200);
    edit(some(50, 64)).ok(200);
    edit(json!({ "more": 1 })).refused(400, "INVALID_VALUE");
    assert_eq!(ann.get(&path).ok(200)["settings"], some(0, 64), "the settings are unchanged");
    edit(json!({ "s1": 2 })).ok(200);
    edit(json!({ "s1": null, "more": 1 })).ok(200);
}

#[test]
fn page_of_sessions_is_bounded_in_bytes() {
    let server = with(|limits| limits.page_bytes = 10_000);
    let ann = server.user("ann");
    let large = json!({ "settings": { "s": "x".repeat(4000) } });
    for _ in 0..20 {
        ann.post("/v1/sessions", &large).ok(201);
    }
    let (mut path, mut seen) = ("/v1/sessions".to_owned(), std::collections::BTreeSet::new());
    loop {
        let page = ann.get(&path).ok(200);
        let sessions = page["sessions"].as_array().unwrap();
        assert!(sessions.len() <= 3, "{}", sessions.len());
        seen.extend(sessions.iter().map(|session| session["id"].to_string()));
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/sessions?cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 20);
}

#[test]
fn session_name_is_unique_and_checked() {
    let server = server();
    let ann = server.user("ann");
    ann.post("/v1/sessions", &json!({ "name": "work" })).ok(201);
    ann.post("/v1/sessions", &json!({ "name": "work" })).refused(409, "SESSION_EXISTS");
    ann.post("/v1/sessions", &json!({ "name": "a/b" })).refused(400, "INVALID_NAME");
    ann.post("/v1/sessions", &json!({ "nam": "x" })).refused(400, "INVALID_VALUE");
    ann.post("/v1/sessions", &json!({ "idle_ms": 0 })).refused(400, "INVALID_VALUE");
    ann.post("/v1/sessions", &json!({ "labels": { "": "x" } })).refused(400, "INVALID_VALUE");
}

#[test]
fn session_expires_when_idle() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.post("/v1/sessions", &json!({ "idle_ms": 30 })).ok(201);
    std::thread::sleep(std::time::Duration::from_millis(60));
    let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
    ann.post(&format!("{path}/turns"), &json!({})).refused(410, "SESSION_EXPIRED");
    assert_eq!(ann.get("/v1/sessions").ok(200)["sessions"], json!([]));
    assert_eq!(ann.get("/v1/sessions?live=false").ok(200)["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn sessions_are_listed_in_pages() {
    let server = server();
    let ann = server.user("ann");
    let mut ids: Vec<String> = (0..5)
        .map(|number| {
            let labels = json!({ "labels": { "even": (number % 2 == 0).to_string() } });
            ann.post("/v1/sessions", &labels).ok(201)["id"].as_str().unwrap().to_owned()
        })
        .collect();
    ids.sort();
    ids.reverse();
    let mut found = Vec::new();
    let mut path = "/v1/sessions?limit=2".to_owned();
    loop {
        let page = ann.get(&path).ok(200);
        found.extend(
            page["sessions"].as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/sessions?limit=2&cursor={next}");
    }
    assert_eq!(found, ids);
    assert_eq!(ann.get("/v1/sessions?label=even%3Dtrue").ok(200)["sessions"].as_array().unwrap().len(), 3);
    for wrong in ["limit=0", "limit=1001", "limit=x", "cursor=%00", "cursor=!", "label=x", "live=yes"] {
        ann.get(&format!("/v1/sessions?{wrong}")).refused(400, "INVALID_VALUE");
    }
    for wrong in ["limit=1&limit=2", "page=2", "label=%ff", "label=%2"] {
        ann.get(&format!("/v1/sessions?{wrong}")).refused(400, "USAGE");
    }
}

#[test]
fn same_idempotency_key_acts_once() {
    let server = server();
    let (ann, bob) = (server.user("ann"), server.user("bob"));
    let key = [("idempotency-key", "k-1")];
    let start = |body: &str| ann.send("POST", "/v1/sessions", &key, Some(body));
    let first = start("{}").ok(201);
    assert_eq!(start("{}").ok(201), first);
    start(r#"{"name":"else"}"#).refused(422, "INVALID_VALUE");
    let other = bob.send("POST", "/v1/sessions", &key, Some("{}")).ok(201);
    assert_ne!(other["id"], first["id"], "a key is its user's own");
    assert_eq!(ann.get("/v1/sessions").ok(200)["sessions"].as_array().unwrap().len(), 1);
    let path = format!("/v1/sessions/{}/messages", first["id"].as_str().unwrap());
    let append =
        || ann.send("POST", &path, &[("idempotency-key", "k-2")], Some(r#"{"messages":["a"]}"#)).ok(201);
    assert_eq!(append(), append());
    assert_eq!(ann.get(&path).ok(200)["messages"].as_array().unwrap().len(), 1);
    let long = "x".repeat(256);
    ann.send("POST", &path, &[("idempotency-key", &long)], Some(r#"{"messages":[1]}"#))
        .refused(400, "INVALID_VALUE");
}

#[test]
fn requests_of_one_user_are_rate_limited() {
    let server = with(|limits| (limits.rate, limits.burst) = (0.5, 3.0));
    let (ann, bob) = (server.user("ann"), server.user("bob"));
    for _ in 0..3 {
        ann.get("/v1/sessions").ok(200);
    }
    let refused = ann.get("/v1/sessions");
    refused.refused(429, "RATE_LIMITED");
    assert!(matches!(refused.header("retry-after"), Some("1" | "2")), "{refused:?}");
    assert_eq!(refused.json()["retryable"], true);
    bob.get("/v1/sessions").ok(200);
    let metrics = ann.get("/metrics");
    assert!(metrics.text.contains("sessile_rate_limited_total 1\n"), "{}", metrics.text);
    assert!(
        metrics
            .text
            .contains("sessile_requests_total{route=\"/v1/sessions\",method=\"GET\",status=\"200\"} 4\n"),
        "{}",
        metrics.text
    );
    assert!(!metrics.text.contains("ann"));
}

#[test]
fn ending_a_session_releases_its_locks() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.post("/v1/sessions", &json!({})).ok(201)["id"].as_str().unwrap().to_owned();
    let take = |name: &str, body: Value| ann.post(&format!("/v1/locks/{name}"), &body);
    let lock = take("deploy", json!({ "session": session })).ok(201);
    assert_eq!(lock["session"], session.as_str());
    take("schema", json!({ "session": session, "mode": "shared" })).ok(201);
    assert_eq!(take("own", json!({})).ok(201)["session"], Value::Null);
    // One who waits gets the lock as soon as the session has ended.
    let waiter = ann.clone();
    let waiting =
        std::thread::spawn(move || waiter.post("/v1/locks/deploy", &json!({ "wait_ms": 20_000 })).ok(201));
    while ann.get("/v1/locks").ok(200)["locks"][0]["waiting"] != 1 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let ended = ann.delete(&format!("/v1/sessions/{session}")).ok(200);
    assert_eq!(ended["released_locks"], json!(["deploy", "schema"]));
    assert!(waiting.join().unwrap()["token"].as_i64() > lock["token"].as_i64());
    let again = ann.delete(&format!("/v1/sessions/{session}")).ok(200);
    assert_eq!(again["released_locks"], json!([]), "the lock of the next holder stays");
    take("late", json!({ "session": session })).refused(410, "SESSION_EXPIRED");
    let nobody = "0199aaaa-0000-7000-8000-00000000dead";
    take("late", json!({ "session": nobody })).refused(404, "SESSION_NOT_FOUND");
    let left = ann.get("/v1/locks").ok(200)["locks"].clone();
    let names: Vec<&str> = left.as_array().unwrap().iter().filter_map(|lock| lock["name"].as_str()).collect();
    assert_eq!(names, ["deploy", "own"]);
}
