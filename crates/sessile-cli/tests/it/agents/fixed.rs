//! An agent that answers each request as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// Request that the agent received: its head in lower case, and its body.
#[derive(Clone, Debug)]
pub(super) struct FixedRequest {
    pub(super) head: String,
    pub(super) body: String,
}

/// Answer of the agent: status, headers, body.
pub(super) type Answer = (u16, &'static str, String);

/// Agent on a port of its own.
pub(super) struct FixedAgent {
    port: u16,
    seen: Arc<Mutex<Vec<FixedRequest>>>,
}

impl FixedAgent {
    /// Agent that answers by this function, which gets the URL of the agent too.
    pub(super) fn start(answer: impl Fn(&FixedRequest, &str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, log) = (Arc::new(answer), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, log) = (Arc::clone(&answer), Arc::clone(&log));
                std::thread::spawn(move || serve(stream.unwrap(), port, &*answer, &log));
            }
        });
        FixedAgent { port, seen }
    }

    /// Agent with this card, changed as the test says, that answers every call with a message.
    pub(super) fn with_card(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        FixedAgent::start(move |seen, base| match seen.head.starts_with("get") {
            true => {
                let mut card = card(base);
                change(&mut card);
                (200, "", card.to_string())
            }
            false => (200, "", rpc(&json!({"message": message("hi")}))),
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The same agent by a name that is not known to be this machine's.
    pub(super) fn foreign_url(&self) -> String {
        format!("http://127.1:{}", self.port)
    }

    pub(super) fn seen(&self) -> Vec<FixedRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// Calls that were received, without those for the card.
    pub(super) fn calls(&self) -> Vec<FixedRequest> {
        self.seen().into_iter().filter(|seen| !seen.head.starts_with("get")).collect()
    }
}

/// A valid card of an agent at this URL.
pub(super) fn card(base: &str) -> Value {
    json!({
        "name": "fixed", "description": "Returns configured replies.", "version": "1", "capabilities": {},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "s", "description": "s", "tags": []}],
        "supportedInterfaces": [{"url": format!("{base}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    })
}

pub(super) fn message(text: &str) -> Value {
    json!({"messageId": "m", "contextId": "c", "role": "ROLE_AGENT", "parts": [{"text": text}]})
}

/// Task with these parts in one artifact.
pub(super) fn task(state: &str, artifacts: &Value) -> Value {
    json!({"id": "t", "contextId": "c", "status": {"state": state}, "artifacts": artifacts})
}

/// Result of JSON-RPC.
pub(super) fn rpc(result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": "1", "result": result}).to_string()
}

fn serve(
    mut stream: TcpStream,
    port: u16,
    answer: &(impl Fn(&FixedRequest, &str) -> Answer + ?Sized),
    log: &Mutex<Vec<FixedRequest>>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length, mut host) = (String::new(), 0, format!("127.0.0.1:{port}"));
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if let Some(value) = line.strip_prefix("host:") {
            host = value.trim().to_owned();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    let seen = FixedRequest { head, body: String::from_utf8_lossy(&body).into_owned() };
    log.lock().unwrap().push(seen.clone());
    let (status, headers, said) = answer(&seen, &format!("http://{host}"));
    let kind = if headers.contains("Content-Type") { "" } else { "Content-Type: application/json\r\n" };
    let _ = write!(
        stream,
        "HTTP/1.1 {status} x\r\n{kind}{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{said}",
        said.len()
    );
}
