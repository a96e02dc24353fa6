//! Errors of the commands themselves: editors, prompts, threads and checks before a start.

use std::io;
use std::path::PathBuf;

use sessile::error::{Diagnostic, io_reason};
use sessile::text::{quoted, shell_quoted, shown};
use sessile::{App, Code};

/// Errors of the commands themselves: editors, prompts, threads and checks before a start.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Confirmation that the user declined.
    #[error("{0}: not confirmed, nothing was changed")]
    Declined(String),
    /// Missing directory in which a store is to be created.
    #[error("the directory {} does not exist", shown(.0.display()))]
    DirectoryNotFound(PathBuf),
    /// Thread that the operating system refused to start.
    #[error("cannot start a thread {purpose}: {}", io_reason(source))]
    ThreadRefused {
        /// Purpose of the thread, such as "to wait for the command".
        purpose: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Failure of the editor.
    #[error("the editor {} {reason}", quoted(editor))]
    EditorFailed {
        /// Command line of the editor.
        editor: String,
        /// Cause, as the end of a sentence.
        reason: String,
        /// File that keeps the edited text.
        kept: Option<PathBuf>,
    },
    /// Session that is only selected for the terminal and was not named.
    #[error("session {} is only selected for this terminal, and what is stopped must be named", quoted(.0))]
    SessionUnnamed(String),
    /// Key that the session's state does not have.
    #[error("the session's state has no {}", quoted(.0))]
    EntryNotFound(String),
    /// Context in use that is not the one of `--expect`.
    #[error(
        "context {} is expected, and {}",
        quoted(expected),
        found.as_ref().map_or_else(|| "none is in use".to_owned(), |found| format!("{found} is in use"))
    )]
    UnexpectedContext {
        /// Name of the expected context.
        expected: String,
        /// Name and origin of the context in use.
        found: Option<String>,
        /// Whether a session pins the context in use.
        is_pinned: bool,
    },
    /// Missing or unsafe runtime directory, with what it would hold and the reason.
    #[error("cannot keep {0}: {1}")]
    NoRuntimeDir(&'static str, String),
}

impl Diagnostic for CommandError {
    fn code(&self) -> Code {
        match self {
            Self::Declined(_) => Code::Declined,
            Self::DirectoryNotFound(_) => Code::FileNotFound,
            Self::ThreadRefused { .. } => Code::Io,
            Self::EditorFailed { .. } => Code::EditorFailed,
            Self::NoRuntimeDir(..) => Code::NoHome,
            Self::SessionUnnamed(_) => Code::SessionRequired,
            Self::EntryNotFound(_) => Code::EntryNotFound,
            Self::UnexpectedContext { .. } => Code::ContextUnexpected,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        let prefix = app.prefix();
        Some(match self {
            Self::EditorFailed { kept: Some(kept), .. } => {
                format!("what you typed is kept in {}", shown(kept.display()))
            }
            Self::EditorFailed { .. } => "set VISUAL or EDITOR to an editor that works".to_owned(),
            Self::NoRuntimeDir(..) => format!(
                "set XDG_RUNTIME_DIR to a directory of yours with mode 0700, or {prefix}_VAULT_PASSPHRASE_FILE"
            ),
            Self::SessionUnnamed(session) => {
                format!("name it: {name} session stop {}", shell_quoted(session))
            }
            Self::EntryNotFound(_) => format!("`{name} session state list` shows what there is"),
            Self::DirectoryNotFound(_) => {
                format!("make it, or check the path: {}", self.fix_command(app).unwrap_or_default())
            }
            Self::UnexpectedContext { is_pinned: true, .. } => {
                "a session keeps its context: work in another session".to_owned()
            }
            Self::UnexpectedContext { expected, .. } => {
                format!("name it: --context {}", shell_quoted(expected))
            }
            Self::ThreadRefused { .. } => {
                "raise the limit on processes or memory: ulimit -u, ulimit -v".to_owned()
            }
            _ => return None,
        })
    }

    fn fix_command(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::SessionUnnamed(session) => format!("{name} session stop {}", shell_quoted(session)),
            Self::DirectoryNotFound(path) => format!("mkdir -p {}", shell_quoted(&path.to_string_lossy())),
            _ => return None,
        })
    }
}
