//! History: operations, and whether they can be undone.

use super::column;
use crate::tui::model::{HistoryRow, clock_time};
use crate::tui::table_view::{Cell, TableColumn};
use crate::tui::theme::ScreenTone;

pub(super) const COLUMNS: &[TableColumn] = &[
    column("ID", 5, 0, 0),
    column("WHEN", 11, 0, 1),
    column("COMMAND", 17, 1, 0),
    column("SUBJECT", 18, 5, 0),
    column("NOTE", 17, 0, 2),
    column("WHERE", 8, 2, 3),
];

pub(super) fn cells(row: &HistoryRow, now_ms: i64) -> Vec<Cell> {
    let tone = if row.is_undone { ScreenTone::Faint } else { ScreenTone::Plain };
    vec![
        Cell::toned(row.id.clone(), tone),
        Cell::toned(clock_time(&row.at, now_ms), tone),
        Cell::toned(row.command.clone(), if row.is_undone { ScreenTone::Faint } else { ScreenTone::Strong }),
        Cell::toned(row.subject.clone(), tone),
        Cell::toned(row.note.clone(), ScreenTone::Faint),
        Cell::toned(row.place.clone(), ScreenTone::Faint),
    ]
}
