//! Text from outside on its way to the screen: sanitized, bounded, and cut to the cells that it may fill.

use sessile::text::{shown, shown_lines};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Characters that one cell may hold: more combining marks than that only disturb their neighbours.
const CHARS_PER_CELL: usize = 8;

/// Cells between two stops of a tab.
const TAB: &str = "    ";

/// Cells that a text fills.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// A text on one line, sanitized and cut to `cells`. A text that is cut ends in `…`, or in `~` without Unicode.
///
/// The cost depends on the cells only, not on the length of the text.
pub(crate) fn clip(text: &str, cells: usize, ellipsis: &str) -> String {
    let limit = cells.saturating_mul(CHARS_PER_CELL).saturating_add(1);
    let head = match text.char_indices().nth(limit) {
        Some((end, _)) => &text[..end],
        None => text,
    };
    let safe = without_piles(shown(head));
    if head.len() == text.len() && safe.width() <= cells {
        return safe;
    }
    let (mut kept, mut used) = (String::new(), ellipsis.width());
    if used > cells {
        return kept;
    }
    for grapheme in safe.graphemes(true) {
        used += grapheme.width();
        if used > cells {
            break;
        }
        kept.push_str(grapheme);
    }
    kept.push_str(ellipsis);
    kept
}

/// A text cut or padded to exactly `cells`.
pub(crate) fn fit(text: &str, cells: usize, ellipsis: &str) -> String {
    let mut fitted = clip(text, cells, ellipsis);
    fitted.push_str(&" ".repeat(cells.saturating_sub(fitted.width())));
    fitted
}

/// A text of several lines, sanitized and wrapped to `cells`, `most` lines at most. A line breaks at a space where one is near.
pub(crate) fn wrap(text: &str, cells: usize, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if cells == 0 {
        return lines;
    }
    // Rows off the screen are skipped.
    let limit = cells.saturating_mul(most).saturating_mul(CHARS_PER_CELL);
    let head = match text.char_indices().nth(limit) {
        Some((end, _)) => &text[..end],
        None => text,
    };
    for line in shown_lines(head).lines() {
        wrap_line(&without_piles(line.replace('\t', TAB)), cells, &mut lines);
        if lines.len() >= most {
            lines.truncate(most);
            break;
        }
    }
    lines
}

/// A text whose characters have a few combining marks at most: a terminal stacks any number of them over its neighbours.
fn without_piles(text: String) -> String {
    let cut = |grapheme: &str| grapheme.char_indices().nth(CHARS_PER_CELL).map(|(end, _)| end);
    if text.is_ascii() || !text.graphemes(true).any(|grapheme| cut(grapheme).is_some()) {
        return text;
    }
    text.graphemes(true).map(|grapheme| &grapheme[..cut(grapheme).unwrap_or(grapheme.len())]).collect()
}

fn wrap_line(line: &str, cells: usize, lines: &mut Vec<String>) {
    let (mut current, mut used) = (String::new(), 0);
    for word in line.split_word_bounds() {
        let wide = word.width();
        if used + wide <= cells {
            current.push_str(word);
            used += wide;
            continue;
        }
        if wide <= cells {
            lines.push(std::mem::take(&mut current).trim_end().to_owned());
            used = 0;
            if !word.trim().is_empty() {
                current.push_str(word);
                used = wide;
            }
            continue;
        }
        for grapheme in word.graphemes(true) {
            if used + grapheme.width() > cells && !current.is_empty() {
                lines.push(std::mem::take(&mut current));
                used = 0;
            }
            current.push_str(grapheme);
            used += grapheme.width();
        }
    }
    lines.push(current.trim_end().to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_characters_are_written_out() {
        assert_eq!(clip("a\x1b[2J\u{202e}b\n", 40, "…"), "a\\u{1b}[2J\\u{202e}b\\n");
        assert_eq!(wrap("a\tb\x07\nc", 40, 9), ["a    b\\u{7}", "c"]);
    }

    #[test]
    fn text_is_cut_by_cells() {
        assert_eq!(clip("abcdef", 4, "…"), "abc…");
        assert_eq!(clip("日本語", 5, "…"), "日本…");
        assert_eq!(clip("日本語", 4, "…"), "日…");
        assert_eq!(clip("abc", 0, "…"), "");
        assert_eq!(fit("日", 4, "~"), "日  ");
        assert_eq!(clip("e\u{301}e\u{301}e\u{301}", 2, "…"), "e\u{301}…");
    }

    #[test]
    fn long_text_and_piled_marks_are_bounded() {
        let piled = format!("a{}", "\u{301}".repeat(100_000));
        assert!(clip(&piled, 10, "…").len() < 32);
        assert!(clip(&"x".repeat(1 << 20), 80, "…").len() < 100);
        assert_eq!(wrap(&"word ".repeat(1 << 18), 20, 7).len(), 7);
    }

    #[test]
    fn lines_break_at_words() {
        assert_eq!(wrap("one two three", 8, 9), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4, 9), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\n\nb", 4, 9), ["a", "", "b"]);
    }
}
