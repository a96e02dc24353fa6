//! Errors of the state database.

use std::path::PathBuf;

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::shown;

/// Errors of the state database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database is damaged.
    #[error("state database {} is damaged: {detail}", shown(path.display()))]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// SQLite's message.
        detail: String,
    },
    /// A copy that cannot be restored.
    #[error("cannot restore {}: {detail}", shown(path.display()))]
    NotACopy {
        /// The file.
        path: PathBuf,
        /// Reason.
        detail: String,
    },
    /// The database failed.
    #[error("the state database {} failed: {detail}", shown(path.display()))]
    Failed {
        /// The file.
        path: PathBuf,
        /// SQLite's message.
        detail: String,
    },
    /// The database is from the future.
    #[error(
        "state database {} has version {found}; this program supports up to {known}",
        shown(path.display())
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// State on a network file system.
    #[error("the state directory {} is on a network file system ({kind})", shown(path.display()))]
    NetworkFileSystem {
        /// The directory.
        path: PathBuf,
        /// The kind of file system.
        kind: &'static str,
    },
}

impl Diagnostic for StoreError {
    fn code(&self) -> Code {
        match self {
            Self::Corrupt { .. } | Self::NotACopy { .. } => Code::StoreCorrupt,
            Self::Failed { .. } => Code::Store,
            Self::TooNew { .. } => Code::StoreTooNew,
            Self::NetworkFileSystem { .. } => Code::NetworkFileSystem,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        let prefix = app.prefix();
        Some(match self {
            Self::Corrupt { .. } => format!(
                "repair it: {name} doctor --repair; this moves the file aside and saves all readable rows"
            ),
            Self::NotACopy { .. } => {
                format!("nothing was changed; pass a file created by `{name} backup`")
            }
            Self::TooNew { .. } => {
                format!("upgrade {name}, or set {prefix}_STATE_DIR to another directory")
            }
            Self::NetworkFileSystem { .. } => {
                format!("set {prefix}_STATE_DIR to a directory on a local disk")
            }
            _ => return None,
        })
    }
}
