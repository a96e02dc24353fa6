//! An agent by the A2A protocol, versions 1.0 and 0.3, over JSON-RPC and HTTP+JSON: only what a reply needs. The agent is not
//! trusted: what it says has limits, and nothing is sent but to the origin that was named.

mod ask;
mod card;
mod heard;
mod said;
mod words;

use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};
use sessile_wire::backoff::Backoff;
use sessile_wire::sse::SseReader;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::connect::{Asking, Coming, Line, Site};
use super::{Asked, EVENT_BYTES, Fault, Reply, STREAM_FACTOR, refused};
use crate::model::Conversation;
use ask::{Call, Outgoing};
use card::Interface;
use heard::Heard;
use said::Said;

/// Where cards are below an agent's address: since 0.3, and before.
const PLACES: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// The largest card that makes sense.
const CARD_BYTES: usize = 1 << 20;

/// How long a card is believed.
const CARD_AGE: Duration = Duration::from_secs(300);

/// How long it is believed that there is none to be had: those who waited for it do not try one after the other.
const MISSING_AGE: Duration = Duration::from_secs(2);

/// How long reading it may take: everybody waits for it.
const CARD_TIME: Duration = Duration::from_secs(10);

/// The largest answer: it may hold more than its text.
const ANSWER_BYTES: usize = 4 << 20;

/// Backoff between two polls of a task.
const FIRST_POLL: Duration = Duration::from_millis(100);
const MAX_POLL: Duration = Duration::from_secs(2);

/// What is known of an agent: how it is asked, for a while.
#[derive(Debug, Default)]
pub(super) struct Agent {
    card: Mutex<Option<Known>>,
}

/// When a card was read, and what came of it.
type Known = (Instant, Result<Arc<Interface>, Fault>);

impl Agent {
    /// How it is asked. Whoever comes first reads the card; the others wait for it.
    pub(super) async fn interface(&self, site: &Site) -> Result<Arc<Interface>, Fault> {
        let mut card = self.card.lock().await;
        if let Some((read, interface)) = &*card
            && read.elapsed() < if interface.is_ok() { CARD_AGE } else { MISSING_AGE }
        {
            return interface.clone();
        }
        let read = tokio::time::timeout(CARD_TIME, read_card(site)).await.unwrap_or(Err(Fault::TimedOut));
        let interface = read.and_then(|card| Interface::choose(&card, site)).map(Arc::new);
        *card = Some((Instant::now(), interface.clone()));
        interface
    }

    /// Reads the card again before the next reply, if what went wrong may be because it has changed.
    pub(super) async fn doubt(&self, fault: &Fault) {
        if matches!(
            fault,
            Fault::Refused { status: 404 | 405, .. } | Fault::Declined { code: Some(-32601 | -32009), .. }
        ) {
            *self.card.lock().await = None;
        }
    }
}

async fn read_card(site: &Site) -> Result<Value, Fault> {
    let mut missing = Fault::Unusable("there is no agent card".to_owned());
    for place in PLACES {
        let path = format!("{}{place}", site.path());
        let headers = [("a2a-version", "1.0")];
        let asking = Asking { method: &Method::GET, path: &path, headers: &headers, body: None };
        let mut coming = site.ask(site.connect().await?, asking).await?;
        match coming.status {
            200 => return heard::parsed(&coming.all(CARD_BYTES).await?),
            404 => missing = refused(&mut coming).await,
            _ => return Err(refused(&mut coming).await),
        }
    }
    Err(missing)
}

/// One reply that is asked for.
pub(super) struct Talk<'a> {
    pub(super) site: &'a Site,
    pub(super) interface: &'a Interface,
    pub(super) asked: Asked<'a>,
}

impl Talk<'_> {
    /// Goes on in the conversation, if it is this agent's; else begins one, and tells what was said so far.
    pub(super) async fn reply(&self, line: Line, before: Option<Conversation>) -> Result<Reply, Fault> {
        let before = before.filter(|before| before.agent == self.site.address());
        let mut said = Said::new(before.as_ref());
        match self.ask(line, before.as_ref(), &mut said).await {
            // It has forgotten the context or the task. Only if that is all it said is it sure that it took nothing on.
            Err(fault) if before.is_some() && is_about_ids(&fault) && !said.has_heard() => {
                said = Said::new(None);
                self.ask(self.site.connect().await?, None, &mut said).await?;
            }
            asked => asked?,
        }
        self.told(said)
    }

    /// Sends what is new, and hears what is said to it until nothing more is to be expected.
    async fn ask(&self, line: Line, before: Option<&Conversation>, said: &mut Said) -> Result<(), Fault> {
        let parts = words::parts(before.map_or(self.asked.history, |_| &[]), self.asked.messages);
        let outgoing = Outgoing {
            message_id: &new_id()?,
            context_id: before.map(|before| before.context_id.as_str()),
            task_id: before.and_then(|before| before.task_id.as_deref()),
            parts: &parts,
        };
        let streams = self.asked.text.is_some() && self.interface.streams;
        let mut coming = self.send(line, &self.interface.message(&outgoing, streams)?).await?;
        if coming.is_stream {
            said.begins();
            self.follow(&mut coming, said).await?;
        } else {
            said.hear(self.interface.heard(&coming.all(ANSWER_BYTES).await?)?, self.asked.most)?;
        }
        drop(coming);
        self.wait(said).await
    }

    async fn send(&self, line: Line, call: &Call) -> Result<Coming, Fault> {
        let headers = [("a2a-version", self.interface.version())];
        let asking =
            Asking { method: &call.method, path: &call.path, headers: &headers, body: call.body.as_deref() };
        let mut coming = self.site.ask(line, asking).await?;
        if !(200..300).contains(&coming.status) {
            return Err(refused(&mut coming).await);
        }
        Ok(coming)
    }

    /// Hears a stream to its end, and hands the text on as it comes.
    async fn follow(&self, coming: &mut Coming, said: &mut Said) -> Result<(), Fault> {
        let (mut reader, mut events) = (SseReader::new(EVENT_BYTES), Vec::new());
        let (mut read, mut sent) = (0, 0);
        while let Some(bytes) = coming.next().await? {
            read += bytes.len();
            if read > self.asked.most.saturating_mul(STREAM_FACTOR) {
                return Err(Fault::Unusable("the stream is too long".to_owned()));
            }
            reader.push(&bytes, &mut events).map_err(Fault::from)?;
            for event in events.drain(..) {
                said.hear(self.interface.heard(event.data.as_bytes())?, self.asked.most)?;
                // What was handed on cannot be taken back: the whole reply comes at the end.
                if let (Some(to), Some(more)) = (self.asked.text, said.since(sent)) {
                    sent += more.len();
                    to.send_modify(|text| text.push_str(more));
                }
                if said.is_over() {
                    return Ok(());
                }
            }
        }
        said.ends();
        // Some leave with a task that goes on; a stream that only broke off is none of them.
        match said.is_over() || said.goes_on() {
            true => Ok(()),
            false => Err(Fault::Unreachable("the stream broke off".to_owned())),
        }
    }

    /// Looks at a task until it rests.
    async fn wait(&self, said: &mut Said) -> Result<(), Fault> {
        let mut backoff = Backoff::new(FIRST_POLL, MAX_POLL);
        while !said.is_over() {
            let Some(task) = said.task_id() else {
                return Err(Fault::Unusable("it is neither a message nor a task".to_owned()));
            };
            tokio::time::sleep(backoff.next_delay()).await;
            let call = self.interface.look(task)?;
            let mut coming = self.send(self.site.connect().await?, &call).await?;
            let heard = self.interface.heard(&coming.all(ANSWER_BYTES).await?)?;
            if !matches!(heard, Some(Heard::Task { .. })) {
                return Err(Fault::Unusable("it is no task".to_owned()));
            }
            said.hear(heard, self.asked.most)?;
        }
        Ok(())
    }

    fn told(&self, said: Said) -> Result<Reply, Fault> {
        let text = said.text()?;
        let mut body = json!({ "role": "assistant", "content": text });
        if let Some(state) = said.waiting() {
            body["task_state"] = state.as_str().into();
        }
        Ok(Reply { body, conversation: said.conversation(self.site.address()) })
    }
}

/// Whether an agent may have said no because it does not know the context or the task.
fn is_about_ids(fault: &Fault) -> bool {
    match fault {
        Fault::Declined { code: Some(code), .. } => matches!(code, -32001 | -32004 | -32600 | -32602),
        Fault::Refused { status, .. } => matches!(status, 400 | 404 | 409 | 422 | 501),
        _ => false,
    }
}

fn new_id() -> Result<String, Fault> {
    crate::clock::new_id().map_err(|error| Fault::Unreachable(error.to_string()))
}
