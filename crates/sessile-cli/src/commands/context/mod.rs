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

/// Make, select, guard and move contexts: named targets such as "staging"
///
/// A context is a TOML file with settings, variables, what each tool is bound to, and a guard.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples_and_precedence!(
    "sessile context create staging --bind kubectl.context=staging"
    "sessile context use staging"
    "sessile context list"
))]
pub enum Command {
    /// Make a context
    Create(Lazy<create::Args>),
    /// List the contexts; the current one is marked
    List(Lazy<list::Args>),
    /// Show what a context holds
    Show(Lazy<show::Args>),
    /// Select a context: for this terminal, this directory, or this user
    Use(Lazy<switch::Args>),
    /// Print the current context
    Current(Lazy<current::Args>),
    /// Change a context, in your editor or by flags
    Edit(Lazy<edit::Args>),
    /// Give a context another name
    Rename(Lazy<rename::Args>),
    /// Delete a context
    Delete(Lazy<delete::Args>),
    /// Write contexts into one file, without secrets
    Export(Lazy<export::Args>),
    /// Take contexts in from a file
    Import(Lazy<import::Args>),
    /// Open a guarded context for a while; list or revoke approvals
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

/// Warns of targets that a context binds and the tools' files do not have: no command would start in it.
fn warn_about_targets(cx: &Cx, context: &Context) {
    for unknown in sessile::tool::unknown_targets(&cx.state, context) {
        cx.state.warn(unknown.to_string(), unknown.hint());
    }
}
