//! `sessile session`: owned, expiring, isolated stretches of work.

pub mod attach;
pub mod clear;
pub mod detach;
pub mod export;
pub mod gc;
mod gc_timer;
pub mod import;
pub mod list;
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

/// Start, list and stop sessions: owned stretches of work, each pinned to one context
///
/// A session keeps its context for its whole life, belongs to whoever started it, and expires when it lies idle.
/// Starting one never touches another.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples_and_precedence!(
    "sessile session start --name deploy --context staging"
    "sessile status --session deploy"
    "sessile session stop deploy"
))]
pub enum Command {
    /// Start a session and print its id
    Start(Lazy<start::Args>),
    /// List sessions, the newest first
    List(Lazy<list::Args>),
    /// Show a session
    Show(Lazy<show::Args>),
    /// Stop a session and what runs in it
    Stop(Lazy<stop::Args>),
    /// Make a live session this terminal's
    Attach(Lazy<attach::Args>),
    /// Leave this terminal's session without stopping it
    Detach(Lazy<detach::Args>),
    /// Forget sessions that have ended
    Clear(Lazy<clear::Args>),
    /// End every session that has expired
    Gc(Lazy<gc::Args>),
    /// Give a session another name
    Rename(Lazy<rename::Args>),
    /// Write a session into a file: settings, state and messages
    Export(Lazy<export::Args>),
    /// Start a session with what an exported one had
    Import(Lazy<import::Args>),
    /// Keep small values in a session, with revisions
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
            Command::Attach(_)
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
