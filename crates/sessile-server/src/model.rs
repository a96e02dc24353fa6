//! Records of the service.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sessile_wire::hex::hex;
use sessile_wire::lock_mode::LockMode;
use sha2::{Digest, Sha256};

pub use sessile_wire::service::{HistoryEntry, SessionEvent};

use crate::ids::{FencingToken, Position, SessionId, turn_token};
use crate::json_text::JsonText;

/// Row of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Id.
    pub id: SessionId,
    /// Name, unique among the user's live sessions.
    pub name: Option<String>,
    /// Context that it is pinned to.
    pub context: Option<String>,
    /// Labels to find it by.
    pub labels: BTreeMap<String, String>,
    /// Settings.
    pub settings: BTreeMap<String, Value>,
    /// Revision, which grows with every change of the above: the `ETag`.
    pub revision: i64,
    /// Time of its start, in milliseconds since 1970.
    pub started_ms: i64,
    /// Time of its last use.
    pub used_ms: i64,
    /// Time of its expiry, unless it is used again.
    pub expires_ms: i64,
    /// Longest idle time, in milliseconds.
    #[serde(default)]
    pub idle_ms: i64,
    /// Longest lifetime, in milliseconds.
    #[serde(default)]
    pub max_ms: i64,
    /// Time of its end.
    pub ended_ms: Option<i64>,
    /// Reason of its end.
    pub end_reason: Option<String>,
    /// Number of messages, which is that of the last one.
    pub messages: i64,
}

impl SessionRecord {
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

/// Row of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageRecord {
    /// Number in the session, from 1.
    pub number: i64,
    /// Fencing token of the turn that wrote it.
    #[serde(with = "turn_token")]
    pub token: Option<FencingToken>,
    /// Body, as it was sent.
    pub body: JsonText,
    /// Time at which it was written.
    pub at_ms: i64,
}

/// State of a session's conversation with the agent that replies in it. Users neither see nor write it: a user who could name
/// a context could continue another's conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentConversation {
    /// Address of the agent.
    pub agent: String,
    /// Context of the agent.
    pub context_id: String,
    /// Task that waits for input.
    pub task_id: Option<String>,
    /// Bytes of each artifact of that task that replies contain already.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub told: BTreeMap<String, usize>,
}

impl AgentConversation {
    /// Hash of the agent and its context, which is the same for every user.
    pub fn mark(&self) -> String {
        // NUL occurs in neither, so two pairs never give the same text.
        hex(&Sha256::digest(format!("{}\0{}", self.agent, self.context_id)))
    }
}

/// Stored state value of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryRecord {
    /// Key.
    pub key: String,
    /// Value, as it was sent.
    pub value: JsonText,
    /// Revision, which grows with every change.
    pub revision: i64,
}

/// Resource with a queue: one place in it is held at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Resource {
    /// The turn of a session.
    Turn {
        /// Id of the session.
        session: SessionId,
    },
    /// A named lock of the user.
    Lock {
        /// Name of the lock.
        name: String,
    },
}

impl Resource {
    /// Key of the queue in the store.
    pub fn key(&self) -> String {
        match self {
            // The prefix keeps a lock from being named like the turn of a session.
            Resource::Turn { session } => format!("turn:{session}"),
            Resource::Lock { name } => format!("lock:{name}"),
        }
    }
}

/// A place in a queue, held or waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ticket {
    /// Position in the queue.
    pub place: Position,
    /// Fencing token, once it is held.
    pub token: Option<FencingToken>,
    /// Display name of the holder.
    pub holder: String,
    /// Mode in which it is held or waited for; turns are exclusive.
    #[serde(default)]
    pub mode: LockMode,
    /// Session that a lock belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Time of the request.
    pub asked_ms: i64,
    /// Expiry, unless it is renewed.
    pub expires_ms: i64,
}
