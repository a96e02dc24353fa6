//! `sessile conversation`: stored conversations with agents.

pub mod clear;
pub mod export;
pub mod list;
pub mod rename;
pub mod search;
pub mod show;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy_command::Lazy;
use crate::remote::ServerArgs;

/// Look at, name and forget conversations with agents
///
/// A session remembers each conversation with an agent: the agent's ids and the messages. `message send` continues the one
/// that was used last. Conversations outlive their session: they belong to you and to the context they were held in.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile conversation list"
    "sessile conversation show research"
    "sessile conversation clear --agent https://agent.example"
))]
pub enum Command {
    /// List conversations, most recently used first
    #[command(visible_alias = "ls")]
    List(Lazy<list::Args>),
    /// Show a conversation and its messages
    Show(Lazy<show::Args>),
    /// Rename a conversation
    Rename(Lazy<rename::Args>),
    /// Delete conversations
    Clear(Lazy<clear::Args>),
    /// Print a conversation and its messages as JSON or Markdown
    Export(Lazy<export::Args>),
    /// Find messages that contain a text
    Search(Lazy<search::Args>),
}

impl Command {
    /// Server of the command, if it supports one.
    pub(crate) fn server(&self) -> Option<&ServerArgs> {
        match self {
            Command::Show(Lazy(args)) => Some(&args.server),
            Command::Export(Lazy(args)) => Some(&args.server),
            Command::List(_) | Command::Rename(_) | Command::Clear(_) | Command::Search(_) => None,
        }
    }

    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Show(Lazy(args)) => show::run(args, cx),
            Command::Rename(Lazy(args)) => rename::run(args, cx),
            Command::Clear(Lazy(args)) => clear::run(args, cx),
            Command::Export(Lazy(args)) => export::run(args, cx),
            Command::Search(Lazy(args)) => search::run(args, cx),
        }
    }
}
