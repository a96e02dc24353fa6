//! `sessile lock renew`.

use std::time::Duration;

use sessile::args::parse_duration;

use super::{HeldLockArgs, note_server};
use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::Outcome;
use crate::help::examples;
use crate::remote::ServerArgs;

/// Extend a lock's lease
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile lock renew deploy --token 17 --ttl 10m"))]
pub struct Args {
    #[command(flatten)]
    held: HeldLockArgs,

    /// Duration of the new lease, from now
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    ttl: Duration,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

pub(crate) fn run(args: &Args, cx: &Cx) -> Outcome {
    let (name, token) = args.held.resolve(cx)?;
    let backend = StateBackend::resolve(cx)?;
    let lease = backend.renew_lock(&name, token, args.ttl)?;
    let until = lease.expires_at.as_deref().unwrap_or("released");
    cx.changed(&lease, || format!("renewed lock {name} until {until}\n"))?;
    note_server(cx, &backend);
    Ok(())
}
