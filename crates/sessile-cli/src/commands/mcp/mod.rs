//! `sessile mcp`: everything here as tools for agents, by the Model Context Protocol.

pub(crate) mod client;
pub mod config;

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::json;
use sessile::error::UsageError;
use sessile::vault::Secret;

use super::serve::parse_listen;
use super::service_store::read_secret;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::lazy_command::Lazy;
use crate::mcp::ToolAccess;
use crate::mcp::http::{self, HttpOptions};

/// Run the MCP server: sessions, contexts, locks and agents as tools
///
/// An MCP client starts the server and talks to it over standard input and output; `mcp config` prints the client's
/// configuration. With --listen clients connect over streamable HTTP instead. The server keeps no state: each tool
/// calls a command. A tool that needs a session takes its name or id; the default is the server's own session.
///
/// Without --allow-run, the server offers the tool `run` only to clients with elicitation, and prompts before each command.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = examples!(
        "sessile mcp config --client claude      print the client's configuration"
        "sessile mcp --session web               the command that the client starts"
        "sessile mcp --allow-run"
        "sessile mcp --read-only"
        "sessile mcp --listen 127.0.0.1:8739"
    )
)]
pub struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Run commands without prompting the person
    #[arg(long)]
    allow_run: bool,

    /// Offer only tools that change nothing
    #[arg(long, conflicts_with = "allow_run")]
    read_only: bool,

    /// Listen for streamable HTTP on this address, at /mcp
    ///
    /// On a loopback address every process of yours can connect. Other addresses require --token-file and --behind-proxy.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_listen)]
    listen: Option<SocketAddr>,

    /// Require the bearer token in this file
    #[arg(long, value_name = "FILE", requires = "listen")]
    token_file: Option<PathBuf>,

    /// Listen beyond this machine, behind a proxy that terminates TLS
    #[arg(long, requires = "token_file")]
    behind_proxy: bool,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Print an MCP client's configuration for this server or a service
    Config(Lazy<config::Args>),
}

/// Shortest token that is accepted, in characters.
const SHORTEST_TOKEN: usize = 16;

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    if let Some(Command::Config(Lazy(args))) = &args.command {
        return config::run(args, cx);
    }
    let access = ToolAccess { run: args.allow_run, read_only: args.read_only };
    if let Some(listen) = args.listen {
        let options = HttpOptions { listen, token: token(args, listen, cx)? };
        return http::serve(&cx.state, access, options, |address| {
            let url = format!("http://{address}{}", http::PATH);
            cx.out.ask_for(&json!({ "url": url }), &format!("listening on {url}"));
        });
    }
    if cx.state.world().streams().stdin {
        cx.out.note(
            "waiting for an MCP client on standard input; `sessile mcp config` prints how a client starts it",
        );
    }
    crate::mcp::serve(&cx.state, access)
}

/// The token of callers. An address beyond this machine needs one, and a proxy that keeps it secret on the way.
fn token(args: &Args, listen: SocketAddr, cx: &Cx) -> Result<Option<Secret>, sessile::Error> {
    let wrong = |message: String| Err(UsageError::Arguments(message).into());
    if !listen.ip().is_loopback() && !args.behind_proxy {
        return wrong(format!(
            "refusing to listen on {listen} without TLS; pass --token-file and --behind-proxy, or a loopback address"
        ));
    }
    let Some(file) = &args.token_file else { return Ok(None) };
    let text = read_secret(cx, file)?;
    let token = text.trim();
    let is_plain = token.bytes().all(|byte| byte.is_ascii_graphic());
    if token.len() < SHORTEST_TOKEN || !is_plain {
        return wrong(format!(
            "invalid --token-file {}: a token is {SHORTEST_TOKEN} or more ASCII characters without spaces",
            sessile::text::shown(file.display())
        ));
    }
    Ok(Some(Secret::new(token)))
}
