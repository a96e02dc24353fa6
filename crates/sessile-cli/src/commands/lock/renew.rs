//! `sessile lock renew`.

use std::time::Duration;

use serde_json::json;
use sessile::args::parse_duration;
use sessile::history::record;
use sessile::lock::LockName;

use super::{locks, tell_server};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::{ServerArgs, ServiceClient};

/// Begin the time of a lock anew
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile lock renew deploy --token 17 --ttl 10m"))]
pub struct Args {
    /// The lock
    #[arg(value_name = "LOCK")]
    name: String,

    /// The token that acquiring it printed
    #[arg(long, value_name = "N")]
    token: i64,

    /// How long it is held from now on
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    ttl: Duration,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name: LockName = args.name.parse()?;
    let changed = |expires_at: Option<String>| {
        let json = json!({ "name": name, "token": args.token, "expires_at": expires_at });
        let until = expires_at.as_deref().unwrap_or("it is released");
        cx.changed(json, || format!("lock {name} is held until {until}\n"))
    };
    if let Some(server) = ServiceClient::of(cx, &cx.state)? {
        changed(Some(server.renew_lock(&name, args.token, args.ttl)?.expires_at()))?;
        tell_server(cx, &server);
        return Ok(());
    }
    let view = locks(&cx.state)?.renew(&name, args.token, args.ttl)?;
    record(&cx.state, "lock renew", &format!("{name} token {}", args.token), "release the lock instead")?;
    changed(view.expires_at)
}
