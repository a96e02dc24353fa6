//! A list to choose from, filtered by typing.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::tui::screen_text::{clip, fit, width};
use crate::tui::text_input::TextInput;
use crate::tui::theme::{ScreenTone, Theme};

/// Widest label that others are aligned with.
const WIDEST_LABEL: usize = 30;

/// Entry of a list.
#[derive(Clone, Debug)]
pub(crate) struct ListEntry<T> {
    /// Label.
    pub(crate) label: String,
    /// Text beside the label.
    pub(crate) detail: String,
    /// Value of the entry.
    pub(crate) value: T,
}

/// A list to choose from.
#[derive(Debug)]
pub(crate) struct FilterList<T> {
    entries: Vec<ListEntry<T>>,
    filter: TextInput,
    selected: usize,
    /// Text where the list has no entries.
    empty_text: &'static str,
}

/// Result of a key in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ListOutcome<T> {
    /// The list stays.
    Open,
    /// An entry was chosen.
    Chosen(T),
    /// The list was left.
    Left,
}

impl<T: Clone> FilterList<T> {
    /// List of entries, the first one selected.
    pub(crate) fn new(entries: Vec<ListEntry<T>>) -> Self {
        FilterList { entries, filter: TextInput::default(), selected: 0, empty_text: "no matches" }
    }

    /// List without entries so far, and the text for one that stays empty.
    pub(crate) fn empty(text: &'static str) -> Self {
        FilterList { empty_text: text, ..FilterList::new(Vec::new()) }
    }

    /// Replaces the entries and keeps the filter.
    pub(crate) fn set_entries(&mut self, entries: Vec<ListEntry<T>>) {
        self.entries = entries;
        self.selected = self.selected.min(self.visible().len().saturating_sub(1));
    }

    /// Entries that match the filter: every word of it is in the label or the detail, in whatever case. Matches of the label come
    /// first.
    fn visible(&self) -> Vec<&ListEntry<T>> {
        let words: Vec<String> = self.filter.text().split_whitespace().map(str::to_lowercase).collect();
        let has_words = |text: &str| {
            let text = text.to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let is_match = |entry: &&ListEntry<T>| has_words(&format!("{} {}", entry.label, entry.detail));
        let mut found: Vec<&ListEntry<T>> = self.entries.iter().filter(is_match).collect();
        found.sort_by_key(|entry| !has_words(&entry.label));
        found
    }

    /// Entry that is selected.
    pub(crate) fn current(&self) -> Option<T> {
        self.visible().get(self.selected).map(|entry| entry.value.clone())
    }

    /// Text of the filter.
    pub(crate) fn filter(&self) -> &str {
        self.filter.text()
    }

    /// Takes a key.
    pub(crate) fn key(&mut self, key: KeyEvent) -> ListOutcome<T> {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let last = self.visible().len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => return ListOutcome::Left,
            KeyCode::Char('c') if is_control => return ListOutcome::Left,
            KeyCode::Enter => {
                return self.current().map_or(ListOutcome::Open, ListOutcome::Chosen);
            }
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Char('p') if is_control => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down => self.selected = (self.selected + 1).min(last),
            KeyCode::Char('n') if is_control => self.selected = (self.selected + 1).min(last),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(10),
            KeyCode::PageDown => self.selected = (self.selected + 10).min(last),
            _ => {
                if self.filter.key(key) {
                    self.selected = 0;
                }
            }
        }
        ListOutcome::Open
    }

    /// Draws the filter, and the entries below it.
    pub(crate) fn draw(&self, frame: &mut Frame, area: Rect, theme: Theme) {
        if area.height < 2 {
            return;
        }
        let visible = self.visible();
        let rows = usize::from(area.height) - 1;
        let first = (self.selected + 1).saturating_sub(rows);
        let widest = visible.iter().map(|entry| width(&entry.label)).max().unwrap_or(0).min(WIDEST_LABEL);
        let ellipsis = theme.symbol("…", "~");
        for (row, (at, entry)) in (area.y + 1..).zip(visible.iter().enumerate().skip(first).take(rows)) {
            let is_selected = at == self.selected;
            let mark = if is_selected { theme.symbol("› ", "> ") } else { "  " };
            let label = fit(&entry.label, widest, ellipsis);
            let rest = usize::from(area.width).saturating_sub(widest + 4);
            let detail = clip(&entry.detail, rest, ellipsis);
            let tone = if is_selected { ScreenTone::Selected } else { ScreenTone::Plain };
            let line = Line::from(vec![
                Span::styled(format!("{mark}{label}"), theme.style(tone)),
                Span::styled(format!("  {detail}"), theme.style(ScreenTone::Faint)),
            ]);
            frame.render_widget(line, Rect { y: row, height: 1, ..area });
        }
        if visible.is_empty() {
            let text = if self.entries.is_empty() { self.empty_text } else { "no matches" };
            let line = Line::styled(format!("  {text}"), theme.style(ScreenTone::Faint));
            frame.render_widget(line, Rect { y: area.y + 1, height: 1, ..area });
        }
        self.filter.draw(frame, Rect { height: 1, ..area }, "filter: ", theme);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> FilterList<u8> {
        let entry = |label: &str, value| ListEntry { label: label.into(), detail: "agent".into(), value };
        FilterList::new(vec![entry("research", 1), entry("review", 2), entry("deploy", 3)])
    }

    fn press(list: &mut FilterList<u8>, code: KeyCode) -> ListOutcome<u8> {
        list.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn typing_filters_and_enter_chooses() {
        let mut list = list();
        press(&mut list, KeyCode::Down);
        assert_eq!(list.current(), Some(2));
        for c in "RE agent".chars() {
            press(&mut list, KeyCode::Char(c));
        }
        assert_eq!(list.current(), Some(1));
        press(&mut list, KeyCode::Down);
        press(&mut list, KeyCode::Down);
        assert_eq!(press(&mut list, KeyCode::Enter), ListOutcome::Chosen(2));
        press(&mut list, KeyCode::Char('x'));
        assert_eq!(press(&mut list, KeyCode::Enter), ListOutcome::Open);
        assert_eq!(press(&mut list, KeyCode::Esc), ListOutcome::Left);
    }
}
