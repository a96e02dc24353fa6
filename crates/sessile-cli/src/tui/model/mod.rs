//! View models: the content of the panes, as plain data without a terminal. Another front end can show the same.

mod attention;
mod context;
mod conversation;
mod detail;
mod line_diff;
mod listing;
mod lock;
mod operation;
mod session;
mod snapshot;
mod time;

pub(crate) use attention::{AttentionList, AttentionTarget, attention};
pub(crate) use context::{ContextRow, RequestRow};
pub(crate) use conversation::{AgentRow, AgentRowKind};
pub(crate) use detail::{Detail, DetailKey, DetailSection};
pub(crate) use line_diff::line_diff;
pub(crate) use listing::{ListRow, RowFilter, RowList};
pub(crate) use lock::LockRow;
pub(crate) use operation::HistoryRow;
pub(crate) use session::SessionItem;
pub(crate) use snapshot::{ServiceSnapshot, Snapshot};
pub(crate) use time::{clock_time, countdown};
