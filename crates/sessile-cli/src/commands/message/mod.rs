//! `sessile message`: talk to agents.

mod compose;
mod deliver;
mod exchange;
mod remote;
pub mod send;
pub mod stream;

pub(crate) use deliver::ReplyCollector;
pub(crate) use exchange::Exchange;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy_command::Lazy;
use crate::remote::ServerArgs;

/// Talk to agents that speak A2A
///
/// In a session a conversation goes on where it stopped, across processes and crashes: the session remembers the agent's
/// ids and the messages. On a terminal without a session the first message starts one. With neither, nothing is
/// remembered, and --context-id says which conversation goes on.
///
/// With --server, or the setting server, the text goes to a session of that service, which replies itself: no agent is
/// named then.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile message send http://localhost:8000 \"hello\""
    "sessile message send research \"and then?\" --session work"
    "sessile message stream research \"tell me more\""
    "sessile message send \"hello\" --session work --server https://sessile.example"
))]
pub enum Command {
    /// Send a message and print the reply
    Send(Box<Lazy<send::Args>>),
    /// Send a message and print what the agent says as it comes
    Stream(Box<Lazy<stream::Args>>),
}

impl Command {
    /// Server of the command.
    pub(crate) fn server(&self) -> &ServerArgs {
        match self {
            Command::Send(args) => args.0.server(),
            Command::Stream(args) => args.0.server(),
        }
    }

    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Send(args) => send::run(&args.0, cx),
            Command::Stream(args) => stream::run(&args.0, cx),
        }
    }
}
