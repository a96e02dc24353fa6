//! `sessile agent demo`.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;
use sessile::error::FileError;
use sessile_agent::{AgentOptions, DemoAgent};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::Cx;
use crate::error::{CommandError, Outcome};
use crate::help::examples;

/// Start a scripted agent on this machine, for trials
///
/// The first word of a message selects what the agent does: echo TEXT, slow 5s TEXT, ask, stream COUNT MILLIS, files. The
/// agent listens on 127.0.0.1 only, speaks A2A 1.0 and 0.3, requires no credential, and stores nothing.
/// Ctrl-C stops it.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile agent demo"
    "sessile agent demo --port 0 --output json"
    "sessile message send http://127.0.0.1:8738 \"echo hello\""
))]
pub struct Args {
    /// Listen on this port; 0 is any free port
    #[arg(long, value_name = "PORT", default_value_t = 8738)]
    port: u16,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    // Before the agent is announced: a signal right after it must not be lost.
    let refused = |source| CommandError::ThreadRefused { purpose: "that waits for signals", source };
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(refused)?;
    let options = AgentOptions::demo();
    let skills = options.skills.clone();
    let agent = DemoAgent::start(options, address).map_err(|source| FileError::Io {
        action: "listen on",
        path: address.to_string().into(),
        source,
    })?;
    let url = agent.url();
    let described = skills
        .iter()
        .map(|skill| json!({ "id": skill.id, "description": skill.description, "example": skill.example }));
    let json = json!({ "url": url, "skills": described.collect::<Vec<_>>() });
    cx.out.result(&json, || {
        let mut text = format!("started the demo agent on {url}\n");
        for skill in &skills {
            let verb = if skill.id == "stream" { "stream" } else { "send" };
            text.push_str(&format!("  sessile message {verb} {url} \"{}\"\n", skill.example));
        }
        text
    })?;
    cx.out.note("Ctrl-C stops the agent");
    signals.forever().next();
    Ok(())
}
