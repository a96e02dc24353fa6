//! Errors of guarded contexts, approvals and the PIN.

use std::path::PathBuf;

use crate::app::App;
use crate::code::Code;
use crate::error::{Diagnostic, ErrorDetails};
use crate::text::{quoted, shell_quoted, shown};

/// Errors of guarded contexts, approvals and the PIN.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// Guard `explicit`.
    #[error("context {} must be named explicitly, but comes from {origin}", quoted(name))]
    NotExplicit {
        /// The context.
        name: String,
        /// Origin of the selection.
        origin: String,
    },
    /// Guard `approval`.
    #[error("context {} requires approval", quoted(.0))]
    ApprovalRequired(String),
    /// Guard `approval` would be weakened.
    #[error("cannot weaken the guard of context {} without an approval", quoted(.0))]
    Weakened(String),
    /// A target would lose its protection.
    #[error(
        "cannot lift the protection of {} {} by context {} without an approval",
        .0.tool,
        .0.binding(),
        quoted(&.0.context)
    )]
    Unprotected(Protection),
    /// No approval.
    #[error("context {} has no active approval", quoted(.0))]
    ApprovalNotFound(String),
    /// The command is a tool whose own selection only guarded contexts bind.
    #[error("{}'s current {} is protected by context {}", .0.tool, .0.binding(), quoted(&.0.context))]
    ProtectedTarget(Protection),
    /// The command is a tool that reads a file with the target as that of a project.
    #[error(
        "{} reads {} as the project's file here, and its {} is protected by context {}",
        .protection.tool,
        shown(path.display()),
        .protection.binding(),
        quoted(&.protection.context)
    )]
    ProtectedProjectFile {
        /// The target.
        protection: Box<Protection>,
        /// The user's file.
        path: PathBuf,
        /// Entries that make a directory that of a project; none if the tool reads the file in every directory below.
        roots: Vec<String>,
    },
    /// A flag sets a variable that reaches a target which only guarded contexts bind.
    #[error(
        "{variable} reaches {} {}, which is protected by context {}",
        .protection.tool,
        .protection.binding(),
        quoted(&.protection.context)
    )]
    ProtectedVariable {
        /// The variable.
        variable: String,
        /// The target.
        protection: Protection,
    },
    /// A context of a project binds a target that only guarded contexts of the user bind.
    #[error(
        "context {}: {key}: {} is protected by context {}",
        quoted(context),
        quoted(target),
        quoted(protected_by)
    )]
    ProtectedBinding {
        /// The context.
        context: String,
        /// The key in it.
        key: String,
        /// The target.
        target: String,
        /// The guarded context.
        protected_by: String,
    },
    /// No such approval request.
    #[error("approval request {0} not found")]
    RequestNotFound(u64),
    /// Wrong PIN.
    #[error("{0}")]
    WrongPin(String),
}

/// A protected target, and the guarded context that protects it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Tool.
    pub tool: String,
    /// Key of the binding.
    pub key: String,
    /// Name of the target: the value of the binding.
    pub target: String,
    /// Guarded context.
    pub context: String,
}

impl Protection {
    fn binding(&self) -> String {
        format!("{} {}", self.key, quoted(&self.target))
    }
}

impl Diagnostic for GuardError {
    fn code(&self) -> Code {
        match self {
            Self::ApprovalNotFound(_) | Self::RequestNotFound(_) => Code::ApprovalNotFound,
            Self::NotExplicit { .. } => Code::GuardExplicit,
            Self::ApprovalRequired(_) | Self::Weakened(_) | Self::Unprotected(_) => Code::GuardApproval,
            Self::ProtectedTarget(_)
            | Self::ProtectedProjectFile { .. }
            | Self::ProtectedVariable { .. }
            | Self::ProtectedBinding { .. } => Code::ProtectedTarget,
            Self::WrongPin(_) => Code::WrongPin,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        let prefix = app.prefix();
        Some(match self {
            Self::ApprovalNotFound(_) => format!("list the approvals: {name} context approve --list"),
            Self::RequestNotFound(_) => format!("list the requests: {name} context approve --pending"),
            Self::NotExplicit { name: context, .. } => {
                format!("pass --context {0}, or set {prefix}_CONTEXT={0}", shell_quoted(context))
            }
            Self::ApprovalRequired(context) => format!(
                "approve it on a terminal, outside any session: {name} context approve {} --for 30m",
                shell_quoted(context)
            ),
            Self::Weakened(context) | Self::Unprotected(Protection { context, .. }) => format!(
                "approve the context on a terminal, outside any session: {name} context approve {} --for 30m",
                shell_quoted(context)
            ),
            Self::ProtectedTarget(Protection { context, .. })
            | Self::ProtectedVariable { protection: Protection { context, .. }, .. } => format!(
                "pass --context NAME for another target; or pass --context {0}, after \
                 `{name} context approve {0}` if its guard is approval",
                shell_quoted(context)
            ),
            Self::ProtectedProjectFile { protection, path, roots } if roots.is_empty() => format!(
                "run {} in a directory outside {}",
                protection.tool,
                shown(path.parent().unwrap_or(path).display())
            ),
            Self::ProtectedProjectFile { protection, roots, .. } => format!(
                "run {} in the directory of a project, with {} in it",
                protection.tool,
                roots.join(" or ")
            ),
            Self::ProtectedBinding { protected_by, .. } => {
                format!("pass --context {}, the context that protects it", shell_quoted(protected_by))
            }
            _ => return None,
        })
    }

    fn fix_command(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::ApprovalRequired(context)
            | Self::Weakened(context)
            | Self::Unprotected(Protection { context, .. }) => {
                format!("{name} context approve {} --for 30m", shell_quoted(context))
            }
            _ => return None,
        })
    }

    fn details(&self) -> ErrorDetails {
        match self {
            Self::NotExplicit { name, .. }
            | Self::ApprovalRequired(name)
            | Self::Weakened(name)
            | Self::Unprotected(Protection { context: name, .. })
            | Self::ProtectedTarget(Protection { context: name, .. })
            | Self::ProtectedVariable { protection: Protection { context: name, .. }, .. }
            | Self::ProtectedBinding { context: name, .. } => {
                ErrorDetails { context: Some(name.clone()), ..ErrorDetails::default() }
            }
            Self::ProtectedProjectFile { protection, .. } => {
                ErrorDetails { context: Some(protection.context.clone()), ..ErrorDetails::default() }
            }
            _ => ErrorDetails::default(),
        }
    }
}
