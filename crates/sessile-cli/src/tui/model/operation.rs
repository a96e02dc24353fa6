//! Operations of the history as rows.

use std::cmp::Ordering;

use super::listing::{ListRow, RowFilter};
use crate::view::OperationView;

/// An operation.
#[derive(Clone, Debug)]
pub(crate) struct HistoryRow {
    pub(crate) id: String,
    /// Number, by which it is undone.
    pub(crate) number: Option<i64>,
    pub(crate) at: String,
    pub(crate) at_ms: i64,
    pub(crate) command: String,
    pub(crate) subject: String,
    pub(crate) place: String,
    pub(crate) note: String,
    pub(crate) is_undone: bool,
    /// Whether an undo can be tried: it has effects, and it was not undone.
    pub(crate) is_undoable: bool,
}

impl From<&OperationView> for HistoryRow {
    fn from(view: &OperationView) -> Self {
        let [_, at, command, subject, place, note] = view.cells();
        let id = view.id();
        HistoryRow {
            number: id.parse().ok(),
            id,
            at,
            at_ms: view.at_ms(),
            command,
            subject,
            place,
            note,
            is_undone: view.is_undone(),
            is_undoable: view.is_undoable(),
        }
    }
}

impl ListRow for HistoryRow {
    const ORDERS: &'static [&'static str] = &["newest first", "command"];

    fn key(&self) -> &str {
        &self.id
    }

    fn matches(&self, filter: &RowFilter) -> bool {
        filter.matches(&[&self.id, &self.command, &self.subject, &self.place, &self.note], &[])
    }

    fn compare(&self, other: &Self, order: usize, _now_ms: i64) -> Ordering {
        let newest = || (other.at_ms, other.number).cmp(&(self.at_ms, self.number));
        if order == 1 { self.command.cmp(&other.command).then_with(newest) } else { newest() }
    }
}
