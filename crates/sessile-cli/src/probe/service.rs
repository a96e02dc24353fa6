//! Interface of probed protocols.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::http::UnreachableReason;

/// Protocol of a service. Threads share it; the state of one user is in [`User`].
pub(crate) trait Service: Send + Sync {
    /// Says something as a user.
    fn say(&self, user: &mut User, message: &str) -> Result<ProbeReply, ProbeFailure>;

    /// History of a user, if the service offers one.
    fn history(&self, user: &User) -> Option<Result<StoredHistory, ProbeFailure>>;

    /// The users for whom something was begun that goes on at the service, each told once. None, where nothing does.
    fn begun(&self) -> Option<Vec<User>> {
        None
    }

    /// Ends the session of a user, within a timeout.
    fn end(&self, _user: &User, _within: Duration) -> Result<(), ProbeFailure> {
        Ok(())
    }
}

/// One of the users.
#[derive(Debug, Default)]
pub(crate) struct User {
    /// Counts from one.
    pub(crate) number: u32,
    /// As the service knows them.
    pub(crate) name: String,
    /// Session or conversation of the messages.
    pub(crate) session: String,
    /// The turn that comes next.
    pub(crate) turn: u32,
    /// A2A: the conversation; Sessile: the session.
    pub(crate) context_id: Option<String>,
    /// A2A: a task that waits for the next message.
    pub(crate) task_id: Option<String>,
    /// A2A: every task so far.
    pub(crate) tasks: Vec<String>,
    /// OpenAI: the messages so far, where the service does not keep them.
    pub(crate) messages: Vec<Value>,
}

/// A reply.
#[derive(Debug)]
pub(crate) struct ProbeReply {
    /// Text for the user.
    pub(crate) text: String,
    /// All that came.
    pub(crate) whole: String,
}

/// Stored history of a user.
#[derive(Debug, Default)]
pub(crate) struct StoredHistory {
    /// Messages of the user, or all if roles are unknown.
    pub(crate) items: Vec<String>,
    /// Whether nothing of what the service itself said is among the items.
    pub(crate) is_users_only: bool,
    /// All that came.
    pub(crate) whole: String,
}

/// Failure to get a reply.
#[derive(Debug, Clone)]
pub(crate) struct ProbeFailure {
    pub(crate) kind: FailureKind,
    /// Received bytes, which may hold a leak.
    pub(crate) whole: String,
    /// First characters of the message for people, if it may be disclosed.
    pub(crate) told: Option<String>,
}

/// Kind of failure.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FailureKind {
    /// Timed out.
    TimedOut,
    /// No connection; why.
    Unreachable(UnreachableReason),
    /// HTTP error status.
    Status(u16),
    /// The reply is not in it, or it cannot be understood; why.
    Unusable(String),
}

impl ProbeFailure {
    pub(crate) fn new(kind: FailureKind) -> Self {
        ProbeFailure { kind, whole: String::new(), told: None }
    }

    pub(crate) fn unusable(why: &str, whole: &str) -> Self {
        ProbeFailure { whole: whole.to_owned(), ..ProbeFailure::new(FailureKind::Unusable(why.to_owned())) }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureKind::TimedOut => f.write_str("timed out"),
            FailureKind::Unreachable(why) => f.write_str(&sessile::text::shown(why)),
            FailureKind::Status(status) => write!(f, "HTTP status {status}"),
            FailureKind::Unusable(why) => f.write_str(&sessile::text::shown(why)),
        }
    }
}
