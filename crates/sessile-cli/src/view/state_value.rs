//! State values of a session.

use serde::Serialize;
use serde_json::Value;

/// A state value that was set or removed.
#[derive(Debug, Serialize)]
pub(crate) struct ValueChangeView {
    pub(crate) key: String,
    /// Value before the change.
    pub(crate) old: Option<Value>,
    /// Value after the change; none after a removal.
    pub(crate) new: Option<Value>,
    /// Revision after the change; none after a removal.
    pub(crate) revision: Option<i64>,
}
