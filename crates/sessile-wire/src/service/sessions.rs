//! Sessions.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::limits::{
    DEFAULT_IDLE_MS, DEFAULT_LIFETIME_MS, MAX_CONTEXT_NAME, MAX_LIFETIME_MS, MAX_SESSION_NAME, MAX_SETTINGS,
};
use super::page::cursor_page;
use super::schema::label_limits;

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Session")]
pub struct ServiceSession {
    /// Id of the session, a UUID of version 7.
    pub id: String,
    /// Name of the session, unique among the user's live sessions.
    #[schemars(length(min = 1, max = MAX_SESSION_NAME))]
    pub name: Option<String>,
    /// Context that the session is pinned to.
    pub context: Option<String>,
    /// Labels to find the session by.
    #[schemars(transform = label_limits)]
    pub labels: BTreeMap<String, String>,
    /// Settings of the session.
    #[schemars(extend("maxProperties" = MAX_SETTINGS))]
    pub settings: BTreeMap<String, Value>,
    /// Revision, the session's ETag: it grows with every change of the fields above.
    pub revision: i64,
    /// Start of the session, in milliseconds since 1970.
    pub started_ms: i64,
    /// Last use of the session, in milliseconds since 1970.
    pub used_ms: i64,
    /// Expiry of the session unless it is used again, in milliseconds since 1970.
    pub expires_ms: i64,
    /// Idle limit, in milliseconds.
    pub idle_ms: i64,
    /// Longest lifetime, in milliseconds.
    pub max_ms: i64,
    /// End of the session, in milliseconds since 1970; null while it has not ended.
    pub ended_ms: Option<i64>,
    /// Reason for the end.
    pub end_reason: Option<String>,
    /// Number of messages, which is the number of the last message.
    pub messages: i64,
}

impl ServiceSession {
    /// Name of the session, or its id if it has no name.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }
}

/// A session that was ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndedSession {
    /// The session.
    #[serde(flatten)]
    pub session: ServiceSession,
    /// Names of the locks that belonged to the session and were released.
    // A service of an earlier version releases none, and sends no list.
    #[serde(default)]
    pub released_locks: Vec<String>,
}

cursor_page! {
    /// A page of sessions.
    SessionPage, "SessionPage", sessions: ServiceSession
}

/// A session to create.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
// A misspelt field is an error: its default would otherwise be used in silence.
#[serde(deny_unknown_fields)]
pub struct CreateSessionRequest {
    /// Name of the session, unique among the user's live sessions.
    #[schemars(length(min = 1, max = MAX_SESSION_NAME))]
    pub name: Option<String>,
    /// Context that the session is pinned to.
    #[schemars(length(min = 1, max = MAX_CONTEXT_NAME))]
    pub context: Option<String>,
    /// Labels to find the session by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(transform = label_limits)]
    pub labels: BTreeMap<String, String>,
    /// Settings of the session.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = MAX_SETTINGS))]
    pub settings: BTreeMap<String, Value>,
    /// Idle limit, in milliseconds.
    #[schemars(range(min = 1, max = MAX_LIFETIME_MS), extend("default" = DEFAULT_IDLE_MS))]
    pub idle_ms: Option<i64>,
    /// Longest lifetime, in milliseconds.
    #[schemars(range(min = 1, max = MAX_LIFETIME_MS), extend("default" = DEFAULT_LIFETIME_MS))]
    pub max_ms: Option<i64>,
}

/// A change of a session. Fields that are absent or null keep their value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditSessionRequest {
    /// New name, unique among the user's live sessions.
    #[schemars(length(min = 1, max = MAX_SESSION_NAME))]
    pub name: Option<String>,
    /// New labels, which replace all labels of the session.
    #[schemars(transform = label_limits)]
    pub labels: Option<BTreeMap<String, String>>,
    /// Settings to change; null removes a setting.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = MAX_SETTINGS))]
    pub settings: BTreeMap<String, Value>,
}
