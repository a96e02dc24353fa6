//! Values and locks.

use serde_json::{Value, json};

use super::{server, with};

#[test]
fn value_with_outdated_revision_is_not_changed() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    let path = format!("{session}/state/cart");
    let put = |tag: &[(&str, &str)], value: &str| ann.send("PUT", &path, tag, Some(value));
    ann.get(&path).refused(404, "ENTRY_NOT_FOUND");
    let first = put(&[("if-none-match", "*")], r#"{"items":[1]}"#);
    assert_eq!(first.header("etag"), Some("\"1\""));
    assert_eq!(first.ok(200), json!({ "key": "cart", "value": { "items": [1] }, "revision": 1 }));
    put(&[("if-none-match", "*")], "2").refused(412, "REVISION_CONFLICT");
    let stale = put(&[("if-match", "\"9\"")], "2");
    stale.refused(412, "REVISION_CONFLICT");
    assert_eq!(stale.json()["revision"], 1);
    assert_eq!(put(&[("if-match", "\"1\"")], "null").ok(200)["revision"], 2);
    assert_eq!(put(&[], "[]").ok(200)["revision"], 3);
    let read = ann.get(&path);
    assert_eq!(read.header("etag"), Some("\"3\""));
    assert_eq!(ann.send("GET", &path, &[("if-none-match", "\"2\", \"3\"")], None).status, 304);
    ann.send("DELETE", &path, &[("if-match", "\"1\"")], None).refused(412, "REVISION_CONFLICT");
    assert_eq!(ann.send("DELETE", &path, &[("if-match", "\"3\"")], None).ok(204), Value::Null);
    ann.get(&path).refused(404, "ENTRY_NOT_FOUND");
    assert_eq!(put(&[("if-none-match", "*")], "1").ok(200)["revision"], 5, "no revision comes twice");
    put(&[("if-match", "W/\"5\"")], "1").refused(400, "USAGE");
    put(&[("if-match", "\"1\""), ("if-match", "\"2\"")], "1").refused(400, "USAGE");
}

#[test]
fn values_are_listed_in_pages() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    for key in ["c", "a", "b/x", "d"] {
        let key = key.replace('/', "%2F");
        ann.send("PUT", &format!("{session}/state/{key}"), &[], Some("1")).ok(200);
    }
    let keys = |page: &Value| -> Vec<String> {
        page["entries"].as_array().unwrap().iter().map(|e| e["key"].as_str().unwrap().to_owned()).collect()
    };
    let page = ann.get(&format!("{session}/state?limit=3")).ok(200);
    assert_eq!(keys(&page), ["a", "b/x", "c"]);
    let next = page["next"].as_str().unwrap();
    let page = ann.get(&format!("{session}/state?limit=3&cursor={next}")).ok(200);
    assert_eq!((keys(&page), &page["next"]), (vec!["d".to_owned()], &Value::Null));
    let long = "k".repeat(257);
    ann.get(&format!("{session}/state/{long}")).refused(400, "INVALID_VALUE");
    ann.get(&format!("{session}/state/a%0ab")).refused(400, "INVALID_VALUE");
}

#[test]
fn lock_excludes_within_a_user_only() {
    let server = server();
    let (ann, bob) = (server.user("ann"), server.user("bob"));
    let lock = ann.post("/v1/locks/deploy", &json!({ "holder": "ci" })).ok(201);
    assert_eq!((&lock["name"], &lock["holder"]), (&json!("deploy"), &json!("ci")));
    let refused = ann.post("/v1/locks/deploy", &json!({ "busy": "reject" }));
    refused.refused(409, "LOCK_HELD");
    assert!(refused.header("retry-after").is_some() && refused.json()["retry_after_ms"].is_number());
    ann.post("/v1/locks/deploy", &json!({ "wait_ms": 50 })).refused(408, "TIMED_OUT");
    let his = bob.post("/v1/locks/deploy", &json!({})).ok(201);
    let listed = ann.get("/v1/locks").ok(200);
    let alone = |lock: &Value| {
        let mut lease = lock.clone();
        for key in ["name", "mode"] {
            lease.as_object_mut().unwrap().remove(key);
        }
        let mut lock = lock.clone();
        lock["waiting"] = json!(0);
        lock["holders"] = json!([lease]);
        json!([lock])
    };
    assert_eq!(listed["locks"], alone(&lock));
    let token = lock["token"].as_i64().unwrap();
    let renewed = ann.post("/v1/locks/deploy/renew", &json!({ "token": token, "ttl_ms": 120_000 })).ok(200);
    assert!(renewed["expires_ms"].as_i64() > lock["expires_ms"].as_i64());
    ann.post("/v1/locks/deploy/renew", &json!({ "token": token + 100 })).refused(409, "LOCK_LOST");
    ann.delete("/v1/locks/deploy").refused(400, "USAGE");
    ann.delete(&format!("/v1/locks/deploy?token={token}")).ok(204);
    ann.delete(&format!("/v1/locks/deploy?token={token}")).refused(409, "LOCK_LOST");
    let next = ann.post("/v1/locks/deploy", &json!({ "ttl_ms": 50 })).ok(201);
    assert!(next["token"].as_i64().unwrap() > token);
    let after = ann.post("/v1/locks/deploy", &json!({})).ok(201);
    assert!(after["token"].as_i64() > next["token"].as_i64(), "an expired lock is taken over");
    assert_eq!(bob.get("/v1/locks").ok(200)["locks"], alone(&his));
    ann.post("/v1/locks/deploy", &json!({ "ttl_ms": 0 })).refused(400, "INVALID_VALUE");
    ann.post("/v1/locks/deploy", &json!({ "busy": "later" })).refused(400, "INVALID_VALUE");
}

/// A writer sets the first key, then the last one: in a snapshot the first is never behind.
#[test]
fn state_list_is_one_snapshot() {
    // As many requests as the machine manages, for seconds.
    let server = with(|limits| (limits.rate, limits.burst) = (1e9, 1e9));
    let ann = server.user("ann");
    let session = ann.session();
    let set = |key: &str, value: i64| {
        ann.send("PUT", &format!("{session}/state/{key}"), &[], Some(&value.to_string())).ok(200);
    };
    for key in 0..80 {
        set(&format!("k{key:02}"), 0);
    }
    let until = std::time::Instant::now() + std::time::Duration::from_secs(3);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                set("k00", number);
                set("k79", number);
                if std::time::Instant::now() > until {
                    break;
                }
            }
        });
        while std::time::Instant::now() < until {
            let list = ann.get(&format!("{session}/state?limit=100")).ok(200);
            let value = |index: usize| list["entries"][index]["value"].as_i64().unwrap();
            assert!(value(0) >= value(79), "k00 is {} and k79 is {}", value(0), value(79));
        }
    });
}
