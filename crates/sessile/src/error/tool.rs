//! Errors of tools and of the bindings of contexts to them.

use std::path::PathBuf;

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::names::is_anonymous;
use crate::text::{quoted, shell_quoted, shown};

/// Errors of tools and of the bindings of contexts to them.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// No such tool.
    #[error("tool {} not found", quoted(name))]
    NotFound {
        /// The name given.
        name: String,
        /// The known name nearest to it.
        near: Option<String>,
    },
    /// A tool's own file that cannot be understood.
    #[error("{}:{line}: {message}", shown(path.display()))]
    InvalidFile {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// Parser's message.
        message: String,
    },
    /// Too much to copy.
    #[error("the state of {tool} ({}) is too large to copy", shown(path.display()))]
    StateTooLarge {
        /// The tool.
        tool: String,
        /// Path.
        path: PathBuf,
    },
    /// A binding that means nothing.
    #[error("context {}: {key}: {problem}", quoted(context))]
    InvalidBinding {
        /// The context.
        context: String,
        /// The key in it.
        key: String,
        /// Description of the problem.
        problem: String,
    },
    /// A binding that takes no effect at the isolation level in use.
    #[error("context {}: {key}: isolation level {level} does not isolate {tool}", quoted(context))]
    BindingNotIsolated {
        /// The context.
        context: String,
        /// The key in it.
        key: String,
        /// The tool.
        tool: String,
        /// The level in use.
        level: &'static str,
        /// The level that isolates the tool, if any does.
        needed: Option<&'static str>,
    },
    /// A binding to something that is not there.
    #[error(
        "context {}: {key}: {} not found in {}",
        quoted(context),
        quoted(value),
        shown(looked.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" or "))
    )]
    BindingNotFound {
        /// The context.
        context: String,
        /// The key in it.
        key: String,
        /// The value.
        value: String,
        /// The files it was looked for in.
        looked: Vec<PathBuf>,
    },
}

impl Diagnostic for ToolError {
    fn code(&self) -> Code {
        match self {
            Self::NotFound { .. } => Code::ToolNotFound,
            Self::InvalidFile { .. } => Code::ToolFile,
            Self::StateTooLarge { .. } => Code::ToolStateTooLarge,
            Self::InvalidBinding { .. } => Code::BindingInvalid,
            Self::BindingNotIsolated { .. } => Code::BindingNotIsolated,
            Self::BindingNotFound { .. } => Code::BindingNotFound,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::NotFound { near: Some(near), .. } => format!("did you mean {}?", quoted(near)),
            Self::NotFound { .. } => format!("list the tools: {name} tool list"),
            Self::InvalidFile { .. } => "nothing was started; fix the file".to_owned(),
            Self::StateTooLarge { tool, .. } => {
                format!("leave the tool shared: --set tools.except={tool}")
            }
            Self::InvalidBinding { key, .. } => {
                // The key is `tools.TOOL.KEY`.
                let tool = key.split('.').nth(1).unwrap_or("TOOL");
                format!("list the keys: {name} tool show {}", shell_quoted(tool))
            }
            Self::BindingNotIsolated { needed: Some(level), .. } => {
                format!("isolate it: pass --isolate {level}")
            }
            Self::BindingNotIsolated { context, key, .. } if is_anonymous(context) => {
                let binding = key.strip_prefix("tools.").unwrap_or(key);
                format!("no level isolates it; leave out --bind {binding}")
            }
            Self::BindingNotIsolated { context, .. } => {
                format!(
                    "no level isolates it; remove the binding: {name} context edit {}",
                    shell_quoted(context)
                )
            }
            Self::BindingNotFound { context, key, .. } if is_anonymous(context) => {
                // A binding's own key has no prefix.
                let binding = key.strip_prefix("tools.").unwrap_or(key);
                format!("bind another target: --bind {binding}=NAME")
            }
            Self::BindingNotFound { context, .. } => {
                format!("change it: {name} context edit {}", shell_quoted(context))
            }
        })
    }
}
