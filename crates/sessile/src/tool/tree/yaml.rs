//! A tree in YAML.

use std::collections::HashMap;
use std::path::Path;

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::{Scalar, Tree, unique_members};
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
                let is_tagged = |suffix: &str| {
                    tag.as_ref().is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == suffix)
                };
                let quoted = is_tagged("str") || (style != ScalarStyle::Plain && !is_tagged("merge"));
                self.put(Tree::Scalar(Scalar { text: text.into_owned(), quoted }), anchor, 1, line)?;
            }
            Event::SequenceStart(anchor, _) => self.begin(Tree::List(Vec::new()), anchor, line)?,
            Event::MappingStart(anchor, _) => self.begin(Tree::Map(Vec::new()), anchor, line)?,
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { mut tree, anchor, .. }) = self.open.pop() {
                    if let Tree::Map(members) = &mut tree {
                        let merged = merged_members(std::mem::take(members));
                        *members = unique_members(merged.map_err(|message| self.wrong(line, message))?);
                    }
                    self.put(tree, anchor, 1, line)?;
                }
            }
            Event::Alias(anchor) => {
                let (tree, size) = self
                    .anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or_else(|| self.wrong(line, "an undefined alias"))?;
                self.put(tree, 0, size, line)?;
            }
            Event::DocumentEnd => return Ok(true),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => {}
        }
        Ok(false)
    }

    fn begin(&mut self, tree: Tree, anchor: usize, line: usize) -> Result<()> {
        if self.open.len() >= DEEPEST {
            return Err(self.wrong(line, "nested too deeply"));
        }
        self.open.push(Open { tree, key: None, anchor });
        Ok(())
    }

    fn put(&mut self, tree: Tree, anchor: usize, size: usize, line: usize) -> Result<()> {
        self.nodes += size;
        if self.nodes > MOST_NODES {
            return Err(self.wrong(line, "too large after expanding aliases"));
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

/// Key that takes the members of other maps into its own.
const MERGE: &str = "<<";

/// Members of a map with those of its merge keys in their place. The last value of a key counts afterwards.
fn merged_members(members: Vec<(Scalar, Tree)>) -> std::result::Result<Vec<(Scalar, Tree)>, String> {
    // In quotes it is a key like any other.
    let is_merge = |name: &Scalar| name.text == MERGE && !name.quoted;
    if !members.iter().any(|(name, _)| is_merge(name)) {
        return Ok(members);
    }
    let mut explicit: HashMap<String, Tree> = HashMap::new();
    let mut merged = Vec::new();
    for (name, tree) in members {
        if !is_merge(&name) {
            explicit.insert(name.text.clone(), tree.clone());
            merged.push((name, tree));
            continue;
        }
        let maps = match tree {
            Tree::List(trees) => trees,
            tree => vec![tree],
        };
        let mut taken = Vec::new();
        // Of several maps the first one counts, and of repeated keys the last.
        for map in maps.into_iter().rev() {
            let Tree::Map(inner) = map else {
                return Err(format!("the merge key {MERGE} requires a map or a list of maps"));
            };
            taken.extend(inner);
        }
        // Parsers differ on whether a key before the merge key keeps its value. A guess could let a protected target through.
        for (name, tree) in unique_members(taken) {
            if explicit.get(&name.text).is_some_and(|own| !own.has_same_content(&tree)) {
                let key = &name.text;
                return Err(format!(
                    "the key \"{key}\" must come after the merge key {MERGE} that sets it too"
                ));
            }
            merged.push((name, tree));
        }
    }
    Ok(merged)
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
