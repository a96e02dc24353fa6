//! Errors of commands that are run in sessions.

use std::io;

use crate::app::App;
use crate::code::Code;
use crate::error::{Diagnostic, io_reason};
use crate::text::{quoted, shell_quoted};

/// Errors of commands that are run in sessions.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Context in use that is not the expected one.
    #[error(
        "expected context {}, but {}",
        quoted(expected),
        found.as_ref().map_or_else(|| "no context is in use".to_owned(), |found| format!("context {found} is in use"))
    )]
    UnexpectedContext {
        /// Name of the expected context.
        expected: String,
        /// Name and origin of the context in use.
        found: Option<String>,
        /// Whether a session pins the context in use.
        is_pinned: bool,
    },
    /// Command that could not be started.
    #[error("cannot run {}: {}", quoted(program), io_reason(source))]
    NotStarted {
        /// Name or path of the command.
        program: String,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl Diagnostic for RunError {
    fn code(&self) -> Code {
        match self {
            Self::UnexpectedContext { .. } => Code::ContextUnexpected,
            Self::NotStarted { source, .. } if source.kind() == io::ErrorKind::NotFound => Code::FileNotFound,
            Self::NotStarted { .. } => Code::Io,
        }
    }

    fn hint(&self, _app: &App) -> Option<String> {
        Some(match self {
            Self::UnexpectedContext { is_pinned: true, .. } => {
                "the context of a session never changes; use another session".to_owned()
            }
            Self::UnexpectedContext { expected, .. } => {
                format!("name it: --context {}", shell_quoted(expected))
            }
            Self::NotStarted { .. } => "check the name of the command and its permissions".to_owned(),
        })
    }
}
