//! Errors of the commands themselves: editors, prompts, threads and checks before a start.

use std::io;
use std::path::PathBuf;

use crate::app::App;
use crate::code::Code;
use crate::error::{Diagnostic, io_reason};
use crate::text::{quoted, shell_quoted, shown};

/// Errors of the commands themselves: editors, prompts, threads and checks before a start.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// A person said no.
    #[error("{0}: not confirmed, nothing was changed")]
    Declined(String),
    /// A directory in which a person wants something made, and that is not there.
    #[error("the directory {} does not exist", shown(.0.display()))]
    DirectoryNotFound(PathBuf),
    /// The system refused a thread.
    #[error("cannot start a thread {purpose}: {}", io_reason(source))]
    ThreadRefused {
        /// What the thread is for: "to wait for the command".
        purpose: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The editor failed.
    #[error("the editor {} {reason}", quoted(editor))]
    EditorFailed {
        /// The program.
        editor: String,
        /// What happened.
        reason: String,
        /// What the person had typed, if anything.
        kept: Option<PathBuf>,
    },
    /// A terminal's session is not stopped by accident.
    #[error("session {} is only selected for this terminal, and what is stopped must be named", quoted(.0))]
    SessionUnnamed(String),
    /// No such value.
    #[error("the session's state has no {}", quoted(.0))]
    EntryNotFound(String),
    /// Another context than the caller thought.
    #[error(
        "context {} is expected, and {}",
        quoted(expected),
        found.as_ref().map_or_else(|| "none is in use".to_owned(), |found| format!("{found} is in use"))
    )]
    UnexpectedContext {
        /// What was expected.
        expected: String,
        /// What is in use, and why.
        found: Option<String>,
    },
    /// Nothing can be kept for the time that the user is logged in.
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
            Self::UnexpectedContext { found: Some(found), .. } if found.contains("(session ") => {
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
