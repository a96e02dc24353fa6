//! As much of HTTP as an agent needs: bounded requests, and replies at once or in chunks.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Idle timeout of a connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Largest head of a request.
const MAX_HEAD: u64 = 64 << 10;

/// Largest rest of a refused request that is read.
const MAX_DRAINED: u64 = 64 << 20;

/// A request.
#[derive(Debug, Clone, Default)]
pub struct ReceivedRequest {
    /// `GET`, `POST`, ...
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Query without the question mark; may be empty.
    pub query: String,
    /// The headers in their order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body, with invalid UTF-8 replaced.
    pub body: String,
}

impl ReceivedRequest {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(had, _)| had.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Whether this text is anywhere in it.
    pub fn holds(&self, text: &str) -> bool {
        let headers = self.headers.iter().any(|(name, value)| name.contains(text) || value.contains(text));
        headers || [&self.path, &self.query, &self.body].iter().any(|place| place.contains(text))
    }
}

/// Limits of a listener.
#[derive(Debug, Clone, Copy)]
pub struct ListenerLimits {
    /// Largest body of a request, in bytes.
    pub body: usize,
    /// Number of open connections; more are refused with status 503.
    pub connections: usize,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        ListenerLimits { body: 64 << 20, connections: 1024 }
    }
}

/// Listener that passes each request with its connection to one function. It ends when it is dropped.
pub struct Listener {
    address: SocketAddr,
    connections: Arc<Connections>,
    acceptor: Option<JoinHandle<()>>,
}

/// Open connections.
#[derive(Default)]
struct Connections {
    is_closed: AtomicBool,
    next_id: AtomicU64,
    streams: Mutex<HashMap<u64, TcpStream>>,
}

impl Connections {
    fn enter(&self, stream: &TcpStream, limit: usize) -> std::io::Result<u64> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if streams.len() >= limit {
            return Err(Error::from(ErrorKind::QuotaExceeded));
        }
        streams.insert(id, stream.try_clone()?);
        Ok(id)
    }

    fn leave(&self, id: u64) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

impl Listener {
    /// Passes the requests of a socket to a function, which returns whether the connection may be used again.
    pub fn start(
        socket: TcpListener,
        limits: ListenerLimits,
        answer: impl Fn(&ReceivedRequest, &mut TcpStream) -> std::io::Result<bool> + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let address = socket.local_addr()?;
        let connections = Arc::new(Connections::default());
        let (shared, answer) = (Arc::clone(&connections), Arc::new(answer));
        let acceptor = std::thread::Builder::new().spawn(move || {
            for stream in socket.incoming() {
                if shared.is_closed.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(mut stream) = stream else {
                    // Out of descriptors: without a pause this would be a busy loop.
                    std::thread::sleep(Duration::from_millis(10));
                    continue;
                };
                // Entered before its thread runs: the end of the listener closes whatever was accepted.
                let Ok(id) = shared.enter(&stream, limits.connections) else {
                    let _ = reply(
                        &mut stream,
                        503,
                        "text/plain",
                        "Connection: close\r\n",
                        "too many connections",
                    );
                    continue;
                };
                let (open, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                let started = std::thread::Builder::new()
                    // A client that disconnects early must not end the listener.
                    .spawn(move || serve(stream, id, &open, limits.body, answer.as_ref()).ok());
                if started.is_err() {
                    shared.leave(id);
                }
            }
        })?;
        Ok(Listener { address, connections, acceptor: Some(acceptor) })
    }

    /// Address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.connections.streams.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Closes all open connections.
    pub fn cut(&self) {
        for stream in self.connections.streams.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.connections.is_closed.store(true, Ordering::SeqCst);
        // The acceptor waits for a connection: this is one.
        let woken = TcpStream::connect(self.address);
        if let (Ok(_), Some(acceptor)) = (woken, self.acceptor.take()) {
            let _ = acceptor.join();
        }
        // After the acceptor has ended, so that no connection is accepted behind it.
        self.cut();
    }
}

fn serve(
    mut stream: TcpStream,
    id: u64,
    open: &Connections,
    max_body: usize,
    answer: &(impl Fn(&ReceivedRequest, &mut TcpStream) -> std::io::Result<bool> + ?Sized),
) -> std::io::Result<()> {
    let done = (|| {
        stream.set_read_timeout(Some(IDLE_TIMEOUT))?;
        stream.set_write_timeout(Some(IDLE_TIMEOUT))?;
        // Chunks of a stream are to arrive one by one.
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        loop {
            let request = match read(&mut reader, &mut stream, max_body) {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(()),
                Err(error) => {
                    let status = match error.kind() {
                        ErrorKind::FileTooLarge => 413,
                        ErrorKind::InvalidData => 400,
                        _ => return Err(error),
                    };
                    let text = error.to_string();
                    reply(&mut stream, status, "text/plain", "Connection: close\r\n", &text)?;
                    return drain(&mut reader, &stream);
                }
            };
            let close = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
            if !answer(&request, &mut stream)? || close || open.is_closed.load(Ordering::SeqCst) {
                return Ok(());
            }
        }
    })();
    // The copy in the table would keep it open.
    open.leave(id);
    let _ = stream.shutdown(Shutdown::Both);
    done
}

/// Reads for a moment what the client still sends. A connection that is closed with unread input is reset, and the client would
/// not see the reply.
fn drain(reader: &mut BufReader<TcpStream>, stream: &TcpStream) -> std::io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    std::io::copy(&mut reader.take(MAX_DRAINED), &mut std::io::sink()).map(drop)
}

/// Next request, or none if the client has closed the connection.
fn read(
    reader: &mut BufReader<TcpStream>,
    stream: &mut TcpStream,
    max_body: usize,
) -> std::io::Result<Option<ReceivedRequest>> {
    let mut head = reader.take(MAX_HEAD);
    let mut line = String::new();
    if head.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let mut request =
        ReceivedRequest { method: words.next().unwrap_or_default().to_owned(), ..ReceivedRequest::default() };
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    (request.path, request.query) = (path.to_owned(), query.to_owned());
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Err(Error::new(ErrorKind::InvalidData, "incomplete or too large head"));
        }
        if line.trim_end().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    // A client may wait for this before it sends its body (RFC 9110, 10.1.1).
    if request.header("expect").is_some() {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let body = if request.header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
        read_chunks(reader, max_body)?
    } else {
        let length: u64 = match request.header("content-length") {
            Some(value) => value.parse().map_err(|_| Error::new(ErrorKind::InvalidData, "invalid length"))?,
            None => 0,
        };
        if length > max_body as u64 {
            return Err(too_large(max_body));
        }
        let mut body = Vec::new();
        // Grows with what arrives, not with what the client announces.
        if reader.take(length).read_to_end(&mut body)? as u64 != length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        body
    };
    request.body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(request))
}

fn read_chunks(reader: &mut BufReader<TcpStream>, max_body: usize) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.take(MAX_HEAD).read_line(&mut line)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let invalid = |_| Error::new(ErrorKind::InvalidData, "invalid chunk");
        let length = u64::from_str_radix(size, 16).map_err(invalid)?;
        if length > (max_body - body.len()) as u64 {
            return Err(too_large(max_body));
        }
        let had = body.len() as u64;
        reader.take(length).read_to_end(&mut body)?;
        let mut end = [0; 2];
        reader.read_exact(&mut end)?;
        if length == 0 {
            return Ok(body);
        }
        if body.len() as u64 - had != length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
}

fn too_large(limit: usize) -> Error {
    Error::new(ErrorKind::FileTooLarge, format!("the body is larger than {limit} bytes"))
}

/// Writes a whole reply; `more` are further headers, each with its line end. Returns that the connection may be used again.
pub fn reply(
    stream: &mut TcpStream,
    status: u16,
    media_type: &str,
    more: &str,
    body: &str,
) -> std::io::Result<bool> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n{more}\r\n",
        reason(status)
    );
    // In one write, so that a client never sees a head without its body.
    stream.write_all((head + body).as_bytes())?;
    Ok(true)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        503 => "Service Unavailable",
        _ => "Status",
    }
}

/// Reply in chunks.
pub struct ChunkedReply<'a>(pub &'a mut TcpStream);

impl ChunkedReply<'_> {
    /// Writes the head.
    pub fn begin(&mut self, media_type: &str) -> std::io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        self.0.write_all(head.as_bytes())
    }

    /// Writes a chunk. An empty one would be the end.
    pub fn piece(&mut self, piece: impl AsRef<[u8]>) -> std::io::Result<()> {
        let piece = piece.as_ref();
        let head = format!("{:x}\r\n", piece.len());
        self.0.write_all(&[head.as_bytes(), piece, b"\r\n"].concat())
    }

    /// Writes the end, without which the reply is cut. Returns that the connection may be used again.
    pub fn end(self) -> std::io::Result<bool> {
        self.0.write_all(b"0\r\n\r\n")?;
        Ok(true)
    }
}
