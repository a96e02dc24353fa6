//! The writer thread. Changes that arrive during a commit share the next transaction, so that one sync serves many. A
//! failed change is rolled back alone, and each change is acknowledged after the sync.
//!
//! A transaction of requests that only join a queue is not synced, because it grants nothing. The next synced commit covers it, at the
//! latest the one that grants the place. After a power cut the place is lost; its client has lost the connection too, and asks again.

use std::sync::Arc;

use rusqlite::{Connection, Result};
use tokio::sync::{mpsc, oneshot};

use super::apply::{self, AppliedChange};
use super::describe;
use super::handover::Handover;
use crate::change::{ChangeOutcome, StoreChange};
use crate::clock::now_ms;
use crate::request::Request;
use crate::store::fair_queue::FairQueue;
use crate::store::{PendingWait, ServiceStoreError};

/// Changes of one transaction, at most.
const TOGETHER: usize = 256;

/// Changes that may wait; further ones wait for a slot.
const WAITING: usize = 4096;

/// Waiting changes of one user, at most: those of others are in the next transaction all the same.
const WAITING_EACH: usize = 64;

/// A change to make.
struct Job {
    apply: ApplyChange,
    /// Whether the outcome of the change decides if it needs a sync.
    may_skip_sync: bool,
}

/// A change that was made in the open transaction.
struct AppliedJob {
    needs_sync: bool,
    /// Sends the reply, once the transaction is committed or has failed.
    reply: WriteCallback,
}

type ApplyChange = Box<dyn FnOnce(&Connection, i64) -> Result<AppliedJob> + Send>;
type WriteCallback = Box<dyn FnOnce(CommitResult) + Send>;

/// Whether the transaction of a change was committed.
type CommitResult = std::result::Result<(), ServiceStoreError>;

/// Handle of the writer thread.
#[derive(Clone, Debug)]
pub(super) struct SqliteWriter {
    jobs: mpsc::Sender<Job>,
    queue: FairQueue,
    handover: Handover,
}

impl SqliteWriter {
    pub(super) fn start(connection: Connection) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel(WAITING);
        std::thread::Builder::new().spawn(move || write(&connection, queue))?;
        Ok(SqliteWriter { jobs, queue: FairQueue::new(WAITING, WAITING_EACH), handover: Handover::default() })
    }

    /// Leaves a wait that is carried out with the change that makes its place next.
    pub(super) fn wait_with_release(&self, request: Request) -> PendingWait {
        self.handover.leave(request)
    }

    /// Makes a change, and adds it to the audit log. If that makes a waiting place next, its holder is in the same transaction.
    pub(super) async fn change(
        &self,
        process: Arc<str>,
        request: Request,
    ) -> std::result::Result<AppliedChange, ServiceStoreError> {
        // Held until the reply, so that one user cannot fill the queue of the writer.
        let _slot = self.queue.enter(request.user.as_str()).await;
        let handover = self.handover.clone();
        let freed = request.change.freed_queue();
        let (reply, outcome) = oneshot::channel();
        let may_skip_sync = matches!(request.change, StoreChange::Ask { .. });
        let apply = Box::new(move |connection: &Connection, now| {
            let mut made = Vec::new();
            let applied = apply::apply(connection, &process, &request, now).map(|(outcome, mut next)| {
                if let Some(resource) = &freed {
                    let queue = (&request.user, resource.as_str());
                    (made, next) = handover.carry_out(connection, &process, queue, next, now);
                }
                (outcome, next)
            });
            let applied = applied.map_err(|error| describe(&error));
            let needs_sync = !may_skip_sync || !joins_queue(&applied);
            let reply: WriteCallback = Box::new(move |committed: CommitResult| {
                // The requester may have disconnected; the change is committed regardless.
                let _ = reply.send(committed.clone().and(applied));
                for wait in made {
                    wait.answer(committed.clone());
                }
            });
            Ok(AppliedJob { needs_sync, reply })
        });
        self.send(Job { apply, may_skip_sync }, outcome).await
    }

    /// Runs a job in the next transaction.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Connection, i64) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, ServiceStoreError> {
        let (reply, outcome) = oneshot::channel();
        let apply = Box::new(move |connection: &Connection, now| {
            let done = what(connection, now).map_err(|error| describe(&error));
            let reply: WriteCallback = Box::new(move |committed: CommitResult| {
                // The requester may have disconnected; the change is committed regardless.
                let _ = reply.send(committed.and(done));
            });
            Ok(AppliedJob { needs_sync: true, reply })
        });
        self.send(Job { apply, may_skip_sync: false }, outcome).await
    }

    /// Sends a job to the writer, and waits for its reply.
    async fn send<T>(
        &self,
        job: Job,
        outcome: oneshot::Receiver<std::result::Result<T, ServiceStoreError>>,
    ) -> std::result::Result<T, ServiceStoreError> {
        // A job that is dropped was not begun.
        let not_begun = || ServiceStoreError::Unavailable("the writer stopped before this change".to_owned());
        self.jobs.send(job).await.map_err(|_| not_begun())?;
        outcome.await.map_err(|_| not_begun())?
    }
}

/// Whether a change only left a place that waits, or was refused.
fn joins_queue(applied: &std::result::Result<AppliedChange, ServiceStoreError>) -> bool {
    match applied {
        Ok((Ok(ChangeOutcome::Ticket { ticket, .. }), _)) => ticket.token.is_none(),
        Ok((outcome, _)) => outcome.is_err(),
        Err(_) => false,
    }
}

fn write(connection: &Connection, mut queue: mpsc::Receiver<Job>) {
    let mut sync = SyncMode { connection, skips: false };
    while let Some(first) = queue.blocking_recv() {
        let mut jobs = vec![first];
        while jobs.len() < TOGETHER
            && let Ok(next) = queue.try_recv()
        {
            jobs.push(next);
        }
        let skips = jobs.iter().all(|job| job.may_skip_sync);
        let mut replies = Vec::with_capacity(jobs.len());
        let committed = sync.set(skips).and_then(|()| together(connection, jobs, &mut replies));
        let committed = committed.map_err(|error| {
            // Fails if SQLite has rolled back by itself, as it does when the disk is full.
            let _ = connection.execute_batch("ROLLBACK");
            describe(&error)
        });
        let committed = match committed {
            Ok(true) if skips => sync_log(connection),
            committed => committed.map(drop),
        };
        // Only after the commit: an acknowledged change is on the disk.
        for reply in replies {
            reply(committed.clone());
        }
    }
}

/// Whether the commits of a connection are synced.
struct SyncMode<'a> {
    connection: &'a Connection,
    skips: bool,
}

impl SyncMode<'_> {
    fn set(&mut self, skips: bool) -> Result<()> {
        if self.skips != skips {
            self.connection.pragma_update(None, "synchronous", if skips { "NORMAL" } else { "FULL" })?;
            self.skips = skips;
        }
        Ok(())
    }
}

/// Syncs the write-ahead log, for a commit that was not synced and turned out to need it.
fn sync_log(connection: &Connection) -> CommitResult {
    let Some(path) = connection.path() else { return Ok(()) };
    let synced = std::fs::File::open(format!("{path}-wal")).and_then(|log| log.sync_data());
    // The change is made, but a power cut could undo it, so its requester gets an error.
    synced.map_err(|error| ServiceStoreError::Failed(format!("{path}-wal: {error}")))
}

/// Makes the changes in one transaction. Returns whether one of them needs a sync.
fn together(connection: &Connection, jobs: Vec<Job>, replies: &mut Vec<WriteCallback>) -> Result<bool> {
    // Immediate, because other processes write to the same file: waiting happens here, and not in the middle.
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    // Under the lock: the wait for it must not count against leases that begin now.
    let now = now_ms();
    let mut needs_sync = false;
    for job in jobs {
        let applied = (job.apply)(connection, now)?;
        needs_sync |= applied.needs_sync;
        replies.push(applied.reply);
    }
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(needs_sync)
}
