//! `sessile lock acquire`.

use std::time::Duration;

use sessile::args::parse_duration;
use sessile::lock::{LockMode, LockName};

use super::note_server;
use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::ServerArgs;

/// Take a lock for a time and print its fencing token
///
/// It waits its turn, as long as --lock-timeout says. The lock ends by itself after its time, or is renewed or given
/// back with the token.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile lock acquire deploy --ttl 10m --quiet"
    "sessile lock acquire deploy --ttl 10m --lock-timeout 1m --output json"
    "sessile lock acquire schema --shared --ttl 5m"
))]
pub struct Args {
    /// The lock
    #[arg(value_name = "LOCK")]
    name: String,

    /// How long it is held
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    ttl: Duration,

    /// Share the lock with other holders that share it
    #[arg(long)]
    shared: bool,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let name: LockName = args.name.parse()?;
    if cx.state.session()?.is_some() {
        // The lock belongs to the session and ends with it, so an ended one cannot take any.
        cx.state.require_session("acquiring a lock in it")?;
    }
    let backend = StateBackend::resolve(cx)?;
    let lease = backend.acquire_lock(&name, LockMode::of(args.shared), args.ttl)?;
    cx.changed(&lease, || format!("{}\n", lease.token))?;
    note_server(cx, &backend);
    Ok(())
}
