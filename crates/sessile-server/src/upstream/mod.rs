//! Who writes the replies: an OpenAI-compatible chat endpoint, asked with one session's messages.

mod chat;
mod connect;
mod sse;

use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use rustls::ClientConfig;
use serde_json::Value;
use sessile::vault::Secret;
use tokio::sync::{Semaphore, watch};

use connect::Coming;
use sse::Events;

/// How many calls are under way at a time. Who comes then waits, and the time counts.
const AT_ONCE: usize = 256;

/// How much of an answer that is none is kept for the log.
const TOLD_BYTES: usize = 2000;

/// The bytes that a stream may need for one of its text: every token comes with its own JSON.
const STREAM_FACTOR: usize = 256;

/// A chat endpoint.
#[derive(Clone, Debug)]
pub struct Upstream {
    uri: Uri,
    model: String,
    key: Option<Secret>,
    timeout: Duration,
    tls: Option<Arc<ClientConfig>>,
    room: Arc<Semaphore>,
}

/// Why there is no reply. What it says is for the log; nothing of it is for users.
#[derive(Debug)]
pub(crate) enum Fault {
    /// There is no connection, or it broke.
    Unreachable(String),
    /// It took too long.
    TimedOut,
    /// It answered that it will not.
    Refused { status: u16, told: String },
    /// What it answered is no reply.
    Unusable(String),
}

impl Upstream {
    /// An endpoint below a URL: `URL/chat/completions`. It is of https, or on this machine.
    pub fn new(url: &str, model: &str, key: Option<Secret>, timeout: Duration) -> Result<Self, String> {
        let uri = connect::endpoint(url)?;
        let tls = match uri.scheme_str() {
            Some("https") => Some(Arc::new(connect::tls()?)),
            _ => None,
        };
        if key
            .as_ref()
            .is_some_and(|key| key.is_empty() || !key.expose().bytes().all(|byte| byte.is_ascii_graphic()))
        {
            return Err("the key is not one line of visible characters".to_owned());
        }
        Ok(Upstream {
            uri,
            model: model.to_owned(),
            key,
            timeout,
            tls,
            room: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// The reply to these messages, of at most so many bytes. With `text`, what has come of it is told as it comes.
    pub(crate) async fn reply(
        &self,
        messages: &[Value],
        most: usize,
        text: Option<&watch::Sender<String>>,
    ) -> Result<String, Fault> {
        tokio::time::timeout(self.timeout, async {
            let _room = self.room.acquire().await.map_err(|error| Fault::Unreachable(error.to_string()))?;
            let body = chat::request(&self.model, messages, text.is_some());
            let mut coming = self.post(body).await?;
            if coming.status != 200 {
                let told = coming.some(TOLD_BYTES).await.unwrap_or_default();
                let told = String::from_utf8_lossy(&told).into_owned();
                return Err(Fault::Refused { status: coming.status, told });
            }
            match text {
                Some(text) if coming.is_stream => streamed(&mut coming, most, text).await,
                // Some do not stream, whatever they are asked.
                _ => chat::reply(&coming.all(most.saturating_mul(6) + (64 << 10)).await?),
            }
        })
        .await
        .unwrap_or(Err(Fault::TimedOut))
        .map_err(|fault| fault.without(self.key.as_ref()))
    }
}

impl Fault {
    /// Some repeat the key that they do not like; it has no place in a log either.
    fn without(self, key: Option<&Secret>) -> Self {
        let Some(key) = key else { return self };
        let clean = |told: String| told.replace(key.expose(), "(the key)");
        match self {
            Fault::Unreachable(told) => Fault::Unreachable(clean(told)),
            Fault::TimedOut => Fault::TimedOut,
            Fault::Refused { status, told } => Fault::Refused { status, told: clean(told) },
            Fault::Unusable(told) => Fault::Unusable(clean(told)),
        }
    }
}

/// Reads a reply token by token. One that breaks off is none.
async fn streamed(coming: &mut Coming, most: usize, text: &watch::Sender<String>) -> Result<String, Fault> {
    let (mut events, mut reply, mut read) = (Events::default(), String::new(), 0);
    let mut is_whole = false;
    while let Some(bytes) = coming.next().await? {
        read += bytes.len();
        if read > most.saturating_mul(STREAM_FACTOR) {
            return Err(Fault::Unusable("the stream is too long".to_owned()));
        }
        for data in events.push(&bytes)? {
            if data == "[DONE]" {
                return Ok(reply);
            }
            let piece = chat::piece(&data)?;
            is_whole |= piece.is_last;
            reply.push_str(&piece.text);
            if reply.len() > most {
                return Err(Fault::Unusable("the reply is too long".to_owned()));
            }
            if !piece.text.is_empty() {
                text.send_modify(|text| text.push_str(&piece.text));
            }
        }
    }
    if is_whole { Ok(reply) } else { Err(Fault::Unreachable("the stream broke off".to_owned())) }
}
