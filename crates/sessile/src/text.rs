//! Text from outside on its way to a person: control characters are made visible, names are quoted.
//!
//! Not for JSON, which escapes by its own rules and must carry the text as it is.

use std::fmt::{Display, Write};

/// Whether a character could move the cursor, change colours, or reorder what is seen.
fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The text with every control or direction character written out, on one line.
pub fn shown(text: impl Display) -> String {
    escape(&text.to_string(), |_| false)
}

/// Like [`shown`], but line breaks and tabs stay: for text of several lines.
pub fn shown_lines(text: &str) -> String {
    escape(text, |c| c == '\n' || c == '\t')
}

/// The text in double quotes, escaped.
pub fn quoted(text: impl AsRef<str>) -> String {
    format!("\"{}\"", shown(text.as_ref().replace('"', "\\\"")))
}

/// The text as one word of a POSIX shell.
pub fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", shown(text).replace('\'', "'\\''"))
}

/// The first part of a long text, for error messages.
pub fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    if !text.chars().any(is_hostile) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if keep(c) || !is_hostile(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_codes_and_line_breaks_are_written_out() {
        assert_eq!(shown("a\x1b[31mb\nc"), "a\\u{1b}[31mb\\nc");
        assert_eq!(shown_lines("a\nb\x07"), "a\nb\\u{7}");
        assert_eq!(shown("caf\u{e9} \u{202e}x"), "caf\u{e9} \\u{202e}x");
    }

    #[test]
    fn shell_words_survive_a_shell() {
        assert_eq!(shell_quoted("staging"), "staging");
        assert_eq!(shell_quoted("a b"), "'a b'");
        assert_eq!(shell_quoted("it's"), "'it'\\''s'");
        assert_eq!(shell_quoted(""), "''");
    }
}
