//! The panes: each turns its rows into cells.

mod agents;
mod contexts;
mod history;
mod locks;
mod sessions;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Span;

use super::app::{Pane, TuiApp};
use super::model::{ListRow, RowList};
use super::screen_text::wrap;
use super::table_view::{self, Cell, TableColumn};
use super::theme::{ScreenTone, Theme};

/// Draws the current pane.
pub(super) fn draw(app: &mut TuiApp, frame: &mut Frame, area: Rect) {
    let rows = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    app.areas.rows = rows;
    let (theme, now_ms, is_loaded) = (app.theme, app.now_ms, app.is_loaded);
    match app.pane {
        Pane::Sessions => {
            let cells = |row: &_| sessions::cells(row, now_ms, theme);
            table(frame, area, theme, sessions::COLUMNS, &mut app.sessions, cells);
        }
        Pane::Contexts => {
            let cells = |row: &_| contexts::cells(row, now_ms);
            table(frame, area, theme, contexts::COLUMNS, &mut app.contexts, cells);
        }
        Pane::Locks => {
            let cells = |row: &_| locks::cells(row, now_ms);
            table(frame, area, theme, locks::COLUMNS, &mut app.locks, cells);
        }
        Pane::History => {
            let cells = |row: &_| history::cells(row, now_ms);
            table(frame, area, theme, history::COLUMNS, &mut app.history, cells);
        }
        Pane::Agents => {
            let cells = |row: &_| agents::cells(row, now_ms);
            table(frame, area, theme, agents::COLUMNS, &mut app.agents, cells);
        }
        Pane::Chat => {}
        Pane::Service => {
            let cells = |row: &_| sessions::cells(row, now_ms, theme);
            table(frame, area, theme, sessions::COLUMNS, &mut app.service, cells);
        }
    }
    let (visible, total) = counts(app);
    if visible == 0 && is_loaded {
        let text = if total > 0 { "no rows match the filter; Esc clears it" } else { empty_text(app) };
        let problem = app.service_problem.clone().filter(|_| app.pane == Pane::Service);
        let lines = wrap(problem.as_deref().unwrap_or(text), usize::from(rows.width.saturating_sub(2)), 4);
        for (line, y) in lines.into_iter().zip(rows.y..rows.bottom()) {
            let place = Rect { x: rows.x + 1, y, width: rows.width - 1, height: 1 };
            frame.render_widget(Span::styled(line, theme.style(ScreenTone::Faint)), place);
        }
    }
}

fn counts(app: &TuiApp) -> (usize, usize) {
    match app.pane {
        Pane::Sessions => (app.sessions.len(), app.sessions.total()),
        Pane::Contexts => (app.contexts.len(), app.contexts.total()),
        Pane::Locks => (app.locks.len(), app.locks.total()),
        Pane::History => (app.history.len(), app.history.total()),
        Pane::Agents | Pane::Chat => (app.agents.len(), app.agents.total()),
        Pane::Service => (app.service.len(), app.service.total()),
    }
}

fn empty_text(app: &TuiApp) -> &'static str {
    match app.pane {
        Pane::Sessions => "no live sessions; press n to start one",
        Pane::Contexts => "no contexts; create one: sessile context create NAME",
        Pane::Locks => "no locks are held",
        Pane::History => "no operations",
        Pane::Agents | Pane::Chat => "no conversations; name an agent: sessile agent add NAME URL --global",
        Pane::Service if !app.has_service_answer => "loading ...",
        Pane::Service => "you have no live sessions in the service",
    }
}

fn table<T: ListRow>(
    frame: &mut Frame,
    area: Rect,
    theme: Theme,
    columns: &[TableColumn],
    listing: &mut RowList<T>,
    cells: impl Fn(&T) -> Vec<Cell>,
) {
    let height = usize::from(area.height.saturating_sub(1));
    let rows = listing.page(height).into_iter().map(|(row, is_selected)| (cells(row), is_selected));
    table_view::draw(frame, area, theme, columns, rows.collect::<Vec<_>>());
}

const fn column(title: &'static str, cells: u16, share: u16, rank: u8) -> TableColumn {
    TableColumn { title, cells, share, rank }
}
