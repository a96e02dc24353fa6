//! Who may: tokens, scopes, and nobody else's sessions.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sessile_server::account::TokenScope;
use sessile_server::users::{self, UserError};

use super::{Client, Reply, server};

/// Every operation of the document: method, path, and the operation.
pub(super) fn operations(server: &super::TestServer) -> Vec<(String, String, Value)> {
    let document = server.nobody().get("/openapi.json").ok(200);
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations.push((method.to_uppercase(), path.clone(), operation.clone()));
        }
    }
    assert!(operations.len() > 20);
    operations
}

/// A body that an operation takes.
fn body(operation: &Value) -> Option<&'static str> {
    let schema = operation.pointer("/requestBody/content/application~1json/schema/$ref")?.as_str()?;
    Some(match schema.rsplit('/').next().unwrap() {
        "AppendRequest" | "CommitTurnRequest" => r#"{"messages":["x"]}"#,
        "RewindRequest" => r#"{"to":0}"#,
        "BeginLoginRequest" => r#"{"client":"x"}"#,
        "CollectLoginRequest" => r#"{"device_code":"x"}"#,
        "RenewLockRequest" => r#"{"token":1}"#,
        _ => "{}",
    })
}

fn call(client: &Client, method: &str, path: &str, operation: &Value, session: &str) -> Reply {
    let mut path = path
        .replace("{session}", session)
        .replace("{token}", "1")
        .replace("{key}", "cart")
        .replace("{name}", "deploy");
    if operation.to_string().contains("#/components/parameters/token\"") {
        path.push_str("?token=1");
    }
    client.send(method, &path, &[], body(operation))
}

#[test]
fn session_of_another_user_is_found_by_no_route() {
    let server = server();
    let (ann, bob) = (server.user("ann"), server.user("bob"));
    let session = ann.session();
    ann.append(&session, &["canary"]);
    ann.send("PUT", &format!("{session}/state/cart"), &[], Some("\"canary\"")).ok(200);
    assert_eq!(ann.turn(&session), 2);
    let hers = session.rsplit('/').next().unwrap();
    let mut walked = 0;
    for (method, path, operation) in operations(&server) {
        if !path.contains("{session}") {
            continue;
        }
        walked += 1;
        let theirs = call(&bob, &method, &path, &operation, hers);
        theirs.refused(404, "SESSION_NOT_FOUND");
        let nobodys = call(&bob, &method, &path, &operation, "0199aaaa-0000-7000-8000-00000000dead");
        assert_eq!((theirs.status, &theirs.text), (nobodys.status, &nobodys.text), "{method} {path}");
        let names =
            |reply: &Reply| -> Vec<String> { reply.headers.keys().map(ToString::to_string).collect() };
        assert_eq!(names(&theirs), names(&nobodys), "{method} {path}");
    }
    assert!(walked >= 14, "{walked}");
    assert_eq!(bob.get("/v1/sessions?live=false").ok(200)["sessions"], json!([]));
    assert_eq!(ann.texts(&session), ["canary"], "and nothing of it was changed");
    assert!(ann.get(&session).ok(200)["ended_ms"].is_null());
}

#[test]
fn missing_and_foreign_sessions_take_the_same_time() {
    let server = server();
    let (ann, bob) = (server.user("ann"), server.user("bob"));
    let session = ann.session();
    let text = "x".repeat(1000);
    for _ in 0..50 {
        ann.append(&session, &[text.as_str(); 20]);
    }
    let missing = "/v1/sessions/0199aaaa-0000-7000-8000-00000000dead".to_owned();
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..200 {
        for (times, path) in times.iter_mut().zip([&session, &missing]) {
            let began = Instant::now();
            bob.get(&format!("{path}/messages")).refused(404, "SESSION_NOT_FOUND");
            times.push(began.elapsed());
        }
    }
    let medians = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    let (most, least) = (medians[0].max(medians[1]), medians[0].min(medians[1]));
    assert!(most < least * 3 / 2 + Duration::from_micros(200), "{medians:?}");
}

#[test]
fn request_without_valid_token_is_unauthorized() {
    let server = server();
    let ann = server.user("ann");
    let secret = ann.secret.clone().unwrap();
    assert!(secret.starts_with("sst_") && secret.len() == 47, "{secret}");
    let other = format!("{}{}", &secret[..46], if secret.ends_with('A') { 'B' } else { 'A' });
    let missing = "0199aaaa-0000-7000-8000-00000000dead";
    for (method, path, operation) in operations(&server) {
        if operation["security"] == json!([]) {
            continue;
        }
        let refused = call(&server.nobody(), &method, &path, &operation, missing);
        refused.refused(401, "CREDENTIAL_REJECTED");
        assert!(refused.header("www-authenticate").unwrap().starts_with("Bearer"));
    }
    for header in [
        format!("Bearer {other}"),
        format!("Basic {secret}"),
        secret.clone(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Bearer {secret}x"),
    ] {
        server
            .nobody()
            .send("GET", "/v1/me", &[("authorization", &header)], None)
            .refused(401, "CREDENTIAL_REJECTED");
    }
    let twice = format!("Bearer {secret}");
    let both = [("authorization", twice.as_str()), ("authorization", twice.as_str())];
    server.nobody().send("GET", "/v1/me", &both, None).refused(401, "CREDENTIAL_REJECTED");
    server.nobody().send("GET", "/v1/me", &both[..1], None).ok(200);
}

#[test]
fn token_allows_only_its_scopes() {
    let server = server();
    server.user("ann");
    let session = "0199aaaa-0000-7000-8000-00000000dead";
    let reader = server.token("ann", &[TokenScope::Read], None).0;
    let writer = server.token("ann", &[TokenScope::Write], None).0;
    let admin = server.token("ann", &[TokenScope::Admin], None).0;
    for (method, path, operation) in operations(&server) {
        let says = operation["description"].as_str().unwrap_or_default();
        let (reads, writes) = (says.contains("read"), says.contains("write"));
        for (client, has_read, has_write) in
            [(&reader, true, false), (&writer, false, true), (&admin, false, false)]
        {
            let reply = call(client, &method, &path, &operation, session);
            if (reads && !has_read) || (writes && !has_write) {
                reply.refused(403, "CREDENTIAL_REJECTED");
                assert!(reply.header("www-authenticate").unwrap().contains("insufficient_scope"));
            } else {
                assert!(![401, 403].contains(&reply.status), "{method} {path}: {reply:?}");
            }
        }
        let is_open = operation["security"] == json!([]);
        assert_eq!(method != "GET" && !is_open, writes, "{method} {path}");
    }
    assert_eq!(reader.get("/v1/me").ok(200)["scopes"], json!(["read"]));
}

#[test]
fn write_only_token_gets_no_session_data_from_changes() {
    let server = server();
    let ann = server.user("ann");
    let writer = server.token("ann", &[TokenScope::Write], None).0;
    let canary =
        r#"{"name":"canary-name","labels":{"a":"canary"},"settings":{"b":"canary"},"context":"canary"}"#;
    let session = ann.send("POST", "/v1/sessions", &[], Some(canary)).ok(201);
    let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
    ann.append(&path, &["canary"]);
    ann.send("PUT", &format!("{path}/state/cart"), &[], Some("\"canary\"")).ok(200);
    for (method, path, operation) in operations(&server) {
        if method == "DELETE" && path == "/v1/sessions/{session}" || !path.contains("{session}") {
            continue;
        }
        let reply = call(&writer, &method, &path, &operation, session["id"].as_str().unwrap());
        assert!(!format!("{reply:?}").contains("canary"), "{method} {path}: {reply:?}");
    }
    let edited = writer.send("PATCH", &path, &[], Some("{}"));
    assert_eq!((edited.status, edited.text.as_str()), (204, ""));
    assert_eq!(edited.header("etag"), ann.get(&path).header("etag"));
    for _ in 0..2 {
        let ended = writer.send("DELETE", &path, &[], None);
        assert_eq!((ended.status, ended.text.as_str()), (204, ""));
    }
    assert_eq!(ann.get(&path).ok(200)["name"], "canary-name", "a token that may read gets all of it");
}

#[test]
fn token_is_invalid_after_expiry_revocation_or_disabling() {
    let server = server();
    let ann = server.user("ann");
    let scopes = [TokenScope::Read];
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    let soon = i64::try_from(now).unwrap() + 150;
    let (short, _) = server.token("ann", &scopes, Some(soon));
    short.get("/v1/me").ok(200);
    std::thread::sleep(Duration::from_millis(200));
    short.get("/v1/me").refused(401, "CREDENTIAL_REJECTED");
    let (taken, id) = server.token("ann", &scopes, None);
    assert_eq!(taken.get("/v1/me").ok(200)["token"], id.as_str());
    server.block_on(users::revoke(&server.db, &id)).unwrap();
    taken.get("/v1/me").refused(401, "CREDENTIAL_REJECTED");
    let user = "ann".parse().unwrap();
    server.block_on(users::disable(&server.db, &user, true)).unwrap();
    ann.get("/v1/me").refused(401, "CREDENTIAL_REJECTED");
    server.block_on(users::disable(&server.db, &user, false)).unwrap();
    assert_eq!(ann.get("/v1/me").ok(200)["user"], "ann");
}

#[test]
fn user_names_are_checked_and_no_secret_is_stored() {
    let server = server();
    let ann = server.user("ann");
    let db = &server.db;
    let user = "ann".parse().unwrap();
    server.block_on(async {
        assert!(matches!(users::add(db, "ann").await, Err(UserError::Exists(_))));
        for wrong in ["", "a b", "-a", "a/b", "\u{e9}", &"x".repeat(65)] {
            assert!(matches!(users::add(db, wrong).await, Err(UserError::InvalidName(_))), "{wrong}");
        }
        let nobody = "nobody".parse().unwrap();
        assert!(matches!(users::disable(db, &nobody, true).await, Err(UserError::NoUser(_))));
        let none = users::create_token(db, &nobody, &[TokenScope::Read], None).await;
        assert!(matches!(none, Err(UserError::NoUser(_))));
        assert!(matches!(users::create_token(db, &user, &[], None).await, Err(UserError::NoScope)));
        assert!(matches!(users::revoke(db, "nope").await, Err(UserError::NoToken(_))));
        assert_eq!(users::list(db).await.unwrap().len(), 1);
        let tokens = users::tokens(db, &user).await.unwrap();
        assert_eq!(tokens[0].scopes, [TokenScope::Read, TokenScope::Write]);
    });
    ann.get("/v1/me").ok(200);
    let secret = ann.secret.as_ref().unwrap();
    for file in std::fs::read_dir(server.dir()).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{}", path.display());
        }
    }
    assert!(server.log().iter().all(|line| !line.to_string().contains(secret)));
}

#[test]
fn log_lines_have_request_ids() {
    let server = server();
    let ann = server.user("ann");
    let reply = ann.send("GET", "/v1/sessions/nope", &[("x-request-id", "mine-1")], None);
    assert_eq!(reply.header("x-request-id"), Some("mine-1"));
    let made = ann.send("GET", "/v1/me", &[("x-request-id", "a b")], None);
    assert_eq!(made.header("x-request-id").unwrap().len(), 36, "an invalid request id is replaced");
    let began = Instant::now();
    let line = loop {
        if let Some(line) = server.log().into_iter().find(|line| line["request_id"] == "mine-1") {
            break line;
        }
        assert!(began.elapsed() < Duration::from_secs(5));
    };
    assert_eq!((&line["user"], &line["status"]), (&json!("ann"), &json!(404)));
    assert_eq!(
        (&line["route"], &line["code"]),
        (&json!("/v1/sessions/{session}"), &json!("SESSION_NOT_FOUND"))
    );
    assert!(line["token"].is_string() && line["peer"].is_string() && line["ms"].is_number());
}
