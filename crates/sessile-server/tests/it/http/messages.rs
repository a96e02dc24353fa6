//! Messages.

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
        assert_eq!(refused.json()["detail"], "there is no message 3: the session has 2", "{path}");
    }
    assert_eq!(ann.texts(&session), ["a", "b"]);
    let fork = ann.post(&format!("{session}/fork"), &json!({ "at": 1, "name": "other" })).ok(201);
    assert_eq!(ann.texts(&format!("/v1/sessions/{}", fork["id"].as_str().unwrap())), ["a"]);
    ann.post(&messages, &json!({ "messages": [] })).refused(400, "INVALID_VALUE");
    ann.post(&messages, &json!({})).refused(400, "INVALID_VALUE");
}

#[test]
fn a_page_of_large_messages_ends_early() {
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
fn many_messages_are_one_page() {
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
