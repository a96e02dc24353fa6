//! YAML and JSON as a tree in which every plain scalar keeps its text: `1e3` stays `1e3`, whatever it may mean.
//!
//! Parsing into values and writing them again would change the meaning for a tool: a token that looks like a number,
//! such as `0123`, becomes one. So a scalar is its text and whether it was quoted. Comments are dropped, because the
//! output is a session's private copy that people do not edit.

mod json;
mod path;
mod yaml;

pub(crate) use path::TreePath;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use crate::error::Result;

/// A scalar as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    /// Whether it is text for sure; a plain one may be a number, a boolean or nothing.
    pub(crate) quoted: bool,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    Scalar(Scalar),
    List(Vec<Tree>),
    Map(Vec<(Scalar, Tree)>),
}

/// Notation of a tree in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    Yaml,
    Json,
}

impl Notation {
    /// Reads a file's text. An empty file is an empty map.
    pub(crate) fn parse(self, path: &Path, text: &str) -> Result<Tree> {
        // Some tools begin their files with a byte order mark.
        let text = text.trim_start_matches('\u{feff}');
        match self {
            _ if text.trim().is_empty() => Ok(Tree::Map(Vec::new())),
            Notation::Yaml => yaml::parse(path, text),
            Notation::Json => json::parse(path, text),
        }
    }

    pub(crate) fn write(self, tree: &Tree) -> String {
        match self {
            Notation::Yaml => yaml::write(tree),
            Notation::Json => json::write(tree),
        }
    }
}

/// Members of a map with each key once. A repeated key has its last value, as the tools read it: judging a file by another value than
/// the tool uses would let a protected target through.
fn unique_members(members: Vec<(Scalar, Tree)>) -> Vec<(Scalar, Tree)> {
    let mut positions = HashMap::with_capacity(members.len());
    let mut unique: Vec<(Scalar, Tree)> = Vec::with_capacity(members.len());
    for (name, tree) in members {
        match positions.entry(name.text.clone()) {
            Entry::Occupied(position) => {
                if let Some((_, old)) = unique.get_mut(*position.get()) {
                    *old = tree;
                }
            }
            Entry::Vacant(position) => {
                position.insert(unique.len());
                unique.push((name, tree));
            }
        }
    }
    unique
}

impl Scalar {
    pub(crate) fn quoted(text: impl Into<String>) -> Self {
        Scalar { text: text.into(), quoted: true }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Scalar { text: text.into(), quoted: false }
    }
}

impl Tree {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Tree::Scalar(scalar) => Some(&scalar.text),
            _ => None,
        }
    }

    /// Whether it says nothing: `null`, `~`, or an empty plain scalar.
    pub(crate) fn is_nothing(&self) -> bool {
        // The spellings of null in YAML's core schema.
        matches!(self, Tree::Scalar(Scalar { text, quoted: false }) if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    pub(crate) fn member(&self, key: &str) -> Option<&Tree> {
        match self {
            Tree::Map(members) => members.iter().find(|(name, _)| name.text == key).map(|(_, tree)| tree),
            _ => None,
        }
    }

    /// Whether it says the same as another, however its scalars are written.
    pub(crate) fn has_same_content(&self, other: &Tree) -> bool {
        match (self, other) {
            (Tree::Scalar(mine), Tree::Scalar(other)) => mine.text == other.text,
            (Tree::List(mine), Tree::List(other)) => {
                mine.len() == other.len() && mine.iter().zip(other).all(|(a, b)| a.has_same_content(b))
            }
            (Tree::Map(mine), Tree::Map(other)) => {
                mine.len() == other.len()
                    && mine.iter().zip(other).all(|(a, b)| a.0.text == b.0.text && a.1.has_same_content(&b.1))
            }
            _ => false,
        }
    }

    /// Merges another tree. Existing values win; lists of named items are merged by name.
    pub(crate) fn unite(&mut self, other: Tree) {
        match (&mut *self, other) {
            (mine, other) if mine.is_nothing() => *mine = other,
            (Tree::Map(mine), Tree::Map(other)) => {
                for (key, tree) in other {
                    match mine.iter_mut().find(|(name, _)| name.text == key.text) {
                        Some((_, found)) => found.unite(tree),
                        None => mine.push((key, tree)),
                    }
                }
            }
            (Tree::List(mine), Tree::List(other)) => {
                // A set, because a file can have thousands of entries.
                let named: std::collections::HashSet<String> =
                    mine.iter().filter_map(|tree| tree.member("name")?.text().map(str::to_owned)).collect();
                let is_new = |tree: &Tree| {
                    tree.member("name").and_then(Tree::text).is_none_or(|name| !named.contains(name))
                };
                mine.extend(other.into_iter().filter(is_new));
            }
            // Different kinds cannot be merged, so the first file wins.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn yaml(text: &str) -> Tree {
        Notation::Yaml.parse(Path::new("f"), text).unwrap()
    }

    #[test]
    fn scalars_keep_their_text_and_their_kind() {
        let text = "a: 1e3\nb: \"1e3\"\nc: 0x1F\nd: yes\ne: null\nusers: null\nf: 'it''s'\ng: |\n  two\n  lines\nh: []\ni: {}\nj: \"\"\nk:\n- 1\n- x: {y: z}\n  w: v\n- - nested\n";
        let tree = yaml(text);
        let written = Notation::Yaml.write(&tree);
        assert_eq!(yaml(&written), tree, "{written}");
        assert!(written.contains("a: 1e3\n") && written.contains("b: \"1e3\"\n"), "{written}");
        assert!(written.contains("users: null\n") && written.contains("c: 0x1F\n"), "{written}");
    }

    #[test]
    fn json_stays_json() {
        let text =
            r#"{"auths":{"x":{"auth":"YQ=="}},"n":12,"b":true,"z":null,"l":[],"s":"a\"\u00e9\ud83d\ude00"}"#;
        let tree = Notation::Json.parse(Path::new("f"), text).unwrap();
        let written = Notation::Json.write(&tree);
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&written), value(text));
        let numbers = r#"{"id":123456789012345678901234567890,"f":1.50,"e":1E5}"#;
        let tree = Notation::Json.parse(Path::new("f"), numbers).unwrap();
        let written = Notation::Json.write(&tree);
        assert_eq!(written.replace([' ', '\n'], ""), numbers, "numbers keep their digits");
    }

    #[test]
    fn repeated_key_has_its_last_value() {
        let tree = yaml("server: https://a\nserver: https://b\n");
        assert_eq!(tree.member("server").and_then(Tree::text), Some("https://b"));
        let json = Notation::Json.parse(Path::new("f"), r#"{"Host":"a","Host":"b"}"#).unwrap();
        assert_eq!(json.member("Host").and_then(Tree::text), Some("b"));
    }

    #[test]
    fn merge_keys_are_resolved() {
        for (text, wanted) in [
            ("b: &b {x: 1, y: 2}\nm: {<<: *b, y: 3}\n", "m: {x: 1, y: 3}\n"),
            ("m: {<<: {x: 1}, z: 2}\n", "m: {x: 1, z: 2}\n"),
            ("m: {<<: [{x: 1}, {x: 2, y: 2}]}\n", "m: {x: 1, y: 2}\n"),
            ("m: {!!merge \"<<\": {x: 1}}\n", "m: {x: 1}\n"),
            ("m: {<<: {<<: {x: 1}, y: 2}}\n", "m: {x: 1, y: 2}\n"),
            ("m: {y: 2, <<: {x: 1, y: 2}}\n", "m: {y: 2, x: 1}\n"),
            // The key of a list's element, as kubeconfigs have it.
            ("m:\n- name: a\n  <<: {x: 1}\n", "m: [{name: a, x: 1}]\n"),
        ] {
            let tree = yaml(text);
            let wanted = yaml(wanted);
            assert!(
                tree.member("m").unwrap().has_same_content(wanted.member("m").unwrap()),
                "{text}: {tree:?}"
            );
            assert!(!Notation::Yaml.write(&tree).contains("<<"), "{text}");
        }
        // In quotes it is a key like any other.
        let quoted = yaml("m: {\"<<\": {x: 1}}\n");
        assert_eq!(yaml(&Notation::Yaml.write(&quoted)), quoted);
        assert!(quoted.member("m").unwrap().member("x").is_none());
        // Parsers differ on which value counts, and a wrong guess would let a protected target through.
        for wrong in ["m: {y: 3, <<: {y: 2}}\n", "m: {<<: x}\n", "m: {<<: [x]}\n", "m: {<<: }\n"] {
            let error = Notation::Yaml.parse(Path::new("f"), wrong).unwrap_err();
            assert!(error.to_string().contains("<<"), "{wrong}: {error}");
        }
    }

    #[test]
    fn files_are_united_and_the_first_wins() {
        let mut one =
            yaml("current-context: a\nusers: null\ncontexts:\n- name: a\n  context: {cluster: one}\n");
        one.unite(yaml("current-context: b\nusers:\n- name: u\ncontexts:\n- name: a\n  context: {cluster: two}\n- name: b\n"));
        let wanted = "current-context: a\nusers:\n- name: u\ncontexts:\n- name: a\n  context: {cluster: one}\n- name: b\n";
        assert_eq!(one, yaml(wanted));
    }

    #[test]
    fn exponential_alias_expansion_is_refused() {
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [before.as_str(); 10].join(",")));
        }
        let error = Notation::Yaml.parse(Path::new("bomb"), &bomb).unwrap_err();
        assert!(error.to_string().contains("bomb"), "{error}");
        let deep = "[".repeat(100_000);
        assert!(Notation::Yaml.parse(Path::new("deep"), &deep).is_err());
        assert!(Notation::Json.parse(Path::new("deep"), &deep).is_err());
    }
}
