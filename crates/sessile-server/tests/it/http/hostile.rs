//! Bad input: a clear refusal, and nothing else.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{RESERVED_KEY, embedded_documents};

use super::{server, with};

#[test]
fn oversized_or_deep_body_is_refused() {
    let server = with(|limits| {
        limits.body_bytes = 10_000;
        limits.message_bytes = 1000;
        limits.messages = 10;
    });
    let ann = server.user("ann");
    let session = ann.session();
    let path = format!("{session}/messages");
    let post = |body: &str| ann.send("POST", &path, &[], Some(body));
    post(&json!({ "messages": ["x".repeat(20_000)] }).to_string()).refused(413, "INVALID_VALUE");
    post(&json!({ "messages": ["x".repeat(2000)] }).to_string()).refused(413, "INVALID_VALUE");
    post(&json!({ "messages": vec![1; 11] }).to_string()).refused(400, "INVALID_VALUE");
    let deep = |depth: usize| format!("{{\"messages\":[{}{}]}}", "[".repeat(depth), "]".repeat(depth));
    post(&deep(63)).refused(400, "INVALID_VALUE");
    post(&deep(4000)).refused(400, "INVALID_VALUE");
    post(&deep(62)).ok(201);
    for wrong in
        ["", "{", "[]", "nul", "{\"messages\":[1],\"messages\":[2]}", "{\"messages\":[\"\\ud800\"]}", "1e999"]
    {
        post(wrong).refused(400, "INVALID_VALUE");
    }
    let secret = ann.secret.as_ref().unwrap();
    let head = |media: &str, more: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\ncontent-type: {media}\r\n\
             connection: close\r\n{more}\r\n"
        )
    };
    let mut invalid = head("application/json", "content-length: 18\r\n").into_bytes();
    invalid.extend_from_slice(b"{\"messages\":[\"\xff\"]}");
    assert!(server.raw(&invalid).starts_with("HTTP/1.1 400"));
    for (media, more) in [("text/plain", ""), ("application/json", "content-encoding: gzip\r\n")] {
        let request = format!("{}{{}}", head(media, &format!("content-length: 2\r\n{more}")));
        assert!(server.raw(request.as_bytes()).starts_with("HTTP/1.1 415"), "{media}");
    }
    let chunked = format!(
        "{}FFFFFF\r\n{}",
        head("application/json", "transfer-encoding: chunked\r\n"),
        " ".repeat(20_000)
    );
    assert!(server.raw(chunked.as_bytes()).starts_with("HTTP/1.1 413"), "also if its length is not said");
    assert_eq!(ann.get(&session).ok(200)["messages"], 1);
}

#[test]
fn body_error_uses_json_terms() {
    let server = with(|limits| limits.rate = 1e6);
    let ann = server.user("ann");
    let session = ann.session();
    for (body, is) in [
        ("[]", "an array"),
        ("[null, null, {}, {}, null, null]", "an array"),
        ("\"x\"", "a string"),
        ("-1.5", "a number"),
        ("true", "a boolean"),
        (" null", "null"),
    ] {
        let refused = ann.send("POST", "/v1/sessions", &[], Some(body));
        refused.refused(400, "INVALID_VALUE");
        assert_eq!(refused.json()["detail"], format!("the body must be a JSON object, not {is}"), "{body}");
    }
    let refused = ann.post("/v1/sessions", &json!({ "idle_ms": "2, expected i64" }));
    let detail = "invalid body: invalid type: string \"2, expected i64\", expected a whole number at line 1 \
                  column 28";
    assert_eq!(refused.json()["detail"], detail);
    let refused = ann.post("/v1/sessions", &json!({ "labels": [] }));
    let detail = "invalid body: invalid type: array, expected an object at line 1 column 10";
    assert_eq!(refused.json()["detail"], detail);

    // Every body that the document knows, with everything in every member of it.
    let document = ann.get("/openapi.json").ok(200);
    let id = session.rsplit('/').next().unwrap();
    let mut refused = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
            let Some(schema) = schema.as_str().and_then(|schema| schema.strip_prefix('#')) else { continue };
            let Some(members) = document.pointer(schema).unwrap()["properties"].as_object() else { continue };
            let path = path.replace("{id}", id).replace("{session}", id).replace(['{', '}'], "");
            for name in members.keys() {
                for value in [
                    json!([]),
                    json!([1]),
                    json!({}),
                    json!({ "a": 1 }),
                    json!("\u{7}"),
                    json!(-1.5),
                    json!(true),
                ] {
                    let body = json!({ name: value }).to_string();
                    let reply = ann.send(&method.to_uppercase(), &path, &[], Some(&body));
                    if reply.status != 400 {
                        continue;
                    }
                    refused += 1;
                    let detail = reply.json()["detail"].as_str().unwrap().to_owned();
                    for word in [
                        "i64", "u64", "u32", "usize", "f64", "struct", "enum", "variant", " map", "sequence",
                        "unit",
                    ] {
                        assert!(!detail.contains(word), "{method} {path} {body}: {detail}");
                    }
                }
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn slow_client_times_out() {
    let server = with(|limits| {
        limits.head = Duration::from_millis(300);
        limits.body = Duration::from_millis(300);
    });
    let ann = server.user("ann");
    let began = Instant::now();
    let mut silent = server.connect();
    silent.write_all(b"GET /healthz HTTP/1.1\r\nhost:").unwrap();
    let _ = silent.read_to_end(&mut Vec::new());
    let secret = ann.secret.as_ref().unwrap();
    let request = format!(
        "POST /v1/sessions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\ncontent-type: application/json\r\n\
         content-length: 10\r\n\r\n{{"
    );
    let answer = server.raw(request.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("TIMED_OUT"), "{answer}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn refused_body_keeps_the_connection() {
    let server = server();
    let mut stream = server.connect();
    stream.write_all(b"POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 300000\r\n\r\n").unwrap();
    // The rest comes when it was long refused.
    std::thread::sleep(Duration::from_millis(100));
    stream.write_all(&vec![b' '; 300_000]).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert!(answers.starts_with("HTTP/1.1 401") && answers.contains("HTTP/1.1 200"), "{answers}");
}

#[test]
fn client_that_does_not_read_is_disconnected() {
    let server = with(|limits| {
        limits.answer = Duration::from_millis(300);
        limits.body_bytes = 8 << 20;
    });
    let ann = server.user("ann");
    let session = ann.session();
    // More than the system keeps for a connection.
    let text = "x".repeat(200_000);
    for _ in 0..4 {
        ann.append(&session, &[text.as_str(); 20]);
    }
    let secret = ann.secret.as_ref().unwrap();
    let mut stream = server.connect();
    for _ in 0..4 {
        let request =
            format!("GET {session}/messages HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
    }
    std::thread::sleep(Duration::from_millis(1500));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 200") && answer.len() < 4 * 4_000_000, "{} bytes", answer.len());
}

#[test]
fn invalid_http_requests_are_refused() {
    let server = server();
    let ann = server.user("ann");
    let secret = ann.secret.as_ref().unwrap();
    for (line, status) in [
        ("GET /v1/sessions/../../etc/passwd HTTP/1.1", 404),
        ("GET /v1/sessions/..%2f..%2fetc%2fpasswd HTTP/1.1", 404),
        ("GET /v1/sessions/%00 HTTP/1.1", 404),
        ("GET /v1/sessions/%ff HTTP/1.1", 400),
        ("GET /v1/sessions/'%20OR%201=1;-- HTTP/1.1", 404),
        ("GET //v1//sessions HTTP/1.1", 404),
        ("GET /v1/sessions/%25%32%66/messages HTTP/1.1", 404),
        ("BREW /v1/sessions HTTP/1.1", 405),
        ("GET /v1/sessions?limit=99999999999999999999 HTTP/1.1", 400),
        ("GET /v1/sessions?cursor=%F0%9F%92%A9 HTTP/1.1", 400),
        ("GET /v1/sessions?limit=1%20OR%201=1 HTTP/1.1", 400),
        ("GET /v1/sessions HTTP/9.9", 400),
        ("GET", 400),
    ] {
        let request =
            format!("{line}\r\nhost: x\r\nauthorization: Bearer {secret}\r\nconnection: close\r\n\r\n");
        let answer = server.raw(request.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {answer}");
        assert!(!answer.contains("etc/passwd") && !answer.contains("sqlite"), "{answer}");
    }
    let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(100_000));
    let answer = server.raw(long.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(500));
    assert!(server.raw(many.as_bytes()).starts_with("HTTP/1.1 431"));
}

#[test]
fn invalid_headers_are_refused_and_not_echoed() {
    let server = server();
    let ann = server.user("ann");
    let secret = ann.secret.as_ref().unwrap();
    let send = |header: &[u8]| {
        let mut request = format!(
            "POST /v1/sessions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: 2\r\n"
        )
        .into_bytes();
        request.extend_from_slice(header);
        request.extend_from_slice(b"\r\n\r\n{}");
        server.raw(&request)
    };
    for (header, status) in [
        (&b"idempotency-key: \xff\xfe"[..], "400"),
        (b"idempotency-key: a\r\nidempotency-key: b", "400"),
        (b"idempotency-key:", "400"),
        (b"idempotency-key: a\0b", "400"),
        (b"x-request-id: \xff", "201"),
        (b"x-request-id: a\"b", "201"),
        (b"content-length: 5", "400"),
        (b"bad header: x", "400"),
    ] {
        let answer = send(header);
        let shown = String::from_utf8_lossy(header).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{shown}: {answer}");
        assert!(!answer.contains("a\"b"), "{answer}");
    }
    let injected = ann.post("/v1/sessions", &json!({ "labels": { "a\r\nset-cookie: x": "y" } }));
    injected.refused(400, "INVALID_VALUE");
    assert!(injected.header("set-cookie").is_none());
}

#[test]
fn sql_and_shell_text_is_stored_as_data() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    let texts =
        ["'; DROP TABLE message; --", "\u{0}\u{1b}[31m", "\u{1f980}\u{202e}abc", "<script>alert(1)</script>"];
    ann.append(&session, &texts);
    assert_eq!(ann.texts(&session), texts);
    let key = "%27%3B%20DROP%20TABLE%20entry%3B--";
    ann.send("PUT", &format!("{session}/state/{key}"), &[], Some("1")).ok(200);
    assert_eq!(ann.get(&format!("{session}/state/{key}")).ok(200)["key"], "'; DROP TABLE entry;--");
    assert_eq!(ann.get(&format!("{session}/state")).ok(200)["entries"].as_array().unwrap().len(), 1);
}

#[test]
fn waiters_of_one_user_are_limited_and_block_no_other_user() {
    let server = with(|limits| limits.waiting = 2);
    let (ann, bob) = (server.user("ann"), server.user("bob"));
    let session = ann.session();
    ann.turn(&session);
    let waiting: Vec<_> = (0..2)
        .map(|_| {
            let (ann, session) = (ann.clone(), session.clone());
            std::thread::spawn(move || ann.post(&format!("{session}/turns"), &json!({ "wait_ms": 1500 })))
        })
        .collect();
    let began = Instant::now();
    while !bob.get("/metrics").text.contains("sessile_waiting 2\n") {
        assert!(began.elapsed() < Duration::from_secs(5));
    }
    ann.post(&format!("{session}/turns"), &json!({ "wait_ms": 1500 })).refused(429, "RATE_LIMITED");
    // Whoever holds what they wait for gets through.
    ann.get("/v1/me").ok(200);
    bob.turn(&bob.session());
    for one in waiting {
        one.join().unwrap().refused(408, "TIMED_OUT");
    }
    ann.get("/v1/me").ok(200);
}

#[test]
fn reserved_keys_in_a_body_are_refused() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    let plain = json!({ RESERVED_KEY: "hello" }).to_string();
    for value in [
        plain.replace("hello", "[1]"),
        plain.replace('$', "\\u0024"),
        plain.replace('V', "\\u0056").replace("\":", "\" \n:"),
        plain.replace("RawValue", "Number"),
        format!("{{\"a\":[1,{plain}]}}"),
        plain.replace('{', "{\"a\":1,"),
        plain,
        embedded_documents(14),
    ] {
        for (method, path, body) in [
            ("POST", "/v1/sessions", format!("{{\"settings\":{{\"a\":{value}}}}}")),
            ("PATCH", &session, format!("{{\"settings\":{{\"a\":{value}}}}}")),
            ("POST", &format!("{session}/messages"), format!("{{\"messages\":[{value}]}}")),
            ("PUT", &format!("{session}/state/k"), value.clone()),
            ("POST", "/mcp", value.clone()),
        ] {
            let refused = ann.send(method, path, &[], Some(&body));
            refused.refused(400, "INVALID_VALUE");
            let detail = refused.json()["detail"].as_str().unwrap().to_owned();
            assert!(detail.starts_with("key \"$serde_json::private::"), "{detail}");
            assert!(detail.ends_with("\" is reserved"), "{detail}");
        }
    }
    ann.send("PUT", &format!("{session}/state/{RESERVED_KEY}"), &[], Some("1")).refused(400, "INVALID_NAME");
    // As a value, or as a part of a key, the same text is data.
    let values = json!([RESERVED_KEY, { "a": RESERVED_KEY }, { "$serde_json::private::RawValue2": "$ref" }]);
    ann.post(&format!("{session}/messages"), &json!({ "messages": values })).ok(201);
}
