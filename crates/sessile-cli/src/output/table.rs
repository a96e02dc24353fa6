//! Columns for people: aligned, without lines, every cell made safe for a terminal.

use sessile::text::shown;
use unicode_width::UnicodeWidthStr;

use super::{Output, Tone};

/// A table with a heading.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<(Vec<String>, Option<Tone>)>,
}

impl Table {
    /// A table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Table {
            rows: vec![(headings.iter().map(|&heading| heading.to_owned()).collect(), Some(Tone::Faint))],
        }
    }

    /// Adds a row, in a tone if it is special.
    pub fn row<T: ToString>(&mut self, cells: &[T], tone: Option<Tone>) {
        self.rows.push((cells.iter().map(|cell| shown(cell.to_string())).collect(), tone));
    }

    /// The table as text.
    pub fn render(&self, output: &Output) -> String {
        let columns = self.rows.iter().map(|(cells, _)| cells.len()).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|(cells, _)| cells.get(column));
            // Columns of a terminal, and not characters: some take two.
            cells.map(|cell| cell.width()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (cells, tone) in &self.rows {
            let mut line = String::new();
            for (cell, width) in cells.iter().zip(&widths) {
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
