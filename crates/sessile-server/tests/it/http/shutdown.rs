//! Ending well.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{server, started};
use sessile_server::serve::{Log, Options, ServeError, Server, run};
use sessile_server::store::ServiceStore;

#[test]
fn shutdown_finishes_requests_and_dismisses_waiters() {
    let mut server = server();
    let ann = server.user("ann");
    let session = ann.session();
    let token = ann.turn(&session);
    // A commit whose body is still on its way.
    let body = r#"{"messages":["kept"]}"#;
    let mut commit = server.connect();
    let secret = ann.secret.clone().unwrap();
    write!(
        commit,
        "POST {session}/turns/{token}/commit HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .unwrap();
    let waits = {
        let (ann, session) = (ann.clone(), session.clone());
        std::thread::spawn(move || ann.post(&format!("{session}/turns"), &json!({})))
    };
    let mut stream = ann.open("GET", &format!("{session}/events"), &[], None).into_body().into_reader();
    let began = Instant::now();
    while !ann.get("/metrics").text.contains("sessile_waiting 1\n") {
        assert!(began.elapsed() < Duration::from_secs(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    server.send_sigterm();
    let refused = waits.join().unwrap();
    refused.refused(503, "UNREACHABLE");
    assert!(refused.header("retry-after").is_some());
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("turn.began"), "the stream ends as streams do");
    assert!(std::net::TcpStream::connect(server.address).is_err(), "new connections are refused");
    commit.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    commit.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#"{"first":1,"last":1}"#), "{answer}");
    server.ended();
    let connection = rusqlite::Connection::open(server.dir().join("service.db")).unwrap();
    let count = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(count("SELECT count(*) FROM message"), 1);
    assert_eq!(count("SELECT count(*) FROM place"), 0, "no place is left behind");
}

#[test]
fn signal_ends_the_service() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("service.db");
    let options = Options { listen: "127.0.0.1:0".parse().unwrap(), log: Log::Off, ..Options::default() };
    let (tell, told) = std::sync::mpsc::channel();
    let running = std::thread::spawn(move || {
        run(ServiceStore::sqlite(&path), options, |server| tell.send(server.address()).unwrap())
    });
    let address = told.recv().unwrap();
    assert!(std::net::TcpStream::connect(address).is_ok());
    // Also to this very process, which has a handler for it by now.
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::TERM).unwrap();
    running.join().unwrap().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn shutdown_ends_after_the_grace_period() {
    let mut server = started(Options { grace: Duration::from_millis(200), ..Options::default() });
    let ann = server.user("ann");
    let mut stuck = server.connect();
    let secret = ann.secret.clone().unwrap();
    write!(
        stuck,
        "POST /v1/sessions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {secret}\r\ncontent-type: application/json\r\n\
         content-length: 2\r\n\r\n"
    )
    .unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    server.send_sigterm();
    server.ended();
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}

#[test]
fn public_address_needs_tls_or_a_proxy() {
    let server = server();
    let bind = |behind_proxy| {
        let options = Options {
            listen: "0.0.0.0:0".parse().unwrap(),
            behind_proxy,
            log: Log::Off,
            ..Options::default()
        };
        server.block_on(Server::bind(server.db.clone(), options, Box::new(std::io::sink())))
    };
    assert!(matches!(bind(false), Err(ServeError::Insecure(_))));
    assert!(bind(true).is_ok());
}

#[test]
fn health_and_readiness_are_reported() {
    let server = server();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.nobody().get(path).ok(200), json!({ "status": "ok" }));
    }
}
