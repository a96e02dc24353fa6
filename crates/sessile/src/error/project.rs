//! Errors of projects and of the trust in their files.

use std::fmt;
use std::path::PathBuf;

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::{quoted, shell_quoted, shown};

/// A file of a project that is not used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsafeFile {
    /// The file or directory.
    pub path: PathBuf,
    /// The reason.
    pub reason: UnsafeReason,
}

/// Reason why a project file is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsafeReason {
    /// A link on its path leads out of the project, or to nothing.
    Link,
    /// This user owns it.
    Owner(u32),
}

impl UnsafeFile {
    /// The next step, in words.
    pub(crate) fn hint(&self) -> String {
        let path = shell_quoted(&self.path.to_string_lossy());
        match self.reason {
            UnsafeReason::Link => {
                format!("replace the link with a file of the project; inspect it: ls -l {path}")
            }
            UnsafeReason::Owner(_) => format!("take ownership of it: sudo chown -R \"$(id -u)\" {path}"),
        }
    }
}

impl fmt::Display for UnsafeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = shown(self.path.display());
        match self.reason {
            UnsafeReason::Link => {
                write!(f, "{path}: a symbolic link leads out of the project, or to a missing file")
            }
            UnsafeReason::Owner(owner) => write!(f, "{path}: owned by user {owner}"),
        }
    }
}

/// Errors of projects and of the trust in their files.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// A project file that was not trusted.
    #[error("{} is not trusted", shown(path.display()))]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// The project's directory.
        project: PathBuf,
    },
    /// A project that selects a context and was not trusted: a session must not start in another context instead.
    #[error("project {} selects context {}, but is not trusted", shown(project.display()), quoted(context))]
    UntrustedSelection {
        /// The context.
        context: String,
        /// The project's directory.
        project: PathBuf,
    },
    /// A project's file behind a link that leads out of the project, or one that another user owns.
    #[error("unsafe project file {0}")]
    UnsafeFile(UnsafeFile),
    /// No project here.
    #[error("no project found in {} or above", shown(.0.display()))]
    NotFound(PathBuf),
}

impl Diagnostic for ProjectError {
    fn code(&self) -> Code {
        match self {
            Self::Untrusted { .. } | Self::UntrustedSelection { .. } => Code::UntrustedProject,
            Self::UnsafeFile(_) => Code::ProjectFileUnsafe,
            Self::NotFound(_) => Code::ProjectNotFound,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::Untrusted { project, .. } => {
                format!(
                    "review the file, then trust it: {name} trust {}",
                    shell_quoted(&project.to_string_lossy())
                )
            }
            Self::UntrustedSelection { project, .. } => format!(
                "pass --context NAME, or review the project's settings and trust it: {name} trust {}",
                shell_quoted(&project.to_string_lossy())
            ),
            Self::UnsafeFile(file) => file.hint(),
            Self::NotFound(_) => format!("create one: {name} config set KEY VALUE --dir"),
        })
    }

    fn fix_command(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::Untrusted { project, .. } => {
                format!("{name} trust {}", shell_quoted(&project.to_string_lossy()))
            }
            _ => return None,
        })
    }
}
