//! `sessile lock acquire`.

use std::time::Duration;

use serde_json::json;
use sessile::args::parse_duration;
use sessile::history::record;
use sessile::lock::{LockHolder, LockName};

use super::{holder, locks, patience, tell_server, tell_wait};
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::{ServerArgs, ServiceClient};

/// Take a lock for a time and print its fencing token
///
/// It waits its turn, as long as --lock-timeout says. The lock ends by itself after its time, or is renewed or given
/// back with the token.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile lock acquire deploy --ttl 10m --quiet"
    "sessile lock acquire deploy --ttl 10m --lock-timeout 1m --output json"
))]
pub struct Args {
    /// The lock
    #[arg(value_name = "LOCK")]
    name: String,

    /// How long it is held
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    ttl: Duration,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name: LockName = args.name.parse()?;
    if cx.state.session()?.is_some() {
        cx.state.require_session("acquiring a lock in it")?;
    }
    let changed = |token: i64, expires_at: Option<String>| {
        let json = json!({ "name": name, "token": token, "expires_at": expires_at });
        cx.changed(json, || format!("{token}\n"))
    };
    let holder = holder(&cx.state, "lock acquire")?;
    if let Some(server) = ServiceClient::of(cx, &cx.state)? {
        let tell = |other: Option<LockHolder>| tell_wait(cx, server.url(), &name, other.as_ref());
        let lease = server.take_lock(&name, &holder, args.ttl, patience(&cx.state)?, &tell)?;
        changed(lease.token, Some(lease.expires_at()))?;
        tell_server(cx, &server);
        return Ok(());
    }
    let mut locks = locks(&cx.state)?;
    let token = locks.acquire(&name, &holder, args.ttl)?;
    record(&cx.state, "lock acquire", &format!("{name} token {token}"), "release the lock instead")?;
    let expires_at = locks.view(&name)?.and_then(|view| view.expires_at);
    changed(token, expires_at)
}
