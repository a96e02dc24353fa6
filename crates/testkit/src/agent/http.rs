//! As much of HTTP as an agent needs: requests of any length, answers at once or piece by piece.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Idle timeout of a connection.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most that a request may carry.
const LARGEST: usize = 64 << 20;

/// A request, as it came.
#[derive(Debug, Clone, Default)]
pub struct ReceivedRequest {
    /// `GET`, `POST`, ...
    pub method: String,
    /// Without the query.
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

/// Listens until it is dropped, and hands each request with its connection to one function.
pub(super) struct Listener {
    address: SocketAddr,
    open: Arc<Open>,
    acceptor: Option<JoinHandle<()>>,
}

/// The connections there are.
#[derive(Default)]
struct Open {
    over: AtomicBool,
    next: AtomicU64,
    streams: Mutex<HashMap<u64, TcpStream>>,
}

impl Open {
    fn enter(&self, stream: &TcpStream) -> std::io::Result<u64> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).insert(id, stream.try_clone()?);
        Ok(id)
    }

    fn leave(&self, id: u64) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

impl Listener {
    /// A port, before anybody answers on it.
    pub(super) fn bind() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        (listener, address)
    }

    /// Answers; the function says whether the connection may be used again.
    pub(super) fn start(
        listener: TcpListener,
        answer: impl Fn(&ReceivedRequest, &mut TcpStream) -> std::io::Result<bool> + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().expect("an address");
        let open = Arc::new(Open::default());
        let (shared, answer) = (Arc::clone(&open), Arc::new(answer));
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.over.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                let (shared, answer) = (Arc::clone(&shared), Arc::clone(&answer));
                // Known before its thread runs: the end of the listener cuts whatever was accepted.
                let Ok(id) = shared.enter(&stream) else { continue };
                // A client that goes away in the middle is its own business.
                std::thread::spawn(move || converse(stream, id, &shared, answer.as_ref()).ok());
            }
        });
        Listener { address, open, acceptor: Some(acceptor) }
    }

    /// Number of open connections.
    pub(super) fn connections(&self) -> usize {
        self.open.streams.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Cuts all connections there are.
    pub(super) fn cut(&self) {
        for stream in self.open.streams.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.open.over.store(true, Ordering::SeqCst);
        // The acceptor waits for a connection: this is one.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        // After the acceptor has ended, so that no connection is accepted behind it.
        self.cut();
    }
}

fn converse(
    mut stream: TcpStream,
    id: u64,
    open: &Open,
    answer: &(impl Fn(&ReceivedRequest, &mut TcpStream) -> std::io::Result<bool> + ?Sized),
) -> std::io::Result<()> {
    let done = (|| {
        stream.set_read_timeout(Some(PATIENCE))?;
        // Pieces of a stream are to arrive one by one.
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(request) = read(&mut reader, &mut stream)? {
            let close = request.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
            if !answer(&request, &mut stream)? || close || open.over.load(Ordering::SeqCst) {
                break;
            }
        }
        Ok(())
    })();
    // The copy in the table would keep it open.
    open.leave(id);
    let _ = stream.shutdown(Shutdown::Both);
    done
}

/// The next request, unless the client has none.
fn read(
    reader: &mut BufReader<TcpStream>,
    stream: &mut TcpStream,
) -> std::io::Result<Option<ReceivedRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let mut seen =
        ReceivedRequest { method: words.next().unwrap_or_default().to_owned(), ..ReceivedRequest::default() };
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    (seen.path, seen.query) = (path.to_owned(), query.to_owned());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            seen.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    // A client may wait for this before it sends its body (RFC 9110, 10.1.1).
    if seen.header("expect").is_some() {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let mut body = Vec::new();
    if seen.header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            let mut chunk = vec![0; LARGEST.min(length) + 2];
            reader.read_exact(&mut chunk)?;
            if length == 0 || body.len() > LARGEST {
                break;
            }
            body.extend_from_slice(&chunk[..chunk.len() - 2]);
        }
    } else {
        let length = seen.header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        body.resize(LARGEST.min(length), 0);
        reader.read_exact(&mut body)?;
    }
    seen.body = String::from_utf8_lossy(&body).into_owned();
    Ok(Some(seen))
}

/// A whole answer; `more` are further headers, each with its end.
pub(super) fn reply(
    stream: &mut TcpStream,
    status: u16,
    kind: &str,
    more: &str,
    body: &str,
) -> std::io::Result<bool> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}\r\n",
        reason(status)
    );
    // In one write, so that a client never sees a head without its body.
    stream.write_all((head + body).as_bytes())?;
    Ok(true)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        _ => "Something",
    }
}

/// Chunked reply.
pub(super) struct ChunkedReply<'a>(pub(super) &'a mut TcpStream);

impl ChunkedReply<'_> {
    /// The head.
    pub(super) fn begin(&mut self, kind: &str) -> std::io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nCache-Control: no-store\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        self.0.write_all(head.as_bytes())
    }

    /// A piece; an empty one would be the end.
    pub(super) fn piece(&mut self, piece: impl AsRef<[u8]>) -> std::io::Result<()> {
        let piece = piece.as_ref();
        let head = format!("{:x}\r\n", piece.len());
        self.0.write_all(&[head.as_bytes(), piece, b"\r\n"].concat())
    }

    /// The end, without which it is cut.
    pub(super) fn end(self) -> std::io::Result<bool> {
        self.0.write_all(b"0\r\n\r\n")?;
        Ok(true)
    }
}
