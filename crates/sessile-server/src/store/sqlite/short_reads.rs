//! Short reads, on the thread of the request.
//!
//! A read of a few rows takes less time than its hand-over to another thread and back. It must not make the runtime wait, though:
//! these connections have no busy handler, so that a database that another process recovers is an answer and not a wait. Such a
//! read, and one that finds no idle connection, goes to the [`Readers`](super::readers::Readers).
//!
//! Not for: queries whose work grows with what a user has stored, such as lists of sessions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Result};

/// Idle connections for short reads.
#[derive(Clone, Debug)]
pub(super) struct ShortReads(Arc<Mutex<Vec<Connection>>>);

impl ShortReads {
    pub(super) fn new(connections: Vec<Connection>) -> Result<Self> {
        connections.iter().try_for_each(|connection| connection.busy_timeout(Duration::ZERO))?;
        Ok(ShortReads(Arc::new(Mutex::new(connections))))
    }

    /// Answer of a query of one statement, or none if it would have to wait.
    pub(super) fn try_read<T>(&self, query: impl FnOnce(&Connection) -> Result<T>) -> Option<Result<T>> {
        let connection = self.idle().pop()?;
        let answer = query(&connection);
        // One whose query panicked is dropped with the panic, and one that is still in a transaction here: its next read would
        // see an old snapshot. The reads of its share go to the other threads.
        if connection.is_autocommit() {
            self.idle().push(connection);
        }
        match &answer {
            Err(error) if would_wait(error) => None,
            _ => Some(answer),
        }
    }

    /// The same for a query of several statements, which see one snapshot.
    pub(super) fn try_read_snapshot<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T>,
    ) -> Option<Result<T>> {
        self.try_read(|connection| {
            connection.prepare_cached("BEGIN")?.execute([])?;
            let answer = query(connection);
            connection.prepare_cached("COMMIT")?.execute([])?;
            answer
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn would_wait(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed)
    )
}
