//! Everything that the panes show, read at one time.

use super::context::{ContextRow, RequestRow};
use super::conversation::AgentRow;
use super::lock::LockRow;
use super::operation::HistoryRow;
use super::session::SessionItem;

/// State of this machine at a time.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) taken_ms: i64,
    pub(crate) sessions: Vec<SessionItem>,
    pub(crate) contexts: Vec<ContextRow>,
    pub(crate) requests: Vec<RequestRow>,
    pub(crate) locks: Vec<LockRow>,
    pub(crate) operations: Vec<HistoryRow>,
    pub(crate) agents: Vec<AgentRow>,
    /// Credentials that expire soon or have expired, each with its end in milliseconds since 1970.
    pub(crate) credentials: Vec<(String, i64)>,
    /// URL of the selected session service.
    pub(crate) server: Option<String>,
    /// Errors of parts that could not be read.
    pub(crate) problems: Vec<String>,
}

/// Sessions of the service, or why they are not known.
#[derive(Debug)]
pub(crate) struct ServiceSnapshot {
    pub(crate) sessions: Result<Vec<SessionItem>, String>,
    pub(crate) taken_ms: i64,
}
