//! A tree in JSON.

use std::path::Path;

use serde_json::Value;

use super::{Scalar, Tree};
use crate::error::{Error, Result};

pub(super) fn parse(path: &Path, text: &str) -> Result<Tree> {
    let value: Value = serde_json::from_str(text).map_err(|error| Error::ToolFile {
        path: path.to_owned(),
        line: error.line(),
        message: error.to_string(),
    })?;
    Ok(tree(value))
}

fn tree(value: Value) -> Tree {
    match value {
        Value::String(text) => Tree::Scalar(Scalar::quoted(text)),
        Value::Array(values) => Tree::List(values.into_iter().map(tree).collect()),
        Value::Object(members) => {
            Tree::Map(members.into_iter().map(|(key, value)| (Scalar::quoted(key), tree(value))).collect())
        }
        plain => Tree::Scalar(Scalar::plain(plain.to_string())),
    }
}

pub(super) fn write(tree: &Tree) -> String {
    serde_json::to_string_pretty(&value(tree)).map_or_else(|_| String::new(), |text| text + "\n")
}

fn value(tree: &Tree) -> Value {
    match tree {
        Tree::Scalar(Scalar { text, quoted: true }) => Value::String(text.clone()),
        Tree::Scalar(Scalar { text, quoted: false }) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
        }
        Tree::List(trees) => Value::Array(trees.iter().map(value).collect()),
        Tree::Map(members) => {
            Value::Object(members.iter().map(|(key, tree)| (key.text.clone(), value(tree))).collect())
        }
    }
}
