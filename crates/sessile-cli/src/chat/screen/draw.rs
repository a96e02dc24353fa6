//! The chat as a frame: tabs, conversation, state, message, keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear};
use sessile::text::{json_safe, shown};
use sessile_wire::a2a::TaskState;

use super::app::ChatApp;
use super::keys::{KEYS, PANE_KEYS};
use super::markdown::{StyledLine, TextKind};
use super::overlay::{Confirmation, Overlay};
use super::tab::ChatTab;
use super::wrap::{Row, wrap};
use crate::chat::command::{self, COMMANDS};
use crate::tui::screen_text::{clip, fit, width};
use crate::tui::theme::{ScreenTone, Theme};

/// Commands that are offered while one is typed.
const MOST_COMPLETIONS: usize = 6;

/// Draws the chat.
pub(crate) fn draw(app: &mut ChatApp, frame: &mut Frame) {
    let area = frame.area();
    draw_in(app, frame, area);
}

/// Draws the chat in a part of the frame, as a pane of another view does.
pub(crate) fn draw_in(app: &mut ChatApp, frame: &mut Frame, area: Rect) {
    let theme = app.theme;
    let composer = app.tab().map_or(1, |tab| tab.composer.height());
    let [tabs, body, state, input, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(composer),
        Constraint::Length(1),
    ])
    .areas(area);
    app.page = usize::from(body.height);
    draw_tabs(app, frame, tabs);
    let notice = app.notice.clone();
    if let Some(tab) = app.tab() {
        draw_conversation(tab, frame, body, theme);
        draw_state(tab, frame, state, theme);
        let label = if tab.chat.question().is_some() { "answer> " } else { "> " };
        tab.composer.draw(frame, input, label, theme);
        draw_completions(tab, frame, body, theme);
    }
    let (text, tone) = match &notice {
        Some(notice) => (notice.as_str(), ScreenTone::Warning),
        None if app.is_pane() => {
            ("Enter send  F1 help  Shift-Tab other panes  Ctrl-P commands  Ctrl-O agents", ScreenTone::Faint)
        }
        None => ("Enter send  F1 help  Ctrl-P commands  Ctrl-O agents  Ctrl-D quit", ScreenTone::Faint),
    };
    let text = clip(text, usize::from(keys.width), theme.symbol("…", "~"));
    frame.render_widget(Line::styled(text, theme.style(tone)), keys);
    draw_overlay(app, frame, area);
}

fn draw_tabs(app: &mut ChatApp, frame: &mut Frame, area: Rect) {
    let theme = app.theme;
    let each = (usize::from(area.width) / app.tabs.len().max(1)).clamp(8, 30);
    let (mut areas, mut x) = (Vec::new(), area.x);
    let mut spans = Vec::new();
    for (at, tab) in app.tabs.iter().enumerate() {
        let text = format!(" {}{} {} ", at + 1, tab.mark(), tab.label());
        let text = clip(&text, each, theme.symbol("…", "~"));
        let cells = u16::try_from(width(&text)).unwrap_or(0).min(area.right().saturating_sub(x));
        areas.push(Rect { x, width: cells, ..area });
        x += cells;
        let tone = if at == app.active { ScreenTone::Selected } else { ScreenTone::Faint };
        spans.push(Span::styled(text, theme.style(tone)));
    }
    let line = if app.tabs.is_empty() { Line::from(" no open conversation") } else { Line::from(spans) };
    frame.render_widget(line, area);
    app.tab_areas = areas;
}

fn draw_conversation(tab: &mut ChatTab, frame: &mut Frame, area: Rect, theme: Theme) {
    let cells = usize::from(area.width).saturating_sub(1);
    let agent = tab.agent.clone();
    tab.transcript.update(&tab.chat, &agent, cells);
    let (len, rows) = (tab.transcript.len(), usize::from(area.height));
    tab.scroll = tab.scroll.min(len.saturating_sub(rows));
    let first = len.saturating_sub(rows + tab.scroll);
    for (y, row) in (area.y..).zip(tab.transcript.visible(first, rows)) {
        frame.render_widget(line_of(row, theme), Rect { y, height: 1, ..area });
    }
    if len == 0 {
        let text = if tab.is_loading { "loading" } else { "a new conversation; type a message" };
        frame.render_widget(Line::styled(text, theme.style(ScreenTone::Faint)), Rect { height: 1, ..area });
    }
    if tab.scroll > 0 {
        let text = format!(" {} rows below ", tab.scroll);
        let width = u16::try_from(text.len()).unwrap_or(0).min(area.width);
        let corner = Rect { x: area.right() - width, y: area.bottom().saturating_sub(1), width, height: 1 };
        frame.render_widget(Line::styled(text, theme.style(ScreenTone::Selected)), corner);
    }
}

fn line_of(row: &Row, theme: Theme) -> Line<'static> {
    Line::from_iter(row.pieces.iter().map(|(text, kind)| Span::styled(text.clone(), style_of(*kind, theme))))
}

fn style_of(kind: TextKind, theme: Theme) -> Style {
    let plain = Style::new();
    match kind {
        TextKind::Plain => plain,
        TextKind::Strong => theme.style(ScreenTone::Strong),
        TextKind::Emphasis => plain.add_modifier(Modifier::ITALIC),
        TextKind::Code => theme.style(ScreenTone::Good),
        TextKind::Heading => theme.style(ScreenTone::Strong).add_modifier(Modifier::UNDERLINED),
        TextKind::Faint | TextKind::Quote => theme.style(ScreenTone::Faint),
        TextKind::Link => plain.add_modifier(Modifier::UNDERLINED),
        TextKind::Good => theme.style(ScreenTone::Good),
        TextKind::Warning => theme.style(ScreenTone::Warning),
        TextKind::Bad => theme.style(ScreenTone::Bad),
        TextKind::User => theme.style(ScreenTone::Strong),
        TextKind::Agent => theme.style(ScreenTone::Other).add_modifier(Modifier::BOLD),
    }
}

/// State of the task, and attachments of the next message.
fn draw_state(tab: &ChatTab, frame: &mut Frame, area: Rect, theme: Theme) {
    let (word, tone) = match (&tab.exchange, &tab.cancel, tab.chat.task_state) {
        (_, Some(_), _) => ("canceling".to_owned(), ScreenTone::Warning),
        (Some(_), None, Some(state)) if !state.is_terminal() && !state.waits() => {
            (format!("{state}; Ctrl-C cancels, Esc leaves"), ScreenTone::Warning)
        }
        (Some(_), None, _) => ("waiting for the agent; Esc leaves".to_owned(), ScreenTone::Warning),
        (None, None, _) if tab.is_loading => ("loading".to_owned(), ScreenTone::Faint),
        (None, None, Some(TaskState::AuthRequired)) => {
            ("the agent requires authentication".to_owned(), ScreenTone::Warning)
        }
        (None, None, Some(state)) if state.waits() => {
            ("the agent requires input; type the answer".to_owned(), ScreenTone::Warning)
        }
        (None, None, Some(state)) => (format!("task {state}"), ScreenTone::Faint),
        (None, None, None) => ("ready".to_owned(), ScreenTone::Faint),
    };
    let attached: Vec<String> = tab.attachments.iter().map(|part| shown(part.summary())).collect();
    let attached = match attached.len() {
        0 => String::new(),
        count => format!("  {count} attached: {}", attached.join(" ")),
    };
    let cells = usize::from(area.width);
    let label = format!(" {}", tab.chat.label());
    let ellipsis = theme.symbol("…", "~");
    let right = clip(&label, 14, ellipsis);
    let rule = theme.symbol("─", "-");
    let left = fit(&format!("{rule}{rule} {word}{attached} "), cells.saturating_sub(15), ellipsis);
    let line = Line::from(vec![
        Span::styled(left, theme.style(tone)),
        Span::styled(right, theme.style(ScreenTone::Faint)),
    ]);
    frame.render_widget(line, area);
}

/// Commands that begin with what is typed, above the message.
fn draw_completions(tab: &ChatTab, frame: &mut Frame, body: Rect, theme: Theme) {
    let typed = tab.composer.text();
    if !typed.starts_with('/') || typed.contains(char::is_whitespace) {
        return;
    }
    let found = command::completions(&typed);
    let rows = u16::try_from(found.len().min(MOST_COMPLETIONS)).unwrap_or(0).min(body.height);
    let area = Rect { y: body.bottom() - rows, height: rows, ..body };
    frame.render_widget(Clear, area);
    for (y, (usage, help)) in (area.y..area.bottom()).zip(found) {
        let text = clip(&format!("  {usage:<40} {help}"), usize::from(area.width), "~");
        frame
            .render_widget(Line::styled(text, theme.style(ScreenTone::Other)), Rect { y, height: 1, ..area });
    }
}

fn draw_overlay(app: &ChatApp, frame: &mut Frame, area: Rect) {
    let theme = app.theme;
    let Some(overlay) = &app.overlay else { return };
    let tab = app.tabs.get(app.active);
    match overlay {
        Overlay::Help(first) => {
            let inner = boxed(frame, area, "help: Up and Down scroll, Esc closes", theme);
            let count = if app.is_pane() { KEYS.len() - 1 } else { KEYS.len() };
            let last = if app.is_pane() { PANE_KEYS } else { &[] };
            let keys = KEYS.iter().take(count).chain(last).map(|(key, what)| format!("{key:<24} {what}"));
            let commands = COMMANDS.iter().map(|(usage, what)| format!("{usage:<24} {what}"));
            let last = "//TEXT                   send a message that begins with a slash".to_owned();
            let all: Vec<String> = keys.chain([String::new()]).chain(commands).chain([last]).collect();
            let lines = all.iter().map(String::as_str);
            draw_rows(frame, inner, lines, theme, |len, rows| (*first).min(len.saturating_sub(rows)));
        }
        Overlay::Agents(list) => {
            let title = "agents and conversations: type to filter or a URL, Enter opens";
            let inner = boxed(frame, area, title, theme);
            list.draw(frame, inner, theme);
        }
        Overlay::Artifacts(list) => {
            let title = "artifacts: Enter saves, /open N opens, Esc closes";
            let inner = boxed(frame, area, title, theme);
            list.draw(frame, inner, theme);
        }
        Overlay::Palette(list) => {
            let inner = boxed(frame, area, "commands: Enter runs, Esc closes", theme);
            list.draw(frame, inner, theme);
        }
        Overlay::Card(first) => {
            let inner = boxed(frame, area, "agent card, as the agent sent it: Esc closes", theme);
            let card = tab.and_then(|tab| tab.card.as_ref());
            let text = card.map_or_else(String::new, |card| json_safe(&format!("{:#}", card.raw)));
            draw_rows(frame, inner, text.lines(), theme, |len, rows| (*first).min(len.saturating_sub(rows)));
        }
        Overlay::Wire(from_end) => {
            let inner = boxed(frame, area, "wire log, redacted: Esc closes", theme);
            let lines = tab.into_iter().flat_map(|tab| &tab.wire).map(String::as_str);
            draw_rows(frame, inner, lines, theme, |len, rows| len.saturating_sub(rows + from_end));
        }
        Overlay::Search(input, _) => {
            let line = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
            if app.notice.is_none() {
                frame.render_widget(Clear, line);
                input.draw(frame, line, "search: ", theme);
            }
        }
        Overlay::Confirm(confirmation) => {
            let text = match confirmation {
                Confirmation::Forget => {
                    "delete this conversation and its messages from the store? [y/N]".to_owned()
                }
                Confirmation::Quit => {
                    "quit while replies are running? tasks continue at the agents [y/N]".to_owned()
                }
                Confirmation::Open(number) => {
                    let all = tab.map(|tab| tab.chat.artifacts()).unwrap_or_default();
                    let what = all.get(number - 1).map_or_else(String::new, |artifact| {
                        format!("{} ({})", artifact.name, artifact.facts())
                    });
                    format!("open {} from the agent? [y/N]", clip(&what, 60, "~"))
                }
            };
            let line = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
            frame.render_widget(Clear, line);
            let text = clip(&text, usize::from(line.width), theme.symbol("…", "~"));
            frame.render_widget(Line::styled(text, theme.style(ScreenTone::Warning)), line);
        }
    }
}

/// Draws wrapped lines from the row that `first` computes of their number and the height.
fn draw_rows<'a>(
    frame: &mut Frame,
    area: Rect,
    lines: impl Iterator<Item = &'a str>,
    theme: Theme,
    first: impl FnOnce(usize, usize) -> usize,
) {
    let cells = usize::from(area.width);
    let rows: Vec<Row> =
        lines.flat_map(|line| wrap(&StyledLine::new(line, TextKind::Plain), cells)).collect();
    let height = usize::from(area.height);
    let first = first(rows.len(), height);
    for (y, row) in (area.y..).zip(rows.iter().skip(first).take(height)) {
        frame.render_widget(line_of(row, theme), Rect { y, height: 1, ..area });
    }
}

/// Clears the area, draws a box with a title, and returns its inside.
fn boxed(frame: &mut Frame, area: Rect, title: &str, theme: Theme) -> Rect {
    frame.render_widget(Clear, area);
    let block = Block::bordered().border_set(theme.borders()).title(format!(" {title} "));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}
