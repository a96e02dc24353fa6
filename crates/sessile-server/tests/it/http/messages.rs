//! Messages.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{server, with};

#[test]
fn messages_are_appended_read_in_pages_rewound_and_forked() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    assert_eq!(ann.append(&session, &["a", "b", "c"]), json!({ "first": 1, "last": 3 }));
    let body = json!({ "messages": [{ "role": "user", "content": "d" }, 5], "if_last": 3 });
    let messages = format!("{session}/messages");
    assert_eq!(ann.post(&messages, &body).ok(201), json!({ "first": 4, "last": 5 }));
    ann.post(&messages, &body).refused(409, "REVISION_CONFLICT");
    let numbers = |page: &Value| -> Vec<i64> {
        page["messages"].as_array().unwrap().iter().map(|m| m["number"].as_i64().unwrap()).collect()
    };
    let page = ann.get(&format!("{messages}?limit=2")).ok(200);
    assert_eq!((numbers(&page), &page["next"]), (vec![1, 2], &json!(2)));
    let page = ann.get(&format!("{messages}?after=4&limit=2")).ok(200);
    assert_eq!((numbers(&page), &page["next"]), (vec![5], &Value::Null));
    assert_eq!(numbers(&ann.get(&format!("{messages}?last=2")).ok(200)), [4, 5]);
    assert_eq!(numbers(&ann.get(&format!("{messages}?last=100")).ok(200)), [1, 2, 3, 4, 5]);
    ann.get(&format!("{messages}?last=2&after=1")).refused(400, "USAGE");
    ann.get(&format!("{messages}?last=0")).refused(400, "INVALID_VALUE");
    ann.get(&format!("{messages}?after=-1")).refused(400, "INVALID_VALUE");
    assert_eq!(ann.post(&format!("{session}/rewind"), &json!({ "to": 2 })).ok(200), json!({ "removed": 3 }));
    assert_eq!(ann.texts(&session), ["a", "b"]);
    for (path, body) in [("rewind", json!({ "to": 3 })), ("fork", json!({ "at": 3 }))] {
        let refused = ann.post(&format!("{session}/{path}"), &body);
        refused.refused(400, "INVALID_VALUE");
        assert_eq!(refused.json()["detail"], "message 3 not found: the session has 2", "{path}");
    }
    assert_eq!(ann.texts(&session), ["a", "b"]);
    let fork = ann.post(&format!("{session}/fork"), &json!({ "at": 1, "name": "other" })).ok(201);
    assert_eq!(ann.texts(&format!("/v1/sessions/{}", fork["id"].as_str().unwrap())), ["a"]);
    ann.post(&messages, &json!({ "messages": [] })).refused(400, "INVALID_VALUE");
    ann.post(&messages, &json!({})).refused(400, "INVALID_VALUE");
}

#[test]
fn page_of_large_messages_ends_early() {
    let server = with(|limits| limits.page_bytes = 3000);
    let ann = server.user("ann");
    let session = ann.session();
    let text = "x".repeat(1000);
    for _ in 0..5 {
        ann.append(&session, &[&text]);
    }
    let page = ann.get(&format!("{session}/messages")).ok(200);
    assert_eq!((page["messages"].as_array().unwrap().len(), &page["next"]), (2, &json!(2)));
    let last = ann.get(&format!("{session}/messages?last=5")).ok(200);
    assert_eq!(last["messages"][0]["number"], 4, "the newest are kept");
    let turn = ann.post(&format!("{session}/turns"), &json!({})).ok(201);
    assert_eq!(turn["history"][0]["number"], 4);
}

#[test]
fn many_small_messages_are_one_page() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    let texts: Vec<String> = (0..150).map(|number| number.to_string()).collect();
    ann.append(&session, &texts.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(ann.texts(&session), texts);
    let last = ann.get(&format!("{session}/messages?last=130")).ok(200);
    let numbers: Vec<i64> =
        last["messages"].as_array().unwrap().iter().map(|m| m["number"].as_i64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(21..=150), "{numbers:?}");
}

/// Reads beside a writer that commits 500 messages in one turn and rewinds them; each answer has all of a commit or nothing.
#[test]
fn messages_answer_is_one_snapshot() {
    // As many requests as the machine manages, for seconds.
    let server = with(|limits| (limits.rate, limits.burst) = (1e9, 1e9));
    let ann = server.user("ann");
    let session = ann.session();
    let before: Vec<i64> = (1..=100).collect();
    ann.post(&format!("{session}/messages"), &json!({ "messages": before })).ok(201);
    let until = Instant::now() + Duration::from_secs(4);
    let check = |query: &str, answer: &Value, list: &str| {
        let read = answer[list].as_array().unwrap();
        let tail: Vec<&Value> =
            read.iter().filter(|m| m["number"].as_i64().unwrap() > 100).map(|m| &m["body"]).collect();
        assert!(!read.is_empty() || query.starts_with("after"), "{query}: no message");
        assert!(tail.iter().all(|body| *body == tail[0]), "{query}: messages of two commits");
        let whole = if query == "last=1" { 1 } else { 500 };
        assert!([0, whole].contains(&tail.len()), "{query}: {} of 500 messages", tail.len());
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                let turn = ann.post(&format!("{session}/turns"), &json!({ "history": 1 })).ok(201);
                check("last=1", &turn, "history");
                let commit = format!("{session}/turns/{}/commit", turn["token"]);
                ann.post(&commit, &json!({ "messages": vec![number; 500] })).ok(200);
                ann.post(&format!("{session}/rewind"), &json!({ "to": 100 })).ok(200);
                if Instant::now() > until {
                    break;
                }
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                while Instant::now() < until {
                    for query in ["after=100&limit=1000", "last=1000", "last=1"] {
                        check(query, &ann.get(&format!("{session}/messages?{query}")).ok(200), "messages");
                    }
                }
            });
        }
    });
}

#[test]
fn message_larger_than_a_page_is_a_page_of_its_own() {
    let server = with(|limits| limits.page_bytes = 500);
    let ann = server.user("ann");
    let session = ann.session();
    let text = "x".repeat(1000);
    ann.append(&session, &[&text, "short", "short"]);
    let page = ann.get(&format!("{session}/messages")).ok(200);
    assert_eq!((page["messages"].as_array().unwrap().len(), &page["next"]), (1, &json!(1)));
    let page = ann.get(&format!("{session}/messages?after=1")).ok(200);
    assert_eq!((page["messages"].as_array().unwrap().len(), &page["next"]), (2, &Value::Null));
}
