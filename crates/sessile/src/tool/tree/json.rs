//! A tree in JSON.

use std::path::Path;

use serde_json::value::RawValue;

use super::{Scalar, Tree, unique_members};
use crate::error::{Error, Result, ToolError};
use crate::json::ObjectMembers;

pub(super) fn parse(path: &Path, text: &str) -> Result<Tree> {
    let wrong = |error: serde_json::Error| {
        Error::Tool(ToolError::InvalidFile {
            path: path.to_owned(),
            line: error.line(),
            message: error.to_string(),
        })
    };
    // Once as a whole, for an error with the right line and a bound on the depth.
    serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(wrong)?;
    tree(text).map_err(wrong)
}

/// Values keep their text, so that a number keeps its digits.
fn tree(text: &str) -> serde_json::Result<Tree> {
    let text = text.trim();
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let ObjectMembers(members) = serde_json::from_str(text)?;
            let members =
                members.into_iter().map(|(key, value)| Ok((Scalar::quoted(key), tree(value.get())?)));
            Tree::Map(unique_members(members.collect::<serde_json::Result<_>>()?))
        }
        Some(b'[') => {
            let values: Vec<Box<RawValue>> = serde_json::from_str(text)?;
            Tree::List(values.iter().map(|value| tree(value.get())).collect::<serde_json::Result<_>>()?)
        }
        Some(b'"') => Tree::Scalar(Scalar::quoted(serde_json::from_str::<String>(text)?)),
        _ => Tree::Scalar(Scalar::plain(text)),
    })
}

pub(super) fn write(tree: &Tree) -> String {
    let mut text = String::new();
    put(tree, 0, &mut text);
    text.push('\n');
    text
}

fn put(tree: &Tree, depth: usize, text: &mut String) {
    let line = |depth: usize, text: &mut String| {
        text.push('\n');
        text.push_str(&"  ".repeat(depth));
    };
    match tree {
        Tree::Scalar(scalar) => text.push_str(&written(scalar)),
        Tree::List(trees) => {
            text.push('[');
            for (at, tree) in trees.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                line(depth + 1, text);
                put(tree, depth + 1, text);
            }
            if !trees.is_empty() {
                line(depth, text);
            }
            text.push(']');
        }
        Tree::Map(members) => {
            text.push('{');
            for (at, (key, tree)) in members.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "," });
                line(depth + 1, text);
                text.push_str(&quoted(&key.text));
                text.push_str(": ");
                put(tree, depth + 1, text);
            }
            if !members.is_empty() {
                line(depth, text);
            }
            text.push('}');
        }
    }
}

fn written(scalar: &Scalar) -> String {
    match scalar {
        Scalar { text, quoted: false } if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() => {
            text.clone()
        }
        // An empty plain scalar comes from YAML or from a new member, and stands for nothing.
        Scalar { text, quoted: false } if text.is_empty() => "null".to_owned(),
        Scalar { text, .. } => quoted(text),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
