//! `sessile serve` as a process of its own.

use rustix::process::Signal;
use serde_json::json;
use testkit::Postgres;

use super::{Service, Store, a_moment};
use crate::home;

#[test]
fn users_see_only_their_sessions() {
    let home = home();
    let store = Store::file(&home);
    let (ann, bob) = (store.user("ann"), store.user("bob"));
    let service = Service::start(&store);
    let (ann, bob, nobody) = (service.client(&ann), service.client(&bob), service.client("sst_nobody"));
    let session = ann.session();
    ann.ok("POST", &format!("{session}/messages"), &json!({ "messages": ["for ann only"] }));
    assert_eq!(ann.texts(&session), ["for ann only"]);
    assert_eq!(ann.get("/v1/me")["user"], "ann");
    let absent = "/v1/sessions/0199c1d2-7a52-7f31-8a52-6f1f2a9d3b10";
    for path in ["", "/messages", "/state", "/state/k"] {
        let (theirs, none) = (format!("{session}{path}"), format!("{absent}{path}"));
        let seen = bob.send("GET", &theirs, None);
        assert_eq!(seen.0, 404, "{theirs}: {}", seen.1);
        assert_eq!(seen, bob.send("GET", &none, None), "the same answer as for a missing session");
        assert_eq!(nobody.send("GET", &theirs, None).0, 401);
    }
    for (path, body) in
        [("/messages", json!({ "messages": ["x"] })), ("/turns", json!({})), ("/fork", json!({}))]
    {
        assert_eq!(bob.send("POST", &format!("{session}{path}"), Some(&body)).0, 404);
    }
    assert_eq!(bob.send("DELETE", &session, None).0, 404);
    assert_eq!(bob.get("/v1/sessions")["sessions"], json!([]));
    assert_eq!(ann.texts(&session), ["for ann only"]);
}

#[test]
fn sigterm_ends_the_service_and_a_restart_has_everything() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let service = Service::start(&store);
    let ann = service.client(&token);
    let session = ann.session();
    let messages = format!("{session}/messages");
    ann.ok("POST", &messages, &json!({ "messages": ["before"] }));
    // One who waits for a turn that somebody has must not hold it up, nor be left without an answer.
    ann.ok("POST", &format!("{session}/turns"), &json!({ "holder": "first" }));
    let (waiting, turns) = (ann.clone(), format!("{session}/turns"));
    let waiting =
        std::thread::spawn(move || waiting.send("POST", &turns, Some(&json!({ "wait_ms": 60_000 }))));
    a_moment();
    service.tell(Signal::TERM);
    assert_eq!(waiting.join().unwrap().0, 503);
    assert_eq!(service.ended().code(), Some(0));

    let service = Service::start(&store);
    assert_eq!(service.client(&token).texts(&session), ["before"]);
    service.tell(Signal::INT);
    assert_eq!(service.ended().code(), Some(0));
}

#[test]
fn second_signal_ends_the_service_at_once() {
    use std::io::Write as _;
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let service = Service::start(&store);
    // One that says that more is to come is waited for.
    let mut slow = std::net::TcpStream::connect(service.address).unwrap();
    let head =
        "POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n";
    write!(slow, "{head}authorization: Bearer {token}\r\n\r\n{{").unwrap();
    a_moment();
    service.tell(Signal::INT);
    a_moment();
    let begun = std::time::Instant::now();
    service.tell(Signal::INT);
    assert_eq!(service.ended().code(), Some(0));
    assert!(begun.elapsed() < std::time::Duration::from_secs(8), "the grace period is longer");
}

#[test]
fn user_disabled_while_waiting_gets_no_turn() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let other = store.call(&["user", "token", "create", "ann", "--output", "json"]).ok().json();
    let (other, id) = (other["token"].as_str().unwrap(), other["id"].as_str().unwrap());
    let service = Service::start(&store);
    let (ann, shut_out) = (service.client(&token), service.client(other));
    let turns = format!("{}/turns", ann.session());
    let held = ann.ok("POST", &turns, &json!({}));
    let waiting = {
        let turns = turns.clone();
        std::thread::spawn(move || shut_out.send("POST", &turns, Some(&json!({ "wait_ms": 60_000 }))))
    };
    a_moment();
    store.call(&["user", "token", "revoke", id]).ok();
    ann.ok("POST", &format!("{turns}/{}/commit", held["token"]), &json!({ "messages": [] }));
    assert_eq!(waiting.join().unwrap().0, 401);
    // It was given back.
    ann.ok("POST", &turns, &json!({ "busy": "reject" }));
}

#[test]
fn public_address_without_tls_or_proxy_is_refused() {
    let home = home();
    let store = Store::file(&home);
    let done = store.call(&["serve", "--listen", "0.0.0.0:0", "--output", "json"]).run().exit(2);
    assert_eq!(done.code(), "USAGE", "{}", done.told());
    let done = store.call(&["serve", "--listen", "0.0.0.0:0"]).run().exit(2);
    for way in ["--tls-cert", "--behind-proxy"] {
        assert!(done.stderr().contains(way), "{}", done.told());
    }
    store.call(&["serve", "--tls-cert", "cert.pem"]).run().exit(2);
}

#[test]
fn address_in_use_is_reported() {
    let home = home();
    let store = Store::file(&home);
    let service = Service::start(&store);
    let address = service.address.to_string();
    let done = store.call(&["serve", "--listen", &address, "--output", "json"]).run();
    assert_ne!(done.status(), Some(0));
    assert!(done.json_error()["message"].as_str().unwrap().contains("listen on"), "{}", done.told());
}

#[test]
fn invalid_arguments_are_refused_before_a_store_is_created() {
    let home = home();
    // It is taken, so that nothing is served in any case.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let serve = |flags: &[&str]| home.call(&["serve", "--listen", &address]).args(flags).run();
    for flags in [["--rate", "0"], ["--keep-audit", "0s"]] {
        let done = serve(&flags).exit(2);
        assert!(
            done.stderr().starts_with(&format!("error: {} must be greater than 0", flags[0])),
            "{}",
            done.told()
        );
    }
    for flags in [["--keep-sessions", "0s"], ["--upstream-timeout", "0s"]] {
        let done = serve(&flags).exit(2);
        assert_eq!(
            done.stderr().lines().next().unwrap(),
            format!("error: {} must be greater than 0", flags[0])
        );
    }
    let dir = home.path("missing/dir").display().to_string();
    let store = format!("{dir}/service.db");
    let add = home.call(&["user", "add", "ann", "--store", &store]).run();
    for done in [serve(&["--store", &store]), add] {
        let done = done.exit(5);
        let told = format!(
            "error: directory {dir} does not exist\nhint: create the directory, or check the path: mkdir -p {dir}\n"
        );
        assert_eq!(done.stderr(), told);
    }
    let done = home.call(&["user", "list", "-ojson", "--store", &store]).run().exit(5);
    assert_eq!(done.code(), "FILE_NOT_FOUND", "{}", done.told());
    assert!(!home.path("missing").exists());
    std::fs::create_dir_all(&dir).unwrap();
    home.call(&["user", "add", "ann", "--store", &store]).ok();
    // Where the store is by itself, everything is made that it needs.
    home.call(&["user", "add", "ann"]).ok();
}

#[test]
fn missing_database_is_reported_as_unreachable() {
    let home = home();
    // A port on which nobody listens, which is what a closed one is.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://sessile@127.0.0.1:{port}/none");
    let done = home.call(&["user", "list", "--output", "json", "--store", &url]).run();
    assert_eq!(done.code(), "UNREACHABLE", "{}", done.told());
}

#[test]
fn store_with_newer_schema_is_refused_by_serve_and_user() {
    let home = home();
    let store = Store::file(&home);
    store.user("ann");
    let file = rusqlite::Connection::open(home.path("service.db")).unwrap();
    file.execute("INSERT INTO service (version) VALUES (9999)", []).unwrap();
    for words in [&["serve", "--listen", "127.0.0.1:0"][..], &["user", "list"], &["user", "add", "bob"]] {
        let done = store.call(words).run().exit(4);
        let told = done.stderr();
        assert!(told.contains("has schema version 9999") && told.contains("\nhint: "), "{}", done.told());
        let done = store.call(words).args(&["--output", "json"]).run();
        assert_eq!(done.code(), "STORE_TOO_NEW", "{}", done.told());
    }
}

#[test]
fn files_that_others_can_write_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = home();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let text = |path: &std::path::Path| path.display().to_string();
    let refused = |words: &[&str], file: &str| {
        let done = home.call(words).args(&["--listen", "127.0.0.1:0"]).run().exit(7);
        assert!(done.stderr().contains(file), "{}", done.told());
        assert!(done.stderr().contains("hint: ") && done.stderr().contains("chmod"), "{}", done.told());
    };

    let secret = home.write("secret", "x\n");
    mode(&secret, 0o602);
    let url = "postgres://sessile@127.0.0.1:1/none";
    refused(&["serve", "--store", url, "--store-password-file", &text(&secret)], "secret");
    let upstream = ["serve", "--upstream", "http://127.0.0.1:1/v1", "--upstream-model", "m"];
    refused(&[&upstream[..], &["--upstream-key-file", &text(&secret)]].concat(), "secret");
    let cert = home.write("cert.pem", "x");
    refused(&["serve", "--tls-cert", &text(&cert), "--tls-key", &text(&secret)], "secret");

    let dir = home.path("open");
    std::fs::create_dir(&dir).unwrap();
    let store = dir.join("service.db");
    home.call(&["user", "add", "ann", "--store", &text(&store)]).ok();
    mode(&store, 0o666);
    refused(&["serve", "--store", &text(&store)], "service.db");
    home.call(&["user", "list", "--store", &text(&store)]).run().exit(7);
    mode(&store, 0o600);
    let log = dir.join("service.db-wal");
    std::fs::write(&log, "").unwrap();
    mode(&log, 0o666);
    refused(&["serve", "--store", &text(&store)], "service.db-wal");
    std::fs::remove_file(&log).unwrap();
    mode(&dir, 0o777);
    refused(&["serve", "--store", &text(&store)], "open");
    let link = home.path("link.db");
    std::os::unix::fs::symlink(&store, &link).unwrap();
    refused(&["serve", "--store", &text(&link)], "open");
    // Nobody can replace another's file where the sticky bit is set.
    mode(&dir, 0o1777);
    home.call(&["user", "list", "--store", &text(&store)]).ok();
}

#[test]
fn secret_that_others_can_read_is_used_with_a_warning_of_serve() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = home();
    let (cert, key) = (home.write("cert.pem", "x"), home.write("key.pem", "x"));
    let (cert, file) = (cert.display().to_string(), key.display().to_string());
    let serve =
        || home.call(&["serve", "--listen", "127.0.0.1:0", "--tls-cert", &cert, "--tls-key", &file]).run();
    for (mode, warnings) in [(0o444, 1), (0o400, 0)] {
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let done = serve();
        assert_eq!(done.stderr().matches("can be read by other users").count(), warnings, "{}", done.told());
        assert!(done.stderr().contains("cert.pem"), "the exposed key is still used: {}", done.told());
    }
}

#[test]
fn nul_in_a_query_is_refused_by_a_file_store() {
    let home = home();
    nul_in_a_query_is_refused(&Store::file(&home));
}

#[test]
fn nul_in_a_query_is_refused_by_a_database() {
    let (home, server) = (home(), Postgres::shared());
    let database = server.database();
    nul_in_a_query_is_refused(&Store::postgres(&home, &database.url()));
}

fn nul_in_a_query_is_refused(store: &Store<'_>) {
    let token = store.user("ann");
    let service = Service::start(store);
    let ann = service.client(&token);
    let session = ann.session();
    for path in [
        "/v1/sessions?label=a=%00",
        "/v1/sessions?label=%00=a",
        "/v1/sessions?label=a%3Db%00c",
        "/v1/sessions?cursor=%00",
        "/v1/sessions?%00=a",
        "/v1/locks?cursor=a%00",
        &format!("{session}/state?prefix=%00"),
        &format!("{session}/state?cursor=%00"),
        &format!("{session}/state/%00"),
        &format!("{session}/state/a%00b"),
    ] {
        let (status, answer) = ann.send("GET", path, None);
        assert_eq!(status, 400, "{path}: {answer}");
    }
    for (method, path) in [
        ("PUT", format!("{session}/state/a%00")),
        ("DELETE", format!("{session}/state/a%00")),
        ("DELETE", "/v1/locks/a%00?token=1".to_owned()),
        ("POST", "/v1/locks/a%00".to_owned()),
    ] {
        let (status, answer) = ann.send(method, &path, (method != "DELETE").then_some(&json!({})));
        assert_eq!(status, 400, "{method} {path}: {answer}");
    }
}

#[test]
fn embedded_documents_do_not_end_the_service() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let service = Service::start(&store);
    let ann = service.client(&token);
    let session = ann.session();
    let embedded = testkit::embedded_documents(14);
    for (method, path, body) in [
        ("POST", "/v1/sessions".to_owned(), format!("{{\"settings\":{{\"a\":{embedded}}}}}")),
        ("PATCH", session.clone(), format!("{{\"settings\":{{\"a\":{embedded}}}}}")),
        ("POST", format!("{session}/messages"), format!("{{\"messages\":[{embedded}]}}")),
        ("PUT", format!("{session}/state/k"), embedded.clone()),
        ("POST", "/mcp".to_owned(), embedded.clone()),
    ] {
        let request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", ann.base));
        let request = request.header("authorization", format!("Bearer {token}"));
        let request = request.header("content-type", "application/json").body(body).unwrap();
        assert_eq!(ann.agent.run(request).unwrap().status().as_u16(), 400, "{method} {path}");
    }
    assert_eq!(ann.get("/v1/me")["user"], "ann");
}
