//! What can be changed, as data: a store carries out one of these whole or not at all, for one user.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use sessile_wire::service::BusyPolicy as Busy;

use crate::ids::{FencingToken, Position, SessionId};
use crate::json_text::JsonText;
use crate::model::{Conversation, Entry, Message, Resource, Session, Ticket};

/// A change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// Starts a session.
    StartSession {
        /// Its id, a new one.
        id: SessionId,
        /// Its name.
        name: Option<String>,
        /// The context it is pinned to.
        context: Option<String>,
        /// Labels.
        labels: BTreeMap<String, String>,
        /// Settings.
        settings: BTreeMap<String, Value>,
        /// How long it may lie idle.
        idle_ms: i64,
        /// How long it lives at most.
        max_ms: i64,
    },
    /// Changes what a session is called and set to. What is not given stays; a setting that is null goes.
    EditSession {
        /// Which.
        session: SessionId,
        /// Only if its revision is this.
        if_revision: Option<i64>,
        /// Another name.
        name: Option<String>,
        /// Other labels, instead of all there were.
        labels: Option<BTreeMap<String, String>>,
        /// Settings to change.
        settings: BTreeMap<String, Value>,
    },
    /// Ends a session. One that has ended stays so.
    EndSession {
        /// Which.
        session: SessionId,
        /// Why.
        reason: String,
    },
    /// Appends messages, all or none. While somebody has the turn, only with its token.
    Append {
        /// To which session.
        session: SessionId,
        /// The messages.
        bodies: Vec<JsonText>,
        /// Only if the last message has this number.
        if_last: Option<i64>,
    },
    /// Removes the messages after one. While somebody has the turn it is refused.
    Rewind {
        /// Of which session.
        session: SessionId,
        /// The number of the last one to stay.
        to: i64,
    },
    /// Starts a session with the messages of another, up to one.
    Fork {
        /// Of which session.
        session: SessionId,
        /// The number of the last one to take along; all if none is given.
        at: Option<i64>,
        /// The id of the new one.
        id: SessionId,
        /// Its name.
        name: Option<String>,
    },
    /// Sets a value, or removes it with nothing.
    SetEntry {
        /// Of which session.
        session: SessionId,
        /// The key.
        key: String,
        /// The value.
        value: Option<JsonText>,
        /// Only if its revision is this; 0 if there must be none.
        if_revision: Option<i64>,
    },
    /// Asks for a place in a queue. It is held at once if nobody else is in it.
    Ask {
        /// Which queue.
        resource: Resource,
        /// What the holder calls itself.
        holder: String,
        /// Stands for who asks; made anew each time it is sent. Sent again under its key, the place is now theirs.
        claim: String,
        /// What if somebody is there.
        busy: Busy,
        /// How long it is held without being renewed.
        ttl_ms: i64,
        /// How long it is waited for at most.
        wait_ms: i64,
        /// For a turn: how many of the last messages come with it.
        history: i64,
    },
    /// Holds a place that waits, if it is the first by now.
    Wait {
        /// Which queue.
        resource: Resource,
        /// Which place.
        place: Position,
        /// Who asked for it, or for the last time under its key.
        claim: String,
        /// How long it is held without being renewed.
        ttl_ms: i64,
        /// For a turn: how many of the last messages come with it.
        history: i64,
    },
    /// Begins the time of a held place anew.
    Renew {
        /// Which queue.
        resource: Resource,
        /// The fencing token.
        token: FencingToken,
        /// How long it is held from now on.
        ttl_ms: i64,
    },
    /// Gives a place back, held or not, if it is still that of who says so. Nobody was told of it.
    Leave {
        /// Which queue.
        resource: Resource,
        /// Which place; none if it is not known whether there is one.
        place: Option<Position>,
        /// Who asked for it, or for the last time under its key.
        claim: String,
        /// The key: what is sent again under it asks anew.
        key: Option<String>,
    },
    /// Waits no longer at a place, if it is still that of who says so. It is passed over, and kept for a moment for whoever
    /// asks again under its key.
    StepAside {
        /// Which queue.
        resource: Resource,
        /// Who asked for it, or for the last time under its key.
        claim: String,
    },
    /// Gives back what is held.
    Release {
        /// Which queue.
        resource: Resource,
        /// The fencing token.
        token: FencingToken,
    },
    /// Ends a turn: appends all its messages and gives it back, or does nothing.
    CommitTurn {
        /// Of which session.
        session: SessionId,
        /// The turn.
        token: FencingToken,
        /// Its messages.
        bodies: Vec<JsonText>,
        /// Where the session stands with its agent after them, unless the context is another session's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation: Option<Conversation>,
    },
    /// Takes out where a session stands with its agent, in a turn. Whatever is appended or removed forgets it, and so does
    /// taking it: until the turn is committed nobody knows what the agent has heard.
    TakeConversation {
        /// Of which session.
        session: SessionId,
        /// The turn.
        token: FencingToken,
    },
}

impl Change {
    /// Name of the change, as the audit log has it. Stored changes are tagged with the same name.
    pub fn name(&self) -> &'static str {
        match self {
            Change::StartSession { .. } => "start_session",
            Change::EditSession { .. } => "edit_session",
            Change::EndSession { .. } => "end_session",
            Change::Append { .. } => "append",
            Change::Rewind { .. } => "rewind",
            Change::Fork { .. } => "fork",
            Change::SetEntry { .. } => "set_entry",
            Change::Ask { .. } => "ask",
            Change::Wait { .. } => "wait",
            Change::Renew { .. } => "renew",
            Change::Leave { .. } => "leave",
            Change::StepAside { .. } => "step_aside",
            Change::Release { .. } => "release",
            Change::CommitTurn { .. } => "commit_turn",
            Change::TakeConversation { .. } => "take_conversation",
        }
    }

    /// Id of the session that the change is about; for a new session its id, for a fork that of its source.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Change::StartSession { id, .. } => Some(id),
            Change::EditSession { session, .. }
            | Change::EndSession { session, .. }
            | Change::Append { session, .. }
            | Change::Rewind { session, .. }
            | Change::Fork { session, .. }
            | Change::SetEntry { session, .. }
            | Change::CommitTurn { session, .. }
            | Change::TakeConversation { session, .. } => Some(session),
            _ => match self.resource()? {
                Resource::Turn { session } => Some(session),
                Resource::Lock { .. } => None,
            },
        }
    }

    /// What the change is about beside its session: name of a lock, or key of a value.
    pub fn subject(&self) -> Option<&str> {
        match (self, self.resource()) {
            (Change::SetEntry { key, .. }, _) => Some(key),
            (_, Some(Resource::Lock { name })) => Some(name),
            _ => None,
        }
    }

    /// Resource of the queue that the change is about.
    pub fn resource(&self) -> Option<&Resource> {
        match self {
            Change::Ask { resource, .. }
            | Change::Wait { resource, .. }
            | Change::Renew { resource, .. }
            | Change::Leave { resource, .. }
            | Change::StepAside { resource, .. }
            | Change::Release { resource, .. } => Some(resource),
            _ => None,
        }
    }

    /// Key of the queue in which the change lets the next one come up.
    pub(crate) fn freed_queue(&self) -> Option<String> {
        match self {
            Change::Leave { resource, .. }
            | Change::StepAside { resource, .. }
            | Change::Release { resource, .. } => Some(resource.key()),
            Change::CommitTurn { session, .. } => Some(Resource::Turn { session: session.clone() }.key()),
            _ => None,
        }
    }
}

/// How long after a process was heard of last those who wait in it are there: see [`StoreBackend::heartbeat`].
///
/// [`StoreBackend::heartbeat`]: crate::store::StoreBackend::heartbeat
pub const PRESENT_MS: i64 = 1000;

/// How often a process is to be heard of while somebody waits in it.
pub(crate) const HEARD_EVERY_MS: i64 = PRESENT_MS / 4;

/// For how long a place that is waited for is kept after that: whoever lost their process asks for it again.
pub(crate) const KEPT_MS: i64 = 10_000;

/// The process of a place at which nobody waits for the moment.
pub(crate) const NOWHERE: &str = "";

/// How long it takes at most, as a rule, until who is next has come up.
pub(crate) const COMES_UP_MS: i64 = 1000;

/// How many settings a session can have: all of them are read with it.
pub const MOST_SETTINGS: usize = 64;

/// That a session with these settings can be edited so.
pub(crate) fn check_settings(
    now: &BTreeMap<String, Value>,
    edit: &BTreeMap<String, Value>,
) -> Result<(), Refusal> {
    let (gone, set): (Vec<_>, Vec<_>) = edit.iter().partition(|(_, value)| value.is_null());
    let gone = gone.iter().filter(|(key, _)| now.contains_key(*key)).count();
    let new = set.iter().filter(|(key, _)| !now.contains_key(*key)).count();
    let is_more = new > gone && now.len() - gone + new > MOST_SETTINGS;
    if is_more { Err(Refusal::TooManySettings) } else { Ok(()) }
}

/// The number of a message of a session, or 0 for before all of them.
pub(crate) fn check_number(number: i64, messages: i64) -> Result<i64, Refusal> {
    if (0..=messages).contains(&number) { Ok(number) } else { Err(Refusal::NoMessage { number, messages }) }
}

/// What a change came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "done", content = "with", rename_all = "snake_case")]
pub enum Done {
    /// The session as it is now.
    Session(Session),
    /// Messages were appended; the number of the last one.
    Appended {
        /// The number of the first one.
        first: i64,
        /// The number of the last one.
        last: i64,
    },
    /// Messages were removed; how many.
    Rewound {
        /// How many.
        removed: i64,
    },
    /// The value as it is now; nothing if it was removed.
    Entry(Option<Entry>),
    /// The place, held or not; with the messages of the session if it is its turn that is held.
    Ticket {
        /// The place.
        ticket: Ticket,
        /// The last messages, for a turn that is held.
        history: Option<Vec<Message>>,
    },
    /// Where the session stood with its agent.
    Conversation(Option<Conversation>),
    /// It was given back.
    Left,
}

/// Why a change was not made. Nothing of it was.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// There is no such session of this user.
    #[error("there is no such session")]
    NoSession,
    /// It has ended, or its time is over.
    #[error("the session is over")]
    SessionOver,
    /// A live session has that name.
    #[error("a live session has this name")]
    NameTaken,
    /// Another revision is there than the caller has seen.
    #[error("it has changed since: its revision is {revision}")]
    Changed {
        /// The one that is there; 0 if there is none.
        revision: i64,
    },
    /// Somebody holds the place.
    #[error("somebody holds it until {expires_ms}")]
    Held {
        /// What the holder calls itself.
        holder: String,
        /// Until when.
        expires_ms: i64,
    },
    /// The lease is no longer the caller's: it expired, or was taken over.
    #[error("the place {token} is lost")]
    Lost {
        /// Fencing token of the caller.
        token: FencingToken,
    },
    /// The place in the queue is no longer the caller's: it expired, or was removed.
    #[error("the place {} is lost", .place.map_or(0, Position::get))]
    PlaceLost {
        /// Position of the place, if the caller knows it.
        place: Option<Position>,
    },
    /// There is such a user already, or none, or no such token.
    #[error("there is no such user or token, or there is one already")]
    NoAccount,
    /// There is no message of this number yet: who names it believes that more was said than was.
    #[error("there is no message {number}: the session has {messages}")]
    NoMessage {
        /// The number.
        number: i64,
        /// How many there are.
        messages: i64,
    },
    /// The session would have more settings than [`MOST_SETTINGS`].
    #[error("a session has at most {MOST_SETTINGS} settings")]
    TooManySettings,
    /// The same idempotency key came with another change.
    #[error("this idempotency key was used for something else")]
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
            Refusal::Lost { .. } | Refusal::PlaceLost { .. } => "lost",
            Refusal::NoAccount => "no_account",
            Refusal::NoMessage { .. } => "no_message",
            Refusal::TooManySettings => "too_many_settings",
            Refusal::KeyReused => "key_reused",
        }
    }
}
