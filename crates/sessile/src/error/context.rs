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
    #[error("context {} already exists ({})", quoted(name), shown(path.display()))]
    Exists {
        /// The name.
        name: String,
        /// File that defines the context.
        path: PathBuf,
        /// Whether a yes would replace it.
        replaceable: bool,
    },
    /// The context had a guard, and its file lost it by accident: its protected targets are unknown.
    #[error("context {} lost its guard: {} {reason}", quoted(name), shown(path.display()))]
    LostGuard {
        /// The context.
        name: String,
        /// File of the context.
        path: PathBuf,
        /// Damage of the file.
        reason: GuardLoss,
    },
    /// Sessions have it.
    #[error("context {} is pinned by live sessions: {}", quoted(name), shown(sessions.join(", ")))]
    Pinned {
        /// The context.
        name: String,
        /// The sessions.
        sessions: Vec<String>,
    },
}

/// How a context file lost its guard.
#[derive(Debug, thiserror::Error)]
pub enum GuardLoss {
    /// The keys of the file.
    #[error("has {0}")]
    Keys(&'static str),
    /// The file is a link to a missing file.
    #[error("is a link to a missing file")]
    DanglingLink,
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(String),
}

impl Diagnostic for ContextError {
    fn code(&self) -> Code {
        match self {
            Self::NotFound { .. } => Code::ContextNotFound,
            Self::NotSelected | Self::NoPrevious => Code::NoContext,
            Self::Exists { .. } => Code::ContextExists,
            Self::LostGuard { .. } => Code::FileValue,
            Self::Pinned { .. } => Code::ContextPinned,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::NotFound { near: Some(near), .. } => format!("did you mean {}?", quoted(near)),
            Self::NotFound { name: context, named_by: Some(origin), .. } => {
                let create = format!("create it: {name} context create {}", shell_quoted(context));
                // People know the flag that they have just typed.
                if origin.starts_with("flag ") { create } else { format!("named by {origin}; {create}") }
            }
            Self::NotFound { .. } => format!("list the contexts: {name} context list"),
            Self::NotSelected => {
                format!("pass --context NAME, or select one: {name} context use NAME")
            }
            Self::NoPrevious => format!("select one by name: {name} context use NAME"),
            Self::Exists { replaceable: true, .. } => {
                "choose another name, or pass --yes to replace it".to_owned()
            }
            Self::Exists { name: context, .. } => {
                format!(
                    "choose another name, or delete it first: {name} context delete {}",
                    shell_quoted(context)
                )
            }
            Self::LostGuard { .. } => {
                "restore the file, or write `guard = \"none\"` into it to give up the protection".to_owned()
            }
            Self::Pinned { .. } => {
                format!("stop the sessions first: {name} session stop NAME")
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
