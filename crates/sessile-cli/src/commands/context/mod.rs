//! `sessile context`: named targets.

pub mod approve;
mod changes;
pub mod create;
pub mod current;
pub mod delete;
pub mod edit;
pub mod export;
pub mod import;
pub mod list;
pub mod rename;
pub mod show;
pub mod switch;

use sessile::context::Context;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::lazy_command::Lazy;

/// Create, select and guard contexts: named targets such as "staging"
///
/// A context is a TOML file with settings, variables, bindings of tools and a guard.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples_and_precedence!(
    "sessile context create staging --bind kubectl.context=staging"
    "sessile context use staging"
    "sessile context list"
))]
pub enum Command {
    /// Create a context
    Create(Lazy<create::Args>),
    /// List the contexts and mark the current one
    #[command(visible_alias = "ls")]
    List(Lazy<list::Args>),
    /// Show a context
    Show(Lazy<show::Args>),
    /// Select a context for this terminal, directory or user
    Use(Lazy<switch::Args>),
    /// Print the current context
    Current(Lazy<current::Args>),
    /// Change a context, in your editor or by flags
    Edit(Lazy<edit::Args>),
    /// Rename a context
    Rename(Lazy<rename::Args>),
    /// Delete a context
    #[command(visible_alias = "rm")]
    Delete(Lazy<delete::Args>),
    /// Export contexts to one file, without secrets
    Export(Lazy<export::Args>),
    /// Import contexts from a file
    Import(Lazy<import::Args>),
    /// Approve a guarded context for a while; list or revoke approvals
    Approve(Lazy<approve::Args>),
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Create(Lazy(args)) => create::run(args, cx),
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Show(Lazy(args)) => show::run(args, cx),
            Command::Use(Lazy(args)) => switch::run(args, cx),
            Command::Current(Lazy(args)) => current::run(args, cx),
            Command::Edit(Lazy(args)) => edit::run(args, cx),
            Command::Rename(Lazy(args)) => rename::run(args, cx),
            Command::Delete(Lazy(args)) => delete::run(args, cx),
            Command::Export(Lazy(args)) => export::run(args, cx),
            Command::Import(Lazy(args)) => import::run(args, cx),
            Command::Approve(Lazy(args)) => approve::run(args, cx),
        }
    }
}

/// Warns of bound targets that the tools' files do not have: no command would start in the context.
fn warn_about_targets(cx: &Cx, context: &Context) {
    for unknown in sessile::tool::unknown_targets(&cx.state, context) {
        cx.state.warn(unknown.to_string(), unknown.hint());
    }
}
