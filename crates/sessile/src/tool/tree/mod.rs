//! YAML and JSON as a tree in which every plain scalar keeps its text: `1e3` stays `1e3`, whatever it may mean.
//!
//! Parsing into values and writing those out again would change what a tool reads: a token that looks like a number,
//! such as `0123`, becomes one. So a scalar is its text and whether it was quoted. Comments are not kept: the output is
//! a session's private copy, which nobody edits.

mod json;
mod path;
mod yaml;

pub(crate) use path::TreePath;

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
    fn is_nothing(&self) -> bool {
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
    pub(crate) fn says_the_same(&self, other: &Tree) -> bool {
        match (self, other) {
            (Tree::Scalar(mine), Tree::Scalar(other)) => mine.text == other.text,
            (Tree::List(mine), Tree::List(other)) => {
                mine.len() == other.len() && mine.iter().zip(other).all(|(a, b)| a.says_the_same(b))
            }
            (Tree::Map(mine), Tree::Map(other)) => {
                mine.len() == other.len()
                    && mine.iter().zip(other).all(|(a, b)| a.0.text == b.0.text && a.1.says_the_same(&b.1))
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
    fn files_are_united_and_the_first_wins() {
        let mut one =
            yaml("current-context: a\nusers: null\ncontexts:\n- name: a\n  context: {cluster: one}\n");
        one.unite(yaml("current-context: b\nusers:\n- name: u\ncontexts:\n- name: a\n  context: {cluster: two}\n- name: b\n"));
        let wanted = "current-context: a\nusers:\n- name: u\ncontexts:\n- name: a\n  context: {cluster: one}\n- name: b\n";
        assert_eq!(one, yaml(wanted));
    }

    #[test]
    fn what_would_explode_is_refused() {
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
