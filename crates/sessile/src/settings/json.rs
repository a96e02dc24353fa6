//! JSON with positions, so that a value in a `.json` file has a line as its origin too.

use std::collections::HashSet;

use crate::settings::document::{Data, Node};

/// The members of a JSON object, each at its offset; the text has been parsed by serde_json before.
pub(super) fn members(text: &str) -> Option<Vec<(String, Node)>> {
    let mut scanner = Scanner { text, at: 0 };
    match scanner.value()?.data {
        Data::Table(members) => Some(members),
        _ => None,
    }
}

/// As everywhere in JSON, the last of two equal keys counts.
fn last_of_each(members: Vec<(String, Node)>) -> Vec<(String, Node)> {
    let mut seen = HashSet::new();
    let last: Vec<bool> = members.iter().rev().map(|(key, _)| seen.insert(key.as_str())).collect();
    let mut last = last.into_iter().rev();
    let mut members = members;
    members.retain(|_| last.next() == Some(true));
    members
}

/// An error of serde_json without the values of the file, which serde_json repeats.
pub(crate) fn problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = text.strip_suffix(&place).unwrap_or(&text);
    let is_reserved_key = text.starts_with("key \"$serde_json::private::") && text.ends_with("is reserved");
    let is_safe = is_reserved_key || text.starts_with("missing field ");
    if error.classify() != serde_json::error::Category::Data || is_safe {
        return text.to_owned();
    }
    // The expected type is last, and is never the file's.
    match text.rsplit_once(", expected ") {
        Some((_, expected)) => format!("unexpected value, expected {expected}"),
        None => "unexpected value".to_owned(),
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self) -> Option<Node> {
        let first = self.peek()?;
        let offset = self.at;
        let data = match first {
            b'{' => Data::Table(self.object()?),
            b'[' => Data::Array(self.array()?),
            b'"' => Data::Text(self.string()?),
            _ => self.word()?,
        };
        Some(Node { offset, data })
    }

    fn object(&mut self) -> Option<Vec<(String, Node)>> {
        let mut members: Vec<(String, Node)> = Vec::new();
        self.take(b'{');
        while self.peek()? != b'}' {
            let offset = self.at;
            let key = self.string()?;
            self.take(b':');
            let node = Node { offset, ..self.value()? };
            members.push((key, node));
            self.take(b',');
        }
        self.take(b'}').then(|| last_of_each(members))
    }

    fn array(&mut self) -> Option<Vec<Node>> {
        let mut nodes = Vec::new();
        self.take(b'[');
        while self.peek()? != b']' {
            nodes.push(self.value()?);
            self.take(b',');
        }
        self.take(b']').then_some(nodes)
    }

    fn string(&mut self) -> Option<String> {
        self.peek()?;
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        while *bytes.get(end)? != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let literal = self.text.get(self.at..=end)?;
        self.at = end + 1;
        // serde_json resolves the escapes, surrogate pairs included.
        serde_json::from_str(literal).ok()
    }

    fn word(&mut self) -> Option<Data> {
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| ",]}".contains(c) || c.is_ascii_whitespace()).unwrap_or(rest.len());
        let word = &rest[..length];
        self.at += length;
        Some(match word {
            "true" => Data::Bool(true),
            "false" => Data::Bool(false),
            "null" => Data::Other("null"),
            // No setting takes decimals or numbers beyond 64 bits, so their value is not needed.
            _ => word.parse().map_or(Data::Other("a number"), Data::Integer),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn problem_names_the_expected_type_and_never_the_value() {
        let told = |text| problem(&serde_json::from_str::<BTreeMap<String, u32>>(text).unwrap_err());
        assert_eq!(told("97164d2d"), "unexpected value, expected a map");
        assert_eq!(told("{\"a\": \"hunter2, expected hunter3\"}"), "unexpected value, expected u32");
        assert_eq!(told("{\"a\": "), "EOF while parsing a value");
        assert_eq!(told("{a}"), "key must be a string");
    }
}
