//! Agents that mean harm: bounded in time and memory, and told clearly.

use std::io::Write;
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use sessile_wire::a2a::{AgentEvent, RpcErrorKind};

use super::says;
use super::server::{ScriptedServer, head, say};
use crate::a2a::{A2aError, AgentClient, AnonymousAccess, ClientOptions, ReplyLimits, StreamEnd};
use crate::http::{HttpClient, TrustRoots};

const MESSAGE: &str = r#"{"jsonrpc":"2.0","id":"1","result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hi"}],"new-field":7}}}"#;

const WORKING: &str = r#"{"jsonrpc":"2.0","id":"1","result":{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}}"#;

fn short() -> ClientOptions {
    let brief = Duration::from_millis(400);
    let limits = ReplyLimits {
        head: brief,
        idle: brief,
        total: Duration::from_secs(2),
        bytes: 1 << 20,
        ..ReplyLimits::default()
    };
    ClientOptions { limits, ..ClientOptions::default() }
}

fn send(server: &ScriptedServer, options: ClientOptions) -> Result<AgentEvent, A2aError> {
    let http = HttpClient::new(TrustRoots::System);
    AgentClient::open(&http, &server.url(), &AnonymousAccess, options)?.send(&says("hi"))
}

/// Number of events, and the end of the stream.
fn stream(server: &ScriptedServer, options: ClientOptions) -> (usize, Result<StreamEnd, A2aError>) {
    let http = HttpClient::new(TrustRoots::System);
    let agent = AgentClient::open(&http, &server.url(), &AnonymousAccess, options).unwrap();
    let mut count = 0;
    let ended = agent.stream(&says("hi"), &mut |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    (count, ended)
}

fn begin_stream(stream: &mut TcpStream) -> std::io::Result<()> {
    head(stream, "200 OK", "Content-Type: text/event-stream; charset=utf-8\r\n")
}

#[test]
fn unknown_fields_of_a_message_are_kept() {
    let server = ScriptedServer::agent(|stream| say(stream, MESSAGE));
    let Ok(AgentEvent::Message(message)) = send(&server, short()) else { panic!("no message") };
    assert_eq!((message.text().as_str(), &message.raw["new-field"]), ("hi", &7.into()));
    let asked = server.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    let request = asked[1].to_ascii_lowercase();
    assert!(
        request.starts_with("post /rpc http/1.1\r\n") && request.contains("\r\na2a-version: 1.0\r\n"),
        "{request}"
    );
    assert!(request.contains("\r\ncontent-type: application/json\r\n"), "{request}");
}

#[test]
fn a_gigabyte_is_not_read() {
    let before = memory();
    for announced in ["Content-Length: 1073741824\r\n", ""] {
        let server = ScriptedServer::agent(move |stream| {
            head(stream, "200 OK", &format!("Content-Type: application/json\r\n{announced}"))?;
            for _ in 0..16_384 {
                stream.write_all(&[b'['; 65_536])?;
            }
            Ok(())
        });
        let told = send(&server, ClientOptions { limits: ReplyLimits::default(), ..short() }).unwrap_err();
        assert!(matches!(told, A2aError::TooLarge { .. }), "{told:?}");
    }
    let grown = memory().saturating_sub(before);
    assert!(grown < 300 << 20, "the parser allocated {grown} bytes");
}

/// The most memory that this process ever had.
#[expect(clippy::disallowed_methods, reason = "reads a file of the kernel, not of a user")]
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

#[test]
fn few_bytes_do_not_become_many() {
    let server = ScriptedServer::agent(|stream| say(stream, &format!("[{}0]", "0,".repeat(500_000))));
    let limits = ReplyLimits { bytes: 8 << 20, values: 100_000, ..short().limits };
    let told = send(&server, ClientOptions { limits, ..short() }).unwrap_err();
    assert!(told.to_string().contains("too many values"), "{told}");
}

#[test]
fn an_endless_stream_ends_at_its_limit() {
    let server = ScriptedServer::agent(|stream| {
        begin_stream(stream)?;
        loop {
            write!(stream, "data: {WORKING}\n\n")?;
        }
    });
    let (count, ended) = stream(&server, short());
    assert!(matches!(ended, Err(A2aError::TooLarge { .. })), "{ended:?}");
    assert!(count > 1000, "{count}");
    // Who has heard enough may leave.
    let http = HttpClient::new(TrustRoots::System);
    let agent = AgentClient::open(&http, &server.url(), &AnonymousAccess, short()).unwrap();
    assert_eq!(agent.stream(&says("hi"), &mut |_| ControlFlow::Break(())).unwrap(), StreamEnd::Stopped);
}

#[test]
fn one_endless_line_or_event_ends_too() {
    for piece in ["x", "data: x\n", "data: "] {
        let server = ScriptedServer::agent(move |stream| {
            begin_stream(stream)?;
            loop {
                stream.write_all(piece.repeat(1000).as_bytes())?;
            }
        });
        let limits = ReplyLimits { event: 100_000, bytes: 64 << 20, ..short().limits };
        let (count, ended) = stream(&server, ClientOptions { limits, ..short() });
        assert!(count == 0 && matches!(ended, Err(A2aError::TooLarge { .. })), "{piece}: {ended:?}");
    }
}

#[test]
fn endless_stream_times_out_if_a_limit_is_set() {
    let server = ScriptedServer::agent(|stream| {
        begin_stream(stream)?;
        loop {
            stream.write_all(b": alive\n")?;
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    let limits = ReplyLimits { stream: Some(Duration::from_millis(900)), ..short().limits };
    let begun = Instant::now();
    let (_, ended) = stream(&server, ClientOptions { limits, ..short() });
    assert!(matches!(ended, Err(A2aError::TimedOut { .. })), "{ended:?}");
    // Comments have kept it alive beyond the time for silence.
    assert!((800..5000).contains(&begun.elapsed().as_millis()), "{:?}", begun.elapsed());
}

#[test]
fn single_bytes_now_and_then_are_not_enough() {
    let drip = |stream: &mut TcpStream| -> std::io::Result<()> {
        loop {
            stream.write_all(b"x")?;
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let in_stream = ScriptedServer::agent(move |stream| {
        begin_stream(stream)?;
        drip(stream)
    });
    let begun = Instant::now();
    let (_, ended) = stream(&in_stream, short());
    assert!(matches!(ended, Err(A2aError::TimedOut { .. })), "{ended:?}");
    assert!(begun.elapsed() < Duration::from_secs(3));

    let in_body = ScriptedServer::agent(move |stream| {
        head(stream, "200 OK", "Content-Type: application/json\r\nContent-Length: 100000\r\n")?;
        drip(stream)
    });
    let in_head = ScriptedServer::agent(move |stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nX-Endless: ")?;
        drip(stream)
    });
    let silent = ScriptedServer::agent(|_| {
        std::thread::sleep(Duration::from_secs(5));
        Ok(())
    });
    for server in [in_body, in_head, silent] {
        let begun = Instant::now();
        let told = send(&server, short()).unwrap_err();
        assert!(matches!(told, A2aError::TimedOut { .. }), "{told:?}");
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }
}

#[test]
fn invalid_response_is_reported_and_sanitized() {
    let bodies = [
        "",
        "<html>\u{1b}[2J</html>",
        "{",
        "null",
        "[]",
        "7",
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","result":{"task":{"id":""}}}"#,
        r#"{"jsonrpc":"2.0","result":{"\u001b[2J":1}}"#,
    ];
    for body in bodies {
        let server = ScriptedServer::agent(move |stream| say(stream, body));
        let told = send(&server, short()).unwrap_err();
        assert!(matches!(told, A2aError::Malformed(_)), "{body}: {told:?}");
        assert!(!told.to_string().contains('\u{1b}'), "{told}");
        let server = ScriptedServer::agent(move |stream| {
            begin_stream(stream)?;
            write!(stream, "data: {WORKING}\n\ndata: {}\n\n", if body.is_empty() { "?" } else { body })
        });
        let (count, ended) = stream(&server, short());
        assert!(count == 1 && matches!(ended, Err(A2aError::Malformed(_))), "{body}: {ended:?}");
    }
}

#[test]
fn an_error_in_a_stream_is_one() {
    let server = ScriptedServer::agent(|stream| {
        begin_stream(stream)?;
        write!(stream, "data: {WORKING}\n\nevent: error\ndata: {{\"jsonrpc\":\"2.0\",\n")?;
        write!(stream, "data: \"error\":{{\"code\":-32001,\"message\":\"gone\\u001b[2J\"}}}}\n\n")
    });
    let (count, ended) = stream(&server, short());
    let told = ended.unwrap_err();
    assert_eq!((count, told.rpc_error_kind()), (1, Some(RpcErrorKind::TaskNotFound)));
    assert_eq!(told.to_string(), "the agent refused the request: gone\\u{1b}[2J (code -32001)");
    // It may also be said without any stream, and a stream may break off.
    let server = ScriptedServer::agent(|stream| say(stream, r#"{"error":{"code":-32004}}"#));
    let (_, ended) = stream(&server, short());
    assert_eq!(ended.unwrap_err().rpc_error_kind(), Some(RpcErrorKind::UnsupportedOperation));
    let server = ScriptedServer::agent(|stream| {
        head(stream, "200 OK", "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n")?;
        write!(stream, "{:x}\r\ndata: {WORKING}\n\n\r\n", WORKING.len() + 8)
    });
    let (count, ended) = stream(&server, short());
    assert!(count == 1 && matches!(ended, Err(A2aError::Http(_))), "{count} {ended:?}");
}

#[test]
fn a_status_has_its_meaning() {
    let with = |status: &'static str, headers: &'static str| {
        let server = ScriptedServer::agent(move |stream| head(stream, status, headers));
        send(&server, short()).unwrap_err()
    };
    let told = with("401 x", "WWW-Authenticate: Bearer realm=\"a\"\r\n");
    assert!(matches!(told, A2aError::Unauthorized { status: 401, challenge: Some(_), .. }), "{told:?}");
    assert!(matches!(with("403 x", ""), A2aError::Unauthorized { status: 403, .. }));
    let told = with("429 x", "Retry-After: 7\r\n");
    assert!(
        matches!(told, A2aError::RateLimited { retry_after: Some(wait) } if wait.as_secs() == 7),
        "{told:?}"
    );
    assert!(matches!(with("502 x", ""), A2aError::Server { status: 502, .. }));
    assert_eq!(with("404 x", "").rpc_error_kind(), Some(RpcErrorKind::MethodNotFound));
}

#[test]
fn agent_that_disconnects_after_its_first_event_is_reported() {
    let server = ScriptedServer::agent(|stream| {
        begin_stream(stream)?;
        write!(stream, "data: {WORKING}\n\ndata: {{\"jsonrpc\"")
    });
    let http = HttpClient::new(TrustRoots::System);
    let agent = AgentClient::open(&http, &server.url(), &AnonymousAccess, short()).unwrap();
    let mut ids = Vec::new();
    let ended = agent.stream(&says("hi"), &mut |event: AgentEvent| {
        ids.push((event.task_id().map(str::to_owned), event.context_id().map(str::to_owned)));
        ControlFlow::Continue(())
    });
    assert_eq!(
        (ids, ended.unwrap()),
        (vec![(Some("t".to_owned()), Some("c".to_owned()))], StreamEnd::Closed)
    );
}
