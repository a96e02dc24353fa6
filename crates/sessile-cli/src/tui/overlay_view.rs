//! Draws what is in front of the panes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear};

use super::app::TuiApp;
use super::dialog::{DialogForm, TuiOverlay, palette_rows};
use super::keys::{BINDINGS, MOVES};
use super::model::{Detail, DetailKey};
use super::screen_text::{clip, fit, wrap};
use super::text_input::TextInput;
use super::theme::{ScreenTone, Theme};

/// Widest dialog.
const WIDEST: u16 = 72;

/// Lines of one text of an opened thing.
const MOST_LINES: usize = 200;

/// Draws the overlays, the last one on top.
pub(super) fn draw(app: &mut TuiApp, frame: &mut Frame, area: Rect) {
    let theme = app.theme;
    for overlay in &mut app.overlays {
        match overlay {
            TuiOverlay::Help { scroll } => draw_help(frame, area, theme, scroll),
            TuiOverlay::Detail { key, detail, scroll } => {
                draw_detail(frame, area, theme, key, detail.as_ref(), scroll);
            }
            TuiOverlay::Confirm { question, note, .. } => draw_confirm(frame, area, theme, question, note),
            TuiOverlay::Notice { title, text } => draw_notice(frame, area, theme, title, text),
            TuiOverlay::Form(form) => draw_form(frame, area, theme, form),
            TuiOverlay::Palette { input, selected } => draw_palette(frame, area, theme, input, *selected),
        }
    }
}

/// Clears a box in the middle with a border and a title; returns the inside.
fn dialog(frame: &mut Frame, area: Rect, theme: Theme, title: &str, lines: usize) -> Rect {
    let width = area.width.min(WIDEST);
    let height = u16::try_from(lines).unwrap_or(u16::MAX).saturating_add(2).min(area.height);
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 3, width, height };
    bordered(frame, place, theme, title)
}

fn bordered(frame: &mut Frame, place: Rect, theme: Theme, title: &str) -> Rect {
    let title = clip(title, usize::from(place.width.saturating_sub(4)), theme.symbol("…", "~"));
    let block = Block::bordered()
        .border_set(theme.borders())
        .title(Span::styled(format!(" {title} "), theme.style(ScreenTone::Strong)));
    let inside = block.inner(place);
    frame.render_widget(Clear, place);
    frame.render_widget(block, place);
    Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside }
}

fn put(frame: &mut Frame, inside: Rect, line: usize, text: &str, theme: Theme, tone: ScreenTone) {
    let Ok(offset) = u16::try_from(line) else { return };
    if offset < inside.height {
        let place = Rect { y: inside.y + offset, height: 1, ..inside };
        let text = clip(text, usize::from(inside.width), theme.symbol("…", "~"));
        frame.render_widget(Span::styled(text, theme.style(tone)), place);
    }
}

/// Draws lines from a position on, which is moved back if it is behind the last page.
fn put_scrolled(
    frame: &mut Frame,
    inside: Rect,
    lines: &[(String, ScreenTone)],
    scroll: &mut usize,
    theme: Theme,
) {
    let height = usize::from(inside.height);
    *scroll = (*scroll).min(lines.len().saturating_sub(height));
    for (at, (text, tone)) in lines.iter().skip(*scroll).take(height).enumerate() {
        put(frame, inside, at, text, theme, *tone);
    }
}

/// Draws the number of lines below on the border, where no line is covered.
fn put_count_below(frame: &mut Frame, inside: Rect, lines: usize, scroll: usize, theme: Theme) {
    let below = lines.saturating_sub(scroll + usize::from(inside.height));
    if below > 0 {
        let text = clip(&format!(" {below} more lines: j, k, G "), usize::from(inside.width), "");
        let width = u16::try_from(text.len()).unwrap_or(0);
        let place = Rect { x: inside.right() - width, y: inside.bottom(), width, height: 1 };
        frame.render_widget(Span::styled(text, theme.style(ScreenTone::Strong)), place);
    }
}

fn draw_help(frame: &mut Frame, area: Rect, theme: Theme, scroll: &mut usize) {
    let mut lines: Vec<(String, ScreenTone)> = Vec::new();
    for row in BINDINGS {
        let panes: Vec<&str> = row.panes.iter().map(|pane| pane.title()).collect();
        let panes = if panes.is_empty() { String::new() } else { format!(" ({})", panes.join(", ")) };
        lines.push((format!("{:<8} {}{panes}", row.key, row.help), ScreenTone::Plain));
    }
    lines.push((String::new(), ScreenTone::Plain));
    lines.extend(MOVES.iter().map(|(keys, help)| (format!("{keys:<27} {help}"), ScreenTone::Plain)));
    let inside = dialog(frame, area, theme, "Keys (Esc closes, j and k scroll)", lines.len());
    put_scrolled(frame, inside, &lines, scroll, theme);
    put_count_below(frame, inside, lines.len(), *scroll, theme);
}

fn draw_detail(
    frame: &mut Frame,
    area: Rect,
    theme: Theme,
    key: &DetailKey,
    detail: Option<&Result<Detail, String>>,
    scroll: &mut usize,
) {
    let keys = match key {
        DetailKey::Session(_) => "a attach, e shell, s stop, Esc closes",
        DetailKey::Context(_) => "a approve, v revoke, Esc closes",
        DetailKey::Operation(_) => "u undo, Esc closes",
        DetailKey::Conversation(_) => "Esc closes",
    };
    let title = match detail {
        Some(Ok(detail)) => format!("{}: {keys}", detail.title),
        _ => keys.to_owned(),
    };
    let inside = bordered(frame, area, theme, &title);
    let width = usize::from(inside.width);
    let mut lines = Vec::new();
    match detail {
        None => lines.push(("loading ...".to_owned(), ScreenTone::Faint)),
        Some(Err(problem)) => {
            lines.extend(wrap(problem, width, MOST_LINES).into_iter().map(|line| (line, ScreenTone::Bad)));
        }
        Some(Ok(detail)) => {
            for section in &detail.sections {
                if !lines.is_empty() {
                    lines.push((String::new(), ScreenTone::Plain));
                }
                lines.push((section.title.clone(), ScreenTone::Strong));
                for text in &section.lines {
                    let indented = wrap(text, width.saturating_sub(2), MOST_LINES).into_iter();
                    let tone = match text.chars().next() {
                        Some('+') if section.is_diff => ScreenTone::Good,
                        Some('-') if section.is_diff => ScreenTone::Bad,
                        _ => ScreenTone::Plain,
                    };
                    lines.extend(indented.map(|line| (format!("  {line}"), tone)));
                }
            }
        }
    }
    put_scrolled(frame, inside, &lines, scroll, theme);
    put_count_below(frame, inside, lines.len(), *scroll, theme);
}

fn draw_confirm(frame: &mut Frame, area: Rect, theme: Theme, question: &str, note: &str) {
    let width = usize::from(area.width.min(WIDEST).saturating_sub(4));
    let mut lines: Vec<(String, ScreenTone)> =
        wrap(question, width, 6).into_iter().map(|line| (line, ScreenTone::Strong)).collect();
    lines.extend(wrap(note, width, 4).into_iter().map(|line| (line, ScreenTone::Plain)));
    lines.push((String::new(), ScreenTone::Plain));
    lines.push(("y yes   n no".to_owned(), ScreenTone::Warning));
    let inside = dialog(frame, area, theme, "Confirm (y/n)", lines.len());
    put_scrolled(frame, inside, &lines, &mut 0, theme);
}

fn draw_notice(frame: &mut Frame, area: Rect, theme: Theme, title: &str, text: &str) {
    let width = usize::from(area.width.min(WIDEST).saturating_sub(4));
    let mut lines: Vec<(String, ScreenTone)> =
        wrap(text, width, 16).into_iter().map(|line| (line, ScreenTone::Plain)).collect();
    lines.push((String::new(), ScreenTone::Plain));
    lines.push(("Enter closes".to_owned(), ScreenTone::Faint));
    let inside = dialog(frame, area, theme, title, lines.len());
    put_scrolled(frame, inside, &lines, &mut 0, theme);
}

fn draw_form(frame: &mut Frame, area: Rect, theme: Theme, form: &DialogForm) {
    let inside = dialog(frame, area, theme, &form.title, form.fields.len() + 2);
    for (at, field) in form.fields.iter().enumerate() {
        let Ok(offset) = u16::try_from(at) else { continue };
        if offset >= inside.height {
            continue;
        }
        let place = Rect { y: inside.y + offset, height: 1, ..inside };
        if at == form.current {
            field.input.draw(frame, place, field.label, theme);
        } else {
            field.input.draw_inactive(frame, place, field.label);
        }
    }
    match &form.error {
        Some(error) => put(frame, inside, form.fields.len(), error, theme, ScreenTone::Bad),
        None => {
            put(
                frame,
                inside,
                form.fields.len() + 1,
                "Enter continues   Esc cancels",
                theme,
                ScreenTone::Faint,
            );
        }
    }
}

fn draw_palette(frame: &mut Frame, area: Rect, theme: Theme, input: &TextInput, selected: usize) {
    let rows = palette_rows(input.text());
    let inside = dialog(frame, area, theme, "Command", BINDINGS.len() + 1);
    input.draw(frame, Rect { height: 1, ..inside }, ":", theme);
    let height = usize::from(inside.height.saturating_sub(1)).max(1);
    let first = (selected + 1).saturating_sub(height);
    for (at, row) in rows.iter().skip(first).take(height).enumerate() {
        let is_selected = first + at == selected;
        let mark = if is_selected { ">" } else { " " };
        let text = fit(
            &format!("{mark} {:<10} {:<6} {}", row.name, row.key, row.help),
            usize::from(inside.width),
            "",
        );
        let Ok(offset) = u16::try_from(at + 1) else { continue };
        if offset < inside.height {
            let style = theme.style(if is_selected { ScreenTone::Selected } else { ScreenTone::Plain });
            frame
                .render_widget(Line::styled(text, style), Rect { y: inside.y + offset, height: 1, ..inside });
        }
    }
}
