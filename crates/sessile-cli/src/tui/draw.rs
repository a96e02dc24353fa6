//! Draws the screen: tabs, the attention line, a pane, the bottom line, and the overlays.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::app::{Pane, TuiApp};
use super::keys::{BINDINGS, UiCommand};
use super::screen_text::{clip, fit, width, wrap};
use super::theme::ScreenTone;
use super::{overlay_view, pane};
use crate::chat::screen::draw::draw_in;

/// Lines of a long error at the bottom.
const STATUS_LINES: usize = 6;

/// Keys at the bottom that every pane has, the most useful first.
const GENERAL_KEYS: [&str; 6] = ["Enter", "/", "o", "?", "q", ":"];

/// Draws everything.
pub(crate) fn draw(app: &mut TuiApp, frame: &mut Frame) {
    let area = frame.area();
    if area.height < 4 || area.width < 10 {
        frame.render_widget(clip("terminal too small", usize::from(area.width), ""), area);
        return;
    }
    app.refresh_attention();
    let line = |y: u16| Rect { x: area.x, y, width: area.width, height: 1 };
    draw_tabs(app, frame, line(area.y));
    draw_attention(app, frame, line(area.y + 1));
    if app.pane == Pane::Chat {
        // The chat has a bottom line of its own; a result of the TUI covers it until the next key.
        draw_in(&mut app.chat, frame, Rect { y: area.y + 2, height: area.height - 2, ..area });
        if app.status.is_some() {
            draw_bottom(app, frame, line(area.bottom() - 1));
        }
    } else {
        pane::draw(app, frame, Rect { y: area.y + 2, height: area.height - 3, ..area });
        draw_bottom(app, frame, line(area.bottom() - 1));
    }
    overlay_view::draw(app, frame, Rect { y: area.y + 1, height: area.height - 2, ..area });
}

fn draw_tabs(app: &mut TuiApp, frame: &mut Frame, area: Rect) {
    let (mut spans, mut tabs, mut x) = (Vec::new(), Vec::new(), area.x);
    let panes: Vec<Pane> = app.panes().collect();
    // On a narrow screen the counts go first, then the titles.
    let label = |app: &TuiApp, at: usize, pane: Pane, detail: u8| {
        let mark = if pane == Pane::Chat { app.chat.mark() } else { "" };
        match detail {
            2 => format!(" {} {} {}{mark} ", at + 1, pane.title(), count(app, pane)),
            1 => format!(" {} {}{mark} ", at + 1, pane.title()),
            _ => format!(" {}{mark} ", at + 1),
        }
    };
    let total = |detail| {
        panes.iter().enumerate().map(|(at, pane)| width(&label(app, at, *pane, detail))).sum::<usize>()
    };
    let detail = [2, 1].into_iter().find(|detail| total(*detail) <= usize::from(area.width)).unwrap_or(0);
    for (at, pane) in panes.iter().enumerate() {
        let is_current = *pane == app.pane;
        let text = label(app, at, *pane, if is_current { detail.max(1) } else { detail });
        let cells = u16::try_from(width(&text)).unwrap_or(0).min(area.right().saturating_sub(x));
        tabs.push((Rect { x, width: cells, ..area }, *pane));
        x += cells;
        let (text, tone) =
            if is_current { (marked(&text), ScreenTone::Selected) } else { (text, ScreenTone::Plain) };
        spans.push(Span::styled(text, app.theme.style(tone)));
    }
    frame.render_widget(Line::from(spans), area);
    app.areas.tabs = tabs;
}

/// The current tab has brackets too: reversed colours are not visible everywhere.
fn marked(text: &str) -> String {
    format!("[{}]", text.trim())
}

fn count(app: &TuiApp, pane: Pane) -> usize {
    match pane {
        Pane::Sessions => app.sessions.total(),
        Pane::Contexts => app.contexts.total(),
        Pane::Locks => app.locks.total(),
        Pane::History => app.history.total(),
        Pane::Agents => app.agents.total(),
        Pane::Chat => app.chat.count(),
        Pane::Service => app.service.total(),
    }
}

fn draw_attention(app: &TuiApp, frame: &mut Frame, area: Rect) {
    let cells = usize::from(area.width);
    let ellipsis = app.theme.symbol("…", "~");
    let (text, tone) = match (app.attention.items.first(), app.attention.total) {
        (None, _) if app.is_loaded => ("nothing requires attention".to_owned(), ScreenTone::Faint),
        (None, _) => ("loading ...".to_owned(), ScreenTone::Faint),
        (Some(first), total) => {
            // The key stays visible if the first one is long.
            let tail = match total {
                1 => " (press !)".to_owned(),
                total => format!(" (+{} more, press !)", total - 1),
            };
            let head = clip(&format!("! {}", first.text), cells.saturating_sub(width(&tail)), ellipsis);
            (format!("{head}{tail}"), ScreenTone::Warning)
        }
    };
    frame.render_widget(Span::styled(text, app.theme.style(tone)), area);
}

fn draw_bottom(app: &TuiApp, frame: &mut Frame, area: Rect) {
    if app.is_filtering {
        app.filter.draw(frame, area, "/", app.theme);
        return;
    }
    let (cells, ellipsis) = (usize::from(area.width), app.theme.symbol("…", "~"));
    if let Some(status) = &app.status {
        let style = app.theme.style(status.tone);
        // A long error covers the last rows, until the next key.
        let lines = wrap(&status.text, cells, STATUS_LINES);
        let above = u16::try_from(lines.len().saturating_sub(1)).unwrap_or(0).min(area.y.saturating_sub(2));
        for (text, y) in lines.iter().zip(area.y - above..area.bottom()) {
            frame.render_widget(Span::styled(fit(text, cells, ellipsis), style), Rect { y, ..area });
        }
        return;
    }
    // A dialog names its own keys.
    if !app.overlays.is_empty() {
        return;
    }
    let mut words: Vec<String> = Vec::new();
    if !app.filter.text().is_empty() {
        words.push(format!("filter \"{}\", Esc clears", app.filter.text()));
    }
    let own = BINDINGS.iter().filter(|row| row.panes.contains(&app.pane));
    words.extend(own.map(|row| format!("{} {}", row.key, row.name)));
    let general = GENERAL_KEYS.iter().filter_map(|key| BINDINGS.iter().find(|row| row.key == *key));
    let opens_nothing = matches!(app.pane, Pane::Locks | Pane::Service);
    let general = general.filter(|row| !(opens_nothing && row.command == UiCommand::Open));
    words.extend(general.map(|row| format!("{} {}", row.key, row.name)));
    // A key is there as a whole or not at all.
    let mut hints = String::new();
    for word in words {
        let gap = if hints.is_empty() { "" } else { "  " };
        if width(&hints) + width(gap) + width(&word) > cells {
            break;
        }
        hints.push_str(gap);
        hints.push_str(&word);
    }
    frame
        .render_widget(Span::styled(clip(&hints, cells, ellipsis), app.theme.style(ScreenTone::Faint)), area);
}
