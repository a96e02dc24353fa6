//! `sessile lock`: named mutual exclusion between agents.

pub mod acquire;
pub mod break_lock;
pub mod list;
pub mod release;
pub mod renew;
pub mod run;

use std::sync::mpsc::Receiver;
use std::time::Duration;

use sessile::State;
use sessile::error::UsageError;
use sessile::lock::{LockHolder, LockMode, LockName};
use sessile::text::shortened;

use crate::backend::StateBackend;
use crate::child::Child;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::lazy_command::Lazy;
use crate::local::holder;
use crate::remote::{LockKeeper, ServerArgs, ServiceClient, note_wait};

/// Hold named locks, while a command runs or for a lease
///
/// Waiters get a lock in order of arrival. Each acquisition has a fencing token, a number that only grows. Pass it to
/// the protected resource, and let that refuse older tokens. With --shared, several holders can share a lock; without
/// it the lock is exclusive.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile lock run deploy -- ./deploy.sh"
    "sessile lock acquire deploy --ttl 10m"
    "sessile lock list"
))]
pub enum Command {
    /// Run a command while holding a lock
    Run(Lazy<run::Args>),
    /// Acquire a lock for a lease, and print its fencing token
    Acquire(Lazy<acquire::Args>),
    /// Extend a lock's lease
    Renew(Lazy<renew::Args>),
    /// Release a lock
    Release(Lazy<release::Args>),
    /// List the held locks and their waiters
    #[command(visible_alias = "ls")]
    List(Lazy<list::Args>),
    /// Break another holder's lock
    Break(Lazy<break_lock::Args>),
}

impl Command {
    /// Server of the command.
    pub(crate) fn server(&self) -> &ServerArgs {
        match self {
            Command::Run(Lazy(args)) => &args.server,
            Command::Acquire(Lazy(args)) => &args.server,
            Command::Renew(Lazy(args)) => &args.server,
            Command::Release(Lazy(args)) => &args.server,
            Command::List(Lazy(args)) => &args.server,
            Command::Break(Lazy(args)) => &args.server,
        }
    }

    pub(crate) fn run(&self, cx: &Cx) -> Outcome {
        match self {
            Command::Run(Lazy(args)) => run::run(args, cx),
            Command::Acquire(Lazy(args)) => acquire::run(args, cx),
            Command::Renew(Lazy(args)) => renew::run(args, cx),
            Command::Release(Lazy(args)) => release::run(args, cx),
            Command::List(Lazy(args)) => list::run(args, cx),
            Command::Break(Lazy(args)) => break_lock::run(args, cx),
        }
    }
}

/// Lock that the caller holds.
#[derive(Debug, clap::Args)]
pub(crate) struct HeldLockArgs {
    /// Name of the lock
    #[arg(value_name = "LOCK")]
    name: String,

    /// Fencing token of the lock [default: SESSILE_LOCK_TOKEN]
    #[arg(long, value_name = "N")]
    token: Option<i64>,
}

impl HeldLockArgs {
    /// Name and fencing token.
    fn resolve(&self, cx: &Cx) -> Result<(LockName, i64), Failure> {
        let name = self.name.parse()?;
        Ok((name, self.token.map_or_else(|| token_of_environment(cx), Ok)?))
    }
}

/// Fencing token of the variable in which a command finds its own.
fn token_of_environment(cx: &Cx) -> Result<i64, Failure> {
    let Some(value) = cx.state.world().variable(run::TOKEN_VARIABLE) else {
        let what = format!("--token N is required: {} is not set", run::TOKEN_VARIABLE);
        return Err(UsageError::Arguments(what).into());
    };
    let value = value.to_string_lossy();
    value.trim().parse().map_err(|_| {
        let (place, value) = (run::TOKEN_VARIABLE.to_owned(), shortened(&value, 40));
        UsageError::InvalidValue { place, value, expected: "a fencing token".to_owned() }.into()
    })
}

/// Reports that the lock is on a service.
fn note_server(cx: &Cx, backend: &StateBackend<'_>) {
    if let StateBackend::Remote(remote) = backend {
        note_url(cx, remote.server.url());
    }
}

fn note_url(cx: &Cx, url: &str) {
    if cx.out.is_text() {
        cx.out.note(&format!("using the lock of {url}"));
    }
}

/// Acquires a lock of a server for the duration of a command, and reports it.
pub(crate) fn keep_there(
    cx: &Cx,
    state: &State,
    server: ServiceClient,
    (name, mode): (&LockName, LockMode),
    purpose: &str,
) -> Result<LockKeeper, Failure> {
    // A lease shorter than a second could end before its first renewal.
    let ttl = state.duration("lock-ttl")?.unwrap_or(Duration::from_secs(60)).max(Duration::from_secs(1));
    let url = server.url().to_owned();
    let tell = |holder: Option<LockHolder>| note_wait(cx, &url, name, holder.as_ref());
    let step = cx.out.slow_step(|| format!("waiting for lock {name} of {url}"));
    let kept = LockKeeper::acquire(
        server,
        (name, mode),
        &holder(state, purpose)?,
        ttl,
        state.lock_timeout()?,
        &tell,
    )?;
    drop(step);
    note_url(cx, kept.server.url());
    Ok(kept)
}

/// Runs a command under a lock of a server, and releases the lock. `check` may still refuse after the lock is held.
pub(crate) fn run_kept(
    cx: &Cx,
    child: Child,
    timeout: Option<Duration>,
    mut kept: LockKeeper,
    check: impl FnOnce() -> Result<(), sessile::Error>,
) -> Outcome {
    // The guard may have closed while the lock was waited for; others must not wait for the lease to expire.
    if let Err(refused) = check() {
        if let Some(told) = kept.release()? {
            cx.out.note(&told);
        }
        return Err(refused.into());
    }
    let (token, out) = (kept.token, cx.out.clone());
    let child = child.env(run::TOKEN_VARIABLE, token.to_string());
    let watch = |stop: &dyn Fn(), ended: &Receiver<()>| {
        let lost = kept.keep(ended)?;
        out.note(&format!("lost the lock: {lost}; sent SIGTERM to the command"));
        stop();
        Some(lost)
    };
    let (ended, lost) = child.run_watched(timeout, Some(watch));
    // Whatever the command returned: part of its work may have been done without the lock.
    if lost.is_some() {
        return Err(sessile::error::LockError::Lost(token).into());
    }
    if let Some(told) = kept.release()? {
        cx.out.note(&told);
    }
    ended
}
