//! What can be read, as data: for one user, and nothing of anybody else's.

use serde::{Deserialize, Serialize};

use crate::change::Done;
use crate::ids::{SessionId, SessionRef};
use crate::json_text::JsonText;
use crate::model::{Accessed, Entry, Event, Message, Session, Ticket};

/// A question.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// One session, by id or by the name of a live one.
    Session {
        /// Which.
        session: SessionRef,
    },
    /// Sessions, the newest first.
    Sessions {
        /// Only live ones.
        live: bool,
        /// With this label.
        label: Option<(String, String)>,
        /// After this id.
        after: Option<String>,
        /// So many at most.
        limit: i64,
    },
    /// Messages after a number, in order.
    Messages {
        /// Of which session.
        session: SessionId,
        /// After this number.
        after: i64,
        /// So many at most.
        limit: i64,
        /// Size of the page: it ends with the body that fills it.
        bytes: i64,
    },
    /// The last messages, oldest first.
    LastMessages {
        /// Of which session.
        session: SessionId,
        /// So many at most.
        limit: i64,
        /// Size of the page: it begins with the body that fills it.
        bytes: i64,
    },
    /// Values, in the order of their keys.
    Entries {
        /// Of which session.
        session: SessionId,
        /// Only this key.
        key: Option<String>,
        /// After this key.
        after: Option<String>,
        /// So many at most.
        limit: i64,
        /// Size of the page: it ends with the value that fills it.
        bytes: i64,
    },
    /// Locks that are held.
    Locks {
        /// After this name.
        after: Option<String>,
        /// So many at most.
        limit: i64,
    },
    /// What a change came to that was made under an idempotency key.
    Answered {
        /// About which session the caller asks.
        session: SessionId,
        /// The key.
        key: String,
    },
    /// Events after a number, in order.
    Events {
        /// Of which session.
        session: SessionId,
        /// After this number.
        after: i64,
        /// So many at most.
        limit: i64,
    },
    /// What is on the record of the user's accesses, the newest first.
    History {
        /// Only about this session: text, because the audit log has what requests named, valid or not.
        session: Option<String>,
        /// Only since then.
        since_ms: Option<i64>,
        /// Also what was only read.
        reads: bool,
        /// Before this id.
        before: Option<String>,
        /// So many at most.
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
            Query::Locks { .. } => "locks",
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
            | Query::Answered { session, .. }
            | Query::Events { session, .. } => Some(session.as_str()),
            Query::History { session, .. } => session.as_deref(),
            Query::Sessions { .. } | Query::Locks { .. } => None,
        }
    }
}

/// A lock that is held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Locked {
    /// Its name.
    pub name: String,
    /// Who holds it.
    pub ticket: Ticket,
    /// How many wait for it.
    pub waiting: i64,
}

/// A page of a session's events, read in one snapshot with the number of the last one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventPage {
    /// The events that are still kept, in order. Removed ones leave gaps in the numbers.
    pub events: Vec<Event>,
    /// Number of the session's last event, whether or not it is still kept; 0 before the first one.
    pub last: i64,
}

impl EventPage {
    /// Whether the event after `seen` was removed, so that a client which has seen `seen` cannot go on without a gap.
    pub fn has_gap_after(&self, seen: i64) -> bool {
        match self.events.first() {
            Some(first) => first.number > seen + 1,
            None => self.last > seen,
        }
    }
}

/// Rows that a store reads at most in search of the items of one page. A page that is not full by then ends there.
pub const SCAN_ROWS: i64 = 256;

/// Size of a page while it is read. A store stops at the item that fills the page, so that one query reads the whole page and
/// no more than the page and one item are in memory.
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

/// What a change came to that was made under an idempotency key.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The turn, if it was one that the change committed.
    pub turn: Option<CommittedTurn>,
    /// The outcome.
    pub done: Done,
}

/// A turn that was committed.
#[derive(Clone, Debug, PartialEq)]
pub struct CommittedTurn {
    /// Of which session.
    pub session: SessionId,
    /// Its messages.
    pub bodies: Vec<JsonText>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The session.
    Session(Session),
    /// Sessions.
    Sessions(ListPage<Session>),
    /// Messages.
    Messages(Vec<Message>),
    /// Values.
    Entries(ListPage<Entry>),
    /// Locks, in the order of their names.
    Locks(ListPage<Locked>),
    /// Accesses.
    History(ListPage<Accessed>),
    /// Events, and how far the session's events go.
    Events(EventPage),
    /// The change that was made under a key, and what it came to.
    Answered(Option<Box<Answered>>),
}
