//! Events of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An event of a session: the data of a server-sent event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Event")]
pub struct SessionEvent {
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ServerSentEvent {
    /// Number among the session's events.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub id: Option<String>,
    /// Kind of the event: `session.started`, `messages.appended`, `turn.began`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub event: Option<String>,
    /// JSON: `number`, `kind`, `body`, `at_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub data: Option<String>,
}
