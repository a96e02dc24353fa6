//! What a change depends on, and the rows that a store has loaded for it.

use super::queue::QueueSnapshot;
use crate::change::Change;
use crate::ids::{Position, SessionId};
use crate::model::{Conversation, Resource, Session};

/// Rows that a change depends on: what a store loads, and locks where it has row locks.
#[derive(Debug, Default)]
pub(crate) struct Dependencies<'a> {
    /// Id of the session that the change is about.
    pub(crate) session: Option<&'a SessionId>,
    /// Name that the change gives to a session: the live session that has it is loaded too.
    pub(crate) name: Option<&'a str>,
    /// Whether the session's settings are needed.
    pub(crate) settings: bool,
    /// Key of the queue, and how it is locked.
    pub(crate) queue: Option<(String, QueueLock)>,
    /// Position of a place that must be among the loaded ones.
    pub(crate) position: Option<Position>,
    /// Claim whose place must be among the loaded ones.
    pub(crate) claim: Option<&'a str>,
    /// Key of the session's value that the change sets.
    pub(crate) entry: Option<&'a str>,
    /// Whether the session's conversation with its agent is needed.
    pub(crate) conversation: bool,
}

/// Row lock that protects a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueLock {
    /// The lock on the session's row.
    Session,
    /// The lock on the queue's row, which is inserted if it is missing.
    Insert,
    /// The lock on the queue's row. A queue without a row is empty.
    Existing,
}

impl<'a> Dependencies<'a> {
    /// Dependencies of a change.
    pub(crate) fn of(change: &'a Change) -> Self {
        let none = Dependencies::default();
        match change {
            Change::StartSession { name, .. } => Dependencies { name: name.as_deref(), ..none },
            Change::EditSession { session, name, .. } | Change::Fork { session, name, .. } => {
                Dependencies { session: Some(session), name: name.as_deref(), settings: true, ..none }
            }
            Change::EndSession { session, .. } => {
                Dependencies { session: Some(session), settings: true, ..none }
            }
            Change::Append { session, .. }
            | Change::Rewind { session, .. }
            | Change::CommitTurn { session, .. } => Dependencies::of_turn(session),
            Change::TakeConversation { session, .. } => {
                Dependencies { conversation: true, ..Dependencies::of_turn(session) }
            }
            Change::SetEntry { session, key, .. } => {
                Dependencies { session: Some(session), entry: Some(key), ..none }
            }
            Change::Ask { resource, .. } => Dependencies::of_queue(resource, QueueLock::Insert),
            Change::Wait { resource, place, .. } => Dependencies {
                position: Some(*place),
                ..Dependencies::of_queue(resource, QueueLock::Existing)
            },
            Change::Leave { resource, claim, .. } | Change::StepAside { resource, claim } => {
                Dependencies { claim: Some(claim), ..Dependencies::of_queue(resource, QueueLock::Existing) }
            }
            Change::Renew { resource, .. } | Change::Release { resource, .. } => {
                Dependencies::of_queue(resource, QueueLock::Existing)
            }
        }
    }

    /// The same for a queue in which a request takes over the place that it was given before.
    pub(crate) fn with_position(self, position: Option<Position>) -> Self {
        Dependencies { position: position.or(self.position), ..self }
    }

    fn of_turn(session: &'a SessionId) -> Self {
        let resource = Resource::Turn { session: session.clone() };
        let queue = Some((resource.key(), QueueLock::Session));
        Dependencies { session: Some(session), queue, ..Dependencies::default() }
    }

    fn of_queue(resource: &'a Resource, lock: QueueLock) -> Self {
        match resource {
            Resource::Turn { session } => Dependencies::of_turn(session),
            Resource::Lock { .. } => {
                Dependencies { queue: Some((resource.key(), lock)), ..Dependencies::default() }
            }
        }
    }

    /// What must not be changed by two changes at once.
    pub(crate) fn serialized_by(&self) -> Option<&str> {
        self.session.map(SessionId::as_str).or(self.queue.as_ref().map(|(resource, _)| resource.as_str()))
    }
}

/// The rows that a change depends on, as of one moment.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// Time of the change, in milliseconds since 1970.
    pub(crate) now: i64,
    /// The session that the change is about.
    pub(crate) session: Option<SessionRecord>,
    /// Another session that has the name that the change gives.
    pub(crate) named: Option<SessionRecord>,
    /// The queue.
    pub(crate) queue: QueueSnapshot,
    /// The value that the change sets.
    pub(crate) entry: Option<StoredEntry>,
    /// The session's conversation with its agent.
    pub(crate) conversation: Option<Conversation>,
    /// What was answered before under the idempotency key of the request.
    pub(crate) answered: Option<StoredAnswer>,
}

/// A change that was made under an idempotency key, and its outcome, as they are stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredAnswer {
    pub(crate) change: String,
    pub(crate) done: String,
}

/// A value of a session, or what a removed value left behind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredEntry {
    pub(crate) revision: i64,
    /// Whether the value was removed. Its revision stays, so that no revision is used twice.
    pub(crate) is_removed: bool,
}

impl StoredEntry {
    /// Kind of the row of a value that exists.
    pub(crate) const KIND: &'static str = "state";
    /// Kind of the row of a value that was removed.
    pub(crate) const REMOVED_KIND: &'static str = "state-gone";

    /// An entry from its row.
    pub(crate) fn new(kind: &str, revision: i64) -> Self {
        StoredEntry { revision, is_removed: kind != StoredEntry::KIND }
    }
}

/// How much of a session's row a change has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dirty {
    /// Nothing.
    No,
    /// Time of last use, and the counters of messages and events.
    Counters,
    /// Anything.
    All,
}

/// The row of a session.
#[derive(Clone, Debug)]
pub(crate) struct SessionRecord {
    pub(crate) session: Session,
    /// Number of the next event.
    pub(crate) next_event: i64,
    pub(super) dirty: Dirty,
}

impl SessionRecord {
    /// A session as it was loaded.
    pub(crate) fn new(session: Session, next_event: i64) -> Self {
        SessionRecord { session, next_event, dirty: Dirty::No }
    }

    /// Marks the session as used. A transaction that began earlier may get its lock later, so the time never goes back.
    pub(super) fn touch(&mut self, now: i64) {
        self.session.used_ms = self.session.used_ms.max(now);
        self.session.set_expiry();
        self.mark(Dirty::Counters);
    }

    pub(super) fn mark(&mut self, dirty: Dirty) {
        self.dirty = self.dirty.max(dirty);
    }
}
