//! Rows of a pane with a filter, an order and a selection.

use std::cmp::Ordering;
use std::collections::HashMap;

/// Words that a row must contain, in whatever case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowFilter {
    terms: Vec<String>,
}

impl RowFilter {
    /// Filter with the words of a text.
    pub(crate) fn new(text: &str) -> Self {
        RowFilter { terms: text.split_whitespace().map(str::to_lowercase).collect() }
    }

    /// Whether every word occurs in one of the texts.
    pub(crate) fn matches(&self, texts: &[&str], more: &[String]) -> bool {
        let all = || texts.iter().copied().chain(more.iter().map(String::as_str));
        self.terms.iter().all(|term| all().any(|text| contains(text, term)))
    }
}

/// Whether a term in lower case occurs in a text of whatever case. Thousands of rows are searched for each key that is typed, so
/// an ASCII text is not copied.
fn contains(text: &str, term: &str) -> bool {
    if !text.is_ascii() {
        return text.to_lowercase().contains(term);
    }
    let (text, term) = (text.as_bytes(), term.as_bytes());
    term.len() <= text.len() && text.windows(term.len()).any(|part| part.eq_ignore_ascii_case(term))
}

/// A row of a pane.
pub(crate) trait ListRow {
    /// Orders that the rows can have; the first is the usual one.
    const ORDERS: &'static [&'static str];

    /// Key that stays the same while the row's content changes.
    fn key(&self) -> &str;

    /// Whether the filter lets the row through.
    fn matches(&self, filter: &RowFilter) -> bool;

    /// Order of two rows by the order of this number, at a time.
    fn compare(&self, other: &Self, order: usize, now_ms: i64) -> Ordering;
}

/// Rows with a filter, an order and a selection. The selection follows its row, wherever the row goes.
#[derive(Debug)]
pub(crate) struct RowList<T> {
    rows: Vec<T>,
    /// Positions of all rows in their order. It outlives an update, so that a few changed rows cost no sorting from scratch.
    arranged: Vec<usize>,
    visible: Vec<usize>,
    filter: RowFilter,
    order: usize,
    is_reversed: bool,
    selected: usize,
    selected_key: Option<String>,
    /// Whether a person moved the selection. Until then it stays on the first row.
    is_chosen: bool,
    offset: usize,
    now_ms: i64,
}

impl<T> Default for RowList<T> {
    fn default() -> Self {
        RowList {
            rows: Vec::new(),
            arranged: Vec::new(),
            visible: Vec::new(),
            filter: RowFilter::default(),
            order: 0,
            is_reversed: false,
            selected: 0,
            selected_key: None,
            is_chosen: false,
            offset: 0,
            now_ms: 0,
        }
    }
}

impl<T: ListRow> RowList<T> {
    /// Replaces the rows.
    pub(crate) fn set_rows(&mut self, rows: Vec<T>, now_ms: i64) {
        let is_same = |(old, new): (&T, &T)| old.key() == new.key();
        if self.rows.len() != rows.len() || !self.rows.iter().zip(&rows).all(is_same) {
            self.arranged = (0..rows.len()).collect();
        }
        self.rows = rows;
        self.now_ms = now_ms;
        self.sort();
    }

    /// Replaces rows that have the same key. `keep` takes over what only the old row knows.
    pub(crate) fn update_rows(&mut self, rows: Vec<T>, keep: impl Fn(&T, &mut T)) {
        let mut changed: HashMap<String, T> =
            rows.into_iter().map(|row| (row.key().to_owned(), row)).collect();
        for old in &mut self.rows {
            if changed.is_empty() {
                break;
            }
            if let Some(mut new) = changed.remove(old.key()) {
                keep(old, &mut new);
                *old = new;
            }
        }
        self.sort();
    }

    /// Changes the filter.
    pub(crate) fn set_filter(&mut self, filter: RowFilter) {
        self.filter = filter;
        self.filter_rows();
    }

    /// Changes to the next order.
    pub(crate) fn next_order(&mut self) {
        self.order = (self.order + 1) % T::ORDERS.len().max(1);
        self.sort();
    }

    /// Reverses the order.
    pub(crate) fn reverse(&mut self) {
        self.is_reversed = !self.is_reversed;
        self.filter_rows();
    }

    /// Name of the order, with its direction.
    pub(crate) fn order_words(&self) -> String {
        let name = T::ORDERS.get(self.order).copied().unwrap_or_default();
        if self.is_reversed { format!("{name}, reversed") } else { name.to_owned() }
    }

    fn sort(&mut self) {
        let RowList { rows, arranged, order, now_ms, .. } = self;
        // Almost sorted already in most cases, which the sort makes use of.
        arranged.sort_by(|a, b| rows[*a].compare(&rows[*b], *order, *now_ms));
        self.filter_rows();
    }

    fn filter_rows(&mut self) {
        let RowList { rows, arranged, visible, filter, .. } = self;
        visible.clear();
        visible.extend(arranged.iter().copied().filter(|at| rows[*at].matches(filter)));
        if self.is_reversed {
            visible.reverse();
        }
        let key = self.selected_key.as_deref().filter(|_| self.is_chosen);
        let found = key.and_then(|key| self.visible.iter().position(|at| self.rows[*at].key() == key));
        self.set_selected(found.unwrap_or(if self.is_chosen { self.selected } else { 0 }));
    }

    /// Selects the row at a position, or the last one.
    pub(crate) fn select(&mut self, position: usize) {
        self.is_chosen = true;
        self.set_selected(position);
    }

    fn set_selected(&mut self, position: usize) {
        self.selected = position.min(self.visible.len().saturating_sub(1));
        // An empty list keeps the key: a filter that is cleared brings the row back.
        if let Some(row) = self.visible.get(self.selected) {
            self.selected_key = Some(self.rows[*row].key().to_owned());
        }
    }

    /// Selects the row with a key. Returns whether it is visible.
    pub(crate) fn select_key(&mut self, key: &str) -> bool {
        let found = self.visible.iter().position(|at| self.rows[*at].key() == key);
        found.map(|position| self.select(position)).is_some()
    }

    /// Moves the selection.
    pub(crate) fn move_by(&mut self, rows: isize) {
        self.select(self.selected.saturating_add_signed(rows));
    }

    /// The selected row.
    pub(crate) fn selected(&self) -> Option<&T> {
        self.visible.get(self.selected).map(|at| &self.rows[*at])
    }

    /// Number of visible rows.
    pub(crate) fn len(&self) -> usize {
        self.visible.len()
    }

    /// Number of rows, hidden ones included.
    pub(crate) fn total(&self) -> usize {
        self.rows.len()
    }

    /// All rows, hidden ones included.
    pub(crate) fn rows(&self) -> &[T] {
        &self.rows
    }

    /// The rows that fit into a height, scrolled so that the selected one is among them, each with whether it is selected.
    pub(crate) fn page(&mut self, height: usize) -> Vec<(&T, bool)> {
        let last = self.visible.len().saturating_sub(height);
        let lowest = (self.selected + 1).saturating_sub(height);
        self.offset = self.offset.clamp(lowest, self.selected.max(lowest)).min(last);
        let page = self.visible.iter().enumerate().skip(self.offset).take(height);
        page.map(|(position, at)| (&self.rows[*at], position == self.selected)).collect()
    }

    /// Position of the row that is drawn on a line of the page.
    pub(crate) fn position_on_page(&self, line: usize) -> Option<usize> {
        let position = self.offset + line;
        (position < self.visible.len()).then_some(position)
    }

    /// Whether the position is the selected one.
    pub(crate) fn is_selected(&self, position: usize) -> bool {
        self.selected == position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Word(&'static str);

    impl ListRow for Word {
        const ORDERS: &'static [&'static str] = &["name", "length"];

        fn key(&self) -> &str {
            self.0
        }

        fn matches(&self, filter: &RowFilter) -> bool {
            filter.matches(&[self.0], &[])
        }

        fn compare(&self, other: &Self, order: usize, _now_ms: i64) -> Ordering {
            if order == 0 { self.0.cmp(other.0) } else { self.0.len().cmp(&other.0.len()) }
        }
    }

    fn listing(words: &[&'static str]) -> RowList<Word> {
        let mut listing = RowList::default();
        listing.set_rows(words.iter().copied().map(Word).collect(), 0);
        listing
    }

    #[test]
    fn selection_follows_its_row() {
        let mut words = listing(&["pear", "fig", "apple"]);
        assert!(words.select_key("pear"));
        words.next_order();
        assert_eq!(words.selected().unwrap().0, "pear");
        words.set_rows(["a", "b", "c", "pear"].into_iter().map(Word).collect(), 0);
        assert_eq!(words.selected().unwrap().0, "pear");
        words.set_filter(RowFilter::new("zzz"));
        assert!(words.selected().is_none());
        words.set_filter(RowFilter::default());
        assert_eq!(words.selected().unwrap().0, "pear");
    }

    #[test]
    fn page_scrolls_to_the_selection() {
        let mut words = listing(&["a", "b", "c", "d", "e"]);
        words.select(4);
        let shown: Vec<&str> = words.page(2).into_iter().map(|(word, _)| word.0).collect();
        assert_eq!(shown, ["d", "e"]);
        words.move_by(-4);
        let shown: Vec<(&str, bool)> = words.page(2).into_iter().map(|(word, on)| (word.0, on)).collect();
        assert_eq!(shown, [("a", true), ("b", false)]);
        assert!(words.page(0).is_empty());
        words.move_by(isize::MAX);
        assert_eq!(words.selected().unwrap().0, "e");
    }

    #[test]
    fn filter_requires_every_word() {
        let filter = RowFilter::new("Prod web");
        assert!(filter.matches(&["production", "WEB-1"], &[]));
        assert!(filter.matches(&["production"], &["the WEB".to_owned()]));
        assert!(!filter.matches(&["production", "db"], &[]));
        assert!(RowFilter::new("ÄRGER").matches(&["großer Ärger"], &[]));
        assert!(!RowFilter::new("production").matches(&["prod", "", "uction"], &[]));
    }

    /// A word with a length of its own, which can change.
    #[derive(Debug)]
    struct MeasuredWord(&'static str, usize);

    impl ListRow for MeasuredWord {
        const ORDERS: &'static [&'static str] = &["size"];

        fn key(&self) -> &str {
            self.0
        }

        fn matches(&self, filter: &RowFilter) -> bool {
            filter.matches(&[&self.1.to_string()], &[])
        }

        fn compare(&self, other: &Self, _order: usize, _now_ms: i64) -> Ordering {
            self.1.cmp(&other.1)
        }
    }

    #[test]
    fn changed_row_is_sorted_and_filtered_again() {
        let mut rows = RowList::default();
        rows.set_rows(vec![MeasuredWord("a", 1), MeasuredWord("b", 2), MeasuredWord("c", 3)], 0);
        let keys =
            |rows: &mut RowList<MeasuredWord>| rows.page(9).iter().map(|(row, _)| row.0).collect::<String>();
        rows.update_rows(vec![MeasuredWord("a", 9), MeasuredWord("unknown", 0)], |_, _| {});
        assert_eq!(keys(&mut rows), "bca");
        rows.set_filter(RowFilter::new("9"));
        assert_eq!(keys(&mut rows), "a");
        rows.update_rows(vec![MeasuredWord("c", 99)], |_, _| {});
        assert_eq!(keys(&mut rows), "ac");
        rows.reverse();
        assert_eq!(keys(&mut rows), "ca");
        rows.set_rows(vec![MeasuredWord("a", 9), MeasuredWord("b", 19), MeasuredWord("c", 3)], 0);
        assert_eq!(keys(&mut rows), "ba");
    }
}
