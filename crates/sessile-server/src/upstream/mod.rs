//! Upstream that writes the replies: an OpenAI-compatible chat endpoint, which gets the messages of a session with every
//! request, or an A2A agent, which keeps the conversation itself.

mod a2a;
mod chat;
mod connect;
mod idle;

use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use sessile::text::shortened;
use sessile::vault::Secret;
use sessile_wire::a2a::RpcErrorKind;
use sessile_wire::sse::{SseReader, SseTooLarge};
use tokio::sync::{Semaphore, watch};

use crate::ids::UserName;
use crate::json_text::JsonText;
use crate::model::AgentConversation;
use a2a::{AgentExchange, UpstreamAgent};
use connect::{SiteRequest, SiteResponse, UpstreamSite};
use idle::IdleConnections;

/// Maximum number of concurrent calls. Further ones wait, and the wait counts against their timeout.
const MAX_CALLS: usize = 256;

/// Maximum bytes of an error response that are logged.
const DETAIL_BYTES: usize = 2000;

/// Size limit of one event of a stream.
const EVENT_BYTES: usize = 1 << 20;

/// Bytes of a stream per byte of its text: every token comes with its own JSON.
const STREAM_FACTOR: usize = 256;

/// Upstream that writes the replies.
#[derive(Clone, Debug)]
pub struct Upstream {
    site: Arc<UpstreamSite>,
    kind: UpstreamKind,
    timeout: Duration,
    permits: Arc<Semaphore>,
}

#[derive(Clone, Debug)]
enum UpstreamKind {
    Chat { model: String, idle: IdleConnections },
    Agent(Arc<UpstreamAgent>),
}

/// Request for a reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyRequest<'a> {
    /// User of the session.
    pub(crate) user: &'a UserName,
    /// Earlier messages of the session.
    pub(crate) history: &'a [Value],
    /// New messages.
    pub(crate) messages: &'a [Value],
    /// Maximum bytes of the reply.
    pub(crate) most: usize,
    /// Receiver of the text as it arrives.
    pub(crate) text: Option<&'a watch::Sender<String>>,
}

/// Reply, with the state of the conversation after it.
#[derive(Debug)]
pub(crate) struct UpstreamReply {
    pub(crate) body: JsonText,
    pub(crate) conversation: Option<AgentConversation>,
}

/// Failure of the upstream. The details are for the log, not for users.
#[derive(Clone, Debug)]
pub(crate) enum UpstreamError {
    /// No connection, or one that broke off.
    Unreachable(String),
    /// No reply within the timeout.
    TimedOut,
    /// HTTP status of an error.
    Refused { status: u16, detail: String },
    /// Error of an agent, or a failed task; `is_transient` if a retry may succeed.
    Declined { kind: Option<RpcErrorKind>, detail: String, is_transient: bool },
    /// Response that is not a reply.
    Unusable(String),
}

impl Upstream {
    /// Chat endpoint `URL/chat/completions`, over `https` or on this machine.
    pub fn new(url: &str, model: &str, key: Option<Secret>, timeout: Duration) -> Result<Self, String> {
        Ok(Upstream::of(
            UpstreamSite::new(url, key)?,
            UpstreamKind::Chat { model: model.to_owned(), idle: IdleConnections::default() },
            timeout,
        ))
    }

    /// A2A agent whose card is below this URL, over `https` or on this machine.
    pub fn agent(url: &str, key: Option<Secret>, timeout: Duration) -> Result<Self, String> {
        Ok(Upstream::of(UpstreamSite::new(url, key)?, UpstreamKind::Agent(Arc::default()), timeout))
    }

    fn of(site: UpstreamSite, kind: UpstreamKind, timeout: Duration) -> Self {
        Upstream { site: Arc::new(site), kind, timeout, permits: Arc::new(Semaphore::new(MAX_CALLS)) }
    }

    /// Requests a reply. The stored conversation is loaded only if the upstream needs it, and only once it is connected.
    pub(crate) async fn reply<E: From<UpstreamError>>(
        &self,
        request: ReplyRequest<'_>,
        conversation: impl Future<Output = Result<Option<AgentConversation>, E>> + Send,
    ) -> Result<UpstreamReply, E> {
        let failed = |error: UpstreamError| E::from(error.redact(self.site.key()));
        let reply = async {
            let permit = self.permits.acquire().await;
            let _permit = permit.map_err(|error| failed(UpstreamError::Unreachable(error.to_string())))?;
            match &self.kind {
                UpstreamKind::Chat { model, idle } => self.chat(model, idle, request).await.map_err(failed),
                UpstreamKind::Agent(agent) => {
                    let interface = agent.interface(&self.site).await.map_err(failed)?;
                    let line = self.site.connect().await.map_err(failed)?;
                    // Taken out of the store as late as possible: a failure to connect leaves the
                    // conversation as it was.
                    let before = conversation.await?;
                    let exchange = AgentExchange { site: &self.site, interface: &interface, request };
                    let reply = exchange.reply(line, before).await;
                    if let Err(error) = &reply {
                        agent.invalidate_after(error).await;
                    }
                    reply.map_err(failed)
                }
            }
        };
        tokio::time::timeout(self.timeout, reply)
            .await
            .unwrap_or_else(|_| Err(failed(UpstreamError::TimedOut)))
    }

    async fn chat(
        &self,
        model: &str,
        idle: &IdleConnections,
        request: ReplyRequest<'_>,
    ) -> Result<UpstreamReply, UpstreamError> {
        let body =
            chat::request(model, request.history.iter().chain(request.messages), request.text.is_some());
        let path = format!("{}/chat/completions", self.site.path());
        let post = SiteRequest { method: &Method::POST, path: &path, headers: &[], body: Some(&body) };
        let mut response = idle.send(&self.site, request.user, post).await?;
        if response.status != 200 {
            return Err(refused(&mut response).await);
        }
        let text = match request.text {
            Some(text) if response.is_stream => read_stream(&mut response, request.most, text).await?,
            // Some endpoints do not stream although they are told to.
            // Six bytes for each one of the text, as in `\u0041`, and room for the rest of the response.
            _ => chat::reply(&response.all(request.most.saturating_mul(6) + (64 << 10)).await?)?,
        };
        idle.keep(request.user, response);
        let body = json!({ "role": "assistant", "content": text }).into();
        Ok(UpstreamReply { body, conversation: None })
    }
}

/// Error of a response whose status is not one of success.
async fn refused(response: &mut SiteResponse) -> UpstreamError {
    let detail = response.some(DETAIL_BYTES).await.unwrap_or_default();
    UpstreamError::Refused { status: response.status, detail: String::from_utf8_lossy(&detail).into_owned() }
}

impl UpstreamError {
    /// Redacts the key, which upstreams may repeat in their errors, and shortens the detail. Shortening comes last, so that no part
    /// of the key is left.
    fn redact(self, key: Option<&Secret>) -> Self {
        let redact = |mut detail: String| {
            if let Some(key) = key.map(Secret::expose) {
                detail = detail.replace(key, "(the key)");
                // The detail may have been cut within the key. A suffix of up to three bytes may be part of a word.
                let mut begun = (4..key.len()).rev().filter_map(|end| key.get(..end));
                let rest = begun.find_map(|begun| detail.strip_suffix(begun)).map(str::len);
                detail.truncate(rest.unwrap_or(detail.len()));
            }
            shortened(&detail, DETAIL_BYTES)
        };
        match self {
            UpstreamError::Unreachable(detail) => UpstreamError::Unreachable(redact(detail)),
            UpstreamError::TimedOut => UpstreamError::TimedOut,
            UpstreamError::Refused { status, detail } => {
                UpstreamError::Refused { status, detail: redact(detail) }
            }
            UpstreamError::Declined { kind, detail, is_transient } => {
                UpstreamError::Declined { kind, detail: redact(detail), is_transient }
            }
            UpstreamError::Unusable(detail) => UpstreamError::Unusable(redact(detail)),
        }
    }
}

impl From<SseTooLarge> for UpstreamError {
    fn from(_: SseTooLarge) -> Self {
        UpstreamError::Unusable("an event of the stream is too long".to_owned())
    }
}

/// Reads a streamed reply. A stream that breaks off is an error.
async fn read_stream(
    response: &mut SiteResponse,
    most: usize,
    text: &watch::Sender<String>,
) -> Result<String, UpstreamError> {
    let (mut reader, mut events) = (SseReader::new(EVENT_BYTES), Vec::new());
    let (mut reply, mut read) = (String::new(), 0);
    let mut is_whole = false;
    while let Some(bytes) = response.next().await? {
        read += bytes.len();
        if read > most.saturating_mul(STREAM_FACTOR) {
            return Err(UpstreamError::Unusable("the stream is too long".to_owned()));
        }
        reader.push(&bytes, &mut events).map_err(UpstreamError::from)?;
        for event in events.drain(..) {
            // The end mark of chat completions; some endpoints close the stream without it.
            if event.data == "[DONE]" {
                return Ok(reply);
            }
            let chunk = chat::chunk(&event.data)?;
            is_whole |= chunk.is_last;
            reply.push_str(&chunk.text);
            if reply.len() > most {
                return Err(UpstreamError::Unusable("the reply is too long".to_owned()));
            }
            if !chunk.text.is_empty() {
                text.send_modify(|text| text.push_str(&chunk.text));
            }
        }
    }
    if is_whole { Ok(reply) } else { Err(UpstreamError::Unreachable("the stream ended early".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacted_detail_has_no_key_and_is_short() {
        let key = Secret::new("sk-hunter2");
        let long = format!("{}sk-hunter2{}", "x".repeat(DETAIL_BYTES - 3), "y".repeat(1 << 20));
        let declined = UpstreamError::Declined { kind: None, detail: long.clone(), is_transient: false };
        for error in [UpstreamError::Unusable(long.clone()), UpstreamError::Unreachable(long), declined] {
            let kept = format!("{:?}", error.clone().redact(Some(&key)));
            assert!(kept.contains("x(th...") && kept.len() < DETAIL_BYTES + 100, "{kept}");
            assert!(format!("{:?}", error.redact(None)).len() < DETAIL_BYTES + 100);
        }
        let refused =
            UpstreamError::Refused { status: 401, detail: "not sk-hunter2, nor sk-hunt".to_owned() };
        let UpstreamError::Refused { detail, .. } = refused.redact(Some(&key)) else { panic!("another") };
        assert_eq!(detail, "not (the key), nor ");
    }
}
