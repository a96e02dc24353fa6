//! A server that answers each connection by a function, and remembers what it was asked.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::{Value, json};

/// Server that stops on drop.
pub(super) struct ScriptedServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    over: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl ScriptedServer {
    /// The function gets the request's head and body, this server's address and the connection.
    pub(super) fn start(
        answer: impl Fn(&str, &str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (log, ended, answer) = (Arc::clone(&asked), Arc::clone(&over), Arc::new(answer));
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::SeqCst) {
                    break;
                }
                let (mut stream, log, answer) = (stream.unwrap(), Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let request = read(&mut stream);
                    log.lock().unwrap().push(request.clone());
                    // Who asks may go away at any time.
                    let _ = answer(&request, &format!("http://{address}"), &mut stream);
                });
            }
        });
        ScriptedServer { address, asked, over, acceptor: Some(acceptor) }
    }

    /// An agent of version 1.0 over JSON-RPC; the function answers what comes after the card.
    pub(super) fn agent(
        answer: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        ScriptedServer::start(move |request, url, stream| {
            match request.starts_with("GET /.well-known/agent-card.json") {
                true => say(stream, &card(url).to_string()),
                false => answer(stream),
            }
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // The acceptor waits for a connection: this is one.
        drop(TcpStream::connect(self.address));
        let _ = self.acceptor.take().unwrap().join();
    }
}

/// A card of an agent at this address.
pub(super) fn card(url: &str) -> Value {
    json!({
        "name": "scripted", "version": "1", "capabilities": {"streaming": true}, "skills": [],
        "supportedInterfaces": [{"url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
    })
}

/// An answer of JSON.
pub(super) fn say(stream: &mut TcpStream, body: &str) -> std::io::Result<()> {
    head(stream, "200 OK", &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()))?;
    stream.write_all(body.as_bytes())
}

/// The beginning of an answer.
pub(super) fn head(stream: &mut TcpStream, status: &str, headers: &str) -> std::io::Result<()> {
    stream.write_all(format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n").as_bytes())
}

fn read(stream: &mut TcpStream) -> String {
    let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            if body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0) {
                return text;
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return text,
            Ok(read) => request.extend_from_slice(&buffer[..read]),
        }
    }
}
