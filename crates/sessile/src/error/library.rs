//! The error of the library: one variant per area.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::app::App;
use crate::code::Code;
use crate::error::Report;
use crate::error::{
    ContextError, ConversationError, CredentialError, Diagnostic, FileError, FileLocation, GuardError,
    HistoryError, LockError, ProjectError, RunError, SessionError, SettingsError, StoreError, ToolError,
    UsageError, VaultError,
};

/// Result of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of the library, by area. The message names the thing and its place, [`Error::hint`] the next step.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Errors of arguments, values and confirmations.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// Errors of single files: reading, parsing, writing and locking.
    #[error(transparent)]
    File(#[from] FileError),
    /// Errors of the state database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Errors of settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// Errors of projects and of the trust in their files.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// Errors of contexts and their selection.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// Errors of guarded contexts, approvals and the PIN.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// Errors of sessions and their state.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Errors of named locks.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Errors of the history of operations and of undo.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// Errors of tools and of the bindings of contexts to them.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// Errors of commands that are run in sessions.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Errors of single credentials.
    #[error(transparent)]
    Credential(#[from] CredentialError),
    /// Errors of the vault, its keys and its backends.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Errors of conversations and of the names of agents.
    #[error(transparent)]
    Conversation(#[from] ConversationError),
}

impl Error {
    /// I/O error with its path.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Error::File(FileError::Io { action, path: path.into(), source })
    }

    /// The error of the area.
    pub fn diagnostic(&self) -> &dyn Diagnostic {
        match self {
            Error::Usage(error) => error,
            Error::File(error) => error,
            Error::Store(error) => error,
            Error::Settings(error) => error,
            Error::Project(error) => error,
            Error::Context(error) => error,
            Error::Guard(error) => error,
            Error::Session(error) => error,
            Error::Lock(error) => error,
            Error::History(error) => error,
            Error::Tool(error) => error,
            Error::Run(error) => error,
            Error::Credential(error) => error,
            Error::Vault(error) => error,
            Error::Conversation(error) => error,
        }
    }

    /// Stable code of the error.
    pub fn code(&self) -> Code {
        self.diagnostic().code()
    }

    /// Next step in words, for the users of an application.
    pub fn hint(&self, app: &App) -> Option<String> {
        self.diagnostic().hint(app)
    }

    /// Command that can be pasted to fix the cause, where one is certain.
    pub fn fix_command(&self, app: &App) -> Option<String> {
        self.diagnostic().fix_command(app)
    }

    /// Whether the same call may succeed later without any change by its caller.
    pub fn is_retryable(&self) -> bool {
        self.diagnostic().is_retryable()
    }

    /// Time to wait before a retry.
    pub fn retry_after(&self) -> Option<Duration> {
        self.diagnostic().retry_after()
    }

    /// Position in a file that the error is about.
    pub fn location(&self) -> Option<&FileLocation> {
        self.diagnostic().location()
    }

    /// Report of the error for the users of an application.
    pub fn report(&self, app: &App) -> Report {
        Report::of(self.diagnostic(), app)
    }

    /// The same error without the text of the line.
    #[must_use]
    pub fn without_excerpt(mut self) -> Self {
        if let Error::File(FileError::Syntax { place, .. } | FileError::Value { place, .. }) = &mut self {
            place.text.clear();
        }
        self
    }
}
