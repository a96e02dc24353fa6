//! Locks.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use sessile::clock::rfc3339;
use sessile::lock::{LockHolder, LockMode, LockStatus};
use sessile_wire::service::{HeldLock, ServiceLock};

use crate::remote::parse_holder;

/// A lock that is held. Beside `holders` it has the fields of the first holder.
#[derive(Debug, Serialize)]
pub(crate) struct LockView {
    pub(crate) name: String,
    mode: LockMode,
    pub(crate) token: i64,
    holder: HolderView,
    since: String,
    expires_at: Option<String>,
    waiting: i64,
    holders: Vec<HoldView>,
}

/// Hold of one holder on a lock.
#[derive(Clone, Debug, Serialize)]
struct HoldView {
    token: i64,
    holder: HolderView,
    since: String,
    expires_at: Option<String>,
}

/// A lease on a lock.
#[derive(Debug, Serialize)]
pub(crate) struct LeaseView {
    pub(crate) name: String,
    pub(crate) mode: LockMode,
    /// Fencing token.
    pub(crate) token: i64,
    pub(crate) expires_at: Option<String>,
}

/// Holder of a lock.
#[derive(Clone, Debug)]
struct HolderView {
    holder: LockHolder,
    /// Whether a service reported the holder: of its process only the pid is known then.
    is_remote: bool,
}

impl Serialize for HolderView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let LockHolder { user, host, process, session, purpose } = &self.holder;
        if !self.is_remote {
            return self.holder.serialize(serializer);
        }
        let mut row = serializer.serialize_struct("LockHolder", 5)?;
        row.serialize_field("user", user)?;
        row.serialize_field("host", host)?;
        row.serialize_field("process", &process.as_ref().map(|process| RemoteProcess::new(process.pid)))?;
        row.serialize_field("session", session)?;
        row.serialize_field("purpose", purpose)?;
        row.end()
    }
}

/// Process on another machine. Its start time, which distinguishes it from others with the same pid, is known only
/// there.
#[derive(Debug, Serialize)]
struct RemoteProcess {
    pid: i32,
    started: Option<u64>,
    boot: Option<String>,
}

impl RemoteProcess {
    fn new(pid: i32) -> Self {
        RemoteProcess { pid, started: None, boot: None }
    }
}

impl From<LockStatus> for LockView {
    fn from(lock: LockStatus) -> Self {
        let holders = lock.holders.into_iter().map(|lease| HoldView {
            token: lease.token,
            holder: HolderView { holder: lease.holder, is_remote: false },
            since: lease.since,
            expires_at: lease.expires_at,
        });
        let waiting = i64::try_from(lock.waiting).unwrap_or(i64::MAX);
        LockView::new(lock.name, lock.mode, holders.collect(), waiting)
    }
}

impl From<HeldLock> for LockView {
    fn from(held: HeldLock) -> Self {
        let HeldLock { lock: ServiceLock { name, mode, ticket, .. }, waiting, holders } = held;
        // A service that knows no shared locks has one holder for each.
        let holders = if holders.is_empty() { vec![ticket] } else { holders };
        let holders = holders.into_iter().map(|ticket| HoldView {
            token: ticket.token,
            holder: HolderView { holder: parse_holder(&ticket.holder), is_remote: true },
            since: rfc3339(ticket.asked_ms),
            expires_at: Some(rfc3339(ticket.expires_ms)),
        });
        LockView::new(name, mode, holders.collect(), waiting)
    }
}

impl From<ServiceLock> for LeaseView {
    fn from(lock: ServiceLock) -> Self {
        let ServiceLock { name, mode, ticket, .. } = lock;
        LeaseView { name, mode, token: ticket.token, expires_at: Some(rfc3339(ticket.expires_ms)) }
    }
}

/// A holder of a lock, with the times of its hold.
#[derive(Clone, Debug)]
pub(crate) struct LockHold<'a> {
    pub(crate) token: i64,
    pub(crate) holder: String,
    pub(crate) since: &'a str,
    pub(crate) expires_at: Option<&'a str>,
}

impl LockView {
    /// Whether a fencing token holds the lock.
    pub(crate) fn is_held_by(&self, token: i64) -> bool {
        self.token == token || self.holders.iter().any(|holder| holder.token == token)
    }

    /// Mode, as a word.
    pub(crate) fn mode_word(&self) -> &'static str {
        self.mode.as_str()
    }

    /// Number of waiters.
    pub(crate) fn waiting(&self) -> i64 {
        self.waiting
    }

    /// Holders.
    pub(crate) fn holds(&self) -> impl Iterator<Item = LockHold<'_>> {
        self.holders.iter().map(|hold| LockHold {
            token: hold.token,
            holder: hold.holder.holder.short(),
            since: &hold.since,
            expires_at: hold.expires_at.as_deref(),
        })
    }

    /// Columns of a table of locks.
    pub(crate) const COLUMNS: [&str; 7] = ["LOCK", "MODE", "TOKEN", "HOLDER", "SINCE", "UNTIL", "WAITING"];

    fn new(name: String, mode: LockMode, holders: Vec<HoldView>, waiting: i64) -> Self {
        let first = holders.first().cloned().unwrap_or_else(|| HoldView {
            token: 0,
            holder: HolderView { holder: parse_holder(""), is_remote: true },
            since: String::new(),
            expires_at: None,
        });
        let HoldView { token, holder, since, expires_at } = first;
        LockView { name, mode, token, holder, since, expires_at, waiting, holders }
    }

    /// Cells of the columns, a row for each holder.
    pub(crate) fn rows(&self) -> impl Iterator<Item = [String; 7]> {
        self.holders.iter().map(|hold| {
            [
                self.name.clone(),
                self.mode.as_str().to_owned(),
                hold.token.to_string(),
                hold.holder.holder.short(),
                hold.since.clone(),
                hold.expires_at.clone().unwrap_or_else(|| "command ends".to_owned()),
                self.waiting.to_string(),
            ]
        })
    }

    /// Holder with a fencing token.
    pub(crate) fn holder_with(&self, token: i64) -> Option<&LockHolder> {
        self.holders.iter().find(|hold| hold.token == token).map(|hold| &hold.holder.holder)
    }
}
