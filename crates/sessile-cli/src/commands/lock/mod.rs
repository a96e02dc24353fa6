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

/// Exclude other agents: hold a lock while a command runs, or for a time
///
/// Locks are first come first served. Each acquisition has a fencing token, a number that only ever grows: hand it
/// to what the lock protects, and let it refuse older ones. With --shared any number of holders have a lock at a time;
/// an exclusive holder has it alone.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = examples!(
    "sessile lock run deploy -- ./deploy.sh"
    "sessile lock acquire deploy --ttl 10m"
    "sessile lock list"
))]
pub enum Command {
    /// Run a command while holding a lock
    Run(Lazy<run::Args>),
    /// Take a lock for a time and print its fencing token
    Acquire(Lazy<acquire::Args>),
    /// Begin the time of a lock anew
    Renew(Lazy<renew::Args>),
    /// Give a lock back
    Release(Lazy<release::Args>),
    /// List the locks that are held
    List(Lazy<list::Args>),
    /// Take a lock away from its holder
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

/// A lock that the caller holds.
#[derive(Debug, clap::Args)]
pub(crate) struct HeldLockArgs {
    /// The lock
    #[arg(value_name = "LOCK")]
    name: String,

    /// The token that acquiring it printed [default: SESSILE_LOCK_TOKEN]
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

/// Tells the user that the lock is one of a service.
fn note_server(cx: &Cx, backend: &StateBackend<'_>) {
    if let StateBackend::Remote(remote) = backend {
        note_url(cx, remote.server.url());
    }
}

fn note_url(cx: &Cx, url: &str) {
    if cx.out.is_text() {
        cx.out.note(&format!("the lock is one of {url}"));
    }
}

/// Takes a lock of a server, to be kept while a command runs, and says where it is.
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
    let kept = LockKeeper::acquire(
        server,
        (name, mode),
        &holder(state, purpose)?,
        ttl,
        state.lock_timeout()?,
        &tell,
    )?;
    note_url(cx, kept.server.url());
    Ok(kept)
}

/// Runs a command under a lock of a server, and gives it back. `check` may still refuse, now that the lock is held.
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
        out.note(&format!("the lock is lost: {lost}; the command is told to end"));
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
