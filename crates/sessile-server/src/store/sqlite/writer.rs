//! The writer thread. Changes that arrive during a commit share the next transaction, so that one sync serves many. A
//! failed change is rolled back alone, and each change is acknowledged after the sync.

use std::sync::Arc;

use rusqlite::{Connection, Result};
use tokio::sync::{mpsc, oneshot};

use super::apply::{self, AppliedChange};
use super::describe;
use super::handover::Handover;
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

/// A change to make, which returns the reply to send once the transaction is committed or has failed.
type Job = Box<dyn FnOnce(&Connection, i64) -> Result<WriteCallback> + Send>;
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
        let job: Job = Box::new(move |connection, now| {
            let mut made = Vec::new();
            let applied = apply::apply(connection, &process, &request, now).map(|(outcome, mut next)| {
                if let Some(resource) = &freed {
                    let queue = (&request.user, resource.as_str());
                    (made, next) = handover.carry_out(connection, &process, queue, next, now);
                }
                (outcome, next)
            });
            let applied = applied.map_err(|error| describe(&error));
            Ok(Box::new(move |committed: CommitResult| {
                // The requester may have disconnected; the change is committed regardless.
                let _ = reply.send(committed.clone().and(applied));
                for wait in made {
                    wait.answer(committed.clone());
                }
            }))
        });
        self.send(job, outcome).await
    }

    /// Runs a job in the next transaction.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Connection, i64) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, ServiceStoreError> {
        let (reply, outcome) = oneshot::channel();
        let job: Job = Box::new(move |connection, now| {
            let done = what(connection, now).map_err(|error| describe(&error));
            Ok(Box::new(move |committed: CommitResult| {
                // The requester may have disconnected; the change is committed regardless.
                let _ = reply.send(committed.and(done));
            }))
        });
        self.send(job, outcome).await
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

fn write(connection: &Connection, mut queue: mpsc::Receiver<Job>) {
    while let Some(first) = queue.blocking_recv() {
        let mut jobs = vec![first];
        while jobs.len() < TOGETHER
            && let Ok(next) = queue.try_recv()
        {
            jobs.push(next);
        }
        let mut told = Vec::with_capacity(jobs.len());
        let committed = together(connection, jobs, &mut told).map_err(|error| {
            // Fails if SQLite has rolled back by itself, as it does when the disk is full.
            let _ = connection.execute_batch("ROLLBACK");
            describe(&error)
        });
        // Only after the commit: an acknowledged change is on the disk.
        for tell in told {
            tell(committed.clone());
        }
    }
}

fn together(connection: &Connection, jobs: Vec<Job>, told: &mut Vec<WriteCallback>) -> Result<()> {
    // Immediate, because other processes write to the same file: waiting happens here, and not in the middle.
    connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    // Under the lock: the wait for it must not count against leases that begin now.
    let now = now_ms();
    for job in jobs {
        told.push(job(connection, now)?);
    }
    connection.prepare_cached("COMMIT")?.execute([]).map(drop)
}
