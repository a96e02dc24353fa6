//! `sessile mcp`: everything here as tools for agents, by the Model Context Protocol.

use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;

/// Serve sessions, contexts, settings, locks and conversations as tools to an MCP client
///
/// It speaks the Model Context Protocol on standard input and output; a client starts it, as `mcp config` says how. It keeps
/// nothing itself: every call of a tool is a call of this program, so what a tool does is what the command does. A tool that
/// needs a session takes its name or id, or works in the one that the server was started in.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, after_help = examples!(
    "sessile mcp"
    "sessile mcp --session work --allow-run"
))]
pub struct Args {
    /// Offer the tool that runs commands
    #[arg(long)]
    allow_run: bool,

    /// Offer only the tools that change nothing
    #[arg(long, conflicts_with = "allow_run")]
    read_only: bool,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    crate::mcp::serve(&cx.state, crate::mcp::Offer { run: args.allow_run, read_only: args.read_only })
}
