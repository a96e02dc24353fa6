//! Errors of the commands themselves: editors, prompts, threads and selections.

use std::io;
use std::path::PathBuf;

use sessile::error::{Diagnostic, io_reason};
use sessile::text::{quoted, shell_quoted, shown};
use sessile::{App, Code};

/// Errors of the commands themselves: editors, prompts, threads and selections.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Confirmation that the user declined.
    #[error("{0}: not confirmed, nothing was changed")]
    Declined(String),
    /// Missing directory of a new store.
    #[error("directory {} does not exist", shown(.0.display()))]
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
    #[error("refusing to stop the terminal's session {} implicitly", quoted(.0))]
    SessionUnnamed(String),
    /// Key that the session's state does not have.
    #[error("key {} not found in the session's state", quoted(.0))]
    EntryNotFound(String),
    /// Missing or unsafe runtime directory, with what it would hold and the reason.
    #[error("cannot store {0}: {1}")]
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
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        let prefix = app.prefix();
        Some(match self {
            Self::EditorFailed { kept: Some(kept), .. } => {
                format!("your text was saved to {}", shown(kept.display()))
            }
            Self::EditorFailed { .. } => "set VISUAL or EDITOR to a working editor".to_owned(),
            Self::NoRuntimeDir(..) => format!(
                "set XDG_RUNTIME_DIR to a directory of yours with mode 0700, or {prefix}_VAULT_PASSPHRASE_FILE"
            ),
            Self::SessionUnnamed(session) => {
                format!("pass its name: {name} session stop {}", shell_quoted(session))
            }
            Self::EntryNotFound(_) => format!("list the keys: {name} session state list"),
            Self::DirectoryNotFound(_) => {
                format!(
                    "create the directory, or check the path: {}",
                    self.fix_command(app).unwrap_or_default()
                )
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
