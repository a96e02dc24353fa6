//! Heads of requests: what is refused before a handler sees anything.

use super::server;

/// A request with these header lines, and what is answered.
fn answer(server: &super::TestServer, version: &str, lines: &str) -> String {
    server.raw(format!("GET /healthz HTTP/{version}\r\n{lines}connection: close\r\n\r\n").as_bytes())
}

#[test]
fn head_without_exactly_one_valid_host_is_refused() {
    let server = server();
    for (version, hosts) in [
        ("1.1", ""),
        ("1.1", "host: a.example\r\nhost: b.example\r\n"),
        ("1.0", "host: a.example\r\nhost: a.example\r\n"),
        ("1.1", "host: a.example/path\r\n"),
        ("1.1", "host: [::1]evil.example\r\n"),
        ("1.1", "host: user@a.example\r\n"),
        ("1.1", "host: a.example:port\r\n"),
    ] {
        let told = answer(&server, version, hosts);
        assert!(told.starts_with("HTTP/1.") && told.contains(" 400 "), "{hosts:?}: {told}");
        assert!(told.contains("application/problem+json") && told.contains("Host"), "{hosts:?}: {told}");
    }
    for (version, hosts) in [
        ("1.0", ""),
        ("1.1", "host: a.example\r\n"),
        ("1.1", "host: A.example:8737\r\n"),
        ("1.1", "host: [::1]:8737\r\n"),
        ("1.1", "host: sessile_1\r\n"),
    ] {
        let told = answer(&server, version, hosts);
        assert!(told.contains(" 200 "), "{hosts:?}: {told}");
    }
    let log = server.log();
    assert!(log.iter().filter(|line| line["status"] == 400).count() == 7, "{log:?}");
}

#[test]
fn head_over_32_kib_is_refused() {
    let server = server();
    let many =
        |count: usize| format!("host: x\r\n{}", format!("x-filler: {}\r\n", "f".repeat(986)).repeat(count));
    let one = |bytes: usize| format!("host: x\r\nx-filler: {}\r\n", "f".repeat(bytes));
    for lines in [many(20), one(20_000)] {
        let told = answer(&server, "1.1", &lines);
        assert!(told.starts_with("HTTP/1.1 200 "), "{told}");
    }
    for lines in [many(40), many(90), one(40_000), one(100_000), one(1_000_000)] {
        let told = answer(&server, "1.1", &lines);
        assert!(told.starts_with("HTTP/1.1 431 "), "{} bytes: {told}", lines.len());
    }
}

#[test]
fn body_with_identity_encoding_is_accepted() {
    let server = server();
    let ann = server.user("ann");
    let start =
        |encoding: &str| ann.send("POST", "/v1/sessions", &[("content-encoding", encoding)], Some("{}"));
    start("identity").ok(201);
    start("Identity").ok(201);
    for encoding in ["gzip", "identity, gzip", "br"] {
        start(encoding).refused(415, "USAGE");
    }
}
