//! Queries as data, each for one user.

use serde::{Deserialize, Serialize};

use crate::change::ChangeOutcome;
use crate::ids::{FencingToken, SessionId, SessionRef};
use crate::json_text::JsonText;
use crate::model::{EntryRecord, HistoryEntry, MessageRecord, SessionEvent, SessionRecord, Ticket};

/// Rows of a page that are read as quickly as they are handed over to another thread.
const SHORT_PAGE: i64 = 100;

/// A query for a user's data.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// One session, by id or by the name of a live one.
    Session {
        /// Id or name of the session.
        session: SessionRef,
    },
    /// Sessions, the newest first.
    Sessions {
        /// Whether only live ones.
        live: bool,
        /// Label that they must have.
        label: Option<(String, String)>,
        /// Id after which the page begins.
        after: Option<String>,
        /// Number of items, at most.
        limit: i64,
    },
    /// Messages after a number, in order.
    Messages {
        /// Id of the session.
        session: SessionId,
        /// Number after which the page begins.
        after: i64,
        /// Number of items, at most.
        limit: i64,
        /// Size of the page: it ends with the body that fills it.
        bytes: i64,
    },
    /// The last messages, oldest first.
    LastMessages {
        /// Id of the session.
        session: SessionId,
        /// Number of items, at most.
        limit: i64,
        /// Size of the page: it begins with the body that fills it.
        bytes: i64,
    },
    /// Values, in the order of their keys.
    Entries {
        /// Id of the session.
        session: SessionId,
        /// Only key to read.
        key: Option<String>,
        /// Key after which the page begins.
        after: Option<String>,
        /// Number of items, at most.
        limit: i64,
        /// Size of the page: it ends with the value that fills it.
        bytes: i64,
    },
    /// Locks that are held.
    Locks {
        /// Name after which the page begins.
        after: Option<String>,
        /// Number of items, at most.
        limit: i64,
    },
    /// Locks that a session holds.
    SessionLocks {
        /// Id of the session.
        session: SessionId,
    },
    /// Outcome of the change that was made under an idempotency key.
    Answered {
        /// Id of the session that the caller asks about.
        session: SessionId,
        /// Idempotency key.
        key: String,
    },
    /// Events after a number, in order.
    Events {
        /// Id of the session.
        session: SessionId,
        /// Number after which the page begins.
        after: i64,
        /// Number of items, at most.
        limit: i64,
    },
    /// Audit log of the user, the newest entries first.
    History {
        /// Session that the entries are about: text, because the audit log has what requests named, valid or not.
        session: Option<String>,
        /// Time since which entries are read.
        since_ms: Option<i64>,
        /// Whether reads are included.
        reads: bool,
        /// Id before which the page begins.
        before: Option<String>,
        /// Number of items, at most.
        limit: i64,
    },
}

impl Query {
    /// Name of the query, as the audit log has it.
    pub fn name(&self) -> &'static str {
        match self {
            Query::Session { .. } => "session",
            Query::Sessions { .. } => "sessions",
            Query::Messages { .. } => "messages",
            Query::LastMessages { .. } => "last_messages",
            Query::Entries { .. } => "entries",
            Query::Locks { .. } | Query::SessionLocks { .. } => "locks",
            Query::Answered { .. } => "answered",
            Query::Events { .. } => "events",
            Query::History { .. } => "history",
        }
    }

    /// Session that the query is about, as the request named it.
    pub fn session(&self) -> Option<&str> {
        match self {
            Query::Session { session } => Some(session.as_str()),
            Query::Messages { session, .. }
            | Query::LastMessages { session, .. }
            | Query::Entries { session, .. }
            | Query::SessionLocks { session }
            | Query::Answered { session, .. }
            | Query::Events { session, .. } => Some(session.as_str()),
            Query::History { session, .. } => session.as_deref(),
            Query::Sessions { .. } | Query::Locks { .. } => None,
        }
    }

    /// Whether the query reads a few rows by their keys, however much the user has stored.
    pub(crate) fn is_short(&self) -> bool {
        match self {
            Query::Session { .. } | Query::Answered { .. } => true,
            Query::Messages { limit, .. }
            | Query::LastMessages { limit, .. }
            | Query::Entries { limit, .. }
            | Query::Events { limit, .. } => *limit <= SHORT_PAGE,
            // Their filters are applied to rows that may not match.
            Query::Sessions { .. }
            | Query::Locks { .. }
            | Query::SessionLocks { .. }
            | Query::History { .. } => false,
        }
    }
}

/// A lock that is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockRecord {
    /// Name of the lock.
    pub name: String,
    /// First place that holds it.
    pub ticket: Ticket,
    /// Other places that share it.
    #[serde(default)]
    pub others: Vec<Ticket>,
    /// Number of waiters.
    pub waiting: i64,
}

/// A page of a session's events, read in one snapshot with the number of the last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventPage {
    /// The events that are still kept, in order. Removed ones leave gaps in the numbers.
    pub events: Vec<SessionEvent>,
    /// Number of the session's last event, whether or not it is still kept; 0 before the first one.
    pub last: i64,
}

impl EventPage {
    /// Whether the event after `seen` was removed, so that a client which has seen `seen` cannot go on without a gap.
    pub fn has_gap_after(&self, seen: i64) -> bool {
        match self.events.first() {
            Some(first) => first.number > seen + 1,
            // No event is kept, but some happened after the one that was seen.
            None => self.last > seen,
        }
    }
}

/// Rows that a store reads at most in search of the items of one page. A page that is not full by then ends there.
pub const SCAN_ROWS: i64 = 256;

/// Size of a page while it is read. A store stops at the item that fills the page: one query reads the whole page,
/// and at most one item more is in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageSize {
    left: i64,
}

impl PageSize {
    /// A page of so many bytes.
    pub(crate) fn new(bytes: i64) -> Self {
        PageSize { left: bytes }
    }

    /// Adds an item.
    pub(crate) fn add(&mut self, item: &JsonText) {
        self.left = self.left.saturating_sub(i64::try_from(item.get().len()).unwrap_or(i64::MAX));
    }

    /// Whether no item may be added.
    pub(crate) fn is_full(self) -> bool {
        self.left <= 0
    }
}

/// A part of a list, in its order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListPage<T> {
    /// The items. A page may be empty although more follow: see [`SCAN_ROWS`].
    pub items: Vec<T>,
    /// Cursor of the next page; none after the last page.
    pub next: Option<String>,
}

impl<T> ListPage<T> {
    /// A page of `limit` items. If it is full, the next page begins after its last item.
    pub(crate) fn of(items: Vec<T>, limit: i64, size: PageSize, cursor: impl FnOnce(&T) -> String) -> Self {
        let is_full = size.is_full() || i64::try_from(items.len()).is_ok_and(|count| count >= limit);
        ListPage { next: items.last().filter(|_| is_full).map(cursor), items }
    }
}

/// Outcome of a change that was made under an idempotency key.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredOutcome {
    /// Turn that the change committed, if it was a commit.
    pub turn: Option<CommittedTurn>,
    /// Outcome of the change.
    pub done: ChangeOutcome,
}

/// A turn that was committed.
#[derive(Clone, Debug, PartialEq)]
pub struct CommittedTurn {
    /// Id of the session.
    pub session: SessionId,
    /// Bodies of its messages.
    pub bodies: Vec<JsonText>,
}

/// Result of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryAnswer {
    /// The session.
    Session(SessionRecord),
    /// Sessions.
    Sessions(ListPage<SessionRecord>),
    /// Messages.
    Messages(Vec<MessageRecord>),
    /// Values.
    Entries(ListPage<EntryRecord>),
    /// Locks, in the order of their names.
    Locks(ListPage<LockRecord>),
    /// Locks of a session, each with the fencing token of its lease.
    SessionLocks(Vec<(String, FencingToken)>),
    /// Entries of the audit log.
    History(ListPage<HistoryEntry>),
    /// Events, with the number of the session's last one.
    Events(EventPage),
    /// Change that was made under an idempotency key.
    Answered(Option<Box<StoredOutcome>>),
}
