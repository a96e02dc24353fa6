//! Changes as data. A store makes one whole or not at all, for one user.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use sessile_wire::lock_mode::LockMode;
pub use sessile_wire::service::BusyPolicy as Busy;

use crate::ids::{FencingToken, Position, SessionId};
use crate::json_text::JsonText;
use crate::model::{AgentConversation, EntryRecord, MessageRecord, Resource, SessionRecord, Ticket};

// Changes of exclusive locks and turns are stored under their keys as versions without a mode stored them.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_exclusive(mode: &LockMode) -> bool {
    !mode.is_shared()
}

/// A change of a user's data. A store makes it whole or not at all.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum StoreChange {
    /// Starts a session.
    StartSession {
        /// Id of the session, a new one.
        id: SessionId,
        /// Name of the new session.
        name: Option<String>,
        /// Context that the session is pinned to.
        context: Option<String>,
        /// Labels of the session.
        labels: BTreeMap<String, String>,
        /// Settings of the session.
        settings: BTreeMap<String, Value>,
        /// Longest idle time, in milliseconds.
        idle_ms: i64,
        /// Longest lifetime, in milliseconds.
        max_ms: i64,
    },
    /// Changes the name, labels and settings of a session. Fields without a value are kept; a setting that is null is removed.
    EditSession {
        /// Id of the session.
        session: SessionId,
        /// Revision that the session must have.
        if_revision: Option<i64>,
        /// New name.
        name: Option<String>,
        /// New labels, which replace all others.
        labels: Option<BTreeMap<String, String>>,
        /// Settings to change; null removes one.
        settings: BTreeMap<String, Value>,
    },
    /// Ends a session. An ended session stays unchanged.
    EndSession {
        /// Id of the session.
        session: SessionId,
        /// Reason of the end.
        reason: String,
    },
    /// Appends messages, all or none. It is refused while the turn is held.
    Append {
        /// Id of the session.
        session: SessionId,
        /// Bodies of the messages.
        bodies: Vec<JsonText>,
        /// Number that the last message must have.
        if_last: Option<i64>,
    },
    /// Removes the messages after one. It is refused while the turn is held.
    Rewind {
        /// Id of the session.
        session: SessionId,
        /// Number of the last message that is kept.
        to: i64,
    },
    /// Starts a session with the messages of another, up to one of them.
    Fork {
        /// Id of the session.
        session: SessionId,
        /// Number of the last copied message; `None` copies all.
        at: Option<i64>,
        /// Id of the new session.
        id: SessionId,
        /// Name of the new session.
        name: Option<String>,
    },
    /// Sets a value, or removes it.
    SetEntry {
        /// Id of the session.
        session: SessionId,
        /// Key of the value.
        key: String,
        /// New value; none removes it.
        value: Option<JsonText>,
        /// Revision that the value must have; 0 if it must not exist.
        if_revision: Option<i64>,
    },
    /// Requests a place in a queue. It is acquired at once if the queue is empty.
    Ask {
        /// Resource of the queue.
        resource: Resource,
        /// Display name of the holder.
        holder: String,
        /// Claim of the request, new each time it is sent. A request that is sent again under its key takes the place over.
        claim: String,
        /// Behavior while the resource is held.
        busy: Busy,
        /// Mode of a lock; turns are exclusive.
        #[serde(skip_serializing_if = "is_exclusive")]
        mode: LockMode,
        /// Lease, in milliseconds.
        ttl_ms: i64,
        /// Longest wait, in milliseconds.
        wait_ms: i64,
        /// Session that the lock belongs to: it is released when the session ends.
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        /// Number of last messages that come with a turn.
        history: i64,
    },
    /// Acquires a waiting place if it is next.
    Wait {
        /// Resource of the queue.
        resource: Resource,
        /// Position of the place.
        place: Position,
        /// Claim of the request that the place belongs to.
        claim: String,
        /// Lease, in milliseconds.
        ttl_ms: i64,
        /// Session that the lock belongs to: it is released when the session ends.
        #[serde(skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        /// Number of last messages that come with a turn.
        history: i64,
    },
    /// Renews a lease.
    Renew {
        /// Resource of the queue.
        resource: Resource,
        /// Fencing token of the lease.
        token: FencingToken,
        /// New lease, in milliseconds.
        ttl_ms: i64,
    },
    /// Removes a place that the client does not know of yet, held or not, if its claim is this one.
    Leave {
        /// Resource of the queue.
        resource: Resource,
        /// Position of the place, if it is known.
        place: Option<Position>,
        /// Claim of the request that the place belongs to.
        claim: String,
        /// Idempotency key of the request, which is forgotten.
        key: Option<String>,
    },
    /// Stops waiting at a place. It is skipped, and kept for a moment for a request that is sent again under its key.
    StepAside {
        /// Resource of the queue.
        resource: Resource,
        /// Claim of the request that the place belongs to.
        claim: String,
    },
    /// Releases a lease.
    Release {
        /// Resource of the queue.
        resource: Resource,
        /// Fencing token of the lease.
        token: FencingToken,
    },
    /// Ends a turn: appends all its messages and releases it, or does nothing.
    CommitTurn {
        /// Id of the session.
        session: SessionId,
        /// Fencing token of the turn.
        token: FencingToken,
        /// Bodies of its messages.
        bodies: Vec<JsonText>,
        /// State of the conversation with the agent after them, unless the agent's context belongs to another session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation: Option<AgentConversation>,
    },
    /// Removes the conversation with the agent from the store, in a turn. Appending and removing messages deletes it
    /// too: until the turn is committed the agent's view of the conversation is unknown.
    TakeConversation {
        /// Id of the session.
        session: SessionId,
        /// Fencing token of the turn.
        token: FencingToken,
    },
}

impl StoreChange {
    /// Name of the change, as the audit log has it. Stored changes are tagged with the same name.
    pub fn name(&self) -> &'static str {
        match self {
            StoreChange::StartSession { .. } => "start_session",
            StoreChange::EditSession { .. } => "edit_session",
            StoreChange::EndSession { .. } => "end_session",
            StoreChange::Append { .. } => "append",
            StoreChange::Rewind { .. } => "rewind",
            StoreChange::Fork { .. } => "fork",
            StoreChange::SetEntry { .. } => "set_entry",
            StoreChange::Ask { .. } => "ask",
            StoreChange::Wait { .. } => "wait",
            StoreChange::Renew { .. } => "renew",
            StoreChange::Leave { .. } => "leave",
            StoreChange::StepAside { .. } => "step_aside",
            StoreChange::Release { .. } => "release",
            StoreChange::CommitTurn { .. } => "commit_turn",
            StoreChange::TakeConversation { .. } => "take_conversation",
        }
    }

    /// Id of the session that the change is about; for a new session its id, for a fork that of its source.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            StoreChange::StartSession { id, .. } => Some(id),
            StoreChange::EditSession { session, .. }
            | StoreChange::EndSession { session, .. }
            | StoreChange::Append { session, .. }
            | StoreChange::Rewind { session, .. }
            | StoreChange::Fork { session, .. }
            | StoreChange::SetEntry { session, .. }
            | StoreChange::CommitTurn { session, .. }
            | StoreChange::TakeConversation { session, .. } => Some(session),
            _ => match self.resource()? {
                Resource::Turn { session } => Some(session),
                Resource::Lock { .. } => None,
            },
        }
    }

    /// Subject of the change beside its session: name of a lock, or key of a value.
    pub fn subject(&self) -> Option<&str> {
        match (self, self.resource()) {
            (StoreChange::SetEntry { key, .. }, _) => Some(key),
            (_, Some(Resource::Lock { name })) => Some(name),
            _ => None,
        }
    }

    /// Resource of the queue that the change is about.
    pub fn resource(&self) -> Option<&Resource> {
        match self {
            StoreChange::Ask { resource, .. }
            | StoreChange::Wait { resource, .. }
            | StoreChange::Renew { resource, .. }
            | StoreChange::Leave { resource, .. }
            | StoreChange::StepAside { resource, .. }
            | StoreChange::Release { resource, .. } => Some(resource),
            _ => None,
        }
    }

    /// Number of last messages that come with the turn that the change asks for.
    pub(crate) fn turn_history(&self) -> i64 {
        match self {
            StoreChange::Ask { resource: Resource::Turn { .. }, history, .. }
            | StoreChange::Wait { resource: Resource::Turn { .. }, history, .. } => *history,
            _ => 0,
        }
    }

    /// Key of the queue in which the change lets the next one come up. A shared holder of a lock lets the next shared one
    /// come up.
    pub(crate) fn freed_queue(&self) -> Option<String> {
        match self {
            StoreChange::Wait { resource: resource @ Resource::Lock { .. }, .. }
            | StoreChange::Leave { resource, .. }
            | StoreChange::StepAside { resource, .. }
            | StoreChange::Release { resource, .. } => Some(resource.key()),
            StoreChange::CommitTurn { session, .. } => {
                Some(Resource::Turn { session: session.clone() }.key())
            }
            _ => None,
        }
    }
}

/// Age of a heartbeat up to which the waiters of its process count, in milliseconds: see [`StoreBackend::heartbeat`].
///
/// [`StoreBackend::heartbeat`]: crate::store::StoreBackend::heartbeat
pub const PRESENT_MS: i64 = 1000;

/// Interval of heartbeats while a client waits in the process.
// A quarter, so that up to two late or lost heartbeats make no live waiter look absent.
pub(crate) const HEARD_EVERY_MS: i64 = PRESENT_MS / 4;

/// Time for which a place is kept after its wait: a client that lost its process asks for it again.
pub(crate) const KEPT_MS: i64 = 10_000;

/// Process of a place at which no client waits.
// Matches no process id, so that such a place is skipped like that of a dead process.
pub(crate) const NOWHERE: &str = "";

/// Time in which the next waiter acquires a free place, as a rule.
pub(crate) const COMES_UP_MS: i64 = 1000;

/// Number of settings of a session, at most: all of them are read with it.
pub const MOST_SETTINGS: usize = 64;

/// Refuses an edit that would give a session too many settings.
pub(crate) fn check_settings(
    now: &BTreeMap<String, Value>,
    edit: &BTreeMap<String, Value>,
) -> Result<(), Refusal> {
    let (gone, set): (Vec<_>, Vec<_>) = edit.iter().partition(|(_, value)| value.is_null());
    let gone = gone.iter().filter(|(key, _)| now.contains_key(*key)).count();
    let new = set.iter().filter(|(key, _)| !now.contains_key(*key)).count();
    // A session that is over the limit already can still be edited, as long as it does not grow.
    let is_more = new > gone && now.len() - gone + new > MOST_SETTINGS;
    if is_more { Err(Refusal::TooManySettings) } else { Ok(()) }
}

/// Refuses a number that is neither 0 nor that of a message.
pub(crate) fn check_number(number: i64, messages: i64) -> Result<i64, Refusal> {
    if (0..=messages).contains(&number) { Ok(number) } else { Err(Refusal::NoMessage { number, messages }) }
}

/// Outcome of a change that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "done", content = "with", rename_all = "snake_case")]
pub enum ChangeOutcome {
    /// The session after the change.
    Session(SessionRecord),
    /// Numbers of the messages that were appended.
    Appended {
        /// Number of the first one.
        first: i64,
        /// Number of the last one.
        last: i64,
    },
    /// Number of messages that were removed.
    Rewound {
        /// Number of messages.
        removed: i64,
    },
    /// The value after the change; none if it was removed.
    Entry(Option<EntryRecord>),
    /// A place, held or waiting.
    Ticket {
        /// The place itself.
        ticket: Ticket,
        /// Last messages of the session, for a turn that is held.
        history: Option<Vec<MessageRecord>>,
    },
    /// The conversation with the agent.
    Conversation(Option<AgentConversation>),
    /// The place was released.
    Left,
}

/// Reason for which a change was not made. Nothing of it was.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The user has no such session.
    #[error("session not found")]
    NoSession,
    /// The session has ended or expired.
    #[error("the session has ended or expired")]
    SessionOver,
    /// Another live session has the name.
    #[error("a live session with this name already exists")]
    NameTaken,
    /// The revision differs from the expected one.
    #[error("revision conflict: the current revision is {revision}")]
    Changed {
        /// Current revision; 0 if the entry does not exist.
        revision: i64,
    },
    /// The resource is held.
    #[error("held by another holder until {expires_ms}")]
    Held {
        /// Display name of the holder.
        holder: String,
        /// Expiry of the lease.
        expires_ms: i64,
    },
    /// Lease lost: it expired, or was taken over.
    #[error("fencing token {token} is no longer valid")]
    Lost {
        /// Fencing token of the caller.
        token: FencingToken,
    },
    /// Place in the queue lost: it expired, or was removed.
    #[error("place {} in the queue is no longer valid", .place.map_or(0, Position::get))]
    PlaceLost {
        /// Position of the place, if the caller knows it.
        place: Option<Position>,
    },
    /// The user, token or login does not exist.
    #[error("user or token not found")]
    NoAccount,
    /// The user already exists.
    #[error("user already exists")]
    AccountExists,
    /// The session has no message of this number.
    #[error("message {number} not found: the session has {messages}")]
    NoMessage {
        /// Requested number.
        number: i64,
        /// Number of messages.
        messages: i64,
    },
    /// The session would have more settings than [`MOST_SETTINGS`].
    #[error("a session has at most {MOST_SETTINGS} settings")]
    TooManySettings,
    /// The idempotency key was used for another change.
    #[error("the idempotency key was used for another request")]
    KeyReused,
}

impl Refusal {
    /// Name of the refusal, as the audit log has it.
    pub fn name(&self) -> &'static str {
        match self {
            Refusal::NoSession => "no_session",
            Refusal::SessionOver => "session_over",
            Refusal::NameTaken => "name_taken",
            Refusal::Changed { .. } => "changed",
            Refusal::Held { .. } => "held",
            // One name for both: the audit log had it before leases and places were distinguished by type.
            Refusal::Lost { .. } | Refusal::PlaceLost { .. } => "lost",
            Refusal::NoAccount => "no_account",
            Refusal::AccountExists => "account_exists",
            Refusal::NoMessage { .. } => "no_message",
            Refusal::TooManySettings => "too_many_settings",
            Refusal::KeyReused => "key_reused",
        }
    }
}
