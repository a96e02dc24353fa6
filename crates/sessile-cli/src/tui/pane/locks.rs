//! Locks: holder, age, lease and waiters.

use super::column;
use crate::tui::model::{LockRow, countdown};
use crate::tui::table_view::{Cell, TableColumn};
use crate::tui::theme::ScreenTone;

pub(super) const COLUMNS: &[TableColumn] = &[
    column("LOCK", 16, 2, 0),
    column("MODE", 9, 0, 2),
    column("HOLDER", 18, 5, 0),
    column("AGE", 6, 0, 1),
    column("UNTIL", 10, 0, 1),
    column("WAITING", 7, 0, 1),
    column("TOKEN", 6, 0, 3),
];

pub(super) fn cells(row: &LockRow, now_ms: i64) -> Vec<Cell> {
    let until = match row.until_ms {
        Some(until) => format!("in {}", countdown(until - now_ms)),
        None => "command".to_owned(),
    };
    vec![
        Cell::toned(row.name.clone(), ScreenTone::Strong),
        Cell::plain(row.mode),
        Cell::plain(row.holder.clone()),
        Cell::plain(countdown(now_ms - row.since_ms)),
        Cell::plain(until),
        Cell::toned(
            row.waiting.to_string(),
            if row.waiting > 0 { ScreenTone::Warning } else { ScreenTone::Plain },
        ),
        Cell::toned(row.token.to_string(), ScreenTone::Faint),
    ]
}
