//! `sessile tool`: what is known about other command-line tools, and whether it is true here.

pub mod check;
mod file_snapshot;
pub mod list;
pub mod show;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy_command::Lazy;

/// See what is known about other command-line tools, and prove it on this machine
///
/// A profile says where a tool keeps state, which variables move it, what a context can bind it to, and what stays
/// shared in any session. Your own profiles are files in ~/.config/sessile/tools; one of the same name takes the place
/// of a built-in one.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile tool list"
    "sessile tool show kubectl"
    "sessile tool check git"
))]
pub enum Command {
    /// List the tools that are known
    List(Lazy<list::Args>),
    /// Show a tool's profile
    Show(Lazy<show::Args>),
    /// Prove on this machine that tools are isolated
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
