//! `sessile mcp --listen`: the same server over streamable HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Home, Inspector, McpUrl, PythonMcpClient, Revision};

use super::{USUAL, content};
use crate::home_with;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server that listens.
struct HttpServer {
    child: Child,
    url: String,
}

impl HttpServer {
    #[track_caller]
    fn start(home: &Home, flags: &[&str]) -> Self {
        let mut command =
            home.call(&["mcp", "--listen", "127.0.0.1:0", "--output", "json"]).args(flags).command();
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        HttpServer { child, url: told["url"].as_str().unwrap().to_owned() }
    }

    fn with_token(home: &Home, flags: &[&str]) -> Self {
        home.write("token", TOKEN);
        let flags: Vec<&str> = ["--token-file", "token"].iter().chain(flags).copied().collect();
        HttpServer::start(home, &flags)
    }

    fn address(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches("/mcp")
    }

    /// Sends a request and returns the status and the rest of what came within a second.
    fn post(&self, headers: &str, body: &Value) -> (u16, String) {
        self.request("POST", headers, &body.to_string())
    }

    fn request(&self, method: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n",
            self.address(),
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let mut text = Vec::new();
        // A stream of events may stay open.
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, text)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hello() -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": USUAL, "capabilities": {}, "clientInfo": { "name": "x", "version": "1" },
    } })
}

#[test]
fn official_client_uses_the_server_over_http() {
    let home = home_with(&["staging"]);
    for flags in [&["--token-file", "token"][..], &[]] {
        home.write("token", TOKEN);
        let server = HttpServer::start(&home, flags);
        for revision in [Revision::Auto, Revision::Handshake(USUAL), Revision::Handshake("2025-06-18")] {
            let name = format!("s{}{revision:?}", flags.len()).replace(['(', ')', '"', '-'], "");
            let calls = [
                ("start_session", json!({ "name": name, "context": "staging" })),
                ("run", json!({ "command": ["sh", "-c", "sleep 2; echo done"], "session": name })),
                ("list_sessions", json!({})),
            ];
            let yes = json!({ "action": "accept", "content": { "allow": "once" } });
            let report = PythonMcpClient::new(revision)
                .answer(yes)
                .run(&McpUrl::new(home.call(&[]), &server.url, TOKEN), &calls);
            let results = &report["results"];
            assert_eq!(content(&results[0])["context"], "staging", "{revision:?}");
            assert_eq!(content(&results[1])["stdout"], "done\n", "{revision:?}");
            assert!(content(&results[2])["count"].as_i64().unwrap() >= 1);
            assert!(
                !report["progress"].as_array().unwrap().is_empty(),
                "{revision:?}: progress comes by events"
            );
            assert_eq!(report["elicitations"].as_array().unwrap().len(), 1, "{revision:?}");
        }
    }
}

#[test]
fn official_client_follows_a_resource_over_http() {
    let home = home_with(&["staging"]);
    let session = format!("sessile://session/{}", crate::start(&home, &["--name", "web"]));
    let server = HttpServer::with_token(&home, &[]);
    let report = PythonMcpClient::new(Revision::Auto)
        .explore(json!({
            "prompt": "work_in_context", "arguments": { "context": "staging" }, "uri": session,
            "tool": "set_state", "tool_arguments": { "key": "k", "value": 1, "session": "web" },
        }))
        .run(&McpUrl::new(home.call(&[]), &server.url, TOKEN), &[]);
    assert_eq!(report["explored"]["change"]["uri"], json!(session));
}

#[test]
fn inspector_calls_tools_over_http() {
    let home = home_with(&["staging"]);
    let server = HttpServer::with_token(&home, &[]);
    let url = McpUrl::new(home.call(&[]), &server.url, TOKEN);
    for inspector in [Inspector::Legacy, Inspector::Modern] {
        assert_eq!(inspector.list(&url).len(), 29);
        content(&inspector.call(&url, "list_contexts", &[]));
    }
}

#[test]
fn delete_of_a_client_session_returns_204() {
    let home = home_with(&["staging"]);
    let server = HttpServer::with_token(&home, &[]);
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    let (status, greeted) = server.post(&token, &hello());
    assert_eq!(status, 200, "{greeted}");
    let id = greeted
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap_or_else(|| panic!("{greeted}"));
    let headers = format!("{token}mcp-session-id: {id}\r\nmcp-protocol-version: {USUAL}\r\n");
    assert_eq!(server.request("DELETE", &headers, "").0, 204);
}

#[test]
fn callers_without_the_token_are_refused() {
    let home = home_with(&[]);
    let server = HttpServer::with_token(&home, &[]);
    let right = format!("Authorization: Bearer {TOKEN}\r\n");
    for wrong in [
        String::new(),
        "Authorization: Bearer \r\n".to_owned(),
        format!("Authorization: Bearer {TOKEN}x\r\n"),
        format!("Authorization: Basic {TOKEN}\r\n"),
        format!("{right}{right}"),
    ] {
        let (status, text) = server.post(&wrong, &hello());
        assert_eq!(status, 401, "{wrong}: {text}");
        assert!(!text.contains(TOKEN) && text.to_lowercase().contains("www-authenticate: bearer"), "{text}");
    }
    assert_eq!(server.post(&right, &hello()).0, 200);
}

#[test]
fn pages_of_other_origins_are_refused() {
    let home = home_with(&[]);
    for server in [HttpServer::start(&home, &[]), HttpServer::with_token(&home, &[])] {
        let right = format!("Authorization: Bearer {TOKEN}\r\n");
        for origin in [
            "https://evil.example",
            "http://localhost.evil.example",
            "http://[::1]evil.example",
            "http://localhost/evil.example",
            "http://localhost:6274/",
            "http://localhost?evil.example",
            "http://localhost#evil.example",
            "http://evil.example@localhost",
            "http://localhost:6274@evil.example",
            "http://localhost:",
            "http://localhost:+1",
            "http://localhost:99999",
            "http://localhost http://evil.example",
            "null",
            "x",
        ] {
            let (status, text) = server.post(&format!("{right}Origin: {origin}\r\n"), &hello());
            assert_eq!(status, 403, "{origin}: {text}");
        }
        let two = "Origin: http://localhost\r\nOrigin: http://evil.example\r\n";
        let (status, text) = server.post(&format!("{right}{two}"), &hello());
        assert_eq!(status, 403, "{text}");
        for own in ["http://localhost:6274", "HTTPS://LocalHost", "http://[::1]:80", "http://127.0.0.1"] {
            let (status, text) = server.post(&format!("{right}Origin: {own}\r\n"), &hello());
            assert_eq!(status, 200, "{own}: {text}");
        }
    }
    // A name that leads here, as DNS rebinding has it.
    let server = HttpServer::start(&home, &[]);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let request =
        "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 403"), "{text}");
}

#[test]
fn other_addresses_need_a_token_and_a_proxy() {
    let home = home_with(&[]);
    home.write("token", TOKEN);
    home.write("short", "secret");
    for flags in [
        &["--listen", "0.0.0.0:0"][..],
        &["--listen", "0.0.0.0:0", "--token-file", "token"],
        &["--listen", "0.0.0.0:0", "--behind-proxy"],
        &["--listen", "127.0.0.1:0", "--token-file", "short"],
        &["--listen", "nonsense"],
        &["--token-file", "token"],
    ] {
        let done = home.call(&["mcp"]).args(flags).run();
        assert_eq!(done.status(), Some(2), "{flags:?}: {}", done.told());
        assert!(!done.told().contains("secret"));
    }
    let done = home.call(&["mcp", "--listen", "0.0.0.0:0"]).run();
    assert!(done.stderr().contains("refusing to listen on 0.0.0.0:0 without TLS"), "{}", done.told());
}

#[test]
fn signal_ends_the_server_and_its_calls() {
    let home = home_with(&[]);
    let mut server = HttpServer::start(&home, &["--allow-run"]);
    let params = json!({
        "name": "run", "arguments": { "command": ["sh", "-c", "echo $$ > pid; exec sleep 600"] },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": super::INLINE,
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let headers =
        format!("MCP-Protocol-Version: {}\r\nMcp-Method: tools/call\r\nMcp-Name: run\r\n", super::INLINE);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            server.post(
                &headers,
                &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }),
            )
        });
        crate::eventually("the command", || home.path("pid").exists() && !home.read("pid").is_empty());
        super::signal(server.child.id(), "TERM");
    });
    let begun = Instant::now();
    assert!(server.child.wait().unwrap().success());
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    let pid = home.read("pid");
    crate::eventually("the command's end", || !crate::lives(pid.trim()));
}
