//! Dependencies of a change, and the rows that a store has loaded for it.

use super::queue::QueueSnapshot;
use crate::change::StoreChange;
use crate::ids::{Position, SessionId};
use crate::model::{AgentConversation, Resource, SessionRecord};

/// Rows that a change depends on. A store loads them, and locks them if it has row locks.
#[derive(Debug, Default)]
pub(crate) struct Dependencies<'a> {
    /// Id of the session that the change is about.
    pub(crate) session: Option<&'a SessionId>,
    /// New name of a session; the live session with this name is loaded too.
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
    pub(crate) fn of(change: &'a StoreChange) -> Self {
        let none = Dependencies::default();
        match change {
            StoreChange::StartSession { name, .. } => Dependencies { name: name.as_deref(), ..none },
            StoreChange::EditSession { session, name, .. } | StoreChange::Fork { session, name, .. } => {
                Dependencies { session: Some(session), name: name.as_deref(), settings: true, ..none }
            }
            // The answer is the whole session, with its settings.
            StoreChange::EndSession { session, .. } => {
                Dependencies { session: Some(session), settings: true, ..none }
            }
            StoreChange::Append { session, .. }
            | StoreChange::Rewind { session, .. }
            | StoreChange::CommitTurn { session, .. } => Dependencies::of_turn(session),
            StoreChange::TakeConversation { session, .. } => {
                Dependencies { conversation: true, ..Dependencies::of_turn(session) }
            }
            StoreChange::SetEntry { session, key, .. } => {
                Dependencies { session: Some(session), entry: Some(key), ..none }
            }
            StoreChange::Ask { resource, session, .. } => {
                Dependencies::of_queue(resource, QueueLock::Insert).with_owner(session.as_ref())
            }
            StoreChange::Wait { resource, place, session, .. } => Dependencies {
                position: Some(*place),
                ..Dependencies::of_queue(resource, QueueLock::Existing).with_owner(session.as_ref())
            },
            StoreChange::Leave { resource, claim, .. } | StoreChange::StepAside { resource, claim } => {
                Dependencies { claim: Some(claim), ..Dependencies::of_queue(resource, QueueLock::Existing) }
            }
            StoreChange::Renew { resource, .. } | StoreChange::Release { resource, .. } => {
                Dependencies::of_queue(resource, QueueLock::Existing)
            }
        }
    }

    /// Queue with the place that an earlier attempt of the request has.
    pub(crate) fn with_position(self, position: Option<Position>) -> Self {
        Dependencies { position: position.or(self.position), ..self }
    }

    /// The same for a lock that belongs to a session, which must be live.
    fn with_owner(self, owner: Option<&'a SessionId>) -> Self {
        Dependencies { session: self.session.or(owner), ..self }
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

    /// Session or queue that two changes must not change at once.
    pub(crate) fn serialized_by(&self) -> Option<&str> {
        // The session first: the queue of its turn is protected by the lock on its row.
        self.session.map(SessionId::as_str).or(self.queue.as_ref().map(|(resource, _)| resource.as_str()))
    }
}

/// The rows that a change depends on, as of one moment.
#[derive(Debug, Default)]
pub(crate) struct ChangeSnapshot {
    /// Time of the change, in milliseconds since 1970.
    pub(crate) now: i64,
    /// The session that the change is about.
    pub(crate) session: Option<LoadedSession>,
    /// Another session that has the name that the change gives.
    pub(crate) named: Option<LoadedSession>,
    /// The queue.
    pub(crate) queue: QueueSnapshot,
    /// The value that the change sets.
    pub(crate) entry: Option<StoredEntry>,
    /// The session's conversation with its agent.
    pub(crate) conversation: Option<AgentConversation>,
    /// Earlier answer under the idempotency key of the request.
    pub(crate) answered: Option<StoredAnswer>,
}

/// Stored change under an idempotency key, with its outcome.
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

/// Part of a session's row that a change has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DirtyFields {
    /// No change.
    No,
    /// Time of last use, and the counters of messages and events.
    Counters,
    /// Any column.
    All,
}

/// The row of a session.
#[derive(Clone, Debug)]
pub(crate) struct LoadedSession {
    pub(crate) session: SessionRecord,
    /// Number of the next event.
    pub(crate) next_event: i64,
    pub(super) dirty: DirtyFields,
}

impl LoadedSession {
    /// A session as it was loaded.
    pub(crate) fn new(session: SessionRecord, next_event: i64) -> Self {
        LoadedSession { session, next_event, dirty: DirtyFields::No }
    }

    /// Marks the session as used. A transaction that began earlier may get its lock later, so the time never goes back.
    pub(super) fn touch(&mut self, now: i64) {
        self.session.used_ms = self.session.used_ms.max(now);
        self.session.set_expiry();
        self.mark(DirtyFields::Counters);
    }

    pub(super) fn mark(&mut self, dirty: DirtyFields) {
        self.dirty = self.dirty.max(dirty);
    }
}
