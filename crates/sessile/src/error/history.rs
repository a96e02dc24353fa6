//! Errors of the history of operations and of undo.

use crate::app::App;
use crate::code::Code;
use crate::error::{Diagnostic, Error};
use crate::text::quoted;

/// Errors of the history of operations and of undo.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// No such operation.
    #[error("operation {0} not found")]
    NotFound(String),
    /// Cannot be undone.
    #[error("operation {id} cannot be undone: {reason}")]
    UndoRefused {
        /// The operation.
        id: i64,
        /// Reason.
        reason: String,
    },
    /// A change that was made and could not be recorded afterwards.
    #[error("{command} {}: the change was made, but is missing from the history: {source}", quoted(subject))]
    NotRecorded {
        /// The command.
        command: String,
        /// Subject of the change.
        subject: String,
        /// Cause.
        source: Box<Error>,
    },
}

impl Diagnostic for HistoryError {
    fn code(&self) -> Code {
        match self {
            Self::NotRecorded { .. } => Code::NotRecorded,
            Self::NotFound(_) => Code::OperationNotFound,
            Self::UndoRefused { .. } => Code::UndoRefused,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::UndoRefused { id, .. } => format!("show its changes: {name} history show {id}"),
            Self::NotFound(_) => format!("list the operations: {name} history"),
            Self::NotRecorded { source, .. } => match source.code() {
                Code::DiskFull => {
                    "free some space (df -h, df -i); the change is in effect, do not repeat it".to_owned()
                }
                _ => "the change is in effect, do not repeat it".to_owned(),
            },
        })
    }
}
