//! `sessile mcp`: everything here as tools for agents, by the Model Context Protocol.

mod client;
pub mod config;

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy_command::Lazy;

/// Serve sessions, contexts, settings, locks and conversations as tools to an MCP client
///
/// It speaks the Model Context Protocol on standard input and output; a client starts it, and `mcp config` says how. It keeps
/// nothing itself: every call of a tool is a call of this program, so what a tool does is what its command does. A tool that
/// needs a session takes its name or id, or works in the one that the server was started in.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = examples!(
        "sessile mcp config --client claude      how a client is told of it"
        "sessile mcp --session web               what the client starts"
        "sessile mcp --allow-run"
        "sessile mcp --read-only"
    )
)]
pub struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Offer the tool that runs commands as well
    #[arg(long)]
    allow_run: bool,

    /// Offer only what changes nothing
    #[arg(long, conflicts_with = "allow_run")]
    read_only: bool,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Print what makes an MCP client start the server
    Config(Lazy<config::Args>),
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    match &args.command {
        Some(Command::Config(Lazy(args))) => config::run(args, cx),
        None => {
            if cx.state.world().streams().stdin {
                cx.out.note("waiting for an MCP client to speak; `sessile mcp config` says how a client is told of it");
            }
            crate::mcp::serve(
                &cx.state,
                crate::mcp::ToolAccess { run: args.allow_run, read_only: args.read_only },
            )
        }
    }
}
