//! Group commit: threads of one process that write the same database share a transaction, and one sync of the disk serves all
//! of them.
//!
//! The threads share one connection. Each runs its own change on it, in a savepoint, and then either hands the open transaction
//! on to a thread that waits, or commits it if none does. A thread returns when the transaction with its change is on the disk.
//! A single writer commits at once and waits for no other. The directory's lock is held for the whole transaction, so that
//! processes take turns by batches.
//!
//! Not for: single calls of a command line, which would only open one more connection.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use rusqlite::{Connection, ffi};

use crate::error::{Error, Result};
use crate::files::{LockedDir, Locker};
use crate::store::answers;

/// Changes of one transaction, at most: so that the first of them is acknowledged in time.
const MOST: usize = 256;

/// Groups of this process, by the device and inode of the database.
type Groups = HashMap<(u64, u64), Weak<CommitGroup>>;

static GROUPS: Mutex<Option<Groups>> = Mutex::new(None);

/// The writers of one database in this process.
#[derive(Debug)]
pub(super) struct CommitGroup {
    /// Threads that are about to run a change in the open transaction, or in the next one.
    coming: AtomicUsize,
    writer: Mutex<Writer>,
}

#[derive(Debug)]
struct Writer {
    connection: Connection,
    open: Option<Transaction>,
}

/// The open transaction.
#[derive(Debug)]
struct Transaction {
    _alone: LockedDir,
    changes: usize,
    outcome: Arc<Outcome>,
}

/// Outcome of a transaction, once it has one.
#[derive(Debug, Default)]
struct Outcome {
    commit: Mutex<Option<std::result::Result<(), CommitFailure>>>,
    known: Condvar,
}

/// Error of SQLite, for each thread of a group.
type CommitFailure = (ffi::Error, Option<String>);

/// Failure of a change or of its transaction.
pub(super) enum GroupError {
    /// The directory's lock was not acquired, or the answers beside the database were not discarded.
    Lock(Error),
    /// SQLite refused.
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for GroupError {
    fn from(error: rusqlite::Error) -> Self {
        GroupError::Sqlite(error)
    }
}

impl CommitGroup {
    /// The group of a database. The first member opens its connection.
    pub(super) fn join(path: &Path, open: impl FnOnce() -> Result<Connection>) -> Result<Arc<Self>> {
        let file = path.metadata().map_err(|error| Error::io("read", path, error))?;
        // Not the path: a file that was replaced is another database.
        let key = (file.dev(), file.ino());
        let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        let groups = groups.get_or_insert_default();
        if let Some(group) = groups.get(&key).and_then(Weak::upgrade) {
            return Ok(group);
        }
        groups.retain(|_, group| group.strong_count() > 0);
        let writer = Mutex::new(Writer { connection: open()?, open: None });
        let group = Arc::new(CommitGroup { coming: AtomicUsize::new(0), writer });
        groups.insert(key, Arc::downgrade(&group));
        Ok(group)
    }

    /// Runs a change, and returns when it is on the disk.
    pub(super) fn write<T>(
        &self,
        (path, locker): (&Path, &Locker),
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> std::result::Result<T, GroupError> {
        self.coming.fetch_add(1, Ordering::SeqCst);
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.coming.fetch_sub(1, Ordering::SeqCst);
        let begun = writer.begin(path, locker);
        let result = match begun {
            // A panic must not leave the transaction of the others open.
            Ok(()) => catch_unwind(AssertUnwindSafe(|| writer.run(change))),
            Err(error) => Ok(Err(error)),
        };
        let outcome = self.hand_on(writer);
        let result = result.unwrap_or_else(|panic| resume_unwind(panic))?;
        if let Some(outcome) = outcome {
            outcome.wait().map_err(|(error, text)| rusqlite::Error::SqliteFailure(error, text))?;
        }
        Ok(result)
    }

    /// Commits the open transaction, unless another thread comes that will.
    fn hand_on(&self, mut writer: MutexGuard<'_, Writer>) -> Option<Arc<Outcome>> {
        let transaction = writer.open.as_ref()?;
        let outcome = Arc::clone(&transaction.outcome);
        if self.coming.load(Ordering::SeqCst) == 0 || transaction.changes >= MOST {
            writer.commit();
        }
        Some(outcome)
    }
}

impl Writer {
    /// Begins a transaction, unless one is open.
    fn begin(&mut self, path: &Path, locker: &Locker) -> std::result::Result<(), GroupError> {
        if self.open.is_some() {
            return Ok(());
        }
        let (alone, name) = LockedDir::of_file(locker, path, 0o700).map_err(GroupError::Lock)?;
        // Before the commit, so that no reader takes the old answers for current.
        answers::discard(&alone, &name).map_err(GroupError::Lock)?;
        // Immediate: a deferred transaction that reads first can fail to upgrade, and would have to be retried.
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.open = Some(Transaction { _alone: alone, changes: 0, outcome: Arc::default() });
        Ok(())
    }

    /// Runs a change, whole or not at all.
    fn run<T>(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> std::result::Result<T, GroupError> {
        let connection = &self.connection;
        if let Some(transaction) = &mut self.open {
            transaction.changes += 1;
        }
        connection.prepare_cached("SAVEPOINT change")?.execute([])?;
        // Dropped by a panic too.
        let mut savepoint = Savepoint { connection, is_done: false };
        let result = change(connection)
            .and_then(|result| connection.prepare_cached("RELEASE change")?.execute([]).map(|_| result));
        savepoint.is_done = result.is_ok();
        drop(savepoint);
        if let Err(error) = &result
            // A full disk, for example, makes SQLite roll back all of it.
            && self.connection.is_autocommit()
            && let Some(transaction) = self.open.take()
        {
            transaction.outcome.set(Err(failure(error)));
        }
        Ok(result?)
    }

    fn commit(&mut self) {
        let Some(transaction) = self.open.take() else { return };
        let committed = self.connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        if !self.connection.is_autocommit() {
            // A failed commit leaves the transaction open, and the next one could not begin.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        transaction.outcome.set(committed.map(drop).map_err(|error| failure(&error)));
    }
}

fn failure(error: &rusqlite::Error) -> CommitFailure {
    match error {
        rusqlite::Error::SqliteFailure(error, text) => (*error, text.clone()),
        other => (ffi::Error::new(ffi::SQLITE_ERROR), Some(other.to_string())),
    }
}

/// Savepoint that is rolled back unless it is done.
struct Savepoint<'a> {
    connection: &'a Connection,
    is_done: bool,
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            // Fails where SQLite has rolled back the whole transaction already: then the commit fails too.
            let _ = self.connection.execute_batch("ROLLBACK TO change; RELEASE change");
        }
    }
}

impl Outcome {
    fn set(&self, commit: std::result::Result<(), CommitFailure>) {
        *self.commit.lock().unwrap_or_else(PoisonError::into_inner) = Some(commit);
        self.known.notify_all();
    }

    fn wait(&self) -> std::result::Result<(), CommitFailure> {
        let commit = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.known.wait_while(commit, |commit| commit.is_none());
        known.unwrap_or_else(PoisonError::into_inner).clone().unwrap_or(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use rusqlite::Connection;

    use super::CommitGroup;
    use crate::files::Locker;

    fn database(dir: &std::path::Path) -> std::path::PathBuf {
        let path = dir.join("test.db");
        let connection = Connection::open(&path).unwrap();
        connection
            .execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE item (thread INTEGER, number INTEGER)")
            .unwrap();
        path
    }

    fn locker() -> Locker {
        Locker::new(Duration::from_secs(60))
    }

    fn join(path: &std::path::Path) -> std::sync::Arc<CommitGroup> {
        CommitGroup::join(path, || Ok(Connection::open(path).unwrap())).unwrap()
    }

    fn insert(connection: &Connection, thread: usize, number: usize) -> rusqlite::Result<usize> {
        connection
            .prepare_cached("INSERT INTO item (thread, number) VALUES (?1, ?2)")?
            .execute([i64::try_from(thread).unwrap(), i64::try_from(number).unwrap()])
    }

    #[test]
    fn acknowledged_changes_are_visible_and_failed_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = database(dir.path());
        let (kept, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (path, kept, failed) = (&path, &kept, &failed);
                scope.spawn(move || {
                    let (group, reader) = (join(path), Connection::open(path).unwrap());
                    for number in 0..50 {
                        let written = group.write((path, &locker()), |connection| {
                            insert(connection, thread, number)?;
                            // Every fifth change fails half-way.
                            if number % 5 == 4 {
                                return Err(rusqlite::Error::InvalidQuery);
                            }
                            Ok(())
                        });
                        let count: i64 = reader
                            .query_row(
                                "SELECT count(*) FROM item WHERE thread = ?1 AND number = ?2",
                                [thread, number].map(|value| i64::try_from(value).unwrap()),
                                |row| row.get(0),
                            )
                            .unwrap();
                        assert_eq!(count == 1, written.is_ok());
                        if written.is_ok() { kept } else { failed }.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        let all: i64 = Connection::open(&path)
            .unwrap()
            .query_row("SELECT count(*) FROM item", [], |row| row.get(0))
            .unwrap();
        assert_eq!((usize::try_from(all).unwrap(), failed.into_inner()), (kept.into_inner(), 80));
    }

    #[test]
    fn panic_in_a_change_rolls_back_only_that_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = database(dir.path());
        let group = join(&path);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            group.write((&path, &locker()), |connection| {
                insert(connection, 0, 0)?;
                std::panic::resume_unwind(Box::new("planned"));
                #[expect(unreachable_code, reason = "gives the closure its type")]
                Ok(())
            })
        }));
        assert!(panicked.is_err());
        assert!(group.write((&path, &locker()), |connection| insert(connection, 0, 1)).is_ok());
        let numbers: i64 = Connection::open(&path)
            .unwrap()
            .query_row("SELECT sum(number) FROM item", [], |row| row.get(0))
            .unwrap();
        assert_eq!(numbers, 1);
    }

    #[test]
    fn rolled_back_transaction_fails_every_change_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = database(dir.path());
        let group = join(&path);
        // The second change makes SQLite roll back all; the first is in the same transaction because the second is coming.
        let barrier = std::sync::Barrier::new(2);
        let (first, second) = std::thread::scope(|scope| {
            let (group, path, barrier) = (&group, &path, &barrier);
            let first = scope.spawn(move || {
                group.write((path, &locker()), |connection| {
                    barrier.wait();
                    while group.coming.load(Ordering::SeqCst) == 0 {
                        std::thread::yield_now();
                    }
                    insert(connection, 1, 1)
                })
            });
            let second = scope.spawn(move || {
                barrier.wait();
                group.write((path, &locker()), |connection| {
                    connection.execute_batch("ROLLBACK")?;
                    Err::<(), _>(rusqlite::Error::InvalidQuery)
                })
            });
            (first.join().unwrap().is_ok(), second.join().unwrap().is_ok())
        });
        assert_eq!((first, second), (false, false));
        let count: i64 = Connection::open(&path)
            .unwrap()
            .query_row("SELECT count(*) FROM item", [], |row| row.get(0))
            .unwrap();
        assert_eq!(count, 0);
        assert!(group.write((&path, &locker()), |connection| insert(connection, 1, 2)).is_ok());
    }
}
