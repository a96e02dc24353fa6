//! Names and keys that look like others.

use serde_json::json;

use super::server;

/// A text as it stands in a path.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Texts that look like another one, or reorder what stands beside them.
const DECEPTIVE: [&str; 5] =
    ["deploy\u{202e}gnp", "de\u{200b}ploy", "cafe\u{301}", "a\u{2028}b", "x\u{feff}"];

#[test]
fn lock_name_that_looks_like_another_is_refused() {
    let server = server();
    let ann = server.user("ann");
    for name in DECEPTIVE {
        ann.post(&format!("/v1/locks/{}", encoded(name)), &json!({})).refused(400, "INVALID_NAME");
    }
    for name in ["deploy", "caf\u{e9}", "\u{65e5}\u{672c}", "a b/c"] {
        let lock = ann.post(&format!("/v1/locks/{}", encoded(name)), &json!({})).ok(201);
        assert_eq!(lock["name"], name);
        let release = format!("/v1/locks/{}?token={}", encoded(name), lock["token"]);
        ann.delete(&release).ok(204);
    }
}

#[test]
fn key_or_label_that_looks_like_another_is_refused() {
    let server = server();
    let ann = server.user("ann");
    let session = ann.session();
    for name in DECEPTIVE {
        let put = ann.send("PUT", &format!("{session}/state/{}", encoded(name)), &[], Some("1"));
        put.refused(400, "INVALID_NAME");
        ann.post("/v1/sessions", &json!({ "labels": { name: "x" } })).refused(400, "INVALID_NAME");
        ann.post("/v1/sessions", &json!({ "settings": { name: 1 } })).refused(400, "INVALID_NAME");
        // What was stored before can be read and removed.
        ann.get(&format!("{session}/state/{}", encoded(name))).refused(404, "ENTRY_NOT_FOUND");
        ann.delete(&format!("{session}/state/{}", encoded(name))).ok(204);
    }
    ann.send("PUT", &format!("{session}/state/{}", encoded("caf\u{e9}")), &[], Some("1")).ok(200);
}
