//! Wrapping styled lines to the width of the screen.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::markdown::{StyledLine, TextKind};

/// Characters that one cell may hold: more combining marks than that only disturb their neighbours.
const CHARS_PER_CELL: usize = 8;

/// Cells of a tab.
const TAB: &str = "    ";

/// One row of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    /// Pieces in order.
    pub(super) pieces: Vec<(String, TextKind)>,
    width: usize,
}

impl Row {
    fn indented(cells: usize) -> Self {
        let pieces = if cells == 0 { Vec::new() } else { vec![(" ".repeat(cells), TextKind::Plain)] };
        Row { pieces, width: cells }
    }

    /// Text of the row.
    pub(super) fn text(&self) -> String {
        self.pieces.iter().map(|(text, _)| text.as_str()).collect()
    }

    fn push(&mut self, text: &str, kind: TextKind) {
        self.width += text.width();
        match self.pieces.last_mut() {
            Some((last, same)) if *same == kind => last.push_str(text),
            _ => self.pieces.push((text.to_owned(), kind)),
        }
    }
}

/// Wraps a line to `cells`, at spaces where one is near.
pub(super) fn wrap(line: &StyledLine, cells: usize) -> Vec<Row> {
    let cells = cells.max(4);
    let indent = line.indent.min(cells / 2);
    let (mut rows, mut row, mut start) = (Vec::new(), Row::default(), 0);
    for (text, kind) in &line.pieces {
        let text = text.replace('\t', TAB);
        for word in text.split_word_bounds() {
            let wide = word.width();
            if row.width + wide <= cells && word.chars().count() <= wide.max(1) * CHARS_PER_CELL {
                row.push(word, *kind);
                continue;
            }
            let is_blank = word.trim().is_empty();
            if wide + indent <= cells && row.width > start {
                rows.push(std::mem::replace(&mut row, Row::indented(indent)));
                start = indent;
                if is_blank {
                    continue;
                }
            }
            for grapheme in word.graphemes(true) {
                if row.width + grapheme.width() > cells && row.width > start {
                    rows.push(std::mem::replace(&mut row, Row::indented(indent)));
                    start = indent;
                }
                match grapheme.char_indices().nth(CHARS_PER_CELL) {
                    Some((end, _)) => row.push(&grapheme[..end], *kind),
                    None => row.push(grapheme, *kind),
                }
            }
        }
    }
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, indent: usize, cells: usize) -> Vec<String> {
        let line = StyledLine { pieces: vec![(text.to_owned(), TextKind::Plain)], indent };
        wrap(&line, cells).iter().map(|row| row.text().trim_end().to_owned()).collect()
    }

    #[test]
    fn lines_break_at_words_and_keep_their_indent() {
        assert_eq!(rows("one two three", 0, 8), ["one two", "three"]);
        assert_eq!(rows("- one two three", 2, 9), ["- one two", "  three"]);
        assert_eq!(rows("abcdefghij", 0, 4), ["abcd", "efgh", "ij"]);
        assert_eq!(rows("", 0, 4), [""]);
    }

    #[test]
    fn wide_and_combining_characters_keep_to_their_cells() {
        assert_eq!(rows("\u{65e5}\u{672c}\u{8a9e}", 0, 5), ["\u{65e5}\u{672c}", "\u{8a9e}"]);
        let piled = format!("a{}b", "\u{301}".repeat(1_000));
        let wrapped = rows(&piled, 0, 10);
        assert!(wrapped.len() == 1 && wrapped[0].chars().count() < 20, "{}", wrapped[0].chars().count());
        for row in rows(&"\u{65e5}a ".repeat(500), 0, 7) {
            assert!(row.width() <= 7, "{row}");
        }
    }
}
