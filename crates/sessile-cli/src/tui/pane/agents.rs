//! Conversations, and agents that have a name.

use super::column;
use crate::tui::model::{AgentRow, AgentRowKind, clock_time};
use crate::tui::table_view::{Cell, TableColumn};
use crate::tui::theme::ScreenTone;

pub(super) const COLUMNS: &[TableColumn] = &[
    column("KIND", 12, 0, 0),
    column("NAME", 12, 1, 0),
    column("AGENT", 20, 4, 0),
    column("STATE", 14, 0, 1),
    column("CONTEXT", 10, 1, 2),
    column("MSGS", 4, 0, 3),
    column("LAST USED", 11, 0, 2),
];

pub(super) fn cells(row: &AgentRow, now_ms: i64) -> Vec<Cell> {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let what = match row.kind {
        AgentRowKind::Conversation => "conversation",
        AgentRowKind::Agent => "agent",
    };
    let state = Cell::toned(
        or_dash(&row.task_state),
        if row.needs_input { ScreenTone::Warning } else { ScreenTone::Plain },
    );
    vec![
        Cell::plain(what),
        Cell::plain(or_dash(&row.name)),
        Cell::toned(row.url.clone(), ScreenTone::Other),
        state,
        Cell::plain(or_dash(&row.context)),
        Cell::plain(if row.items > 0 { row.items.to_string() } else { "-".to_owned() }),
        Cell::toned(clock_time(&row.used_at, now_ms), ScreenTone::Faint),
    ]
}
