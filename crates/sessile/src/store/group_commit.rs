//! Group commit: threads of one process that write the same database share a transaction, and one sync of the disk serves all
//! of them.
//!
//! The threads share one connection. A change that owns its data is queued, and the thread that has the connection carries out all
//! that are queued (`CommitGroup::write_queued`). A change that borrows is run by its own thread, which then hands the open transaction
//! on to a thread that waits for the connection, or commits it if none does (`CommitGroup::write`). Each change has a savepoint of its
//! own. A thread returns when the transaction with its change is on the disk. The directory's lock is held for the whole transaction,
//! so that processes take turns by batches.
//!
//! Not for: single calls of a command line, which would only open one more connection.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ffi};

use crate::error::{Error, Result};
use crate::files::{LockedDir, Locker};
use crate::store::answers;

/// Changes of one transaction, at most: so that the first of them is acknowledged in time.
const MOST: usize = 256;

/// Time for which a transaction waits for the threads of the last one. A sync takes several times as long, and the first of these
/// threads would otherwise have one for itself.
const GATHERING: Duration = Duration::from_micros(60);

/// Groups of this process, by the device and inode of the database.
type Groups = HashMap<(u64, u64), Weak<CommitGroup>>;

static GROUPS: Mutex<Option<Groups>> = Mutex::new(None);

/// The writers of one database in this process.
#[derive(Debug)]
pub(super) struct CommitGroup {
    /// Threads that are about to run a change in the open transaction, or in the next one.
    coming: AtomicUsize,
    queue: Mutex<VecDeque<QueuedChange>>,
    /// Queued changes of the last transaction.
    companions: AtomicUsize,
    writer: Mutex<Writer>,
}

/// Change that waits for the thread that has the connection.
struct QueuedChange {
    /// Runs the change, and keeps its result for its owner.
    run: Box<dyn FnOnce(&mut Writer) + Send>,
    owner: Thread,
}

impl fmt::Debug for QueuedChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuedChange").field("owner", &self.owner.id()).finish_non_exhaustive()
    }
}

/// Result of a queued change in its transaction.
type QueuedResult<T> = (std::thread::Result<rusqlite::Result<T>>, Option<Arc<Outcome>>);

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
    /// Owners of the queued changes in it.
    owners: Vec<Thread>,
}

/// Outcome of a transaction, once it has one.
// Not a condition variable: the threads that it wakes would queue for its mutex.
type Outcome = OnceLock<std::result::Result<(), CommitFailure>>;

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
        let group = Arc::new(CommitGroup {
            coming: AtomicUsize::new(0),
            queue: Mutex::default(),
            companions: AtomicUsize::new(0),
            writer,
        });
        groups.insert(key, Arc::downgrade(&group));
        Ok(group)
    }

    /// Queues a change for the thread that has the connection, and returns when it is on the disk.
    pub(super) fn write_queued<T: Send + 'static>(
        &self,
        (path, locker): (&Path, &Locker),
        change: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> std::result::Result<T, GroupError> {
        let result: Arc<Mutex<Option<QueuedResult<T>>>> = Arc::default();
        let kept = Arc::clone(&result);
        let run = Box::new(move |writer: &mut Writer| {
            // A panic belongs to the owner, not to the thread that carries out its change.
            let ran = catch_unwind(AssertUnwindSafe(|| writer.run(change)));
            let outcome = writer.open.as_ref().map(|transaction| Arc::clone(&transaction.outcome));
            *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((ran, outcome));
        });
        let queued = QueuedChange { run, owner: std::thread::current() };
        self.queue().push_back(queued);
        let (ran, outcome) = loop {
            let is_over = |kept: &mut QueuedResult<T>| {
                kept.0.as_ref().map_or(true, Result::is_err)
                    || kept.1.as_ref().is_none_or(|outcome| outcome.get().is_some())
            };
            if let Some(over) =
                result.lock().unwrap_or_else(PoisonError::into_inner).take_if(|kept| is_over(kept))
            {
                break over;
            }
            match self.writer.try_lock() {
                Ok(writer) => self.carry_out(writer, (path, locker))?,
                Err(TryLockError::Poisoned(poisoned)) => {
                    self.carry_out(poisoned.into_inner(), (path, locker))?;
                }
                // The thread that holds the connection checks the queue after releasing it, and wakes an owner.
                Err(TryLockError::WouldBlock) => std::thread::park(),
            }
        };
        let result = ran.unwrap_or_else(|panic| resume_unwind(panic))?;
        wait_for(outcome.as_deref())?;
        Ok(result)
    }

    /// Carries out the queued changes, and commits them unless a waiting thread will.
    fn carry_out(
        &self,
        mut writer: MutexGuard<'_, Writer>,
        place: (&Path, &Locker),
    ) -> std::result::Result<(), GroupError> {
        let mut begun = Ok(());
        // Empty if another thread has carried out the change of this one meanwhile.
        if !self.queue().is_empty() {
            self.gather();
            begun = writer.begin(place.0, place.1);
            self.run_queued(&mut writer);
        }
        // The error belongs to the calling thread; the owners of the other changes try again themselves.
        let is_failed = begun.is_err() && self.forget_own();
        self.hand_on(writer);
        if is_failed { begun } else { Ok(()) }
    }

    /// Gives the threads of the last transaction a moment to queue their next changes.
    fn gather(&self) {
        let expected = self.companions.load(Ordering::Relaxed);
        let begun = Instant::now();
        while self.queue().len() < expected && begun.elapsed() < GATHERING {
            std::thread::yield_now();
        }
    }

    /// Runs the queued changes in the open transaction, also those that are queued meanwhile.
    fn run_queued(&self, writer: &mut Writer) {
        while writer.open.as_ref().is_some_and(|transaction| transaction.changes < MOST) {
            let Some(QueuedChange { run, owner }) = self.queue().pop_front() else { return };
            run(writer);
            match &mut writer.open {
                Some(transaction) => transaction.owners.push(owner),
                // SQLite has rolled all of it back. The owner has its error, and the next change begins again.
                None => owner.unpark(),
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<QueuedChange>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the change of the calling thread from the queue, if it is still there.
    fn forget_own(&self) -> bool {
        let own = std::thread::current().id();
        let mut queue = self.queue();
        let before = queue.len();
        queue.retain(|queued| queued.owner.id() != own);
        queue.len() < before
    }

    /// Wakes the owner of the next queued change.
    fn wake_next(&self) {
        if let Some(next) = self.queue().front() {
            next.owner.unpark();
        }
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
            Ok(()) => catch_unwind(AssertUnwindSafe(|| writer.run(change).map_err(GroupError::from))),
            Err(error) => Ok(Err(error)),
        };
        if writer.open.is_some() {
            self.run_queued(&mut writer);
        }
        let outcome = self.hand_on(writer);
        let result = result.unwrap_or_else(|panic| resume_unwind(panic))?;
        wait_for(outcome.as_deref())?;
        Ok(result)
    }

    /// Commits the open transaction, unless another thread comes that will.
    fn hand_on(&self, mut writer: MutexGuard<'_, Writer>) -> Option<Arc<Outcome>> {
        let outcome = writer.open.as_ref().map(|transaction| {
            let is_full = transaction.changes >= MOST;
            (Arc::clone(&transaction.outcome), is_full || self.coming.load(Ordering::SeqCst) == 0)
        });
        if let Some((_, true)) = outcome {
            self.companions.store(writer.commit(), Ordering::Relaxed);
        }
        drop(writer);
        // After the connection is free: a change that was queued before has no other thread to look at it.
        self.wake_next();
        outcome.map(|(outcome, _)| outcome)
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
        self.open =
            Some(Transaction { _alone: alone, changes: 0, outcome: Arc::default(), owners: Vec::new() });
        Ok(())
    }

    /// Runs a change, whole or not at all.
    fn run<T>(&mut self, change: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
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
            transaction.end(Err(failure(error)));
        }
        result
    }

    /// Commits the open transaction. Returns how many queued changes it had.
    fn commit(&mut self) -> usize {
        let Some(transaction) = self.open.take() else { return 0 };
        let queued = transaction.owners.len();
        let committed = self.connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        if !self.connection.is_autocommit() {
            // A failed commit leaves the transaction open, and the next one could not begin.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        transaction.end(committed.map(drop).map_err(|error| failure(&error)));
        queued
    }
}

impl Transaction {
    /// Tells the threads with changes in it how it ended.
    fn end(self, outcome: std::result::Result<(), CommitFailure>) {
        // A transaction ends once.
        let _ = self.outcome.set(outcome);
        self.owners.iter().for_each(Thread::unpark);
    }
}

fn wait_for(outcome: Option<&Outcome>) -> rusqlite::Result<()> {
    let committed = outcome.map_or(Ok(()), |outcome| outcome.wait().clone());
    committed.map_err(|(error, text)| rusqlite::Error::SqliteFailure(error, text))
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
                        let change = move |connection: &Connection| {
                            insert(connection, thread, number)?;
                            // Every fifth change fails half-way.
                            if number % 5 == 4 {
                                return Err(rusqlite::Error::InvalidQuery);
                            }
                            Ok(())
                        };
                        // Both kinds of changes share transactions.
                        let written = if (thread + number / 3) % 2 == 0 {
                            group.write_queued((path, &locker()), change)
                        } else {
                            group.write((path, &locker()), change)
                        };
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
    fn panic_in_a_queued_change_reaches_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = database(dir.path());
        let group = join(&path);
        let outcomes: Vec<bool> = std::thread::scope(|scope| {
            let (group, path) = (&group, &path);
            let write = |number: usize| {
                move || {
                    let change = move |connection: &Connection| {
                        insert(connection, 0, number)?;
                        if number.is_multiple_of(2) {
                            std::panic::resume_unwind(Box::new("planned"));
                        }
                        Ok(())
                    };
                    group.write_queued((path, &locker()), change).is_ok()
                }
            };
            let threads: Vec<_> = (0..8).map(|number| scope.spawn(write(number))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(false)).collect()
        });
        assert_eq!(outcomes, [false, true, false, true, false, true, false, true]);
        let numbers: i64 = Connection::open(&path)
            .unwrap()
            .query_row("SELECT sum(number) FROM item", [], |row| row.get(0))
            .unwrap();
        assert_eq!(numbers, 1 + 3 + 5 + 7);
    }

    #[test]
    fn queued_changes_fail_while_the_directory_is_locked() {
        let dir = tempfile::tempdir().unwrap();
        let path = database(dir.path());
        let group = join(&path);
        let taken = crate::files::LockedDir::lock(&locker(), dir.path(), 0o700).unwrap();
        let write = |number: usize, timeout: Duration| {
            let locker = Locker::new(timeout);
            group.write_queued((&path, &locker), move |connection| insert(connection, 1, number))
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|number| scope.spawn(move || write(number, Duration::from_millis(20)).is_err()))
                .collect();
            assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
        });
        drop(taken);
        assert!(write(9, Duration::from_secs(60)).is_ok());
        let count: i64 = Connection::open(&path)
            .unwrap()
            .query_row("SELECT count(*) FROM item", [], |row| row.get(0))
            .unwrap();
        assert_eq!(count, 1, "a change that failed is not made later");
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
