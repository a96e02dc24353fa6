//! Queues for turns and locks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::plain_enum;

/// Behaviour of a request for a turn or lock that somebody else holds or waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline, transform = plain_enum)]
pub enum BusyPolicy {
    /// Wait at the end of the queue.
    #[default]
    Enqueue,
    /// Fail at once.
    Reject,
    /// Take it from its holder, ahead of all waiters.
    Interrupt,
}

/// A lease on a turn or lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeaseTicket {
    /// Fencing token, larger than that of every earlier holder.
    pub token: i64,
    /// Number in the queue.
    pub place: i64,
    /// Display name of the holder.
    pub holder: String,
    /// Time of the request, in milliseconds since 1970.
    pub asked_ms: i64,
    /// Expiry of the lease unless it is renewed, in milliseconds since 1970.
    pub expires_ms: i64,
}
