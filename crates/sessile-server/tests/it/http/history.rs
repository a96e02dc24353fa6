//! What a user has done, over HTTP.

use serde_json::{Value, json};

use super::server;

fn actions(page: &Value) -> Vec<&str> {
    page["history"].as_array().unwrap().iter().map(|access| access["action"].as_str().unwrap()).collect()
}

#[test]
fn history_lists_only_the_users_changes_in_pages() {
    let server = server();
    let (ann, bob) = (server.user("ann"), server.user("bob"));
    let session = ann.session();
    ann.append(&session, &["hi"]);
    ann.texts(&session);
    ann.get("/v1/sessions").ok(200);
    ann.post(&format!("{session}/messages"), &json!({ "messages": ["x"], "if_last": 9 }))
        .refused(409, "REVISION_CONFLICT");
    let all = ann.get("/v1/history").ok(200);
    assert_eq!(actions(&all), ["append", "append", "start_session", "token.create", "user.add"]);
    assert!(all["next"].is_null());
    let (refused, done) = (&all["history"][0], &all["history"][1]);
    assert_eq!((&refused["outcome"], &done["outcome"]), (&json!("changed"), &json!("done")));
    assert_eq!(done["token_id"], ann.get("/v1/me").ok(200)["token"]);
    let id = session.rsplit('/').next().unwrap();
    assert_eq!(done["session"], id);
    let of = ann.get(&format!("/v1/history?session={id}")).ok(200);
    assert_eq!(actions(&of), ["append", "append", "start_session"]);
    let since = ann.get(&format!("/v1/history?since_ms={}", refused["at_ms"])).ok(200);
    assert!(actions(&since).len() < 4 && since["history"][0] == *refused, "{since}");
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = ann.get(&format!("/v1/history?limit=2{cursor}")).ok(200);
        pages.extend(page["history"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(json!(pages), all["history"]);
    assert_eq!(actions(&bob.get("/v1/history").ok(200)), ["token.create", "user.add"]);
    assert_eq!(actions(&bob.get(&format!("/v1/history?session={id}")).ok(200)), [""; 0]);
    ann.send("PUT", &format!("{session}/state/greeting"), &[], Some("1")).ok(200);
    let held = ann.post("/v1/locks/deploy", &json!({ "ttl_ms": 10_000 })).ok(201);
    assert_eq!(ann.delete(&format!("/v1/locks/deploy?token={}", held["token"])).status, 204);
    let subjects = ann.get("/v1/history?limit=4").ok(200)["history"].clone();
    let subjects: Vec<_> = subjects.as_array().unwrap().iter().map(|access| &access["subject"]).collect();
    assert_eq!(subjects, [&json!("deploy"), &json!("deploy"), &json!("greeting"), &Value::Null]);
    for wrong in ["since_ms=-1", "since_ms=x", "session=", "cursor=!", "limit=0", "reads=true"] {
        assert_eq!(ann.get(&format!("/v1/history?{wrong}")).status, 400, "{wrong}");
    }
}
