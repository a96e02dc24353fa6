//! State of a session: values under keys, each with a revision.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::page::cursor_page;

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

cursor_page! {
    /// A page of a session's state, in the order of its keys.
    StatePage, "StatePage", entries: StateEntry
}
