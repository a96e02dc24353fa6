//! Locks of a user.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::{DEFAULT_TTL_MS, DEFAULT_WAIT_MS, MAX_HOLDER, MAX_TTL_MS, MAX_WAIT_MS};
use super::page::cursor_page;
use super::queue::{BusyPolicy, LeaseTicket};
use crate::lock_mode::LockMode;

/// A lock to acquire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TakeLockRequest {
    /// Lease of the lock, in milliseconds.
    #[schemars(range(min = 1, max = MAX_TTL_MS), extend("default" = DEFAULT_TTL_MS))]
    pub ttl_ms: Option<i64>,
    /// Longest wait for the lock, in milliseconds.
    #[schemars(range(min = 0, max = MAX_WAIT_MS), extend("default" = DEFAULT_WAIT_MS))]
    pub wait_ms: Option<i64>,
    /// If it is held: wait, fail, or take it over.
    #[serde(default)]
    pub busy: BusyPolicy,
    /// Mode: `shared` holders exclude exclusive ones only.
    #[serde(default)]
    pub mode: LockMode,
    /// Display name of the holder; default: the user's name.
    #[schemars(length(min = 1, max = MAX_HOLDER))]
    pub holder: Option<String>,
    /// Live session that the lock belongs to: the lock is released when the session ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// A lock's lease to renew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewLockRequest {
    /// Fencing token of the lease.
    pub token: i64,
    /// Lease from now on, in milliseconds.
    #[schemars(range(min = 1, max = MAX_TTL_MS), extend("default" = DEFAULT_TTL_MS))]
    pub ttl_ms: Option<i64>,
}

/// A lock that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Lock")]
pub struct ServiceLock {
    /// Name of the lock.
    pub name: String,
    /// Mode in which it is held.
    // A service of an earlier version has exclusive locks only, and sends no mode.
    #[serde(default)]
    pub mode: LockMode,
    /// Session that the lock belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Lease on the lock.
    #[serde(flatten)]
    pub ticket: LeaseTicket,
}

/// A lock that is held, with its holders and the length of its queue. The fields of the lease are those of the first holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldLock {
    /// The lock.
    #[serde(flatten)]
    pub lock: ServiceLock,
    /// Number of waiters.
    pub waiting: i64,
    /// Leases of all holders, in the order of the queue.
    // A service of an earlier version has one holder, in the fields above.
    #[serde(default)]
    pub holders: Vec<LeaseTicket>,
}

cursor_page! {
    /// A page of locks that are held.
    LockPage, "LockPage", locks: HeldLock
}
