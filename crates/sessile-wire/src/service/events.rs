//! Events of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An event of a session: the data of a server-sent event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Event")]
pub struct ServiceEvent {
    /// Number among the session's events, from 1.
    pub number: i64,
    /// Kind of the event: `session.started`, `messages.appended`, `turn.began`, ...
    pub kind: String,
    /// Details of the event.
    pub body: Value,
    /// Time of the event, in milliseconds since 1970.
    pub at_ms: i64,
}

/// One event of the stream.
#[derive(Clone, Debug, JsonSchema)]
pub struct ServerSentEvent {
    /// Number among the session's events.
    pub id: Option<String>,
    /// Kind of the event: `session.started`, `messages.appended`, `turn.began`, ...
    pub event: Option<String>,
    /// JSON: `number`, `kind`, `body`, `at_ms`.
    pub data: Option<String>,
}
