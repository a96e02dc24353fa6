//! The message that is being written: one or several lines.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use zeroize::Zeroize;

use crate::tui::screen_text::clip;
use crate::tui::text_input::TextInput;
use crate::tui::theme::Theme;

/// Lines above the current one that are visible.
const MOST_LINES: usize = 4;

/// Messages that can be recalled.
const MOST_RECALLED: usize = 100;

/// The message that is being written. Lines above the last one are finished; Backspace on an empty line takes the one above back.
#[derive(Debug, Default)]
pub(super) struct Composer {
    lines: Vec<String>,
    line: TextInput,
    recalled: Option<usize>,
    sent: Vec<String>,
}

impl Composer {
    /// The whole text.
    pub(super) fn text(&self) -> String {
        let mut text = self.lines.join("\n");
        if !self.lines.is_empty() {
            text.push('\n');
        }
        text.push_str(self.line.text());
        text
    }

    /// Whether nothing is written.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.line.text().is_empty()
    }

    /// Removes the text.
    pub(super) fn clear(&mut self) {
        self.lines.clear();
        let mut text = self.line.take();
        text.zeroize();
        self.recalled = None;
    }

    /// Replaces the text.
    pub(super) fn set(&mut self, text: &str) {
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        self.line = TextInput::with_text(&lines.pop().unwrap_or_default());
        self.lines = lines;
    }

    /// Takes the text out, and remembers it for Up.
    pub(super) fn take(&mut self) -> String {
        let text = self.text();
        self.clear();
        if !text.trim().is_empty() && self.sent.last() != Some(&text) {
            self.sent.push(text.clone());
            if self.sent.len() > MOST_RECALLED {
                self.sent.remove(0);
            }
        }
        text
    }

    /// Inserts pasted text with its line breaks. Returns whether every line fits.
    pub(super) fn paste(&mut self, text: &str) -> bool {
        let mut fits = true;
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut lines = text.trim_end_matches('\n').split('\n').peekable();
        while let Some(line) = lines.next() {
            fits &= self.line.paste(line);
            if lines.peek().is_some() {
                self.break_line();
            }
        }
        fits
    }

    fn break_line(&mut self) {
        self.lines.push(self.line.take());
    }

    /// Edits the text. Returns whether the key was one of the composer's.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter if is_alt || key.modifiers.contains(KeyModifiers::SHIFT) => self.break_line(),
            KeyCode::Char('j') if is_control => self.break_line(),
            KeyCode::Backspace if self.line.text().is_empty() && !self.lines.is_empty() => {
                self.line = TextInput::with_text(&self.lines.pop().unwrap_or_default());
            }
            KeyCode::Up => self.recall(true),
            KeyCode::Down => self.recall(false),
            _ => return self.line.key(key),
        }
        true
    }

    /// Puts an earlier or a later message into the line.
    fn recall(&mut self, earlier: bool) {
        let at = match (self.recalled, earlier) {
            // Keep a message that the person is writing.
            (None, true) if self.is_empty() => self.sent.len().checked_sub(1),
            (None, _) => return,
            (Some(at), true) => Some(at.saturating_sub(1)),
            (Some(at), false) => Some(at + 1),
        };
        let text = at.and_then(|at| self.sent.get(at)).cloned().unwrap_or_default();
        self.set(&text);
        self.recalled = at.filter(|at| *at < self.sent.len());
    }

    /// Rows that the composer needs.
    pub(super) fn height(&self) -> u16 {
        u16::try_from(self.lines.len().min(MOST_LINES) + 1).unwrap_or(1)
    }

    /// Draws the text behind a label.
    pub(super) fn draw(&self, frame: &mut Frame, area: Rect, label: &str, theme: Theme) {
        let above = usize::from(area.height.saturating_sub(1)).min(self.lines.len());
        let ellipsis = theme.symbol("…", "~");
        for (row, line) in (area.y..).zip(&self.lines[self.lines.len() - above..]) {
            let text = clip(line, usize::from(area.width).saturating_sub(2), ellipsis);
            frame.render_widget(Line::from(format!("  {text}")), Rect { y: row, height: 1, ..area });
        }
        let row = area.y + u16::try_from(above).unwrap_or(0);
        self.line.draw(frame, Rect { y: row, height: 1, ..area }, label, theme);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(composer: &mut Composer, code: KeyCode, modifiers: KeyModifiers) {
        composer.key(KeyEvent::new(code, modifiers));
    }

    #[test]
    fn several_lines_are_one_message() {
        let mut composer = Composer::default();
        composer.paste("one\r\ntwo\n");
        press(&mut composer, KeyCode::Enter, KeyModifiers::ALT);
        press(&mut composer, KeyCode::Char('x'), KeyModifiers::NONE);
        assert_eq!((composer.text().as_str(), composer.height()), ("one\ntwo\nx", 3));
        for _ in 0..2 {
            press(&mut composer, KeyCode::Backspace, KeyModifiers::NONE);
        }
        assert_eq!(composer.take(), "one\ntwo");
        assert!(composer.is_empty());
    }

    #[test]
    fn sent_messages_are_recalled_and_drafts_kept() {
        let mut composer = Composer::default();
        for text in ["first", "second"] {
            composer.set(text);
            composer.take();
        }
        press(&mut composer, KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(composer.text(), "second");
        press(&mut composer, KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(composer.text(), "first");
        press(&mut composer, KeyCode::Down, KeyModifiers::NONE);
        press(&mut composer, KeyCode::Down, KeyModifiers::NONE);
        assert!(composer.is_empty());
        composer.set("draft");
        press(&mut composer, KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(composer.text(), "draft");
    }
}
