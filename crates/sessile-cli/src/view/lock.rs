//! Locks.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use sessile::clock::rfc3339;
use sessile::lock::{LockHolder, LockStatus};
use sessile_wire::service::{HeldLock, ServiceLock};

use crate::remote::holder_of;

/// A lock that is held.
#[derive(Debug, Serialize)]
pub(crate) struct LockView {
    pub(crate) name: String,
    pub(crate) token: i64,
    holder: HolderView,
    since: String,
    expires_at: Option<String>,
    waiting: i64,
}

/// A lease on a lock.
#[derive(Debug, Serialize)]
pub(crate) struct LeaseView {
    pub(crate) name: String,
    /// Fencing token.
    pub(crate) token: i64,
    pub(crate) expires_at: Option<String>,
}

/// Holder of a lock.
#[derive(Debug)]
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

/// Process on another machine: what tells it apart from others with its pid is known there alone.
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
        LockView {
            name: lock.name,
            token: lock.token,
            holder: HolderView { holder: lock.holder, is_remote: false },
            since: lock.since,
            expires_at: lock.expires_at,
            waiting: i64::try_from(lock.waiting).unwrap_or(i64::MAX),
        }
    }
}

impl From<HeldLock> for LockView {
    fn from(held: HeldLock) -> Self {
        let holder = HolderView { holder: holder_of(&held), is_remote: true };
        let ServiceLock { name, ticket } = held.lock;
        LockView {
            name,
            token: ticket.token,
            holder,
            since: rfc3339(ticket.asked_ms),
            expires_at: Some(rfc3339(ticket.expires_ms)),
            waiting: held.waiting,
        }
    }
}

impl From<ServiceLock> for LeaseView {
    fn from(lock: ServiceLock) -> Self {
        let ServiceLock { name, ticket } = lock;
        LeaseView { name, token: ticket.token, expires_at: Some(rfc3339(ticket.expires_ms)) }
    }
}

impl LockView {
    /// Columns of a table of locks.
    pub(crate) const COLUMNS: [&str; 6] = ["LOCK", "TOKEN", "HOLDER", "SINCE", "UNTIL", "WAITING"];

    /// Cells of the columns.
    pub(crate) fn cells(&self) -> [String; 6] {
        [
            self.name.clone(),
            self.token.to_string(),
            self.holder.holder.short(),
            self.since.clone(),
            self.expires_at.clone().unwrap_or_else(|| "its command ends".to_owned()),
            self.waiting.to_string(),
        ]
    }

    /// Holder of the lock.
    pub(crate) fn holder(&self) -> &LockHolder {
        &self.holder.holder
    }
}
