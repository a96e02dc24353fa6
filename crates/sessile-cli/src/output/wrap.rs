//! Lines of bounded width.

use unicode_width::UnicodeWidthStr;

/// The lines of a text, broken at spaces. A longer word has a line of its own.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A label and a text in a column beside it, in lines of 80 columns.
pub(crate) fn labelled(label: &str, column: usize, text: &str) -> String {
    let mut labels = std::iter::once(label).chain(std::iter::repeat(""));
    wrapped(text, super::LINE_WIDTH.saturating_sub(column))
        .iter()
        .map(|line| format!("{:column$}{line}\n", labels.next().unwrap_or_default()))
        .collect()
}
