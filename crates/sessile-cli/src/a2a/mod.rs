//! Talking to agents by the A2A protocol: versions 1.0 and 0.3, over JSON-RPC and HTTP+JSON, in one vocabulary.
//!
//! Reading order: [`Agent`], [`Event`], [`Card`]. What an agent says is kept as it said it, in `raw`; the fields beside it
//! are what is needed to go on. An agent is not trusted: a reply has limits, a credential goes only where [`Authorize`]
//! says, and nothing is printed here. Not for conversations and what is remembered of them.

mod agent;
mod authorize;
mod card;
mod dialect;
mod error;
mod event;
mod fault;
mod find;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod interface;
mod json;
mod limits;
mod operation;
mod outgoing;
mod part;
mod push;
mod reply;
mod scheme;
mod state;
mod talk;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use agent::{Agent, Options};
pub(crate) use authorize::{Authorize, Credential};
pub(crate) use card::Card;
pub(crate) use error::{A2aError, RefusalKind};
pub(crate) use event::{ArtifactView, TaskView};
pub(crate) use limits::Limits;
pub(crate) use operation::TaskFilter;
pub(crate) use outgoing::{Outgoing, PushConfig};
pub(crate) use part::Part;
pub(crate) use push::PushView;
pub(crate) use reply::{Event, Reply};
pub(crate) use scheme::SchemeKind;
pub(crate) use talk::Ended;
#[cfg(test)]
pub(crate) use {
    authorize::Anonymous,
    interface::{Binding, ProtocolVersion},
};
