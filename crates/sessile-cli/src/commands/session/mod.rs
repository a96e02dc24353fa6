//! `sessile session`: owned, expiring, isolated stretches of work.

pub mod attach;
pub mod clear;
pub mod detach;
pub mod export;
pub mod gc;
mod gc_timer;
pub mod import;
pub mod list;
pub mod log;
pub mod rename;
pub mod show;
pub mod start;
pub mod state;
pub mod stop;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples_and_precedence;
use crate::lazy_command::{Lazy, LazyGroup};
use crate::remote::ServerArgs;

/// Start, list and stop sessions: isolated work in one context
///
/// A session has one owner and one context for its whole life, and expires when idle. Starting a session never
/// affects another one.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples_and_precedence!(
    "sessile session start --name deploy --context staging"
    "sessile status --session deploy"
    "sessile session stop deploy"
))]
pub enum Command {
    /// Start a session and print its id
    Start(Lazy<start::Args>),
    /// List sessions, newest first
    #[command(visible_alias = "ls")]
    List(Lazy<list::Args>),
    /// Show a session
    Show(Lazy<show::Args>),
    /// Print the output that `run --log` kept
    #[command(visible_alias = "logs")]
    Log(Lazy<log::Args>),
    /// Stop a session and its commands
    Stop(Lazy<stop::Args>),
    /// Select a live session for this terminal
    Attach(Lazy<attach::Args>),
    /// Leave this terminal's session without stopping it
    Detach(Lazy<detach::Args>),
    /// Delete ended sessions
    Clear(Lazy<clear::Args>),
    /// End all expired sessions
    Gc(Lazy<gc::Args>),
    /// Rename a session
    Rename(Lazy<rename::Args>),
    /// Export a session: settings, state, messages and conversations
    Export(Lazy<export::Args>),
    /// Start a session from an exported one
    Import(Lazy<import::Args>),
    /// Read and change small values of a session, with revisions
    State(LazyGroup<state::Command>),
}

impl Command {
    /// Server of the command, if it supports one.
    pub(crate) fn server(&self) -> Option<&ServerArgs> {
        match self {
            Command::Start(Lazy(args)) => Some(&args.server),
            Command::List(Lazy(args)) => Some(&args.server),
            Command::Show(Lazy(args)) => Some(&args.server),
            Command::Stop(Lazy(args)) => Some(&args.server),
            Command::Rename(Lazy(args)) => Some(&args.server),
            Command::State(LazyGroup(command)) => Some(command.server()),
            Command::Log(_)
            | Command::Attach(_)
            | Command::Detach(_)
            | Command::Clear(_)
            | Command::Gc(_)
            | Command::Export(_)
            | Command::Import(_) => None,
        }
    }

    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Start(Lazy(args)) => start::run(args, cx),
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Show(Lazy(args)) => show::run(args, cx),
            Command::Log(Lazy(args)) => log::run(args, cx),
            Command::Stop(Lazy(args)) => stop::run(args, cx),
            Command::Attach(Lazy(args)) => attach::run(args, cx),
            Command::Detach(Lazy(args)) => detach::run(args, cx),
            Command::Clear(Lazy(args)) => clear::run(args, cx),
            Command::Gc(Lazy(args)) => gc::run(args, cx),
            Command::Rename(Lazy(args)) => rename::run(args, cx),
            Command::Export(Lazy(args)) => export::run(args, cx),
            Command::Import(Lazy(args)) => import::run(args, cx),
            Command::State(LazyGroup(command)) => command.run(cx),
        }
    }
}
