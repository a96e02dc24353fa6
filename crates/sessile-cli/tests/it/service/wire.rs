//! A client that costs little, so that there can be thousands, and that does not give up: what was not answered is sent
//! again under the same idempotency key, to the other process.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Longer than any answer may take; a turn is waited for for a minute.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where two processes listen, and how often something had to be sent again.
#[derive(Clone)]
pub(super) struct Pair {
    addresses: Arc<Mutex<[SocketAddr; 2]>>,
    again: Arc<AtomicUsize>,
}

impl Pair {
    pub(super) fn new(addresses: [SocketAddr; 2]) -> Self {
        Pair { addresses: Arc::new(Mutex::new(addresses)), again: Arc::default() }
    }

    /// One listens elsewhere now.
    pub(super) fn moved(&self, which: usize, to: SocketAddr) {
        self.addresses.lock().unwrap()[which] = to;
    }

    pub(super) fn sent_again(&self) -> usize {
        self.again.load(Ordering::Relaxed)
    }

    /// A client that begins with one of them.
    pub(super) fn client(&self, which: usize, token: &str) -> Wire {
        Wire { pair: self.clone(), which: which % 2, token: token.to_owned(), stream: None }
    }
}

/// A client with one connection.
pub(super) struct Wire {
    pair: Pair,
    which: usize,
    token: String,
    stream: Option<BufReader<TcpStream>>,
}

/// A request. What changes something has a key.
pub(super) struct Ask<'a> {
    pub(super) method: &'static str,
    pub(super) path: &'a str,
    pub(super) key: Option<&'a str>,
    pub(super) if_match: Option<&'a str>,
    pub(super) body: Option<Value>,
}

impl Wire {
    /// Reads something.
    pub(super) async fn get(&mut self, path: &str) -> (u16, Value) {
        self.ask(&Ask { method: "GET", path, key: None, if_match: None, body: None }).await
    }

    /// Changes something.
    pub(super) async fn post(&mut self, path: &str, key: &str, body: Value) -> (u16, Value) {
        self.ask(&Ask { method: "POST", path, key: Some(key), if_match: None, body: Some(body) }).await
    }

    /// Asks until something is answered that is about the request itself, each time a little later: thousands who come
    /// back at once would keep each other out.
    pub(super) async fn ask(&mut self, ask: &Ask<'_>) -> (u16, Value) {
        let mut pause = Duration::from_millis(50);
        loop {
            match tokio::time::timeout(PATIENCE, self.once(ask)).await {
                Ok(Ok((status, _))) if status == 429 || status == 503 => {}
                Ok(Ok(answer)) => return answer,
                Ok(Err(_)) | Err(_) => self.stream = None,
            }
            self.pair.again.fetch_add(1, Ordering::Relaxed);
            self.which = 1 - self.which;
            self.stream = None;
            tokio::time::sleep(pause.mul_f64(spread())).await;
            pause = (pause * 2).min(Duration::from_secs(2));
        }
    }

    async fn once(&mut self, ask: &Ask<'_>) -> io::Result<(u16, Value)> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => {
                let address = self.pair.addresses.lock().unwrap()[self.which];
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                none.insert(BufReader::with_capacity(1024, stream))
            }
        };
        let mut head = format!("{} {} HTTP/1.1\r\nhost: localhost\r\n", ask.method, ask.path);
        head += &format!("authorization: Bearer {}\r\n", self.token);
        for (name, value) in [("idempotency-key", ask.key), ("if-match", ask.if_match)] {
            if let Some(value) = value {
                head += &format!("{name}: {value}\r\n");
            }
        }
        match &ask.body {
            Some(body) => {
                let body = body.to_string();
                head += &format!(
                    "content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
            }
            None => head += "\r\n",
        }
        stream.write_all(head.as_bytes()).await?;
        let (mut status, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            } else if let Some(text) = line.strip_prefix("http/1.1 ") {
                status = text.get(..3).and_then(|text| text.parse().ok());
            } else if let Some(text) = line.strip_prefix("content-length: ") {
                length = text.parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }
}

/// Between a half and one and a half, and not the same for all.
fn spread() -> f64 {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0) % 1000;
    0.5 + f64::from(u32::try_from(random).unwrap()) / 1000.0
}
