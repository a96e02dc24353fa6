//! Errors of projects and of the trust in their files.

use std::path::PathBuf;

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::files::UnsafeFile;
use crate::text::{quoted, shell_quoted, shown};

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
    #[error("{} has no project state directory in it or above it", shown(.0.display()))]
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
                format!("read it, then trust it: {name} trust {}", shell_quoted(&project.to_string_lossy()))
            }
            Self::UntrustedSelection { project, .. } => format!(
                "name the context of this call: --context NAME; or read the project's settings, then trust it: {name} trust {}",
                shell_quoted(&project.to_string_lossy())
            ),
            Self::UnsafeFile(file) => file.hint(),
            Self::NotFound(_) => format!("`{name} config set KEY VALUE --dir` makes one"),
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
