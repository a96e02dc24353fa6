//! Doc comments and string literals of a Rust file, without those of its tests.

/// Text with the line on which it begins.
pub(super) struct SourceText {
    pub(super) line: usize,
    pub(super) text: String,
}

/// Texts of one file.
#[derive(Default)]
pub(super) struct RustTexts {
    /// Blocks of `///` or `//!` lines.
    pub(super) docs: Vec<SourceText>,
    /// String literals, except those of attributes that people do not read.
    pub(super) strings: Vec<SourceText>,
}

/// Attributes whose strings are messages or help.
const MESSAGE_ATTRIBUTES: [&str; 5] = ["error", "arg", "command", "clap", "value"];

struct Scanner<'a> {
    rest: &'a str,
    line: usize,
    depth: usize,
    /// Depth outside of the test item that is being skipped.
    skips_until: Option<usize>,
    /// `#[cfg(test)]` was read, and the item that it belongs to has not begun.
    is_test_next: bool,
    texts: RustTexts,
}

/// Reads the texts of a source file.
pub(super) fn scan(source: &str) -> RustTexts {
    let mut scanner = Scanner {
        rest: source,
        line: 1,
        depth: 0,
        skips_until: None,
        is_test_next: false,
        texts: RustTexts::default(),
    };
    while !scanner.rest.is_empty() {
        scanner.step();
    }
    scanner.texts
}

impl<'a> Scanner<'a> {
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn step(&mut self) {
        let rest = self.rest;
        if rest.starts_with("//") {
            self.comment();
        } else if rest.starts_with("/*") {
            self.take(rest.find("*/").map_or(rest.len(), |at| at + 2));
        } else if rest.starts_with("#[") || rest.starts_with("#![") {
            self.attribute();
        } else if let Some((open, close)) = string_start(rest) {
            let (line, text) = self.string(open, &close);
            if self.skips_until.is_none() {
                self.texts.strings.push(SourceText { line, text });
            }
        } else if rest.starts_with('\'') {
            self.take(char_length(rest));
        } else {
            let c = rest.chars().next().unwrap_or_default();
            self.brace(c);
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            self.take(word.max(c.len_utf8()));
        }
    }

    fn brace(&mut self, c: char) {
        match c {
            '{' => {
                if self.is_test_next && self.skips_until.is_none() {
                    self.skips_until = Some(self.depth);
                }
                self.is_test_next = false;
                self.depth += 1;
            }
            '}' => {
                self.depth = self.depth.saturating_sub(1);
                if self.skips_until == Some(self.depth) {
                    self.skips_until = None;
                }
            }
            ';' => self.is_test_next = false,
            _ => {}
        }
    }

    fn comment(&mut self) {
        let line = self.line;
        let text = self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
        let is_doc = (text.starts_with("///") && !text.starts_with("////")) || text.starts_with("//!");
        if !is_doc || self.skips_until.is_some() {
            return;
        }
        let text = &text[3..];
        match self.texts.docs.last_mut() {
            Some(block) if block.line + block.text.matches('\n').count() + 1 == line => {
                block.text.push('\n');
                block.text.push_str(text);
            }
            _ => self.texts.docs.push(SourceText { line, text: text.to_owned() }),
        }
    }

    fn attribute(&mut self) {
        let start = self.rest.find('[').map_or(self.rest.len(), |at| at + 1);
        self.take(start);
        let name = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(0);
        let name = &self.rest[..name];
        let is_message = MESSAGE_ATTRIBUTES.contains(&name);
        if self.rest.starts_with("cfg(test)") {
            self.is_test_next = true;
        }
        let mut depth = 1;
        while depth > 0 && !self.rest.is_empty() {
            if let Some((open, close)) = string_start(self.rest) {
                let (line, text) = self.string(open, &close);
                if is_message && self.skips_until.is_none() {
                    self.texts.strings.push(SourceText { line, text });
                }
                continue;
            }
            let c = self.rest.chars().next().unwrap_or_default();
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            self.take(c.len_utf8());
        }
    }

    fn string(&mut self, open: usize, close: &str) -> (usize, String) {
        let line = self.line;
        let is_raw = self.rest.starts_with(['r', 'b']) && self.rest[..open].contains('r');
        self.take(open);
        let end = if is_raw { self.rest.find(close) } else { unescaped_quote(self.rest) };
        let text = self.take(end.unwrap_or(self.rest.len()));
        self.take(close.len().min(self.rest.len()));
        (line, if is_raw { text.to_owned() } else { unescape(text) })
    }
}

/// Length of the opening quote and the closing one, if a string begins here.
fn string_start(rest: &str) -> Option<(usize, String)> {
    let prefix = ["", "b", "c", "r", "br", "cr"].into_iter().rev().find(|prefix| {
        rest.strip_prefix(*prefix).is_some_and(|rest| {
            rest.starts_with('"')
                || (prefix.ends_with('r')
                    && rest.trim_start_matches('#').starts_with('"')
                    && rest.starts_with('#'))
        })
    })?;
    let hashes = rest[prefix.len()..].bytes().take_while(|b| *b == b'#').count();
    Some((prefix.len() + hashes + 1, format!("\"{}", "#".repeat(hashes))))
}

fn unescaped_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let found = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        found.then_some(at)
    })
}

/// Text of a literal; a line that ends in a backslash continues on the next one.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('\n') => while chars.next_if(|c| c.is_whitespace()).is_some() {},
            Some(c @ ('"' | '\\' | '\'')) => out.push(c),
            _ => out.push(' '),
        }
    }
    out
}

/// Length of a character literal, or of the quote of a lifetime.
fn char_length(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            rest[3.min(rest.len())..].find('\'').map_or(1, |at| at + 4)
        }
        Some((at, c)) if rest[at + c.len_utf8()..].starts_with('\'') => at + c.len_utf8() + 1,
        _ => 1,
    }
}

#[test]
fn strings_and_docs_outside_of_tests_are_found() {
    let source = r###"//! Module.
//! Second line.
/// Item.
#[error("it {failed}")]
#[expect(lint, reason = "hidden")]
fn f<'a>() { g('"', b"bytes", "a \"b\" \
    c", r#"raw "x""#); } // "comment"
#[cfg(test)]
mod tests { const X: &str = "in a test"; }
const LAST: &str = "last";
"###;
    let texts = scan(source);
    let strings: Vec<&str> = texts.strings.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(strings, ["it {failed}", "bytes", "a \"b\" c", "raw \"x\"", "last"]);
    let docs: Vec<(usize, &str)> = texts.docs.iter().map(|one| (one.line, one.text.as_str())).collect();
    assert_eq!(docs, [(1, " Module.\n Second line.\n Item.")]);
}
