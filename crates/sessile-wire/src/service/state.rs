//! State of a session: values under keys, each with a revision.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A value of a session's state.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StateEntry {
    /// Key of the value.
    pub key: String,
    /// Value: any JSON.
    pub value: Box<RawValue>,
    /// Revision, the value's ETag: it grows with every change.
    pub revision: i64,
}

/// A page of a session's state, in the order of its keys. The item is generic so that the service can serialize entries once,
/// measure them, and put them into the page as raw JSON.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StatePage")]
pub struct StatePage<T = StateEntry> {
    /// Values of the page.
    pub entries: Vec<T>,
    /// Cursor of the next page; null after the last page.
    pub next: Option<String>,
}

impl<T> super::CursorPage for StatePage<T> {
    type Item = T;

    fn new(entries: Vec<T>, next: Option<String>) -> Self {
        StatePage { entries, next }
    }

    fn into_parts(self) -> (Vec<T>, Option<String>) {
        (self.entries, self.next)
    }
}
