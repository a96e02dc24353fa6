//! `sessile tool`: profiles of other command-line tools, and their check on this machine.

pub mod check;
mod file_snapshot;
pub mod list;
pub mod show;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy_command::Lazy;

/// Show tool profiles, and check that tools are isolated
///
/// A profile declares where a tool keeps state, which variables redirect it, what a context can bind, and what stays
/// shared. Put your own profiles into ~/.config/sessile/tools; a profile there replaces a built-in one of the same
/// name.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile tool list"
    "sessile tool show kubectl"
    "sessile tool check git"
))]
pub enum Command {
    /// List the known tools
    #[command(visible_alias = "ls")]
    List(Lazy<list::Args>),
    /// Show a tool's profile
    Show(Lazy<show::Args>),
    /// Check on this machine that tools are isolated
    Check(Lazy<check::Args>),
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Show(Lazy(args)) => show::run(args, cx),
            Command::Check(Lazy(args)) => check::run(args, cx),
        }
    }
}
