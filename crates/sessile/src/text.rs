//! Text from outside on its way to a person: control characters are made visible, names are quoted.
//!
//! In JSON such characters are written as JSON's own escapes, so that the text stays what it is.

use std::fmt::{Display, Write};

/// Placeholder for a word from a file that is not quoted.
pub(crate) const HIDDEN: &str = "[hidden]";

/// Path in JSON, with bytes that are not UTF-8 replaced.
pub(crate) fn path_in_json<S: serde::Serializer>(
    path: &std::path::Path,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// The same where there may be none.
pub(crate) fn maybe_path_in_json<S: serde::Serializer>(
    path: &Option<std::path::PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => path_in_json(path, serializer),
        None => serializer.serialize_none(),
    }
}

/// Whether a character could move the cursor, break the line, change colours, or hide or reorder what is seen.
fn is_hostile(c: char) -> bool {
    // Most text is ASCII, and this runs for every character that is printed.
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    // Soft hyphens, fillers, zero-width characters, direction marks and overrides, tags, and line separators.
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// The text with every control or direction character written out, on one line.
pub fn shown(text: impl Display) -> String {
    escape(&text.to_string(), |_| false)
}

/// Like [`shown`], but line breaks and tabs stay: for text of several lines.
pub fn shown_lines(text: &str) -> String {
    escape(text, |c| c == '\n' || c == '\t')
}

/// The text in double quotes. Quotes and backslashes in it are escaped, so that it cannot end early.
pub fn quoted(text: impl AsRef<str>) -> String {
    // Before the quotes, or their escapes would be escaped again.
    format!("\"{}\"", shown(text.as_ref().replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Whether a text holds more than lines and tabs of what could act on a terminal.
pub fn acts_on_terminals(text: &str) -> bool {
    text.chars().any(|c| is_hostile(c) && c != '\n' && c != '\t')
}

/// JSON in which no character can act on a terminal; it says the same. Line breaks between values stay.
pub fn json_safe(json: &str) -> String {
    if !json.chars().any(|c| is_hostile(c) && c != '\n') {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_hostile(c) && c != '\n' {
            // JSON escapes characters beyond the first plane as surrogate pairs (RFC 8259, 7).
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
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
    // By characters: a cut within one would panic.
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A name that another program gave itself: without control or direction characters, on one line, not long.
pub fn plain_name(text: &str, limit: usize) -> String {
    let plain: String = text.chars().filter(|c| !is_hostile(*c)).collect();
    shortened(plain.trim(), limit)
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
        assert_eq!(shown_lines("a\u{2028}b\u{2029}c"), "a\\u{2028}b\\u{2029}c");
        for c in
            ['\u{ad}', '\u{61c}', '\u{180e}', '\u{206a}', '\u{fff9}', '\u{fffb}', '\u{e0001}', '\u{e007f}']
        {
            assert_eq!(shown(c), format!("\\u{{{:x}}}", c as u32));
        }
    }

    #[test]
    fn a_name_that_a_program_gave_itself_is_plain_and_not_long() {
        assert_eq!(plain_name(" Cur\x1b[2Jsor\n\u{202e} ", 40), "Cur[2Jsor");
        assert_eq!(plain_name("\u{e4}bcd", 2), "\u{e4}b...");
        assert_eq!(plain_name("\n\t", 2), "");
    }

    #[test]
    fn json_keeps_its_meaning_and_loses_what_acts_on_terminals() {
        let text = "a\u{9b}31m\x7f\u{202e}\x1b[0m\n\u{e9}\u{2028}\u{2029}\u{e0041}\u{1f600}";
        let json = serde_json::json!({ "k": text });
        let safe = json_safe(&format!("{json:#}\n"));
        assert!(!safe.chars().any(|c| c != '\n' && is_hostile(c)), "{safe}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), json);
    }

    #[test]
    fn quoted_text_cannot_end_early() {
        assert_eq!(quoted(r"a\b"), r#""a\\b""#);
        assert_eq!(quoted(r#"a\" at b as "c"#), r#""a\\\" at b as \"c""#);
    }

    #[test]
    fn shell_words_survive_a_shell() {
        assert_eq!(shell_quoted("staging"), "staging");
        assert_eq!(shell_quoted("a b"), "'a b'");
        assert_eq!(shell_quoted("it's"), "'it'\\''s'");
        assert_eq!(shell_quoted(""), "''");
    }
}
