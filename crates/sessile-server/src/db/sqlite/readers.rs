//! Connections that read, each on a thread of its own while it does; users take turns at them.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use super::describe;
use crate::db::DbError;
use crate::db::fair::FairQueue;

/// A pool of connections for reading.
#[derive(Clone, Debug)]
pub(super) struct Readers {
    idle: Arc<Mutex<Vec<Connection>>>,
    queue: FairQueue,
}

impl Readers {
    pub(super) fn new(connections: Vec<Connection>, each: usize) -> Self {
        let queue = FairQueue::new(connections.len(), each);
        Readers { idle: Arc::new(Mutex::new(connections)), queue }
    }

    /// Reads in a user's turn.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        lane: &str,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, DbError> {
        let slot = self.queue.enter(lane).await;
        let idle = Arc::clone(&self.idle);
        let read = tokio::task::spawn_blocking(move || {
            let taken = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(connection) = taken else {
                return (Err(DbError::Failed("no reader is free".to_owned())), slot);
            };
            // One snapshot for all statements of a query: what is written between two of them is not half seen.
            let answer = connection.unchecked_transaction().and_then(|snapshot| query(&snapshot));
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            (answer.map_err(|error| describe(&error)), slot)
        });
        // The slot comes back with the answer. It is kept until the caller runs again: a user whose answers pile up must not
        // begin more reads meanwhile. If the caller is gone, it is free when the read is done.
        let (answer, _slot) = read.await.map_err(|error| DbError::Failed(error.to_string()))?;
        answer
    }
}
