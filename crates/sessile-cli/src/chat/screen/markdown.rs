//! Markdown of replies as styled lines: headings, lists, quotes, code, emphasis and links. Anything else is text.
//!
//! Small on purpose: a reply is drawn while it arrives, so every prefix of a document must be fine, and nothing may fail.

/// Kind of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextKind {
    Plain,
    Strong,
    Emphasis,
    Code,
    Heading,
    Faint,
    Quote,
    Link,
    Good,
    Warning,
    Bad,
    User,
    Agent,
}

/// Line of styled pieces before it is wrapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StyledLine {
    /// Pieces in order.
    pub(super) pieces: Vec<(String, TextKind)>,
    /// Cells that the second and later rows are indented by.
    pub(super) indent: usize,
}

impl StyledLine {
    /// Line of one piece.
    pub(super) fn new(text: impl Into<String>, kind: TextKind) -> Self {
        StyledLine { pieces: vec![(text.into(), kind)], indent: 0 }
    }
}

/// Lines of a document, which is sanitized already.
pub(super) fn lines(text: &str) -> Vec<StyledLine> {
    let mut all = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        match fence {
            Some(mark) if trimmed.starts_with(mark) => fence = None,
            Some(_) => {
                all.push(StyledLine { pieces: vec![(format!("  {line}"), TextKind::Code)], indent: 2 });
            }
            None if trimmed.starts_with("```") => fence = Some("```"),
            None if trimmed.starts_with("~~~") => fence = Some("~~~"),
            None => all.push(block_line(line)),
        }
    }
    all
}

fn block_line(line: &str) -> StyledLine {
    let trimmed = line.trim_start();
    let lead = line.len() - trimmed.len();
    let hashes = trimmed.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&hashes) && trimmed[hashes..].starts_with(' ') {
        return StyledLine::new(trimmed[hashes..].trim().trim_end_matches('#').trim_end(), TextKind::Heading);
    }
    if trimmed.len() >= 3 && ["-", "*", "_"].iter().any(|mark| trimmed.replace(*mark, "").trim().is_empty()) {
        return StyledLine::new("---", TextKind::Faint);
    }
    if let Some(quoted) = trimmed.strip_prefix('>') {
        let mut pieces = vec![("| ".to_owned(), TextKind::Quote)];
        pieces.extend(
            inline(quoted.trim_start())
                .into_iter()
                .map(|(text, kind)| (text, if kind == TextKind::Plain { TextKind::Quote } else { kind })),
        );
        return StyledLine { pieces, indent: 2 };
    }
    let bullet =
        ["- ", "* ", "+ "].iter().find_map(|mark| trimmed.strip_prefix(mark)).map(|rest| ("- ", rest));
    if let Some((mark, rest)) = bullet.or_else(|| numbered(trimmed)) {
        let mark = format!("{}{mark}", " ".repeat(lead.min(12)));
        let indent = mark.chars().count();
        let mut pieces = vec![(mark, TextKind::Strong)];
        pieces.extend(inline(rest));
        return StyledLine { pieces, indent };
    }
    StyledLine { pieces: inline(line), indent: 0 }
}

/// Number and text of an item of a numbered list.
fn numbered(line: &str) -> Option<(&str, &str)> {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = line.get(digits..)?;
    let is_item = (1..=4).contains(&digits) && (rest.starts_with(". ") || rest.starts_with(") "));
    is_item.then(|| (&line[..digits + 2], &line[digits + 2..]))
}

/// Pieces of a line: code, strong, emphasis, links, and plain text.
fn inline(text: &str) -> Vec<(String, TextKind)> {
    let mut pieces: Vec<(String, TextKind)> = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let before = plain.chars().next_back();
        match span(rest, before) {
            Some((span_pieces, used)) => {
                if !plain.is_empty() {
                    pieces.push((std::mem::take(&mut plain), TextKind::Plain));
                }
                pieces.extend(span_pieces);
                rest = &rest[used..];
            }
            None => {
                let literal = if next == '\\' { escaped(rest) } else { None };
                let (keep, used) = literal.map_or((next, next.len_utf8()), |c| (c, 1 + c.len_utf8()));
                plain.push(keep);
                rest = &rest[used..];
            }
        }
    }
    if !plain.is_empty() || pieces.is_empty() {
        pieces.push((plain, TextKind::Plain));
    }
    pieces
}

/// Punctuation behind a backslash. The sanitizer's own escapes begin with a letter and stay.
fn escaped(rest: &str) -> Option<char> {
    rest.chars().nth(1).filter(|c| "\\`*_{}[]()#+-.!|<>~".contains(*c))
}

/// Pieces of a span, and the number of its bytes.
type InlineSpan = (Vec<(String, TextKind)>, usize);

/// Span at the start of a text.
fn span(rest: &str, before: Option<char>) -> Option<InlineSpan> {
    let marks = [("`", TextKind::Code), ("**", TextKind::Strong), ("__", TextKind::Strong)];
    let single = [("*", TextKind::Emphasis), ("_", TextKind::Emphasis)];
    for (mark, kind) in marks.into_iter().chain(single) {
        let Some(inner) = rest.strip_prefix(mark) else { continue };
        // snake_case is a name, and not emphasis.
        if mark.starts_with('_') && before.is_some_and(char::is_alphanumeric) {
            return None;
        }
        let end = inner.find(mark).filter(|end| *end > 0);
        let found = end.map(|end| &inner[..end]).filter(|text| {
            kind == TextKind::Code
                || !(text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace))
        });
        if let Some(text) = found {
            return Some((vec![(text.to_owned(), kind)], text.len() + 2 * mark.len()));
        }
    }
    let inner = rest.strip_prefix('[')?;
    let (label, after) = inner.split_once("](")?;
    let (url, _) = after.split_once(')')?;
    if label.contains('[') || url.contains(char::is_whitespace) {
        return None;
    }
    // The address is always shown: a label could claim another one.
    let pieces = vec![(label.to_owned(), TextKind::Link), (format!(" <{url}>"), TextKind::Faint)];
    Some((pieces, label.len() + url.len() + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(text: &str) -> Vec<(String, TextKind)> {
        lines(text).into_iter().flat_map(|line| line.pieces).collect()
    }

    #[test]
    fn blocks_are_recognized() {
        use TextKind::{Code, Heading, Plain, Quote, Strong};
        let text = "# Title\n- one\n  2. two\n> said\n```rust\nfn *a*()\n```\nend";
        let expected = [
            ("Title", Heading),
            ("- ", Strong),
            ("one", Plain),
            ("  2. ", Strong),
            ("two", Plain),
            ("| ", Quote),
            ("said", Quote),
            ("  fn *a*()", Code),
            ("end", Plain),
        ];
        assert_eq!(flat(text), expected.map(|(text, kind)| (text.to_owned(), kind)));
    }

    #[test]
    fn spans_are_recognized() {
        use TextKind::{Code, Emphasis, Faint, Link, Plain, Strong};
        let text = "a **b** *c* `d*e*` [f](https://g.example) snake_case_name 2 * 3 * 4 \\*x";
        let expected = [
            ("a ", Plain),
            ("b", Strong),
            (" ", Plain),
            ("c", Emphasis),
            (" ", Plain),
            ("d*e*", Code),
            (" ", Plain),
            ("f", Link),
            (" <https://g.example>", Faint),
            (" snake_case_name 2 * 3 * 4 *x", Plain),
        ];
        assert_eq!(flat(text), expected.map(|(text, kind)| (text.to_owned(), kind)));
    }

    #[test]
    fn every_prefix_is_rendered() {
        let text = "# T\n**bold [x](y) `code\n```\nopen fence\n> _q_\n1. \u{65e5}\u{672c} \\u{1b}";
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            let _ = lines(&text[..end]);
        }
        assert_eq!(flat("**open"), [("**open".to_owned(), TextKind::Plain)]);
        assert_eq!(flat("\\u{1b}[31m"), [("\\u{1b}[31m".to_owned(), TextKind::Plain)]);
    }
}
