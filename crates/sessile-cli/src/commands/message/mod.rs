//! `sessile message`: talk to agents.

mod compose;
mod deliver;
pub mod send;
pub mod stream;

pub(crate) use deliver::Heard;
pub(crate) use stream::{follow, listen};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy::Lazy;

/// Talk to agents that speak A2A
///
/// In a session a conversation goes on where it stopped, across processes and crashes: the session remembers the agent's
/// ids and all that was said. On a terminal without a session the first message starts one. With neither, nothing is
/// remembered, and --context-id says which conversation goes on.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile message send http://localhost:8000 \"hello\""
    "sessile message send research \"and then?\" --session work"
    "sessile message stream research \"tell me more\""
))]
pub enum Command {
    /// Send a message and print the reply
    Send(Box<Lazy<send::Args>>),
    /// Send a message and print what the agent says as it comes
    Stream(Box<Lazy<stream::Args>>),
}

impl Command {
    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Send(args) => send::run(&args.0, cx),
            Command::Stream(args) => stream::run(&args.0, cx),
        }
    }
}
