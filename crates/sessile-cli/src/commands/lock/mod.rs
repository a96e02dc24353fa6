//! `sessile lock`: named mutual exclusion between agents.

pub mod acquire;
pub mod break_lock;
pub mod list;
pub mod release;
pub mod renew;
pub mod run;

use sessile::State;
use sessile::lock::{LockHolder, Locks, Queue};
use sessile::store::Store;

use crate::cli::Cx;
use crate::error::{Failure, Outcome};
use crate::help::examples;
use crate::lazy::Lazy;

/// Exclude other agents: hold a lock while a command runs, or for a time
///
/// Locks are first come first served. Each acquisition has a fencing token, a number that only ever grows: hand it
/// to what the lock protects, and let it refuse older ones.
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

pub(crate) fn locks(state: &State) -> Result<Locks, Failure> {
    locks_in(state, state.store_for_writing()?)
}

fn locks_in(state: &State, store: Store) -> Result<Locks, Failure> {
    let queue = Queue::new(state.dirs().state()?, state.world().clone(), state.locker()?);
    Ok(Locks::new(store, queue))
}

pub(crate) fn holder(state: &State, purpose: &str) -> Result<LockHolder, Failure> {
    let session = state.session()?.map(|current| current.session.id.to_string());
    Ok(LockHolder::own(state.world(), session, purpose))
}
