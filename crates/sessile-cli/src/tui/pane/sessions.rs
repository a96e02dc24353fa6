//! Sessions: context and guard, running commands, idle and remaining time, owner.

use sessile::context::Guard;
use sessile::session::lifecycle::Lifecycle;

use super::column;
use crate::tui::model::{SessionItem, countdown};
use crate::tui::table_view::{Cell, TableColumn};
use crate::tui::theme::{ScreenTone, Theme};

/// Cells of a gauge.
const GAUGE: usize = 4;

pub(super) const COLUMNS: &[TableColumn] = &[
    column("NAME", 15, 3, 0),
    column("CONTEXT", 12, 2, 0),
    column("GUARD", 8, 0, 2),
    column("RUNNING", 10, 3, 1),
    column("IDLE", 11, 0, 1),
    column("LEFT", 11, 0, 1),
    column("OWNER", 8, 3, 3),
];

pub(super) fn cells(row: &SessionItem, now_ms: i64, theme: Theme) -> Vec<Cell> {
    let mark = if row.is_current { "*" } else { "" };
    let running = match row.running.as_slice() {
        [] => "-".to_owned(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("+{} {first}", rest.len()),
    };
    let (state, drift) = (row.state, row.drift);
    let running = match drift {
        0 => Cell::plain(running),
        _ => Cell::toned(format!("DRIFT {running}"), ScreenTone::Bad),
    };
    let idle = row.idle_ms(now_ms);
    let left = row.remaining_ms(now_ms);
    let gauge = |part: i64, whole: i64| {
        let positive = |value: i64| u64::try_from(value).unwrap_or(0);
        format!("{} {}", theme.gauge(positive(part), positive(whole), GAUGE), countdown(part))
    };
    let left = match state {
        Lifecycle::Live if row.is_expiring(now_ms) => {
            Cell::toned(gauge(left, row.lifetime_ms()), ScreenTone::Warning)
        }
        Lifecycle::Live => Cell::plain(gauge(left, row.lifetime_ms())),
        other => Cell::toned(other.as_str(), ScreenTone::Faint),
    };
    vec![
        Cell::toned(
            format!("{mark}{}", row.label()),
            if row.is_current { ScreenTone::Strong } else { ScreenTone::Plain },
        ),
        Cell::plain(row.context.clone().unwrap_or_else(|| "-".to_owned())),
        guard_cell(row.guard),
        running,
        Cell::plain(gauge(idle, row.idle_limit_ms)),
        left,
        Cell::toned(row.owner.clone(), ScreenTone::Faint),
    ]
}

fn guard_cell(guard: Option<Guard>) -> Cell {
    match guard {
        None | Some(Guard::None) => Cell::toned("-", ScreenTone::Faint),
        Some(Guard::Explicit) => Cell::plain("explicit"),
        Some(Guard::Approval) => Cell::toned("approval", ScreenTone::Warning),
    }
}
