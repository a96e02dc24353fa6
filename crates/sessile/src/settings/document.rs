//! One parsed file, TOML or JSON, in which every value knows its line.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use toml_edit::{Item, TableLike};

use crate::error::{Error, FileError, FileLocation, Result};
use crate::names::{ContextName, without_name};
use crate::secrets::looks_secret;
use crate::settings::json;
use crate::text::shortened;

/// A parsed file.
#[derive(Clone, Debug)]
pub struct Document {
    path: PathBuf,
    text: String,
    root: Node,
    /// Offsets of the lines, computed lazily.
    lines: OnceLock<Vec<usize>>,
    disclosure: Disclosure,
}

/// Whether error messages may contain the content of a file.
///
/// Only settings and contexts in the user's and the system's configuration directories may be disclosed. Any other
/// file may hold a secret: an argument, or a link in a project, can point to any file of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disclosure {
    /// Messages contain lines and values, unless the file is a symbolic link.
    Quoted,
    /// Messages contain only the line, the column and the expected type.
    Hidden,
}

impl Disclosure {
    fn permits(self, path: &Path) -> bool {
        self == Disclosure::Quoted && !path.is_symlink()
    }
}

/// A value in a file, with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Offset of the key, in bytes.
    pub offset: usize,
    /// Value.
    pub data: Data,
}

/// Typed value in a file.
#[derive(Clone, Debug)]
pub enum Data {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A string.
    Text(String),
    /// A list.
    Array(Vec<Node>),
    /// A table, in the order of the file.
    Table(Vec<(String, Node)>),
    /// A float, a date, null: nothing that a setting takes.
    Other(&'static str),
}

/// Content of a file that was parsed when the program was built.
#[derive(Debug)]
pub(crate) enum StaticData {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A string.
    Text(&'static str),
    /// A list.
    Array(&'static [StaticData]),
    /// A table, in the order of the file.
    Table(&'static [(&'static str, StaticData)]),
}

impl StaticData {
    /// Whether it is a table with a key.
    pub(crate) fn has(&self, key: &str) -> bool {
        matches!(self, StaticData::Table(members) if members.iter().any(|(name, _)| *name == key))
    }

    /// The same as a value of a file, without a place and without some keys of the table.
    fn to_node_without(&self, keys: &[&str]) -> Node {
        let StaticData::Table(members) = self else { return self.to_node() };
        let members = members.iter().filter(|(key, _)| !keys.contains(key));
        let data = Data::Table(members.map(|(key, data)| ((*key).to_owned(), data.to_node())).collect());
        Node { offset: 0, data }
    }

    /// The same as a value of a file, without a place.
    fn to_node(&self) -> Node {
        let data = match self {
            StaticData::Bool(value) => Data::Bool(*value),
            StaticData::Integer(value) => Data::Integer(*value),
            StaticData::Text(text) => Data::Text((*text).to_owned()),
            StaticData::Array(items) => Data::Array(items.iter().map(StaticData::to_node).collect()),
            StaticData::Table(members) => {
                Data::Table(members.iter().map(|(key, data)| ((*key).to_owned(), data.to_node())).collect())
            }
        };
        Node { offset: 0, data }
    }
}

impl Node {
    /// The member of a table.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members().iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    /// The members of a table; none if it is not one.
    pub fn members(&self) -> &[(String, Node)] {
        match &self.data {
            Data::Table(members) => members,
            _ => &[],
        }
    }

    /// Whether it says the same as another, wherever it stands; the order in a table does not count.
    pub fn is_same_as(&self, other: &Node) -> bool {
        match (&self.data, &other.data) {
            (Data::Bool(own), Data::Bool(other)) => own == other,
            (Data::Integer(own), Data::Integer(other)) => own == other,
            (Data::Text(own), Data::Text(other)) => own == other,
            (Data::Array(own), Data::Array(other)) => {
                own.len() == other.len() && own.iter().zip(other).all(|(own, other)| own.is_same_as(other))
            }
            (Data::Table(own), Data::Table(members)) => {
                let has_same =
                    |(name, node): &(String, Node)| other.get(name).is_some_and(|it| node.is_same_as(it));
                own.len() == members.len() && own.iter().all(has_same)
            }
            (Data::Other(own), Data::Other(other)) => own == other,
            _ => false,
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Value for error messages, shortened. [`Document::describe`] decides whether a message may contain it.
    pub(crate) fn described(&self) -> String {
        match &self.data {
            Data::Bool(value) => value.to_string(),
            Data::Integer(value) => value.to_string(),
            Data::Text(text) => crate::text::quoted(shortened(text, 40)),
            Data::Array(_) => "a list".into(),
            Data::Table(_) => "a table".into(),
            Data::Other(what) => (*what).into(),
        }
    }
}

impl Document {
    /// Parses the text of a file. The ending decides the format: `.json`, or TOML for all others. Errors do not show
    /// the text.
    pub fn parse(path: &Path, text: String) -> Result<Self> {
        Self::parse_as(Disclosure::Hidden, path, text)
    }

    /// Parses the text of a file whose errors may show the text.
    pub(crate) fn parse_as(disclosure: Disclosure, path: &Path, text: String) -> Result<Self> {
        let root = match path.extension().and_then(|ending| ending.to_str()) {
            Some(ending) if ending.eq_ignore_ascii_case("json") => parse_json(path, &text),
            Some(ending) if YAML.iter().any(|yaml| ending.eq_ignore_ascii_case(yaml)) => {
                Err(other_format(path, &text))
            }
            Some(ending) if !ending.eq_ignore_ascii_case("toml") => {
                // Another ending is accepted if the text is TOML; the reason of a failure would be misleading
                // otherwise.
                parse_toml(path, &text).map_err(|_| other_format(path, &text))
            }
            _ => parse_toml(path, &text),
        };
        let hide = |error: Error| if disclosure.permits(path) { error } else { error.without_excerpt() };
        let root = Node { offset: 0, data: Data::Table(root.map_err(hide)?) };
        Ok(Document { path: path.to_owned(), text, root, lines: OnceLock::new(), disclosure })
    }

    /// A file that was parsed when the program was built. Its values have no places.
    pub(crate) fn built_in(path: &Path, content: &StaticData, without: &[&str]) -> Self {
        let (path, root) = (path.to_owned(), content.to_node_without(without));
        let (text, disclosure) = (String::new(), Disclosure::Hidden);
        Document { path, text, root, lines: OnceLock::new(), disclosure }
    }

    /// Reads and parses a file; `None` if it does not exist. Errors do not show the text.
    pub fn load(path: &Path) -> Result<Option<Self>> {
        Self::load_as(Disclosure::Hidden, path)
    }

    /// Reads and parses a file whose errors may show the text; `None` if it does not exist.
    pub(crate) fn load_as(disclosure: Disclosure, path: &Path) -> Result<Option<Self>> {
        crate::files::read(path)?.map(|text| Self::parse_as(disclosure, path, text)).transpose()
    }

    /// Value for error messages: only its type, unless the file may be disclosed.
    pub fn describe(&self, node: &Node) -> String {
        match node.data {
            Data::Text(_) if !self.is_quotable() => "the text in the file".into(),
            Data::Integer(_) if !self.is_quotable() => "a number".into(),
            _ => node.described(),
        }
    }

    /// Name of a context whose table is in the file. The error contains it only if the file may be disclosed.
    pub(crate) fn context_name(&self, name: &str, node: &Node) -> Result<ContextName> {
        name.parse().map_err(|error| match self.is_quotable() {
            true => error,
            false => without_name(error, self.place(node.offset)),
        })
    }

    /// Whether error messages must not even show keys. A file that a link leads to can be any of the user's.
    pub(crate) fn hides_keys(&self) -> bool {
        // Also where a directory on the way is a link.
        let is_behind_link = || self.path.canonicalize().is_ok_and(|real| real != self.path);
        !self.is_quotable() && is_behind_link()
    }

    /// Whether error messages may show lines and values of the file.
    pub(crate) fn is_quotable(&self) -> bool {
        self.disclosure.permits(&self.path)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The table that everything is in.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The line of an offset, from 1.
    pub fn line(&self, offset: usize) -> usize {
        // A file may hold as many values as lines: counting from the top for each would be quadratic.
        let lines = self.lines.get_or_init(|| line_starts(&self.text));
        lines.partition_point(|start| *start <= offset).max(1)
    }

    /// The place of an offset, with its line to show.
    pub fn place(&self, offset: usize) -> FileLocation {
        let line = self.line(offset);
        // `line` has computed the offsets just before.
        let start = self.lines.get().and_then(|lines| lines.get(line - 1)).copied().unwrap_or(0);
        let mut place = place_in_line(&self.path, &self.text, line, start, offset);
        if !place.text.is_empty() && !self.is_quotable() {
            place.text.clear();
        }
        place
    }
}

/// Endings of a format that some of its files share with TOML: an empty file or a comment would pass.
const YAML: &[&str] = &["yml", "yaml"];

fn other_format(path: &Path, text: &str) -> Error {
    Error::File(FileError::Syntax { place: place(path, text, 0).into(), message: "not TOML or JSON".into() })
}

/// Whether a file is JSON, by its ending; any other is TOML.
pub(super) fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"))
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

fn place(path: &Path, text: &str, offset: usize) -> FileLocation {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    place_in_line(path, text, line, start, offset)
}

fn place_in_line(path: &Path, text: &str, line: usize, start: usize, offset: usize) -> FileLocation {
    // Offsets come from parsers and count bytes; a cut within a character would panic.
    let offset = text.floor_char_boundary(offset);
    let content = text[start..].lines().next().unwrap_or_default();
    FileLocation {
        path: path.to_owned(),
        line,
        column: 1 + text[start.min(offset)..offset].chars().count(),
        // A line that may hold a secret is named, not shown.
        text: if looks_secret(content) { String::new() } else { shortened(content, 200) },
    }
}

fn parse_toml(path: &Path, text: &str) -> Result<Vec<(String, Node)>> {
    let document = toml_edit::Document::parse(text).map_err(|error| FileError::Syntax {
        place: place(path, text, error.span().map_or(0, |span| span.start)).into(),
        // An error is one line of text.
        message: error.message().lines().collect::<Vec<_>>().join("; "),
    })?;
    Ok(members_of(document.as_table()))
}

fn members_of(table: &dyn TableLike) -> Vec<(String, Node)> {
    table
        .iter()
        .map(|(key, item)| {
            // The key's place: the value of a table or list begins on another line.
            let key_start = table.key(key).and_then(toml_edit::Key::span).map(|span| span.start);
            let item_start = || item.span().map(|span| span.start);
            let offset = key_start.or_else(item_start).unwrap_or(0);
            (key.to_owned(), Node { offset, data: data_of(item) })
        })
        .collect()
}

fn data_of(item: &Item) -> Data {
    use toml_edit::Value;
    match item {
        Item::Table(table) => Data::Table(members_of(table)),
        Item::Value(Value::InlineTable(table)) => Data::Table(members_of(table)),
        Item::Value(Value::Boolean(value)) => Data::Bool(*value.value()),
        Item::Value(Value::Integer(value)) => Data::Integer(*value.value()),
        Item::Value(Value::String(value)) => Data::Text(value.value().clone()),
        Item::Value(Value::Array(values)) => Data::Array(
            values
                .iter()
                .map(|value| Node {
                    offset: value.span().map_or(0, |span| span.start),
                    data: data_of(&Item::Value(value.clone())),
                })
                .collect(),
        ),
        Item::Value(Value::Float(_)) => Data::Other("a decimal number"),
        Item::Value(Value::Datetime(_)) => Data::Other("a date"),
        Item::ArrayOfTables(tables) => Data::Array(
            tables
                .iter()
                .map(|table| Node {
                    offset: table.span().map_or(0, |span| span.start),
                    data: Data::Table(members_of(table)),
                })
                .collect(),
        ),
        Item::None => Data::Other("nothing"),
    }
}

fn parse_json(path: &Path, text: &str) -> Result<Vec<(String, Node)>> {
    let syntax = |offset, message: &str| {
        Error::File(FileError::Syntax {
            place: place(path, text, offset).into(),
            message: message.to_owned(),
        })
    };
    // Checked for depth and reserved keys first; the scanner below trusts the text.
    crate::json::from_str::<serde_json::Map<String, serde_json::Value>>(text).map_err(|error| {
        let line_start: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        syntax(line_start + error.column().saturating_sub(1), &json::problem(&error))
    })?;
    json::members(text).ok_or_else(|| syntax(0, "a JSON object is expected"))
}

/// An empty file of a path's format.
pub(crate) fn empty_text(path: &Path) -> &'static str {
    if is_json(path) { "{}" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(name: &str, text: &str) -> Result<Document> {
        Document::parse(Path::new(name), text.to_owned())
    }

    #[test]
    fn values_know_their_lines_in_both_formats() {
        let toml = parse("a.toml", "# note\nb = 1\n[session]\nidle = \"2h\"\n").unwrap();
        let idle = toml.root().get("session").unwrap().get("idle").unwrap();
        assert_eq!((toml.line(idle.offset), idle.as_str()), (4, Some("2h")));

        let json =
            parse("a.json", "{\n  \"session\": {\n    \"idle\": \"2\\u0068\" },\n  \"b\": [1, true]\n}")
                .unwrap();
        let idle = json.root().get("session").unwrap().get("idle").unwrap();
        assert_eq!((json.line(idle.offset), idle.as_str()), (3, Some("2h")));
        assert_eq!(json.line(json.root().get("b").unwrap().offset), 4);
    }

    #[test]
    fn syntax_errors_name_line_and_column() {
        for (name, text, line) in [
            ("a.toml", "a = 1\nb = \n", 2),
            ("a.json", "{\n \"a\": ,\n}", 2),
            ("a.json", "[1]", 1),
            ("a.json", "", 1),
        ] {
            let error = parse(name, text).unwrap_err();
            let Error::File(FileError::Syntax { place, .. }) = &error else { panic!("{error}") };
            assert_eq!(place.line, line, "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in "\\PC*") {
            let _ = parse("a.toml", &text);
            let _ = parse("a.json", &text);
        }

        #[test]
        fn any_json_object_is_read_as_serde_reads_it(value in json_value()) {
            let text = serde_json::to_string_pretty(&serde_json::json!({ "v": value })).unwrap();
            let document = parse("a.json", &text).unwrap();
            proptest::prop_assert!(same(&document.root().get("v").unwrap().data, &value));
        }
    }

    fn json_value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into)
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn same(data: &Data, value: &serde_json::Value) -> bool {
        match (data, value) {
            (Data::Bool(a), serde_json::Value::Bool(b)) => a == b,
            (Data::Integer(a), b) => Some(*a) == b.as_i64(),
            (Data::Text(a), serde_json::Value::String(b)) => a == b,
            (Data::Array(a), serde_json::Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(&a.data, b))
            }
            (Data::Table(a), serde_json::Value::Object(b)) => {
                a.len() == b.len()
                    && a.iter().all(|(key, node)| b.get(key).is_some_and(|b| same(&node.data, b)))
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_document_or_an_error_with_a_place_in_it(
            text in "([a-c.]{1,3} ?=? ?([\\[\\]{}0-9\"'a#,.:-]{0,6})[\r\n \t]{0,2}){0,6}|\\PC{0,30}|([{}\\[\\]\",:0-9a\\\\n]){0,16}",
            name in "a\\.(toml|json)",
            offset in 0_usize..200,
        ) {
            match parse(&name, &text) {
                Ok(document) => {
                    let naive = 1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
                    prop_assert_eq!(document.line(offset), naive);
                    prop_assert_eq!(document.place(offset).line, naive);
                }
                Err(error) => {
                    let place = error.location().unwrap();
                    prop_assert!(place.line <= 1 + text.matches('\n').count());
                    prop_assert!(place.column <= 1 + text.chars().count());
                }
            }
        }
    }
}
