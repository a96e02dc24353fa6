//! `sessile message`: talk to agents.

mod compose;
mod deliver;
mod exchange;
mod open_line;
mod parts;
mod remote;
pub mod send;
pub mod stream;

pub(crate) use compose::{LARGEST, secret_of};
pub(crate) use deliver::{ReplyCollector, artifact_text, parts_text};
pub(crate) use exchange::{DeliveryLimits, EventReceiver, Exchange, deliver};
pub(crate) use open_line::OpenLine;
pub(crate) use parts::{PartKind, part_of};

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy_command::Lazy;
use crate::remote::ServerArgs;

/// Talk to agents that speak A2A
///
/// A session stores the agent's ids and the messages, so that a conversation continues across processes and crashes. On
/// a terminal without a session, the first message starts one. Elsewhere nothing is stored: pass --context-id to
/// continue a conversation.
///
/// With --server or the setting server, pass only a text: it goes to a session of that service, which replies.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile message send http://localhost:8738 \"hello\""
    "sessile message send research \"and then?\" --session work"
    "sessile message stream research \"tell me more\""
    "sessile message send \"hello\" --session work --server https://sessile.example"
))]
pub enum Command {
    /// Send a message and print the reply
    Send(Box<Lazy<send::Args>>),
    /// Send a message and print the reply as it arrives
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
