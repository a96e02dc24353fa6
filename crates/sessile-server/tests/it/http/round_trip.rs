//! Messages and values come back as they were sent.

use serde_json::json;

use super::server;

/// JSON that a parser would change: large and long numbers, duplicate keys, escapes, the order of keys.
const SENT: [&str; 6] = [
    "123456789012345678901234567890",
    "0.1000000000000000055511151231257827021181583404541015625",
    r#"{"b":1.10,"a":1E2,"b":-0}"#,
    r#"{"text":"\u00e9\/","e":"\ud83d\udc4d"}"#,
    r#"[1.0,100000000000000000000,[]]"#,
    "\"plain\"",
];

#[test]
fn message_is_returned_as_sent() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    let append = |bodies: &str, key: &str| {
        let body = format!("{{\"messages\":[{bodies}]}}");
        ann.send("POST", &format!("{session}/messages"), &[("idempotency-key", key)], Some(&body))
    };
    for (number, sent) in SENT.iter().enumerate() {
        append(sent, &format!("k{number}")).ok(201);
    }
    let body_of = |text: &str, sent: &str| text.contains(&format!("\"body\":{sent},\"at_ms\""));
    for path in ["messages", "messages?last=9"] {
        let reply = ann.get(&format!("{session}/{path}"));
        for sent in SENT {
            assert!(body_of(&reply.text, sent), "{sent}: {}", reply.text);
        }
    }
    let turn = ann.post(&format!("{session}/turns"), &json!({}));
    assert!(SENT.iter().all(|sent| body_of(&turn.text, sent)), "{}", turn.text);
    let turn = format!("{session}/turns/{}", turn.json()["token"]);
    let commit = format!("{{\"messages\":[ {} ]}}", SENT.join(" ,\n"));
    ann.send("POST", &format!("{turn}/commit"), &[], Some(&commit)).ok(200);
    let reply = ann.get(&format!("{session}/messages?after={}", SENT.len()));
    assert!(SENT.iter().all(|sent| body_of(&reply.text, sent)), "{}", reply.text);

    let forked = ann.post(&format!("{session}/fork"), &json!({})).ok(201);
    let reply = ann.get(&format!("/v1/sessions/{}/messages", forked["id"].as_str().unwrap()));
    assert!(SENT.iter().all(|sent| body_of(&reply.text, sent)), "{}", reply.text);

    // The same request is recognized, and one with another number is not.
    append("123456789012345678901234567890", "k0").ok(201);
    append("123456789012345678901234567891", "k0").refused(422, "INVALID_VALUE");
    append(" { \"b\" : 1.10, \"a\" : 1E2 , \"b\" : -0 } ", "k2").ok(201);
    append(r#"{"b":-0,"a":1E2,"b":1.10}"#, "k2").refused(422, "INVALID_VALUE");
    assert_eq!(ann.get(&session).ok(200)["messages"], 2 * SENT.len());
}

#[test]
fn value_is_returned_as_sent() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    for (number, sent) in SENT.iter().enumerate() {
        let path = format!("{session}/state/k{number}");
        let put = ann.send("PUT", &path, &[], Some(&format!(" {sent}\n")));
        let expected = format!("{{\"key\":\"k{number}\",\"value\":{sent},\"revision\":1}}");
        assert_eq!((put.status, put.text.as_str()), (200, expected.as_str()));
        assert_eq!(ann.get(&path).text, expected);
        assert!(ann.get(&format!("{session}/state")).text.contains(&expected));
    }
    for wrong in ["1e999", "\"\\ud800\"", "{\"a\":1,}", "", "nul"] {
        ann.send("PUT", &format!("{session}/state/k"), &[], Some(wrong)).refused(400, "INVALID_VALUE");
    }
}
