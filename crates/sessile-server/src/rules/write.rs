//! Writes that a decision asks a store for.

use serde_json::Value;

use super::queue::QueuePlace;
use super::snapshot::LoadedSession;
use crate::ids::{FencingToken, Position, SessionId};
use crate::json_text::JsonText;
use crate::model::AgentConversation;

/// Kind of an event, as those who follow a session know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    SessionStarted,
    SessionEdited,
    SessionEnded,
    MessagesAppended,
    MessagesRewound,
    StateChanged,
    TurnBegan,
}

impl EventKind {
    /// Name of the kind in the store and the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            EventKind::SessionStarted => "session.started",
            EventKind::SessionEdited => "session.edited",
            EventKind::SessionEnded => "session.ended",
            EventKind::MessagesAppended => "messages.appended",
            EventKind::MessagesRewound => "messages.rewound",
            EventKind::StateChanged => "state.changed",
            EventKind::TurnBegan => "turn.began",
        }
    }
}

/// One write, of the user whose change it is. A store carries out all writes of a decision, in order, or none.
#[derive(Debug)]
pub(crate) enum Write<'c> {
    /// Inserts a session.
    InsertSession(Box<LoadedSession>),
    /// Updates a session.
    UpdateSession(Box<LoadedSession>),
    /// Updates the time of last use and the counters of a session, and nothing else of it.
    UpdateCounters(Box<LoadedSession>),
    /// Deletes the labels by which a session is found.
    DeleteLabels { session: SessionId },
    /// Inserts labels by which a session is found.
    InsertLabels { session: SessionId, labels: Vec<(String, String)> },
    /// Inserts or updates a setting.
    PutSetting { session: SessionId, key: String, value: Value },
    /// Deletes a setting.
    DeleteSetting { session: SessionId, key: String },
    /// Replaces a value, or with nothing leaves only its revision.
    ReplaceEntry { session: SessionId, key: &'c str, value: Option<&'c JsonText>, revision: i64 },
    /// Inserts messages, the first one with a number.
    InsertMessages { session: SessionId, first: i64, token: Option<FencingToken>, bodies: &'c [JsonText] },
    /// Deletes the messages after one; `last` is the number of the last one.
    DeleteMessagesAfter { session: SessionId, after: i64, last: i64 },
    /// Copies the messages up to one to another session.
    CopyMessages { from: SessionId, to: SessionId, last: i64 },
    /// Deletes a session's conversation with its agent.
    DeleteConversation { session: SessionId },
    /// Inserts a session's conversation with its agent, if the agent's context is this session's or nobody's.
    InsertConversation { session: SessionId, conversation: &'c AgentConversation },
    /// Inserts an event.
    InsertEvent { session: SessionId, number: i64, kind: EventKind, body: Value },
    /// Deletes all places of a session's turn.
    DeleteTurnPlaces { session: SessionId },
    /// Deletes places of a queue.
    DeletePlaces { resource: String, positions: Vec<Position> },
    /// Sets the next number of a queue.
    SetNextNumber { resource: String, next: i64 },
    /// Inserts or updates a place of a queue.
    PutPlace { resource: String, place: QueuePlace },
    /// Heartbeat of this process, so that its waiting places are not skipped.
    Heartbeat,
    /// Deletes the answer under an idempotency key.
    DeleteAnswer { key: &'c str },
    /// Inserts the answer under an idempotency key.
    InsertAnswer { key: &'c str, change: String, done: String },
}
