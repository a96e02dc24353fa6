//! A tree in YAML.

use std::collections::HashMap;
use std::path::Path;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::{Scalar, Tree};
use crate::error::{Error, Result, ToolError};

/// Aliases can make a small file as large as one likes.
const MOST_NODES: usize = 2_000_000;
/// Trees are walked by recursion.
const DEEPEST: usize = 100;

/// Node that is being parsed, with its anchor.
struct Open {
    tree: Tree,
    key: Option<Scalar>,
    anchor: usize,
}

struct Reader<'a> {
    path: &'a Path,
    open: Vec<Open>,
    anchors: HashMap<usize, (Tree, usize)>,
    nodes: usize,
    root: Option<Tree>,
}

pub(super) fn parse(path: &Path, text: &str) -> Result<Tree> {
    let mut reader = Reader { path, open: Vec::new(), anchors: HashMap::new(), nodes: 0, root: None };
    for event in Parser::new_from_str(text) {
        let (event, span) =
            event.map_err(|error| reader.wrong(error.marker().line(), error.info().to_owned()))?;
        if reader.take(event, span.start.line())? {
            break;
        }
    }
    Ok(reader.root.unwrap_or(Tree::Map(Vec::new())))
}

impl Reader<'_> {
    fn wrong(&self, line: usize, message: impl Into<String>) -> Error {
        Error::Tool(ToolError::InvalidFile { path: self.path.to_owned(), line, message: message.into() })
    }

    /// Takes an event; says whether the document has ended.
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<bool> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                // `!!str 123` is text, although it looks like a number.
                let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let quoted = is_text || style != ScalarStyle::Plain;
                self.put(Tree::Scalar(Scalar { text: text.into_owned(), quoted }), anchor, 1, line)?;
            }
            Event::SequenceStart(anchor, _) => self.begin(Tree::List(Vec::new()), anchor, line)?,
            Event::MappingStart(anchor, _) => self.begin(Tree::Map(Vec::new()), anchor, line)?,
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { tree, anchor, .. }) = self.open.pop() {
                    self.put(tree, anchor, 1, line)?;
                }
            }
            Event::Alias(anchor) => {
                let (tree, size) = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or_else(|| self.wrong(line, "an alias of nothing"))?;
                self.put(tree, 0, size, line)?;
            }
            Event::DocumentEnd => return Ok(true),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => {}
        }
        Ok(false)
    }

    fn begin(&mut self, tree: Tree, anchor: usize, line: usize) -> Result<()> {
        if self.open.len() >= DEEPEST {
            return Err(self.wrong(line, "it is nested too deeply"));
        }
        self.open.push(Open { tree, key: None, anchor });
        Ok(())
    }

    fn put(&mut self, tree: Tree, anchor: usize, size: usize, line: usize) -> Result<()> {
        self.nodes += size;
        if self.nodes > MOST_NODES {
            return Err(self.wrong(line, "its aliases make it too large"));
        }
        if anchor > 0 {
            let size = size_of(&tree);
            self.anchors.insert(anchor, (tree.clone(), size));
        }
        match self.open.last_mut() {
            None => self.root = Some(tree),
            Some(Open { tree: Tree::List(trees), .. }) => trees.push(tree),
            Some(Open { tree: Tree::Map(members), key, .. }) => match (key.take(), tree) {
                (Some(name), tree) => members.push((name, tree)),
                (None, Tree::Scalar(name)) => *key = Some(name),
                (None, _) => return Err(self.wrong(line, "a list or a map as a key")),
            },
            Some(_) => {}
        }
        Ok(())
    }
}

fn size_of(tree: &Tree) -> usize {
    match tree {
        Tree::Scalar(_) => 1,
        Tree::List(trees) => 1 + trees.iter().map(size_of).sum::<usize>(),
        Tree::Map(members) => 1 + members.iter().map(|(_, tree)| 1 + size_of(tree)).sum::<usize>(),
    }
}

pub(super) fn write(tree: &Tree) -> String {
    let mut text = String::new();
    match tree {
        Tree::Scalar(scalar) => text.push_str(&written(scalar)),
        Tree::List(trees) if trees.is_empty() => text.push_str("[]"),
        Tree::Map(members) if members.is_empty() => text.push_str("{}"),
        tree => block(tree, 0, &mut text),
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Writes a list or a map that is not empty. The caller has indented the first line.
fn block(tree: &Tree, indent: usize, text: &mut String) {
    let pad = " ".repeat(indent);
    match tree {
        Tree::Scalar(scalar) => text.push_str(&written(scalar)),
        Tree::List(trees) => {
            for (at, tree) in trees.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { &pad });
                text.push_str("- ");
                value(tree, indent + 2, true, text);
            }
        }
        Tree::Map(members) => {
            for (at, (key, tree)) in members.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { &pad });
                text.push_str(&key_of(key, &pad));
                value(tree, indent + 2, false, text);
            }
        }
    }
}

/// A key with its colon. YAML limits a key on the line of its value to 1,024 characters; a longer one is written as an
/// explicit key.
fn key_of(key: &Scalar, pad: &str) -> String {
    let key = written(key);
    if key.chars().count() <= 1_000 { format!("{key}:") } else { format!("? {key}\n{pad}:") }
}

fn value(tree: &Tree, indent: usize, in_list: bool, text: &mut String) {
    let space = if in_list { "" } else { " " };
    match tree {
        Tree::Scalar(scalar) => text.push_str(&format!("{space}{}\n", written(scalar))),
        Tree::List(trees) if trees.is_empty() => text.push_str(&format!("{space}[]\n")),
        Tree::Map(members) if members.is_empty() => text.push_str(&format!("{space}{{}}\n")),
        tree => {
            if !in_list {
                text.push('\n');
                text.push_str(&" ".repeat(indent));
            }
            block(tree, indent, text);
        }
    }
}

/// Whether a text reads back as itself without quotes. The parser is more lenient inside brackets than outside, where
/// everything is written; a text that only brackets allow is never a number, a boolean or null, so quoting it is safe.
fn is_plain(text: &str) -> bool {
    let starts_like_syntax = text.starts_with(|c| ",[]{}#&*!|>'\"%@`".contains(c))
        || ["-", "?", ":"]
            .iter()
            .any(|sign| text.strip_prefix(sign).is_some_and(|rest| rest.starts_with(' ')))
        || ["-", "?", "---", "..."].contains(&text)
        || text.starts_with("--- ")
        || text.starts_with("... ");
    let ends_early = text.contains(": ") || text.contains(" #") || text.ends_with(':');
    let is_one_line = text.trim() == text && !text.contains(|c: char| c.is_control() || BREAKS.contains(&c));
    !starts_like_syntax && !ends_early && is_one_line
}

/// Characters beyond the controls that some parsers take for line breaks or drop.
const BREAKS: [char; 4] = ['\u{85}', '\u{2028}', '\u{2029}', '\u{feff}'];

/// A scalar in one line. JSON's notation of text is one of YAML's.
fn written(scalar: &Scalar) -> String {
    match scalar {
        Scalar { text, quoted: false } if text.is_empty() => "null".to_owned(),
        Scalar { text, quoted: false } if is_plain(text) => text.clone(),
        Scalar { text, .. } => serde_json::Value::String(text.clone()).to_string(),
    }
}
