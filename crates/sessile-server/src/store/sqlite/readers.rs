//! Pool of read connections, one thread each, shared fairly among users.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::describe;
use crate::store::ServiceStoreError;
use crate::store::fair_queue::FairQueue;

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// Priority of the reads of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// As the rest of the process.
    Normal,
    /// Less: on a machine that is busy, token checks, changes and answers go first.
    Low,
}

/// Niceness of threads whose priority is low.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// A pool of connections for reading.
#[derive(Clone, Debug)]
pub(super) struct Readers {
    jobs: Sender<Job>,
    queue: FairQueue,
}

impl Readers {
    pub(super) fn start(
        connections: Vec<Connection>,
        each: usize,
        priority: Priority,
    ) -> std::io::Result<Self> {
        let queue = FairQueue::new(connections.len(), each);
        let (jobs, waiting) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for connection in connections {
            let waiting = Arc::clone(&waiting);
            std::thread::Builder::new().spawn(move || {
                priority.take_on();
                work(&connection, &waiting);
            })?;
        }
        Ok(Readers { jobs, queue })
    }

    /// Reads in a user's turn.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        lane: &str,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ServiceStoreError> {
        let slot = self.queue.enter(lane).await;
        let (answered, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // One snapshot for all statements of a query: what is written between two of them is not half seen.
            let answer = connection.unchecked_transaction().and_then(|snapshot| query(&snapshot));
            // The slot goes back with the answer. It is kept until the caller runs again: a user whose answers pile up must
            // not begin more reads meanwhile. If the caller is gone, the slot is free at once.
            let _ = answered.send((answer.map_err(|error| describe(&error)), slot));
        });
        let ended = || ServiceStoreError::Failed("the reader ended".to_owned());
        self.jobs.send(job).map_err(|_| ended())?;
        let (answer, _slot) = answer.await.map_err(|_| ended())?;
        answer
    }
}

impl Priority {
    /// Sets the priority of this thread. If the system refuses, the thread keeps the default priority.
    fn take_on(self) {
        // Elsewhere it would be that of the whole process.
        #[cfg(target_os = "linux")]
        if self == Priority::Low {
            let _ = rustix::process::setpriority_process(None, NICENESS);
        }
    }
}

/// Runs jobs until the pool is dropped.
fn work(connection: &Connection, waiting: &Mutex<Receiver<Job>>) {
    loop {
        // The lock is held only while waiting for a job; it is released before the job runs.
        let job = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        // A panic is an answer that does not come; the thread is still needed.
        drop(catch_unwind(AssertUnwindSafe(|| job(connection))));
    }
}
