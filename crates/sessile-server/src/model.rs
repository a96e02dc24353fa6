//! The things the service keeps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sessile_wire::hex::hex;
use sha2::{Digest, Sha256};

pub use sessile_wire::service::SessionEvent as Event;

use crate::ids::{FencingToken, Position, SessionId, turn_token};
use crate::json_text::JsonText;

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Its name, unique among the user's live ones.
    pub name: Option<String>,
    /// The context it is pinned to.
    pub context: Option<String>,
    /// Labels to find it by.
    pub labels: BTreeMap<String, String>,
    /// Its settings.
    pub settings: BTreeMap<String, Value>,
    /// Grows with every change of the above: its `ETag`.
    pub revision: i64,
    /// When it was started, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it was last used.
    pub used_ms: i64,
    /// When it expires if nobody uses it again.
    pub expires_ms: i64,
    /// How long it may lie idle.
    #[serde(default)]
    pub idle_ms: i64,
    /// How long it lives at most.
    #[serde(default)]
    pub max_ms: i64,
    /// When it was ended.
    pub ended_ms: Option<i64>,
    /// Why.
    pub end_reason: Option<String>,
    /// How many messages there are; the number of the last one.
    pub messages: i64,
}

impl Session {
    /// Whether the session neither was ended nor has expired.
    pub fn is_live(&self, now_ms: i64) -> bool {
        self.ended_ms.is_none() && now_ms < self.expires_ms
    }

    /// Sets the time of expiry by the times of start and last use.
    pub(crate) fn set_expiry(&mut self) {
        let idle = self.used_ms.saturating_add(self.idle_ms);
        self.expires_ms = idle.min(self.started_ms.saturating_add(self.max_ms));
    }
}

/// A message of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Its number in the session, from 1.
    pub number: i64,
    /// Fencing token of the turn that wrote it.
    #[serde(with = "turn_token")]
    pub token: Option<FencingToken>,
    /// What it says.
    pub body: JsonText,
    /// When it was written.
    pub at_ms: i64,
}

/// Where a session stands with the agent that replies in it: how the agent is told what it knows already. Users neither see
/// nor write it, for who could name a context could go on in another's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// The agent, by its address.
    pub agent: String,
    /// The agent's name for the conversation.
    pub context_id: String,
    /// The task that waits for an answer.
    pub task_id: Option<String>,
    /// How many bytes of each of that task's results are in replies already.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub told: BTreeMap<String, usize>,
}

impl Conversation {
    /// What stands for the context of this agent, whoever asks.
    pub fn mark(&self) -> String {
        hex(&Sha256::digest(format!("{}\0{}", self.agent, self.context_id)))
    }
}

/// A value of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// The value.
    pub value: JsonText,
    /// Grows with every change.
    pub revision: i64,
}

/// What there is a queue for: one place in it is held at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Resource {
    /// The turn of a session.
    Turn {
        /// The session.
        session: SessionId,
    },
    /// A named lock of the user.
    Lock {
        /// Its name.
        name: String,
    },
}

impl Resource {
    /// The key it is kept under.
    pub fn key(&self) -> String {
        match self {
            Resource::Turn { session } => format!("turn:{session}"),
            Resource::Lock { name } => format!("lock:{name}"),
        }
    }
}

/// A place in a queue. One is held, the others wait.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ticket {
    /// Its number in the queue, for the one who waits.
    pub place: Position,
    /// The fencing token, from when it is held: larger than that of everyone who held it before.
    pub token: Option<FencingToken>,
    /// What its holder calls itself.
    pub holder: String,
    /// When it was asked for.
    pub asked_ms: i64,
    /// When it is gone unless it is renewed.
    pub expires_ms: i64,
}

/// An access, as it is on the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accessed {
    /// Its id, which begins with the time.
    pub id: String,
    /// When it was.
    pub at_ms: i64,
    /// What: the name of the change or of the query.
    pub action: String,
    /// The session it was about.
    pub session: Option<String>,
    /// The lock it was about, by name, or the value, by key.
    pub subject: Option<String>,
    /// `done`, or why not.
    pub outcome: String,
    /// The id of the token that it was done with, or that it was about.
    pub token_id: Option<String>,
}
