//! Letting a machine in by a code, over HTTP.

use serde_json::json;
use sessile_server::account::{LoginDecision, TokenScope};
use sessile_server::limits::RateLimit;
use sessile_server::login;
use sessile_server::users;

use super::{Client, TestServer, server, with};

fn decide(server: &TestServer, code: &str, decision: LoginDecision) {
    server.block_on(login::decide(&server.db, code, decision)).unwrap();
}

fn as_ann(scopes: &[TokenScope]) -> LoginDecision {
    LoginDecision::Approve { user: "ann".parse().unwrap(), scopes: scopes.to_vec(), expires_ms: None }
}

/// Asks to be let in: what is to be approved, and what the token is asked for with.
fn begin(client: &Client) -> (String, serde_json::Value) {
    let begun = client.post("/v1/login", &json!({ "client": "ann's laptop" })).ok(201);
    assert_eq!((&begun["expires_in_s"], &begun["interval_s"]), (&json!(900), &json!(2)));
    let code = begun["user_code"].as_str().unwrap().to_owned();
    assert!(code.len() == 9 && code.as_bytes()[4] == b'-', "{code}");
    assert!(!code.contains(['A', 'E', 'I', 'O', 'U', '0', '1']), "{code}");
    (code, json!({ "device_code": begun["device_code"] }))
}

#[test]
fn approved_device_login_gets_a_token() {
    let server = server();
    server.user("ann");
    let nobody = server.nobody();
    let (code, poll) = begin(&nobody);
    let pending = nobody.post("/v1/login/token", &poll);
    pending.refused(409, "LOGIN_PENDING");
    assert_eq!((pending.header("retry-after"), &pending.json()["retryable"]), (Some("2"), &json!(true)));
    let found = server.block_on(login::find(&server.db, &code)).unwrap();
    assert_eq!((found.client.as_str(), found.peer.as_deref()), ("ann's laptop", Some("127.0.0.1")));
    decide(&server, &code, as_ann(&[TokenScope::Read]));
    let given = nobody.post("/v1/login/token", &poll);
    assert_eq!(given.header("cache-control"), Some("no-store"));
    let given = given.ok(200);
    assert_eq!(
        given,
        json!({ "token": given["token"], "user": "ann", "scopes": ["read"], "expires_ms": null })
    );
    let ann = Client { secret: Some(given["token"].as_str().unwrap().to_owned()), ..nobody.clone() };
    assert_eq!(ann.get("/v1/me").ok(200)["user"], "ann");
    ann.post("/v1/sessions", &json!({})).refused(403, "CREDENTIAL_REJECTED");
    let (used, unknown) = (
        nobody.post("/v1/login/token", &poll),
        nobody.post("/v1/login/token", &json!({ "device_code": "ssd_x" })),
    );
    used.refused(404, "LOGIN_NOT_FOUND");
    assert_eq!(used.text, unknown.text, "which of them it is, is not said");
    let log = server.log();
    for secret in [given["token"].as_str(), poll["device_code"].as_str(), Some(code.as_str())] {
        assert!(log.iter().all(|line| !line.to_string().contains(secret.unwrap())), "{log:?}");
    }
}

#[test]
fn denied_device_login_is_forbidden() {
    let server = server();
    let nobody = server.nobody();
    let (code, poll) = begin(&nobody);
    decide(&server, &code, LoginDecision::Deny);
    for _ in 0..2 {
        let refused = nobody.post("/v1/login/token", &poll);
        refused.refused(403, "LOGIN_REFUSED");
        assert_eq!(refused.json()["retryable"], false);
    }
}

#[test]
fn concurrent_collections_get_one_token() {
    let server = server();
    server.user("ann");
    let (nobody, twin) = (server.nobody(), server.twin(&server.nobody()));
    for _ in 0..5 {
        let (code, poll) = begin(&nobody);
        decide(&server, &code, as_ann(&[TokenScope::Read]));
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let asked: Vec<_> = [&nobody, &twin, &nobody, &twin]
                .map(|client| scope.spawn(|| client.post("/v1/login/token", &poll).status))
                .into();
            asked.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let count = |status| statuses.iter().filter(|one| **one == status).count();
        assert_eq!((count(200), count(404)), (1, 3), "{statuses:?}");
    }
    // One was there before.
    assert_eq!(server.block_on(users::tokens(&server.db, &"ann".parse().unwrap())).unwrap().len(), 6);
}

#[test]
fn invalid_login_request_is_refused() {
    let server = server();
    let nobody = server.nobody();
    for wrong in [
        json!({}),
        json!({ "client": "" }),
        json!({ "client": "a\nb" }),
        json!({ "client": "x".repeat(129) }),
    ] {
        nobody.post("/v1/login", &wrong).refused(400, "INVALID_VALUE");
    }
    nobody.post("/v1/login", &json!({ "client": "x", "scopes": ["admin"] })).refused(400, "INVALID_VALUE");
    for wrong in [json!({}), json!({ "device_code": 1 }), json!({ "device_code": "x".repeat(129) })] {
        nobody.post("/v1/login/token", &wrong).refused(400, "INVALID_VALUE");
    }
}

#[test]
fn anonymous_requests_are_limited_and_block_no_valid_token() {
    let pace = RateLimit { rate: 0.5, burst: 3.0 };
    let server = with(|limits| (limits.login_each, limits.poll_each) = (pace, pace));
    let (ann, nobody) = (server.user("ann"), server.nobody());
    let poll = begin(&nobody).1;
    begin(&nobody);
    begin(&nobody);
    let refused = nobody.post("/v1/login", &json!({ "client": "x" }));
    refused.refused(429, "RATE_LIMITED");
    assert_eq!(refused.header("retry-after"), Some("2"));
    for _ in 0..3 {
        nobody.post("/v1/login/token", &poll).refused(409, "LOGIN_PENDING");
    }
    nobody.post("/v1/login/token", &poll).refused(429, "RATE_LIMITED");
    ann.get("/v1/me").ok(200);

    let server = with(|limits| limits.logins = 2);
    let nobody = server.nobody();
    begin(&nobody);
    begin(&nobody);
    nobody.post("/v1/login", &json!({ "client": "x" })).refused(429, "RATE_LIMITED");

    let server = with(|limits| limits.login_all = pace);
    let nobody = server.nobody();
    (0..3).for_each(|_| drop(begin(&nobody)));
    nobody.post("/v1/login", &json!({ "client": "x" })).refused(429, "RATE_LIMITED");
}
