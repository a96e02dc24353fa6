//! Files that bindings change: reading values, and writing bound ones.

use std::path::Path;

use toml_edit::{DocumentMut, TomlError, value};

use crate::error::{Error, Result, ToolError};
use crate::files::read_up_to;
use crate::tool::gitconfig;
use crate::tool::profile::{Edit, EditFormat};
use crate::tool::seed::LARGEST_UNDERSTOOD;
use crate::tool::target::ini;
use crate::tool::tree::{Notation, Scalar, Tree, TreePath};

impl EditFormat {
    /// Format by its name in a profile.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "yaml" => EditFormat::Yaml,
            "json" => EditFormat::Json,
            "toml" => EditFormat::Toml,
            "ini" => EditFormat::Ini,
            "gitconfig" => EditFormat::Gitconfig,
            "text" => EditFormat::Text,
            _ => return None,
        })
    }

    /// Notation, for a format of trees.
    pub(crate) fn notation(self) -> Option<Notation> {
        match self {
            EditFormat::Yaml => Some(Notation::Yaml),
            EditFormat::Json => Some(Notation::Json),
            EditFormat::Toml | EditFormat::Ini | EditFormat::Gitconfig | EditFormat::Text => None,
        }
    }

    /// Content of a file, for reading.
    pub(crate) fn read(self, path: &Path, text: &str) -> Result<Tree> {
        match (self, self.notation()) {
            (_, Some(notation)) => notation.parse(path, text),
            (EditFormat::Toml, None) => Ok(toml_tree(&toml_document(path, text)?)),
            (EditFormat::Ini, None) => Ok(ini::tree(text)),
            (EditFormat::Gitconfig, None) => Ok(gitconfig::tree(text)),
            (_, None) => Ok(Tree::Scalar(Scalar::quoted(text.trim()))),
        }
    }
}

impl Edit {
    /// Path that gets the value; `.` if the value is the whole file.
    pub(crate) fn place(&self) -> Option<&str> {
        self.set.as_deref().or((self.format == EditFormat::Text).then_some("."))
    }

    /// Value of the path `from` in the source.
    pub(crate) fn source_value(&self, source: &Path, fill: impl Fn(&str) -> String) -> Option<String> {
        TreePath::parse(self.from.as_deref()?, fill).text(&mut tree_of(source)?)
    }

    /// Name of the section of the source that has a value. The value itself may be a secret, which no message may show.
    pub(crate) fn source_name(&self, source: &Path, value: &str) -> Option<String> {
        let (_, field) = self.from.as_deref()?.rsplit_once('.')?;
        let Tree::Map(sections) = tree_of(source)? else { return None };
        let has_value = |section: &Tree| section.member(field).and_then(Tree::text) == Some(value);
        sections.into_iter().find(|(_, section)| has_value(section)).map(|(title, _)| title.text)
    }
}

/// The text of a TOML file with a text at its top, or without one.
pub(crate) fn with_toml_text(path: &Path, text: &str, key: &str, new: Option<&str>) -> Result<String> {
    let mut document = toml_document(path, text)?;
    match new {
        Some(new) => document[key] = value(new),
        None => drop(document.remove(key)),
    }
    Ok(document.to_string())
}

fn toml_document(path: &Path, text: &str) -> Result<DocumentMut> {
    text.parse().map_err(|error: TomlError| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| before.lines().count().max(1));
        // Only the message: the full error quotes the line, which may hold a secret.
        let message = error.message().to_owned();
        Error::Tool(ToolError::InvalidFile { path: path.to_owned(), line, message })
    })
}

/// The texts at the top of a document.
fn toml_tree(document: &DocumentMut) -> Tree {
    let texts = document
        .iter()
        .filter_map(|(key, item)| Some((Scalar::quoted(key), Tree::Scalar(Scalar::quoted(item.as_str()?)))));
    Tree::Map(texts.collect())
}

fn tree_of(source: &Path) -> Option<Tree> {
    Some(ini::tree(&read_up_to(source, LARGEST_UNDERSTOOD).ok()??))
}
