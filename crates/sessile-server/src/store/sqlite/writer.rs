//! The writer thread. Changes that arrive during a commit share the next transaction, so that one sync serves many. A
//! failed change is rolled back alone, and each change is acknowledged after the sync.

use std::sync::Arc;

use rusqlite::{Connection, Result};
use tokio::sync::{mpsc, oneshot};

use super::apply::{self, AppliedChange};
use super::describe;
use crate::clock::now_ms;
use crate::request::Request;
use crate::store::ServiceStoreError;
use crate::store::fair_queue::FairQueue;

/// Changes of one transaction, at most.
const TOGETHER: usize = 256;

/// Changes that may wait; further ones wait for a slot.
const WAITING: usize = 4096;

/// Waiting changes of one user, at most: those of others are in the next transaction all the same.
const WAITING_EACH: usize = 64;

/// A change to make, which returns the reply to send once the transaction is committed or has failed.
type Job = Box<dyn FnOnce(&Connection, i64) -> Result<WriteCallback> + Send>;
type WriteCallback = Box<dyn FnOnce(std::result::Result<(), ServiceStoreError>) + Send>;

/// Handle of the writer thread.
#[derive(Clone, Debug)]
pub(super) struct SqliteWriter {
    jobs: mpsc::Sender<Job>,
    queue: FairQueue,
}

impl SqliteWriter {
    pub(super) fn start(connection: Connection) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel(WAITING);
        std::thread::Builder::new().spawn(move || write(&connection, queue))?;
        Ok(SqliteWriter { jobs, queue: FairQueue::new(WAITING, WAITING_EACH) })
    }

    /// Makes a change, and adds it to the audit log.
    pub(super) async fn change(
        &self,
        process: Arc<str>,
        request: Request,
    ) -> std::result::Result<AppliedChange, ServiceStoreError> {
        // Held until the reply, so that one user cannot fill the queue of the writer.
        let _slot = self.queue.enter(request.user.as_str()).await;
        self.run(move |connection, now| apply::apply(connection, &process, &request, now)).await
    }

    /// Runs a job in the next transaction.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Connection, i64) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, ServiceStoreError> {
        let (reply, outcome) = oneshot::channel();
        let job: Job = Box::new(move |connection, now| {
            let done = what(connection, now).map_err(|error| describe(&error));
            Ok(Box::new(move |committed| {
                // Who asked may be gone; what was asked is done.
                let _ = reply.send(committed.and(done));
            }))
        });
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
