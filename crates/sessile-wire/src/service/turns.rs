//! Turns of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::limits::{
    DEFAULT_TTL_MS, DEFAULT_TURN_HISTORY, DEFAULT_WAIT_MS, MAX_HOLDER, MAX_MESSAGES, MAX_PAGE_ITEMS,
    MAX_TTL_MS, MAX_WAIT_MS,
};
use super::messages::ServiceMessage;
use super::queue::{BusyPolicy, LeaseTicket};
use super::schema::AnyValue;

/// A turn to acquire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginTurnRequest {
    /// Lease of the turn, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_TTL_MS), extend("default" = DEFAULT_TTL_MS))]
    pub ttl_ms: Option<i64>,
    /// Longest wait for the turn, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_WAIT_MS), extend("default" = DEFAULT_WAIT_MS))]
    pub wait_ms: Option<i64>,
    /// Behaviour if somebody has the turn: wait in the queue, fail, or take it over.
    #[serde(default)]
    pub busy: BusyPolicy,
    /// Number of last messages that come with the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_PAGE_ITEMS), extend("default" = DEFAULT_TURN_HISTORY))]
    pub history: Option<i64>,
    /// Display name of the holder; default: the user's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_HOLDER))]
    pub holder: Option<String>,
}

// The message is generic so that the service can put messages that it has serialized into the response as raw JSON.
/// A turn that was acquired.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Turn")]
pub struct BeginTurnResponse<T = ServiceMessage> {
    /// Session of the turn.
    pub session: String,
    /// Lease on the turn.
    #[serde(flatten)]
    pub ticket: LeaseTicket,
    /// Last messages, oldest first: as many as requested, or as fit into 4 MiB.
    pub history: Vec<T>,
}

/// Messages to append at the end of a turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitTurnRequest {
    /// Bodies of the messages.
    #[schemars(with = "Vec<AnyValue>", length(max = MAX_MESSAGES))]
    pub messages: Vec<Box<RawValue>>,
}

/// A turn's lease to renew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewTurnRequest {
    /// Lease from now on, in milliseconds.
    #[schemars(range(min = 1, max = MAX_TTL_MS), extend("default" = DEFAULT_TTL_MS))]
    pub ttl_ms: Option<i64>,
}
