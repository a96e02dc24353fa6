//! Contexts: guard, approval with its countdown, bindings.

use sessile::context::Guard;

use super::column;
use crate::tui::model::{ContextRow, countdown};
use crate::tui::table_view::{Cell, TableColumn};
use crate::tui::theme::ScreenTone;

pub(super) const COLUMNS: &[TableColumn] = &[
    column("NAME", 14, 2, 0),
    column("GUARD", 8, 0, 0),
    column("APPROVAL", 15, 0, 0),
    column("SESSIONS", 8, 0, 2),
    column("BINDINGS", 20, 6, 1),
    column("FROM", 7, 0, 3),
];

pub(super) fn cells(row: &ContextRow, now_ms: i64) -> Vec<Cell> {
    let mark = if row.is_current { "*" } else { "" };
    let approval = match (row.approval_left_ms(now_ms), row.requests) {
        (Some(left), _) => Cell::toned(format!("{} left", countdown(left)), ScreenTone::Good),
        (None, 1..) => Cell::toned(format!("{} request(s)", row.requests), ScreenTone::Warning),
        (None, 0) if row.guard == Guard::Approval => Cell::plain("required"),
        (None, 0) => Cell::toned("-", ScreenTone::Faint),
    };
    let bindings = match &row.error {
        Some(error) => Cell::toned(format!("error: {error}"), ScreenTone::Bad),
        None if row.bindings.is_empty() => Cell::toned(row.description.clone(), ScreenTone::Faint),
        None => Cell::plain(row.bindings.join(" ")),
    };
    let home = if row.is_trusted { row.home.to_owned() } else { format!("{}, not trusted", row.home) };
    vec![
        Cell::toned(
            format!("{mark}{}", row.name),
            if row.is_current { ScreenTone::Strong } else { ScreenTone::Plain },
        ),
        Cell::toned(
            row.guard.as_str(),
            if row.guard == Guard::Approval { ScreenTone::Warning } else { ScreenTone::Plain },
        ),
        approval,
        Cell::plain(row.sessions.to_string()),
        bindings,
        Cell::toned(home, ScreenTone::Faint),
    ]
}
