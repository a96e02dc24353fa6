//! Misbehaviour of agents.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use sessile_agent::{ChunkedReply, ReceivedRequest, reply};

/// Requests in which an agent misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MisbehaviourPoint {
    /// Requests for the card.
    Card,
    /// All other requests.
    Calls,
}

/// Misbehaviour of an agent. Endless kinds end with the client or with the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misbehaviour {
    /// JSON with one string of so many bytes; in a stream, one event of them.
    HugeReply(u64),
    /// Events of a task that works and works, or, where no stream was asked for, JSON that never begins.
    Endless,
    /// A head of one byte in each of these times, without an end.
    SlowHead(Duration),
    /// A body like that.
    SlowBody(Duration),
    /// No answer.
    Silence,
    /// The connection is closed at once.
    HangUp,
    /// Invalid JSON.
    InvalidJson,
    /// JSON that is nested so many times.
    DeepJson(usize),
    /// JSON that says something else: an object with no known member.
    OtherJson,
    /// This JSON text; in a stream, one event of it.
    Json(String),
    /// This status, with a small page.
    Status(u16),
    /// To this address, with status 307.
    Redirect(String),
    /// To another address of its own, again and again.
    RedirectForever,
    /// So long before the first byte; then as always.
    Delay(Duration),
}

impl Misbehaviour {
    /// Does it, and says whether the connection may be used again; or not at all, if the answer is the usual one.
    pub(super) fn act(
        &self,
        seen: &ReceivedRequest,
        stream: &mut TcpStream,
    ) -> Option<std::io::Result<bool>> {
        let streams = seen.header("accept").is_some_and(|accept| accept.contains("text/event-stream"))
            || seen.path.ends_with(":stream")
            || ["SendStreamingMessage", "message/stream"].iter().any(|name| seen.body.contains(name));
        Some(match self {
            Misbehaviour::HugeReply(bytes) if streams => {
                huge(stream, "text/event-stream", "data: {\"", *bytes)
            }
            Misbehaviour::HugeReply(bytes) => huge(stream, "application/json", "{\"name\": \"", *bytes),
            Misbehaviour::Endless => endless(stream, streams),
            Misbehaviour::SlowHead(pause) => slow(stream, "HTTP/1.1 200 OK\r\nX-Slow: ", *pause),
            Misbehaviour::SlowBody(pause) => {
                let kind = if streams { "text/event-stream" } else { "application/json" };
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: 1000000\r\n\r\n{{\"");
                slow(stream, &head, *pause)
            }
            Misbehaviour::Silence => wait_for_the_end(stream),
            Misbehaviour::HangUp => Ok(false),
            Misbehaviour::InvalidJson if streams => event(stream, "{\"result\": oops"),
            Misbehaviour::InvalidJson => reply(stream, 200, "application/json", "", "{\"result\": oops"),
            Misbehaviour::DeepJson(depth) => {
                let body = format!("{}{}", "[".repeat(*depth), "]".repeat(*depth));
                reply(stream, 200, "application/json", "", &body)
            }
            Misbehaviour::OtherJson if streams => event(stream, "{\"unheard\": \"of\"}"),
            Misbehaviour::OtherJson => reply(stream, 200, "application/json", "", "{\"unheard\": \"of\"}"),
            Misbehaviour::Json(text) if streams => event(stream, text),
            Misbehaviour::Json(text) => reply(stream, 200, "application/json", "", text),
            Misbehaviour::Status(status) => reply(stream, *status, "text/html", "", "<h1>no</h1>"),
            Misbehaviour::Redirect(to) => {
                reply(stream, 307, "text/plain", &format!("Location: {to}\r\n"), "there")
            }
            Misbehaviour::RedirectForever => {
                let turn =
                    seen.query.strip_prefix("turn=").and_then(|turn| turn.parse().ok()).unwrap_or(0u64);
                // Another address each time: a client cannot recognize the loop by its addresses.
                let to = format!("Location: {}?turn={}\r\n", seen.path, turn + 1);
                reply(stream, 307, "text/plain", &to, "there")
            }
            Misbehaviour::Delay(time) => {
                std::thread::sleep(*time);
                return None;
            }
        })
    }
}

fn huge(stream: &mut TcpStream, kind: &str, begin: &str, bytes: u64) -> std::io::Result<bool> {
    let length = u64::try_from(begin.len()).unwrap_or(0) + bytes + 2;
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{begin}")?;
    let (piece, mut left) = ([b'x'; 1 << 16], bytes);
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
        stream.write_all(&piece[..now])?;
        left -= u64::try_from(now).unwrap_or(left);
    }
    stream.write_all(b"\"}")?;
    Ok(true)
}

fn endless(stream: &mut TcpStream, streams: bool) -> std::io::Result<bool> {
    let mut pieces = ChunkedReply(stream);
    pieces.begin(if streams { "text/event-stream" } else { "application/json" })?;
    let piece = if streams {
        let update = "{\"taskId\": \"endless\", \"contextId\": \"endless\", \"kind\": \"status-update\", \
            \"final\": false, \"status\": {\"state\": \"TASK_STATE_WORKING\"}}";
        format!("data: {{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": {{\"statusUpdate\": {update}}}}}\n\n")
    } else {
        " ".repeat(4096)
    };
    loop {
        pieces.piece(&piece)?;
    }
}

fn slow(stream: &mut TcpStream, begin: &str, pause: Duration) -> std::io::Result<bool> {
    stream.write_all(begin.as_bytes())?;
    loop {
        std::thread::sleep(pause);
        stream.write_all(b"x")?;
    }
}

fn event(stream: &mut TcpStream, data: &str) -> std::io::Result<bool> {
    let mut pieces = ChunkedReply(stream);
    pieces.begin("text/event-stream")?;
    pieces.piece(format!("data: {data}\n\n"))?;
    pieces.end()
}

fn wait_for_the_end(stream: &mut TcpStream) -> std::io::Result<bool> {
    // Returns when the client goes away or the listener cuts the connection.
    std::io::copy(stream, &mut std::io::sink())?;
    Ok(false)
}
