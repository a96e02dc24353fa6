//! Columns for people: aligned, without lines, every cell made safe for a terminal.

use sessile::text::shown;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{LINE_WIDTH, Output, Tone, wrapped};

/// Narrowest width that a column is cut to.
const NARROWEST: usize = 8;

/// Width of a column that is cut only when no optional column is left to drop.
const COMFORTABLE: usize = 24;

/// Columns that are never cut: a state or a mode that is cut says something else.
const WHOLE: &[&str] = &["STATE", "GUARD", "MODE", "OUTCOME", "EXPIRES", "UNTIL"];

/// Length of an id, and of its shortest prefix in a table.
const ID_LENGTH: usize = 36;
const SHORT_ID: usize = 8;

/// A table with a heading.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<(Vec<String>, Option<Tone>)>,
    /// Headings of the columns that a narrow table drops, in this order.
    optional: &'static [&'static str],
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Table {
            rows: vec![(headings.iter().map(|&heading| heading.to_owned()).collect(), Some(Tone::Faint))],
            optional: &[],
        }
    }

    /// The table with columns that it drops, in this order, before it cuts others to a few letters.
    #[must_use]
    pub fn with_optional(self, headings: &'static [&'static str]) -> Self {
        Table { optional: headings, ..self }
    }

    /// Adds a row, in a tone if it is special.
    pub fn row<T: ToString>(&mut self, cells: &[T], tone: Option<Tone>) {
        self.rows.push((cells.iter().map(|cell| shown(cell.to_string())).collect(), tone));
    }

    /// The table as text, without columns that are empty in every row.
    pub fn render(&self, output: &Output) -> String {
        self.render_columns(output, &self.filled_columns())
    }

    /// The table in 80 columns: short ids, times without fractions, without optional columns where the others need the
    /// room, and the widest columns cut. `is_wide` changes nothing.
    pub fn render_fitted(mut self, output: &Output, is_wide: bool) -> String {
        let mut columns = self.filled_columns();
        if !is_wide {
            for column in &columns {
                self.shorten_ids(*column);
                self.shorten_times(*column);
            }
            self.drop_optional(&mut columns);
            self.shrink(&columns);
        }
        self.render_columns(output, &columns)
    }

    /// The table in 80 columns, with the text of wide columns in several lines. Words are never broken.
    pub fn render_wrapped(&self, output: &Output) -> String {
        let columns = self.filled_columns();
        let narrowest = |column: &usize| {
            let words = self.cells(*column).flat_map(str::split_whitespace);
            words.map(UnicodeWidthStr::width).max().unwrap_or(0)
        };
        let narrowest: Vec<usize> = columns.iter().map(narrowest).collect();
        let widths = fitted(columns.iter().map(|column| self.width(*column)).collect(), &narrowest);
        let mut lines = Table::default();
        for (cells, tone) in &self.rows {
            let cell = |column: &usize| cells.get(*column).map(String::as_str).unwrap_or_default();
            let wrap = |(column, width): (&usize, &usize)| wrapped(cell(column), *width);
            let mut parts: Vec<_> = columns.iter().zip(&widths).map(wrap).map(Vec::into_iter).collect();
            let height = parts.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
            for _ in 0..height {
                let line = parts.iter_mut().map(|part| part.next().unwrap_or_default()).collect();
                lines.rows.push((line, *tone));
            }
        }
        lines.render_columns(output, &(0..columns.len()).collect::<Vec<_>>())
    }

    /// Columns with text in a row below the heading.
    fn filled_columns(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(|(cells, _)| cells.len()).max().unwrap_or(0);
        let is_filled = |column: &usize| {
            let mut cells = self.rows.iter().skip(1).filter_map(|(cells, _)| cells.get(*column));
            self.rows.len() == 1 || cells.any(|cell| !cell.is_empty() && cell != "-")
        };
        (0..columns).filter(is_filled).collect()
    }

    /// Cuts the ids of a column to the shortest prefix that tells them apart.
    fn shorten_ids(&mut self, column: usize) {
        let cells = || self.rows.iter().filter_map(|(cells, _)| cells.get(column)).filter(|cell| is_id(cell));
        let is_unique = |length: &usize| {
            let mut prefixes: Vec<&str> = cells().map(|cell| &cell[..*length]).collect();
            let mut ids: Vec<&String> = cells().collect();
            ids.sort_unstable();
            ids.dedup();
            prefixes.sort_unstable();
            prefixes.dedup();
            prefixes.len() == ids.len()
        };
        let length = (SHORT_ID..ID_LENGTH).find(is_unique).unwrap_or(ID_LENGTH);
        for (cells, _) in &mut self.rows {
            if let Some(cell) = cells.get_mut(column).filter(|cell| is_id(cell)) {
                cell.truncate(length);
            }
        }
    }

    /// Cuts the fractions of seconds off the times of a column.
    fn shorten_times(&mut self, column: usize) {
        for (cells, _) in &mut self.rows {
            if let Some(cell) = cells.get_mut(column).filter(|cell| is_time(cell))
                && let Some(dot) = cell.find('.')
            {
                cell.truncate(dot);
                cell.push('Z');
            }
        }
    }

    /// Removes optional columns until the table fits with the others cut a little.
    fn drop_optional(&self, columns: &mut Vec<usize>) {
        for heading in self.optional {
            let needed = |column: &usize| match self.is_whole(*column) {
                true => self.width(*column),
                false => self.width(*column).min(COMFORTABLE),
            };
            if total(columns.iter().map(needed)) <= LINE_WIDTH {
                return;
            }
            columns.retain(|column| self.heading(*column) != *heading);
        }
    }

    fn heading(&self, column: usize) -> &str {
        self.rows.first().and_then(|(cells, _)| cells.get(column)).map_or("", String::as_str)
    }

    /// Whether a column is never cut.
    fn is_whole(&self, column: usize) -> bool {
        WHOLE.contains(&self.heading(column)) || self.cells(column).any(is_time)
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().filter_map(move |(cells, _)| cells.get(column)).map(String::as_str)
    }

    /// Cuts the cells of the widest columns until the table fits.
    fn shrink(&mut self, columns: &[usize]) {
        let widths: Vec<usize> = columns.iter().map(|column| self.width(*column)).collect();
        let narrowest = |column: &usize| if self.is_whole(*column) { usize::MAX } else { NARROWEST };
        let narrowest: Vec<usize> = columns.iter().map(narrowest).collect();
        let widths = fitted(widths, &narrowest);
        for (cells, _) in &mut self.rows {
            for (column, width) in columns.iter().zip(&widths) {
                if let Some(cell) = cells.get_mut(*column).filter(|cell| cell.width() > *width) {
                    *cell = cut(cell, *width);
                }
            }
        }
    }

    fn width(&self, column: usize) -> usize {
        // Columns of a terminal, and not characters: some take two.
        self.cells(column).map(UnicodeWidthStr::width).max().unwrap_or(0)
    }

    fn render_columns(&self, output: &Output, columns: &[usize]) -> String {
        let widths: Vec<usize> = columns.iter().map(|column| self.width(*column)).collect();
        let mut text = String::new();
        for (cells, tone) in &self.rows {
            let mut line = String::new();
            for (column, width) in columns.iter().zip(&widths) {
                let cell = cells.get(*column).map(String::as_str).unwrap_or_default();
                line.push_str(cell);
                line.push_str(&" ".repeat(width.saturating_sub(cell.width()) + 2));
            }
            let line = line.trim_end();
            // Coloured after the alignment, because escape codes have no width.
            text.push_str(&tone.map_or_else(|| line.to_owned(), |tone| output.toned(line, tone)));
            text.push('\n');
        }
        text
    }
}

/// Width of columns with the spaces between them.
fn total(widths: impl ExactSizeIterator<Item = usize>) -> usize {
    let spaces = 2 * widths.len().saturating_sub(1);
    widths.sum::<usize>() + spaces
}

/// The widths of columns after the widest ones were narrowed until all fit, each to its narrowest width at most.
fn fitted(mut widths: Vec<usize>, narrowest: &[usize]) -> Vec<usize> {
    while total(widths.iter().copied()) > LINE_WIDTH {
        let can_shrink = widths.iter_mut().zip(narrowest).filter(|(width, narrowest)| **width > **narrowest);
        match can_shrink.max_by_key(|(width, _)| **width) {
            Some((widest, _)) => *widest -= 1,
            None => break,
        }
    }
    widths
}

/// Whether a cell is a time as Sessile prints it: RFC 3339 in UTC.
fn is_time(cell: &str) -> bool {
    let bytes = cell.as_bytes();
    let has = |place: usize, byte: u8| bytes.get(place) == Some(&byte);
    has(4, b'-') && has(7, b'-') && has(10, b'T') && has(13, b':') && cell.ends_with('Z')
}

/// Whether a cell is the id of a session, a conversation or the like.
fn is_id(cell: &str) -> bool {
    let is_dash = |place: usize| matches!(place, 8 | 13 | 18 | 23);
    let fits =
        |(place, byte): (usize, u8)| if is_dash(place) { byte == b'-' } else { byte.is_ascii_hexdigit() };
    cell.len() == ID_LENGTH && cell.bytes().enumerate().all(fits)
}

/// The beginning of a cell, with a mark where it was cut.
fn cut(cell: &str, width: usize) -> String {
    let mut text = String::new();
    for c in cell.chars() {
        if text.width() + c.width().unwrap_or(0) >= width {
            break;
        }
        text.push(c);
    }
    format!("{text}…")
}

#[cfg(test)]
mod tests {
    use sessile::World;
    use sessile::args::{Color, OutputFormat};

    use super::*;

    fn render(table: Table, is_wide: bool) -> String {
        let world = World::empty();
        table.render_fitted(&Output::new(&world, OutputFormat::Text, Color::Never, false, false), is_wide)
    }

    fn table() -> Table {
        let mut table = Table::new(&["ID", "NAME", "OTHER", "TEXT"]);
        for id in ["01a1ef9d-9dcc-748b-8459-74a5d66d650b", "01a1ef9d-9dcd-748b-8459-74a5d66d650b"] {
            table.row(&[id, "é", "-", &"long ".repeat(30)], None);
        }
        table
    }

    #[test]
    fn fitted_table_has_short_unique_ids_and_80_columns() {
        let text = render(table(), false);
        assert!(text.lines().all(|line| line.width() <= LINE_WIDTH), "{text}");
        assert!(text.contains("01a1ef9d-9dcc  é") && text.contains("01a1ef9d-9dcd  é"), "{text}");
        assert!(text.contains('…') && !text.contains("OTHER"), "{text}");
    }

    #[test]
    fn wide_table_is_whole() {
        let text = render(table(), true);
        assert!(text.contains("01a1ef9d-9dcc-748b-8459-74a5d66d650b") && !text.contains('…'), "{text}");
        assert!(!text.contains("OTHER"), "{text}");
    }

    #[test]
    fn narrow_table_drops_optional_columns_only() {
        let mut table = Table::new(&["LOCK", "STATE", "HOLDER", "SINCE", "UNTIL"]).with_optional(&["SINCE"]);
        let time = "2026-11-18T20:46:29.436228Z";
        let state = "waiting-for-a-person";
        table.row(&["deploy", state, "ann@a-long-host-name.example pid 28023", time, time], None);
        let text = render(table, false);
        assert!(text.lines().all(|line| line.width() <= LINE_WIDTH), "{text}");
        assert!(text.contains(state) && text.contains("  2026-11-18T20:46:29Z\n"), "{text}");
        assert!(text.contains("ann@a-long-host-name") && !text.contains("SINCE"), "{text}");
    }

    #[test]
    fn wrapped_table_has_every_word_in_80_columns() {
        let mut table = Table::new(&["KEY", "ABOUT"]);
        table.row(&["session.idle", &"words ".repeat(30)], None);
        table.row(&["next", "short"], None);
        let world = World::empty();
        let text = table.render_wrapped(&Output::new(&world, OutputFormat::Text, Color::Never, false, false));
        assert!(text.lines().all(|line| line.width() <= LINE_WIDTH), "{text}");
        assert_eq!(text.matches("words").count(), 30, "{text}");
        assert!(text.contains("\nnext          short\n"), "{text}");
    }
}
