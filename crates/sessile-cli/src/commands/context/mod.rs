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

use crate::cli::Cx;
use crate::error::Outcome;

/// The commands of the group.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make a context
    Create(create::Args),
    /// List the contexts; the current one is marked
    List(list::Args),
    /// Show what a context holds
    Show(show::Args),
    /// Select a context: for this terminal, this directory, or this user
    Use(switch::Args),
    /// Print the current context
    Current(current::Args),
    /// Change a context, in your editor or by flags
    Edit(edit::Args),
    /// Give a context another name
    Rename(rename::Args),
    /// Delete a context
    Delete(delete::Args),
    /// Write contexts into one file, without secrets
    Export(export::Args),
    /// Take contexts in from a file
    Import(import::Args),
    /// Open a guarded context for a while; list or revoke approvals
    Approve(approve::Args),
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Create(args) => create::run(args, cx),
            Command::List(args) => list::run(args, cx),
            Command::Show(args) => show::run(args, cx),
            Command::Use(args) => switch::run(args, cx),
            Command::Current(args) => current::run(args, cx),
            Command::Edit(args) => edit::run(args, cx),
            Command::Rename(args) => rename::run(args, cx),
            Command::Delete(args) => delete::run(args, cx),
            Command::Export(args) => export::run(args, cx),
            Command::Import(args) => import::run(args, cx),
            Command::Approve(args) => approve::run(args, cx),
        }
    }
}
