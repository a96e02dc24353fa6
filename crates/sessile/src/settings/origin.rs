//! Origins of values.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::text::shown;

/// The layers, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Said on the command line.
    Flag,
    /// Said in a variable.
    Environment,
    /// The session's own.
    Session,
    /// Selected for this terminal.
    Terminal,
    /// The project's directory.
    Directory,
    /// The selected context's settings.
    Context,
    /// File of `--config`, which replaces the directory, the user and the system layers.
    File,
    /// The user's file.
    User,
    /// The administrator's file.
    System,
    /// Built in.
    Default,
}

impl Layer {
    /// The layer's name, the same in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Layer::Flag => "flag",
            Layer::Environment => "environment",
            Layer::Session => "session",
            Layer::Terminal => "terminal",
            Layer::Directory => "directory",
            Layer::Context => "context",
            Layer::File => "file",
            Layer::User => "user",
            Layer::System => "system",
            Layer::Default => "default",
        }
    }

    /// Whether the value was set for this call or by its session.
    pub fn is_explicit(self) -> bool {
        matches!(self, Layer::Flag | Layer::Environment | Layer::Session)
    }
}

/// Origin of a value: the layer and the exact place in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The layer.
    pub layer: Layer,
    /// The flag, variable, terminal or context, where the layer has more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "crate::text::maybe_path_in_json")]
    pub path: Option<PathBuf>,
    /// The line in it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

impl Origin {
    /// An origin with a name: a flag, a variable, a terminal.
    pub fn named(layer: Layer, name: impl Into<String>) -> Self {
        Origin { layer, name: Some(name.into()), path: None, line: None }
    }

    /// An origin in a file.
    pub fn in_file(layer: Layer, path: &Path, line: usize) -> Self {
        Origin { layer, name: None, path: Some(path.to_owned()), line: Some(line) }
    }

    /// Built in.
    pub fn built_in() -> Self {
        Origin { layer: Layer::Default, name: None, path: None, line: None }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.layer.as_str())?;
        if let Some(name) = &self.name {
            write!(f, " {}", shown(name))?;
        }
        if let Some(path) = &self.path {
            write!(f, " {}", shown(path.display()))?;
        }
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        Ok(())
    }
}
