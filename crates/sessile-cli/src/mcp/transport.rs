//! Messages, one per line. An invalid line gets an error response, and the connection continues.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, GetMeta, JsonRpcMessage,
    ProtocolVersion, RequestId,
};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::batches::Batches;
use super::lines::{self, InputEvent, LineWriter};

/// Time that calls may take after the end of input, because a client that pipes requests in wants the answers.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Limit of lines read ahead.
const AHEAD: usize = 2;

/// Maximum number of open requests, and of bytes in them and in unread responses. Beyond that, reading pauses.
const OPEN: usize = 1024;
const BYTES: usize = 64 << 20;

/// Poll interval for free space.
const SOON: Duration = Duration::from_millis(20);

/// Standard input and output.
pub(super) struct Stdio {
    incoming: mpsc::Receiver<InputEvent>,
    writer: LineWriter,
    /// Messages that were read and not delivered yet.
    read: VecDeque<ClientJsonRpcMessage>,
    batches: Batches,
    /// The requests that are not answered yet, each with its size.
    open: HashMap<RequestId, usize>,
    /// Whether the handshake has begun; earlier messages are refused.
    has_begun: bool,
    /// Deadline after the end of input.
    end: Option<Instant>,
    /// Tells the calls that they are waited for no longer.
    parting: watch::Sender<bool>,
}

impl Stdio {
    /// Begins to read and write, and tells `parting` when it is over; and how to stop it.
    pub(super) fn start(parting: watch::Sender<bool>) -> std::io::Result<(Self, mpsc::Sender<InputEvent>)> {
        // Few, so that a client that sends without reading is stopped by its own pipe.
        let (sender, incoming) = mpsc::channel(AHEAD);
        lines::read(sender.clone())?;
        let writer = LineWriter::start(sender.clone())?;
        let stdio = Stdio {
            incoming,
            writer,
            read: VecDeque::new(),
            batches: Batches::default(),
            open: HashMap::new(),
            has_begun: false,
            end: None,
            parting,
        };
        Ok((stdio, sender))
    }

    /// Parses a line. An invalid one gets an error response.
    fn take(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        match sessile::json::from_slice(line) {
            Err(error) => self.complain(ErrorCode::PARSE_ERROR, &format!("invalid JSON: {error}")),
            Ok(Value::Array(messages)) if messages.is_empty() => {
                self.complain(ErrorCode::INVALID_REQUEST, "an empty batch");
            }
            Ok(Value::Array(messages)) => {
                let (mut requests, mut wrong) = (Vec::new(), Vec::new());
                // The line is charged once, however many requests are in it.
                let each = line.len() / messages.len();
                for message in messages {
                    match self.understand(message, each) {
                        Ok(Some(id)) => requests.push(id),
                        Ok(None) => {}
                        Err(answer) => wrong.push(answer),
                    }
                }
                if let Some(answer) = self.batches.open(requests, wrong) {
                    self.say(&answer);
                }
            }
            Ok(message) => {
                if let Err(answer) = self.understand(message, line.len()) {
                    self.say(&answer);
                }
            }
        }
    }

    /// Queues a message and returns the id of a request; else the error for an invalid message.
    fn understand(&mut self, message: Value, size: usize) -> Result<Option<RequestId>, Value> {
        // Kept for the error, which names its request if that much can be read.
        let id = message.get("id").filter(|id| id.is_string() || id.is_i64() || id.is_u64()).cloned();
        let message: ClientJsonRpcMessage = serde_json::from_value(message).map_err(|_| {
            error(id.as_ref(), ErrorCode::INVALID_REQUEST, "not a valid JSON-RPC 2.0 message")
        })?;
        // The server numbers its questions. An answer under the text of a number answers none of them, but the library
        // below would take it for one.
        let is_answer = matches!(&message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        if is_answer && !id.is_some_and(|id| id.is_number()) {
            return Ok(None);
        }
        let request = match &message {
            JsonRpcMessage::Request(request) => {
                self.has_begun |= begins(&request.request);
                self.open.insert(request.id.clone(), size);
                Some(request.id.clone())
            }
            _ if !self.has_begun => return Ok(None),
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.remove(id);
                    if let Some(answer) = self.batches.forget(id) {
                        self.say(&answer);
                    }
                }
                None
            }
            _ => None,
        };
        self.read.push_back(message);
        Ok(request)
    }

    fn complain(&self, code: ErrorCode, message: &str) {
        self.say(&error(None, code, message));
    }

    fn say(&self, message: &Value) {
        // Dropping the future does not take the line back; it only is not waited for.
        drop(self.writer.write(message.to_string().into_bytes()));
    }
}

/// Whether the request starts the client's use of the server. `ping`, discovery and refused requests do not.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        other => {
            let meta = other.get_meta();
            meta.missing_required_keys(&ProtocolVersion::NO_INITIALIZE).is_empty()
                && meta.protocol_version().is_some_and(|one| ProtocolVersion::KNOWN_VERSIONS.contains(&one))
        }
    }
}

fn error(id: Option<&Value>, code: ErrorCode, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code.0, "message": message } })
}

impl Transport<RoleServer> for Stdio {
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let id = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let line = match serde_json::to_value(&item) {
            Ok(message) => match &id {
                Some(id) => {
                    self.open.remove(id);
                    self.batches.answer(id, message)
                }
                None => Some(message),
            },
            Err(_) => None,
        };
        let writing = line.map(|line| self.writer.write(line.to_string().into_bytes()));
        async move {
            match writing {
                Some(writing) => writing.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let next = self.next().await;
        if next.is_none() {
            self.parting.send_replace(true);
        }
        next
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.writer.finish();
        Ok(())
    }
}

impl Stdio {
    fn has_room(&self) -> bool {
        let bytes = self.open.values().sum::<usize>() + self.writer.waiting();
        self.open.len() < OPEN && bytes < BYTES
    }

    /// The next message, if there will be one.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(message) = self.read.pop_front() {
                return Some(message);
            }
            if !self.has_room() {
                // A client that reads no answers is asked for no more questions.
                tokio::time::sleep(SOON).await;
                continue;
            }
            let incoming = match self.end {
                None => self.incoming.recv().await,
                // After the end of input only answers that are still missing are waited for.
                Some(_) if self.open.is_empty() => return None,
                Some(end) => tokio::select! {
                    incoming = self.incoming.recv() => incoming,
                    () = tokio::time::sleep_until(end) => return None,
                },
            };
            match incoming {
                Some(InputEvent::Line(line)) => self.take(&line),
                Some(InputEvent::TooLong) => {
                    let message = format!("the message exceeds {} bytes", lines::LONGEST);
                    self.complain(ErrorCode::INVALID_REQUEST, &message);
                }
                Some(InputEvent::End) => self.end = Some(Instant::now() + LAST_WORDS),
                Some(InputEvent::Stop) | None => return None,
            }
        }
    }
}
