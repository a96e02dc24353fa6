//! History of a user's requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::page::cursor_page;

/// An entry of a user's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    /// Id of the entry, which begins with its time.
    pub id: String,
    /// Time of the request, in milliseconds since 1970.
    pub at_ms: i64,
    /// Change that was requested: `start_session`, `append`, `commit_turn`, `token.create`, ...
    pub action: String,
    /// Session of the change.
    pub session: Option<String>,
    /// Name of the lock or key of the value that was changed; null for every other change.
    pub subject: Option<String>,
    /// `done`, or the reason for the refusal.
    pub outcome: String,
    /// Id of the token that made the request, or that it was about.
    pub token_id: Option<String>,
}

cursor_page! {
    /// A page of a user's history, newest first.
    HistoryPage, "HistoryPage", history: HistoryEntry
}
