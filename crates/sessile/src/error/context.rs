//! Errors of contexts and their selection.

use std::path::PathBuf;

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::{quoted, shell_quoted, shown};

/// Errors of contexts and their selection.
#[derive(Debug, thiserror::Error)]
pub enum ContextError {
    /// No such context.
    #[error("context {} not found", quoted(name))]
    NotFound {
        /// The name given.
        name: String,
        /// The nearest name.
        near: Option<String>,
        /// Origin of the name, if not the arguments.
        named_by: Option<String>,
    },
    /// No context selected.
    #[error("no context is selected")]
    NotSelected,
    /// No previous selection.
    #[error("no other context was selected here before")]
    NoPrevious,
    /// The name is taken.
    #[error("context {} exists already ({})", quoted(name), shown(path.display()))]
    Exists {
        /// The name.
        name: String,
        /// File that defines the context.
        path: PathBuf,
        /// Whether a yes would replace it.
        replaceable: bool,
    },
    /// The file is empty, and the context had a guard: its protected targets are unknown.
    #[error("context {} has lost its guard: {} is empty", quoted(name), shown(path.display()))]
    Emptied {
        /// The context.
        name: String,
        /// Its file.
        path: PathBuf,
    },
    /// Sessions have it.
    #[error("context {} is pinned by live session(s): {}", quoted(name), shown(sessions.join(", ")))]
    Pinned {
        /// The context.
        name: String,
        /// The sessions.
        sessions: Vec<String>,
    },
}

impl Diagnostic for ContextError {
    fn code(&self) -> Code {
        match self {
            Self::NotFound { .. } => Code::ContextNotFound,
            Self::NotSelected | Self::NoPrevious => Code::NoContext,
            Self::Exists { .. } => Code::ContextExists,
            Self::Emptied { .. } => Code::FileValue,
            Self::Pinned { .. } => Code::ContextPinned,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::NotFound { near: Some(near), .. } => format!("did you mean {}?", quoted(near)),
            Self::NotFound { named_by: Some(origin), .. } => format!("it was named by {origin}"),
            Self::NotFound { .. } => format!("`{name} context list` shows the contexts there are"),
            Self::NotSelected => {
                format!("name one with --context, or select one with `{name} context use NAME`")
            }
            Self::NoPrevious => format!("select one by its name: `{name} context use NAME`"),
            Self::Exists { replaceable: true, .. } => {
                "choose another name, or add --yes to replace it".to_owned()
            }
            Self::Exists { name: context, .. } => {
                format!(
                    "choose another name, or delete it first: {name} context delete {}",
                    shell_quoted(context)
                )
            }
            Self::Emptied { .. } => {
                "put its text back, or a line such as `guard = \"none\"` if nothing of it is to be protected"
                    .to_owned()
            }
            Self::Pinned { .. } => {
                format!("a session keeps its context: stop it first, `{name} session stop NAME`")
            }
        })
    }

    fn fix_command(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::NotSelected | Self::NoPrevious => format!("{name} context list"),
            _ => return None,
        })
    }
}
