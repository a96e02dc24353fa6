//! Exchange with an agent that yields one reply.

use std::time::Duration;

use axum::http::Method;
use serde_json::json;
use sessile_wire::a2a::{AgentRequest, HttpCall, HttpMethod, OutgoingMessage, Part, RpcErrorKind};
use sessile_wire::backoff::Backoff;
use sessile_wire::sse::SseReader;

use super::super::connect::{OpenConnection, SiteRequest, SiteResponse, UpstreamSite};
use super::super::{EVENT_BYTES, ReplyRequest, STREAM_FACTOR, UpstreamError, UpstreamReply, refused};
use super::assembly::ReplyAssembly;
use super::event::TextEvent;
use super::interface::UpstreamInterface;
use super::prompt;
use crate::model::AgentConversation;

/// Maximum bytes of a response: it may hold more than its text.
const RESPONSE_BYTES: usize = 4 << 20;

/// Backoff between two polls of a task.
const FIRST_POLL: Duration = Duration::from_millis(100);
const MAX_POLL: Duration = Duration::from_secs(2);

/// Exchange with an agent that yields one reply.
pub(in crate::upstream) struct AgentExchange<'a> {
    pub(in crate::upstream) site: &'a UpstreamSite,
    pub(in crate::upstream) interface: &'a UpstreamInterface,
    pub(in crate::upstream) request: ReplyRequest<'a>,
}

impl AgentExchange<'_> {
    /// Continues the conversation if it is with this agent. Otherwise starts one, and sends the history along.
    pub(in crate::upstream) async fn reply(
        &self,
        line: OpenConnection,
        before: Option<AgentConversation>,
    ) -> Result<UpstreamReply, UpstreamError> {
        let before = before.filter(|before| before.agent == self.site.address());
        let mut reply = ReplyAssembly::new(before.as_ref());
        match self.send_message(line, before.as_ref(), &mut reply).await {
            // The agent has forgotten the context or the task. A retry is safe only if it sent nothing else: then it has not
            // accepted the message.
            Err(error) if before.is_some() && is_unknown_context(&error) && !reply.has_events() => {
                reply = ReplyAssembly::new(None);
                self.send_message(self.site.connect().await?, None, &mut reply).await?;
            }
            sent => sent?,
        }
        self.finish(reply)
    }

    /// Sends the new messages, and collects events until the reply is complete.
    async fn send_message(
        &self,
        line: OpenConnection,
        before: Option<&AgentConversation>,
        reply: &mut ReplyAssembly,
    ) -> Result<(), UpstreamError> {
        let parts = prompt::parts(before.map_or(self.request.history, |_| &[]), self.request.messages);
        let message = OutgoingMessage {
            message_id: new_id()?,
            context_id: before.map(|before| before.context_id.clone()),
            task_id: before.and_then(|before| before.task_id.clone()),
            parts: parts.into_iter().map(Part::Text).collect(),
            // The service has the history; agents would repeat it in every task.
            history_length: Some(0),
            is_blocking: true,
            ..OutgoingMessage::default()
        };
        let request = match self.request.text.is_some() && self.interface.can_stream {
            true => AgentRequest::Stream(&message),
            false => AgentRequest::Send(&message),
        };
        let mut response = self.send(line, &self.interface.call(&request)?).await?;
        if response.is_stream {
            reply.begin_stream();
            self.follow_stream(&mut response, reply).await?;
        } else {
            let event = self.interface.event(&response.all(RESPONSE_BYTES).await?)?;
            reply.add(event, self.request.most)?;
        }
        // Closes the stream, which an agent may keep open after the last event.
        drop(response);
        self.poll_task(reply).await
    }

    async fn send(&self, line: OpenConnection, call: &HttpCall) -> Result<SiteResponse, UpstreamError> {
        let headers = [("a2a-version", self.interface.version())];
        let method = match call.method {
            HttpMethod::Get => Method::GET,
            HttpMethod::Post => Method::POST,
            HttpMethod::Delete => Method::DELETE,
        };
        let body = call.body.as_ref().map(|body| body.to_string().into_bytes());
        let request =
            SiteRequest { method: &method, path: &call.url, headers: &headers, body: body.as_deref() };
        let mut response = self.site.send(line, request).await?;
        if !(200..300).contains(&response.status) {
            return Err(refused(&mut response).await);
        }
        Ok(response)
    }

    /// Reads a stream to its end, and passes the text on as it arrives.
    async fn follow_stream(
        &self,
        response: &mut SiteResponse,
        reply: &mut ReplyAssembly,
    ) -> Result<(), UpstreamError> {
        let (mut reader, mut events) = (SseReader::new(EVENT_BYTES), Vec::new());
        let (mut read, mut sent) = (0, 0);
        while let Some(bytes) = response.next().await? {
            read += bytes.len();
            // Events without text count too: an agent must not stream forever.
            if read > self.request.most.saturating_mul(STREAM_FACTOR) {
                return Err(UpstreamError::Unusable("the stream is too long".to_owned()));
            }
            reader.push(&bytes, &mut events).map_err(UpstreamError::from)?;
            for event in events.drain(..) {
                reply.add(self.interface.event(event.data.as_bytes())?, self.request.most)?;
                // Text that was passed on cannot be revoked: the complete reply follows at the end.
                if let (Some(to), Some(more)) = (self.request.text, reply.text_since(sent)) {
                    sent += more.len();
                    to.send_modify(|text| text.push_str(more));
                }
                if reply.is_complete() {
                    return Ok(());
                }
            }
        }
        reply.end_stream();
        // An agent may end the stream of a task that continues. A stream that breaks off is an error.
        match reply.is_complete() || reply.continues_without_stream() {
            true => Ok(()),
            false => Err(UpstreamError::Unreachable("the stream ended early".to_owned())),
        }
    }

    /// Polls a task until it has ended or waits for input.
    async fn poll_task(&self, reply: &mut ReplyAssembly) -> Result<(), UpstreamError> {
        let mut backoff = Backoff::new(FIRST_POLL, MAX_POLL);
        while !reply.is_complete() {
            let Some(task) = reply.task_id() else {
                return Err(UpstreamError::Unusable("neither a message nor a task".to_owned()));
            };
            tokio::time::sleep(backoff.next_delay()).await;
            let call = self.interface.poll(task)?;
            let mut response = self.send(self.site.connect().await?, &call).await?;
            let event = self.interface.event(&response.all(RESPONSE_BYTES).await?)?;
            if !matches!(event, Some(TextEvent::Task { .. })) {
                return Err(UpstreamError::Unusable("not a task".to_owned()));
            }
            reply.add(event, self.request.most)?;
        }
        Ok(())
    }

    fn finish(&self, reply: ReplyAssembly) -> Result<UpstreamReply, UpstreamError> {
        let text = reply.text()?;
        let mut body = json!({ "role": "assistant", "content": text });
        if let Some(state) = reply.waiting_state() {
            body["task_state"] = state.as_str().into();
        }
        Ok(UpstreamReply { body: body.into(), conversation: reply.conversation(self.site.address()) })
    }
}

/// Whether the agent may have refused because it does not know the context or the task.
fn is_unknown_context(error: &UpstreamError) -> bool {
    match error {
        UpstreamError::Declined { kind: Some(kind), .. } => matches!(
            kind,
            RpcErrorKind::TaskNotFound
                | RpcErrorKind::TaskTerminal
                | RpcErrorKind::UnsupportedOperation
                | RpcErrorKind::InvalidRequest
                | RpcErrorKind::InvalidParams
        ),
        UpstreamError::Refused { status, .. } => matches!(status, 400 | 404 | 409 | 422 | 501),
        _ => false,
    }
}

fn new_id() -> Result<String, UpstreamError> {
    crate::clock::new_id().map_err(|error| UpstreamError::Unreachable(error.to_string()))
}
