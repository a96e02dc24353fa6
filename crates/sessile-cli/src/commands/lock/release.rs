//! `sessile lock release`.

use serde_json::json;
use sessile::history::record;
use sessile::lock::LockName;

use super::{locks, tell_server};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::{ServerArgs, ServiceClient};

/// Give a lock back
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile lock release deploy --token 17"))]
pub struct Args {
    /// The lock
    #[arg(value_name = "LOCK")]
    name: String,

    /// The token that acquiring it printed
    #[arg(long, value_name = "N")]
    token: i64,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name: LockName = args.name.parse()?;
    let server = ServiceClient::of(cx, &cx.state)?;
    if let Some(server) = &server {
        server.release_lock(&name, args.token)?;
    } else {
        locks(&cx.state)?.release(&name, args.token)?;
        record(
            &cx.state,
            "lock release",
            &format!("{name} token {}", args.token),
            "another may have the lock by now; acquire it anew",
        )?;
    }
    cx.changed(json!({ "name": name, "token": args.token }), || format!("lock {name} is free\n"))?;
    if let Some(server) = &server {
        tell_server(cx, server);
    }
    Ok(())
}
