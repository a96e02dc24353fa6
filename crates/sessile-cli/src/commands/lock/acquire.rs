//! `sessile lock acquire`.

use std::time::Duration;

use sessile::Error;
use sessile::args::parse_duration;
use sessile::error::LockError;
use sessile::lock::{LockMode, LockName};

use super::{note_server, token_of_environment};
use crate::backend::StateBackend;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::remote::ServerArgs;

/// Acquire a lock for a lease, and print its fencing token
///
/// Waits in the queue for up to --lock-timeout. The lock is released at the end of the lease, unless you renew it.
/// Release it with its token.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!(
    "sessile lock acquire deploy --ttl 10m --quiet"
    "sessile lock acquire deploy --ttl 10m --lock-timeout 1m --output json"
    "sessile lock acquire schema --shared --ttl 5m"
))]
pub struct Args {
    /// Name of the lock
    #[arg(value_name = "LOCK")]
    name: String,

    /// Duration of the lease
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    ttl: Duration,

    /// Acquire the lock in shared mode
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
    // The context may keep its locks on a server: a lock on this machine would not exclude other clients.
    cx.state.require_trusted_selection()?;
    let backend = StateBackend::resolve(cx)?;
    let lease = backend.acquire_lock(&name, LockMode::of(args.shared), args.ttl);
    let lease = lease.map_err(|failure| naming_the_caller(failure, cx, &backend, &name))?;
    cx.changed(&lease, || format!("{}\n", lease.token))?;
    note_server(cx, &backend);
    Ok(())
}

/// The failure with the caller as the holder, if the caller has the token of the lease. The process that acquired the lock
/// has ended, and its id says nothing.
fn naming_the_caller(failure: Failure, cx: &Cx, backend: &StateBackend<'_>, name: &LockName) -> Failure {
    let Failure::Library(Error::Lock(LockError::Held { name: lock, waited, .. })) = &failure else {
        return failure;
    };
    let Ok(token) = token_of_environment(cx) else { return failure };
    match backend.lock(name).ok().flatten().is_some_and(|held| held.is_held_by(token)) {
        true => Failure::Library(Error::Lock(LockError::Held {
            name: lock.clone(),
            holder: Some(format!("this caller, by the token in {}", super::run::TOKEN_VARIABLE)),
            is_own: true,
            waited: *waited,
        })),
        false => failure,
    }
}
