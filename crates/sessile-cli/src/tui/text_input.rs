//! A line of text that a person edits.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use sessile::text::shown;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;
use zeroize::Zeroize;

use super::theme::{ScreenTone, Theme};

/// Bytes that a line may have.
const MOST: usize = 1 << 20;

/// Whether the typed text is visible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Echo {
    /// The text is visible.
    #[default]
    Text,
    /// Each character is a star: a PIN or a passphrase.
    Stars,
}

/// A line of text with a cursor. Its text is removed from memory when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct TextInput {
    text: String,
    /// Byte that the cursor is in front of.
    cursor: usize,
    echo: Echo,
}

impl Drop for TextInput {
    fn drop(&mut self) {
        self.text.zeroize();
    }
}

impl TextInput {
    /// Empty line.
    pub(crate) fn new(echo: Echo) -> Self {
        TextInput { text: String::new(), cursor: 0, echo }
    }

    /// Line with a text, the cursor at its end.
    pub(crate) fn with_text(text: &str) -> Self {
        TextInput { text: text.to_owned(), cursor: text.len(), echo: Echo::Text }
    }

    /// The text as it was typed. It may hold control characters that were pasted.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Takes the text out.
    pub(crate) fn take(&mut self) -> String {
        self.cursor = 0;
        std::mem::take(&mut self.text)
    }

    /// Edits the line. Returns whether the key was one of the line's.
    pub(crate) fn key(&mut self, key: KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('a') if is_control => self.cursor = 0,
            KeyCode::Char('e') if is_control => self.cursor = self.text.len(),
            KeyCode::Char('b') if is_control => self.cursor = self.before(),
            KeyCode::Char('f') if is_control => self.cursor = self.after(),
            KeyCode::Char('b') if is_alt => self.cursor = self.word_before(),
            KeyCode::Char('f') if is_alt => self.cursor = self.word_after(),
            KeyCode::Char('h') if is_control => self.remove(self.before(), self.cursor),
            KeyCode::Char('d') if is_control => self.remove(self.cursor, self.after()),
            KeyCode::Char('u') if is_control => self.remove(0, self.cursor),
            KeyCode::Char('k') if is_control => self.remove(self.cursor, self.text.len()),
            KeyCode::Char('w') if is_control => self.remove(self.word_before(), self.cursor),
            KeyCode::Char(c) if !is_control && !is_alt => {
                self.insert(c.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace => self.remove(self.before(), self.cursor),
            KeyCode::Delete => self.remove(self.cursor, self.after()),
            KeyCode::Left if is_control => self.cursor = self.word_before(),
            KeyCode::Right if is_control => self.cursor = self.word_after(),
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.after(),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => return false,
        }
        true
    }

    /// Inserts pasted text; line breaks become spaces. Returns whether the text fits.
    pub(crate) fn paste(&mut self, text: &str) -> bool {
        let flat: String = text.trim_end_matches(['\r', '\n']).chars().map(flattened).collect();
        self.insert(&flat)
    }

    fn insert(&mut self, text: &str) -> bool {
        let fits = self.text.len() + text.len() <= MOST;
        if fits {
            self.text.insert_str(self.cursor, text);
            self.cursor += text.len();
        }
        fits
    }

    fn remove(&mut self, start: usize, end: usize) {
        self.text.replace_range(start..end, "");
        self.cursor = start;
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.cursor..].graphemes(true).next().map_or(self.cursor, |next| self.cursor + next.len())
    }

    fn word_before(&self) -> usize {
        self.text[..self.cursor].unicode_word_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        rest.unicode_word_indices().next().map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
    }

    /// Draws the line behind a label, without a cursor.
    pub(crate) fn draw_inactive(&self, frame: &mut Frame, area: Rect, label: &str) {
        let cells = usize::from(area.width).saturating_sub(label.width() + 1);
        let text = match self.echo {
            Echo::Text => visible_start(&self.text, cells),
            Echo::Stars => "*".repeat(self.text.graphemes(true).count().min(cells)),
        };
        frame.render_widget(Line::raw(format!("{label}{text}")), Rect { height: 1, ..area });
    }

    /// Draws the line behind a label and puts the terminal's cursor into it. A long line scrolls.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, label: &str, theme: Theme) {
        if area.is_empty() {
            return;
        }
        let cells = usize::from(area.width).saturating_sub(label.width() + 1);
        let (before, after) = match self.echo {
            Echo::Text => (
                visible_end(&self.text[..self.cursor], cells),
                visible_start(&self.text[self.cursor..], cells),
            ),
            Echo::Stars => {
                let stars = |text: &str| "*".repeat(text.graphemes(true).count().min(cells));
                (stars(&self.text[..self.cursor]), stars(&self.text[self.cursor..]))
            }
        };
        let column = label.width() + before.width();
        let line = Line::from(vec![
            Span::styled(label.to_owned(), theme.style(ScreenTone::Strong)),
            Span::raw(before),
            Span::raw(after),
        ]);
        frame.render_widget(line, Rect { height: 1, ..area });
        let column = u16::try_from(column).unwrap_or(u16::MAX).min(area.width.saturating_sub(1));
        frame.set_cursor_position(Position::new(area.x + column, area.y));
    }
}

fn flattened(c: char) -> char {
    if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c }
}

/// The end of a text that fits into `cells`, sanitized.
fn visible_end(text: &str, cells: usize) -> String {
    let (mut kept, mut used) = (Vec::new(), 0);
    for grapheme in text.graphemes(true).rev() {
        let safe = shown(grapheme);
        used += safe.width();
        if used > cells {
            break;
        }
        kept.push(safe);
    }
    kept.into_iter().rev().collect()
}

/// The start of a text that fits into `cells`, sanitized.
fn visible_start(text: &str, cells: usize) -> String {
    let (mut kept, mut used) = (String::new(), 0);
    for grapheme in text.graphemes(true) {
        let safe = shown(grapheme);
        used += safe.width();
        if used > cells {
            break;
        }
        kept.push_str(&safe);
    }
    kept
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn typed(input: &mut TextInput, keys: &[(KeyCode, KeyModifiers)]) {
        for (code, modifiers) in keys {
            input.key(KeyEvent::new(*code, *modifiers));
        }
    }

    fn drawn(input: &TextInput, width: u16) -> (String, u16) {
        let mut terminal = Terminal::new(TestBackend::new(width, 1)).unwrap();
        terminal.draw(|frame| input.draw(frame, frame.area(), "> ", Theme::new(false, true))).unwrap();
        let cursor = terminal.get_cursor_position().unwrap().x;
        let row = terminal.backend().buffer().content().iter().map(|cell| cell.symbol().to_owned());
        (row.collect::<String>().trim_end().to_owned(), cursor)
    }

    #[test]
    fn keys_edit_by_grapheme_and_word() {
        let mut input = TextInput::with_text("one e\u{301}");
        let plain = KeyModifiers::NONE;
        typed(&mut input, &[(KeyCode::Backspace, plain)]);
        assert_eq!(input.text(), "one ");
        typed(&mut input, &[(KeyCode::Char('w'), KeyModifiers::CONTROL), (KeyCode::Char('日'), plain)]);
        assert_eq!(input.text(), "日");
        typed(&mut input, &[(KeyCode::Left, plain), (KeyCode::Char('x'), plain), (KeyCode::Delete, plain)]);
        assert_eq!(input.text(), "x");
        assert!(!input.key(KeyEvent::new(KeyCode::Enter, plain)));
    }

    #[test]
    fn pasted_text_stays_on_one_line_and_cannot_act() {
        let mut input = TextInput::default();
        input.paste("a\x1b[2J\nb\n");
        assert_eq!(input.text(), "a\x1b[2J b");
        assert_eq!(drawn(&input, 40), ("> a\\u{1b}[2J b".to_owned(), 14));
    }

    #[test]
    fn long_line_scrolls_to_the_cursor() {
        let input = TextInput::with_text(&"0123456789".repeat(100_000));
        assert_eq!(drawn(&input, 12), ("> 123456789".to_owned(), 11));
    }

    #[test]
    fn secret_is_stars() {
        let mut input = TextInput::new(Echo::Stars);
        input.paste("12日4");
        assert_eq!(drawn(&input, 20).0, "> ****");
    }
}
