//! Who writes the replies: an OpenAI-compatible chat endpoint, asked with one session's messages, or an A2A agent, which
//! remembers what was said by itself.

mod a2a;
mod chat;
mod connect;

use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use sessile::text::shortened;
use sessile::vault::Secret;
use sessile_wire::sse::{SseReader, SseTooLarge};
use tokio::sync::{Semaphore, watch};

use crate::model::Conversation;
use a2a::Agent;
use connect::{Asking, Coming, Site};

/// How many calls are under way at a time. Who comes then waits, and the time counts.
const AT_ONCE: usize = 256;

/// How much of an answer that is none is kept for the log.
const TOLD_BYTES: usize = 2000;

/// Size limit of one event of a stream.
const EVENT_BYTES: usize = 1 << 20;

/// The bytes that a stream may need for one of its text: every token comes with its own JSON.
const STREAM_FACTOR: usize = 256;

/// Who writes the replies.
#[derive(Clone, Debug)]
pub struct Upstream {
    site: Arc<Site>,
    kind: Kind,
    timeout: Duration,
    room: Arc<Semaphore>,
}

#[derive(Clone, Debug)]
enum Kind {
    Chat { model: String },
    Agent(Arc<Agent>),
}

/// What is to be replied to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// What was said before.
    pub(crate) history: &'a [Value],
    /// What is new.
    pub(crate) messages: &'a [Value],
    /// How many bytes a reply has at most.
    pub(crate) most: usize,
    /// Where what has come of the reply is told as it comes.
    pub(crate) text: Option<&'a watch::Sender<String>>,
}

/// A reply, and where the session stands with who gave it.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) body: Value,
    pub(crate) conversation: Option<Conversation>,
}

/// Why there is no reply. What it says is for the log; nothing of it is for users.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// There is no connection, or it broke.
    Unreachable(String),
    /// It took too long.
    TimedOut,
    /// It answered that it will not.
    Refused { status: u16, told: String },
    /// An agent that said no, with a code, or whose task came to nothing; whether it may be otherwise another time.
    Declined { code: Option<i64>, told: String, is_passing: bool },
    /// What it answered is no reply.
    Unusable(String),
}

impl Upstream {
    /// An endpoint below a URL: `URL/chat/completions`. It is of https, or on this machine.
    pub fn new(url: &str, model: &str, key: Option<Secret>, timeout: Duration) -> Result<Self, String> {
        Ok(Upstream::of(Site::new(url, key)?, Kind::Chat { model: model.to_owned() }, timeout))
    }

    /// An A2A agent by the URL below which its card is. It is of https, or on this machine.
    pub fn agent(url: &str, key: Option<Secret>, timeout: Duration) -> Result<Self, String> {
        Ok(Upstream::of(Site::new(url, key)?, Kind::Agent(Arc::default()), timeout))
    }

    fn of(site: Site, kind: Kind, timeout: Duration) -> Self {
        Upstream { site: Arc::new(site), kind, timeout, room: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// The reply. What is remembered of the conversation is asked for only by who needs it, and only once somebody is there
    /// to be asked.
    pub(crate) async fn reply<E: From<Fault>>(
        &self,
        asked: Asked<'_>,
        remembered: impl Future<Output = Result<Option<Conversation>, E>> + Send,
    ) -> Result<Reply, E> {
        let failed = |fault: Fault| E::from(fault.for_log(self.site.key()));
        let reply = async {
            let room = self.room.acquire().await;
            let _room = room.map_err(|error| failed(Fault::Unreachable(error.to_string())))?;
            match &self.kind {
                Kind::Chat { model } => self.chat(model, asked).await.map_err(failed),
                Kind::Agent(agent) => {
                    let interface = agent.interface(&self.site).await.map_err(failed)?;
                    let line = self.site.connect().await.map_err(failed)?;
                    let before = remembered.await?;
                    let asking = a2a::Talk { site: &self.site, interface: &interface, asked };
                    let reply = asking.reply(line, before).await;
                    if let Err(fault) = &reply {
                        agent.doubt(fault).await;
                    }
                    reply.map_err(failed)
                }
            }
        };
        tokio::time::timeout(self.timeout, reply).await.unwrap_or_else(|_| Err(failed(Fault::TimedOut)))
    }

    async fn chat(&self, model: &str, asked: Asked<'_>) -> Result<Reply, Fault> {
        let body = chat::request(model, asked.history.iter().chain(asked.messages), asked.text.is_some());
        let path = format!("{}/chat/completions", self.site.path());
        let asking = Asking { method: &Method::POST, path: &path, headers: &[], body: Some(&body) };
        let mut coming = self.site.ask(self.site.connect().await?, asking).await?;
        if coming.status != 200 {
            return Err(refused(&mut coming).await);
        }
        let text = match asked.text {
            Some(text) if coming.is_stream => streamed(&mut coming, asked.most, text).await?,
            // Some do not stream, whatever they are asked.
            _ => chat::reply(&coming.all(asked.most.saturating_mul(6) + (64 << 10)).await?)?,
        };
        Ok(Reply { body: json!({ "role": "assistant", "content": text }), conversation: None })
    }
}

/// That an answer has a status that is not one of success.
async fn refused(coming: &mut Coming) -> Fault {
    let told = coming.some(TOLD_BYTES).await.unwrap_or_default();
    Fault::Refused { status: coming.status, told: String::from_utf8_lossy(&told).into_owned() }
}

impl Fault {
    /// Some repeat the key that they do not like; it has no place in a log either. Nor has all that somebody may say: but it
    /// is shortened afterwards, or a part of the key could be left.
    fn for_log(self, key: Option<&Secret>) -> Self {
        let clean = |mut told: String| {
            if let Some(key) = key.map(Secret::expose) {
                told = told.replace(key, "(the key)");
                // Where reading stopped, it may have been within the key. A letter or two may as well be a word's.
                let mut begun = (4..key.len()).rev().filter_map(|end| key.get(..end));
                let rest = begun.find_map(|begun| told.strip_suffix(begun)).map(str::len);
                told.truncate(rest.unwrap_or(told.len()));
            }
            shortened(&told, TOLD_BYTES)
        };
        match self {
            Fault::Unreachable(told) => Fault::Unreachable(clean(told)),
            Fault::TimedOut => Fault::TimedOut,
            Fault::Refused { status, told } => Fault::Refused { status, told: clean(told) },
            Fault::Declined { code, told, is_passing } => {
                Fault::Declined { code, told: clean(told), is_passing }
            }
            Fault::Unusable(told) => Fault::Unusable(clean(told)),
        }
    }
}

impl From<SseTooLarge> for Fault {
    fn from(_: SseTooLarge) -> Self {
        Fault::Unusable("an event of the stream is too long".to_owned())
    }
}

/// Reads a reply token by token. One that breaks off is none.
async fn streamed(coming: &mut Coming, most: usize, text: &watch::Sender<String>) -> Result<String, Fault> {
    let (mut reader, mut events) = (SseReader::new(EVENT_BYTES), Vec::new());
    let (mut reply, mut read) = (String::new(), 0);
    let mut is_whole = false;
    while let Some(bytes) = coming.next().await? {
        read += bytes.len();
        if read > most.saturating_mul(STREAM_FACTOR) {
            return Err(Fault::Unusable("the stream is too long".to_owned()));
        }
        reader.push(&bytes, &mut events).map_err(Fault::from)?;
        for event in events.drain(..) {
            if event.data == "[DONE]" {
                return Ok(reply);
            }
            let piece = chat::piece(&event.data)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_gets_no_key_and_not_everything() {
        let key = Secret::new("sk-hunter2");
        let long = format!("{}sk-hunter2{}", "x".repeat(TOLD_BYTES - 3), "y".repeat(1 << 20));
        let declined = Fault::Declined { code: None, told: long.clone(), is_passing: false };
        for fault in [Fault::Unusable(long.clone()), Fault::Unreachable(long), declined] {
            let kept = format!("{:?}", fault.clone().for_log(Some(&key)));
            assert!(kept.contains("x(th...") && kept.len() < TOLD_BYTES + 100, "{kept}");
            assert!(format!("{:?}", fault.for_log(None)).len() < TOLD_BYTES + 100);
        }
        let refused = Fault::Refused { status: 401, told: "not sk-hunter2, nor sk-hunt".to_owned() };
        let Fault::Refused { told, .. } = refused.for_log(Some(&key)) else { panic!("another") };
        assert_eq!(told, "not (the key), nor ");
    }
}
