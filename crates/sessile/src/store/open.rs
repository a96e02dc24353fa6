//! Opening the database, and making sense of its errors.

use std::cell::OnceCell;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::code::Code;
use crate::error::{Error, FileError, FileLockHolder, Result, StoreError};
use crate::files::{
    LockedDir, Locker, MARK, NewFile, Wait, find_writer, make_file, network_file_system, require_file,
};
use crate::store::answers::{self, Answers};
use crate::store::group_commit::{CommitGroup, GroupError};
use crate::store::{check, migrate};

/// Time that SQLite waits while it opens a database, before the holders of its locks are looked up.
// As long as any lock is waited for in silence.
const SLICE: Duration = Duration::from_millis(300);

/// A database: open, or opened by the first question that has no answer in the file beside it.
#[derive(Debug)]
pub(crate) struct Store {
    pub(super) path: PathBuf,
    connection: OnceCell<Connection>,
    /// Answers that need no connection; none in a store that is opened for writing.
    pub(super) answers: Option<Answers>,
    /// Lock wait policy.
    pub(super) locker: Locker,
    /// Whether the file has the mark of state beside a `--config` file.
    is_marked: bool,
    /// Writers of this process that share transactions.
    group: Option<Arc<CommitGroup>>,
}

impl Store {
    /// Opens a store for reading; `None` if it does not exist.
    pub(crate) fn open_for_reading(path: &Path, locker: &Locker) -> Result<Option<Self>> {
        let Some(found) = Self::find(path)? else { return Ok(None) };
        let is_marked = found.mode() & MARK != 0;
        // A connection is used by one thread only, so SQLite's mutexes would only cost time.
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut store = Self::connect_marked(path, flags, locker, is_marked)?;
        let version = match store.version() {
            // A read-only directory cannot hold the shared-memory file of the write-ahead log. Without a writer the
            // database does not change, and SQLite can read it as immutable.
            Err(error) if is_at_rest(path, &error) => {
                let uri = format!("file:{}?immutable=1", uri_path(path));
                // Only a URI can ask for `immutable`.
                store = Self::connect(Path::new(&uri), flags | OpenFlags::SQLITE_OPEN_URI, locker)?;
                store.path = path.to_owned();
                store.version()?
            }
            // A writer was killed half-way. What it began can only be taken back by one who may write.
            Err(Error::File(FileError::Io { source, .. }))
                if source.kind() == ErrorKind::PermissionDenied =>
            {
                drop(store);
                return Self::open_for_writing(path, locker).map(Some);
            }
            other => other?,
        };
        match version {
            migrate::VERSION => Ok(Some(store)),
            found if found > migrate::VERSION => Err(store.too_new(found)),
            _ => {
                // An older schema: readers know the newest one only, so the first of them migrates.
                drop(store);
                Self::open_for_writing(path, locker).map(Some)
            }
        }
    }

    /// Metadata of a database that may be read; `None` if it does not exist.
    pub(super) fn find(path: &Path) -> Result<Option<Metadata>> {
        let found = match path.metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found.map_err(|error| Error::io("read", path, error))?,
        };
        // SQLite would wait for a pipe and take a directory for a missing file.
        require_file(path, &found)?;
        crate::files::check_private(path, &found)?;
        // A process was killed between making the file and filling it: nothing is in it yet.
        Ok(Some(found).filter(|found| found.len() > 0))
    }

    /// A database that no connection is open to yet.
    pub(super) fn unopened(path: &Path, locker: &Locker) -> Self {
        Store {
            path: path.to_owned(),
            connection: OnceCell::new(),
            answers: None,
            locker: locker.clone(),
            is_marked: false,
            group: None,
        }
    }

    /// Connection, opened for reading on first use.
    pub(super) fn connection(&self) -> Result<&Connection> {
        if let Some(connection) = self.connection.get() {
            return Ok(connection);
        }
        let missing = || Error::io("read", &self.path, ErrorKind::NotFound.into());
        let opened = Self::open_for_reading(&self.path, &self.locker)?.ok_or_else(missing)?;
        let connection = opened.into_connection()?;
        // Before the first answer, so that a commit after it is noticed.
        if let Some(answers) = &self.answers {
            answers.begin(&connection);
        }
        Ok(self.connection.get_or_init(|| connection))
    }

    /// The connection, if one was opened.
    pub(super) fn opened(&self) -> Option<&Connection> {
        self.connection.get()
    }

    /// The same for changes.
    pub(super) fn connection_mut(&mut self) -> Result<&mut Connection> {
        self.connection()?;
        let missing = || Error::io("write", &self.path, ErrorKind::NotFound.into());
        self.connection.get_mut().ok_or_else(missing)
    }

    /// Opens it for writing, and makes or migrates it first where needed.
    pub(crate) fn open_for_writing(path: &Path, locker: &Locker) -> Result<Self> {
        let dir = path.parent().unwrap_or(Path::new("."));
        // The write-ahead log needs shared memory, which network file systems do not provide.
        if let Some(kind) = network_file_system(dir) {
            return Err(StoreError::NetworkFileSystem { path: dir.to_owned(), kind }.into());
        }
        if let Ok(found) = path.metadata() {
            require_file(path, &found)?;
            crate::files::check_private(path, &found)?;
        }
        // A write-ahead log that another user wrote would be applied to the database.
        crate::files::check_private_beside(path)?;
        // SQLite would only say that it cannot open something.
        match rustix::fs::access(dir, rustix::fs::Access::WRITE_OK) {
            // The directory is made below, with its mode.
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(refused) => return Err(Error::io("write", path, refused.into())),
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if let Some(current) = path.metadata().ok().filter(|found| found.len() > 0) {
            let store = Self::connect_marked(path, flags, locker, current.mode() & MARK != 0)?;
            match store.version()? {
                migrate::VERSION => return store.ready_for_writing(),
                found if found > migrate::VERSION => return Err(store.too_new(found)),
                _ => {}
            }
        }
        // Making and migrating is done by one process at a time; the others find it done.
        let alone = LockedDir::lock(locker, dir, 0o700)?;
        Self::make(path, locker, &alone)
    }

    /// Makes the database, or migrates it. The caller holds the lock of its directory.
    pub(super) fn make(path: &Path, locker: &Locker, dir: &LockedDir) -> Result<Self> {
        if dir.is_marked() {
            Self::publish_marked(path, locker)?;
        } else {
            create_private(path)?;
        }
        Self::migrate(path, locker, dir.is_marked())
    }

    /// Creates a database with its mark under a temporary name, so that no process sees it, or SQLite's files beside
    /// it, without the mark. An existing database stays.
    fn publish_marked(path: &Path, locker: &Locker) -> Result<()> {
        if path.symlink_metadata().is_ok() {
            return Ok(());
        }
        let new = NewFile::beside(path)?;
        // Closed before it is published: SQLite's files beside it have the temporary name.
        drop(Self::migrate(new.path(), locker, false)?);
        new.mark()?;
        // Before the database has its name: once it is visible, any process may open it and create an
        // unmarked log.
        make_log(path)?;
        new.publish(path).map(drop)
    }

    fn migrate(path: &Path, locker: &Locker, is_marked: bool) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut store = Self::connect_marked(path, flags, locker, is_marked)?.ready_for_writing()?;
        // Read again under the lock: another process may have migrated meanwhile.
        let found = store.version()?;
        if found > migrate::VERSION {
            return Err(store.too_new(found));
        }
        if found < migrate::VERSION {
            // The caller holds the directory's lock. Answers name the version of the schema.
            let migrated = migrate::run(store.connection_mut()?, found);
            migrated.map_err(|error| store.error(&error))?;
        }
        Ok(store)
    }

    /// Lets the changes of this store share transactions with those of other threads of this process.
    pub(crate) fn join_group(mut self) -> Result<Self> {
        let open = || Self::open_for_writing(&self.path, &self.locker)?.into_connection();
        self.group = Some(CommitGroup::join(&self.path, open)?);
        Ok(self)
    }

    /// The database itself, for a caller that writes a lot, or keeps more in a file of this schema.
    pub(crate) fn into_connection(self) -> Result<Connection> {
        // The changed pages of a savepoint stay in small pieces of memory. For a temporary file that is not written yet, SQLite takes
        // 64 KiB at once, which the allocator gets from the system and returns to it at every change.
        let relaxed = self.connection()?.pragma_update(None, "temp_store", "MEMORY");
        relaxed.map_err(|error| self.error(&error))?;
        let Store { path, connection, .. } = self;
        connection.into_inner().ok_or_else(|| Error::io("read", path, ErrorKind::NotFound.into()))
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Problems of the file, its text or its numbers; empty if it is sound.
    pub(crate) fn integrity_problems(&self) -> Result<Vec<String>> {
        self.read(|connection| {
            // The lines of the check have names of the schema in them.
            if let Some(problem) = check::invalid_schema(connection)? {
                return Ok(vec![problem]);
            }
            let mut statement = connection.prepare("PRAGMA quick_check(20)")?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            let lines = lines.collect::<rusqlite::Result<Vec<_>>>()?;
            let problems: Vec<String> = lines.into_iter().filter(|line| line != "ok").collect();
            // Rows of a damaged file cannot be relied on.
            if !problems.is_empty() {
                return Ok(problems);
            }
            let mut problems: Vec<String> = check::truncation(connection, &self.path)?.into_iter().collect();
            problems.extend(check::invalid_rows(connection)?);
            Ok(problems)
        })
    }

    /// The error of a row that cannot be read.
    pub(crate) fn damaged(&self, detail: String) -> Error {
        StoreError::Corrupt { path: self.path.clone(), detail }.into()
    }

    /// Runs a reading query.
    pub(super) fn read<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        query(self.connection()?).map_err(|error| self.error(&error))
    }

    /// The same as `write` for a change that owns its data: another thread of this process may run it.
    pub(super) fn write_owned<T: Send + 'static>(
        &mut self,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let Some(group) = &self.group else { return self.write(change) };
        let written = group.write_queued((&self.path, &self.locker), change);
        written.map_err(|error| self.group_error(error))
    }

    fn group_error(&self, error: GroupError) -> Error {
        match error {
            GroupError::Lock(error) => error,
            GroupError::Sqlite(error) => self.error(&error),
        }
    }

    /// Runs a change as one transaction. SQLite would let writers sleep and retry, and could starve one of them. The
    /// directory's lock queues them and knows its holder.
    pub(super) fn write<T>(&mut self, change: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        if let Some(group) = &self.group {
            let written = group.write((&self.path, &self.locker), change);
            return written.map_err(|error| self.group_error(error));
        }
        let (alone, name) = LockedDir::of_file(&self.locker, &self.path, 0o700)?;
        let connection = self.connection_mut()?;
        // Before the commit, so that no reader takes the old answers for current.
        answers::discard(&alone, &name)?;
        let outcome = run(connection, change);
        outcome.map_err(|error| self.error(&error))
    }

    /// The same for a change that no kept answer depends on, but those whose question or answer contains `subject`.
    pub(super) fn write_keeping_answers<T>(
        &mut self,
        subject: &str,
        change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let (alone, name) = LockedDir::of_file(&self.locker, &self.path, 0o700)?;
        let path = self.path.clone();
        let connection = self.connection_mut()?;
        let kept = answers::take(&alone, &path, &name, subject)?;
        let changed = run(connection, change);
        // Not after a failure: whether the change was made is not certain then.
        if changed.is_ok() {
            answers::put_back(&alone, &path, &name, &kept);
        }
        changed.map_err(|error| self.error(&error))
    }

    /// Does not sync the commits of this connection from now on: a power cut undoes the last ones, and damages nothing. For
    /// rows that are worth nothing after one.
    pub(crate) fn without_sync(self) -> Result<Self> {
        let connection = self.connection()?;
        let relaxed = connection
            // The log is written back every few commits: whoever opens it next reads all of it.
            .execute_batch("PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=64")
            // Writing it back needs two syncs, which closing would do each time.
            .and_then(|()| connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
        relaxed.map_err(|error| self.error(&error))?;
        Ok(self)
    }

    /// Runs a change that brings its own transaction. The caller has the directory's lock.
    pub(super) fn change<T>(
        &mut self,
        change: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let outcome = change(self.connection_mut()?);
        outcome.map_err(|error| self.error(&error))
    }

    /// Connects to a database. The write-ahead log of a marked one is created here, with the mark, and stays: SQLite would
    /// create and remove it again and again, without the mark.
    pub(super) fn connect_marked(
        path: &Path,
        flags: OpenFlags,
        locker: &Locker,
        is_marked: bool,
    ) -> Result<Self> {
        if !is_marked {
            return Self::connect(path, flags, locker);
        }
        make_log(path)?;
        let store = Self::connect(path, flags, locker)?;
        let kept = store.connection()?.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        kept.map_err(|error| store.error(&error))?;
        Ok(Store { is_marked, ..store })
    }

    /// Whether the database has the mark of state beside a `--config` file.
    pub(crate) fn is_marked(&self) -> bool {
        self.is_marked
    }

    pub(super) fn connect(path: &Path, flags: OpenFlags, locker: &Locker) -> Result<Self> {
        let patience = locker.timeout();
        let connect = || {
            let connection = Connection::open_with_flags(path, flags)?;
            // Its own locks are held for moments only, but among a hundred processes by others again and again.
            connection.busy_timeout(locker.longest())?;
            // Otherwise SQLite prepares a statement again whenever a value is bound that its plan might depend on, at every run.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            tracing::debug!(path = %path.display(), "opened store");
            Ok(connection)
        };
        match connect() {
            Ok(connection) => {
                Ok(Store { connection: OnceCell::from(connection), ..Self::unopened(path, locker) })
            }
            Err(error) => Err(describe(path, &error, patience)),
        }
    }

    /// Runs the first query of a connection, which may have to wait for a recovery. A process that is stopped during
    /// a recovery never releases SQLite's locks, so the error names the holder.
    fn first_read<T>(&self, query: impl Fn(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let mut wait = Wait::new(&self.locker, &self.path);
        // SQLite cannot tell who holds its locks; between two short waits `/proc/locks` can.
        let connection = self.connection()?;
        let slice = connection.busy_timeout(self.locker.timeout().min(SLICE));
        slice.map_err(|error| self.error(&error))?;
        let read = loop {
            match query(connection) {
                Err(error) if is_busy(&error) => {
                    let holder = holder_of(&self.path);
                    if !wait.goes_on_unseen(holder.clone()) {
                        return Err(FileError::Locked {
                            path: self.path.clone(),
                            holder,
                            waited: wait.waited(),
                        }
                        .into());
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                read => break read,
            }
        };
        // Only the first query can meet a recovery; later ones wait for short transactions of others.
        let longest = self.locker.longest();
        read.and_then(|read| connection.busy_timeout(longest).map(|()| read))
            .map_err(|error| self.error(&error))
    }

    fn ready_for_writing(self) -> Result<Self> {
        let prepared = self
            .connection()?
            // FULL syncs the log at every commit: with NORMAL a power cut could undo an acknowledged change.
            .execute_batch("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON");
        prepared.map_err(|error| self.error(&error))?;
        Ok(self)
    }

    fn version(&self) -> Result<i64> {
        self.first_read(|connection| connection.query_row("PRAGMA user_version", [], |row| row.get(0)))
    }

    fn too_new(&self, found: i64) -> Error {
        Error::Store(StoreError::TooNew { path: self.path.clone(), found, known: migrate::VERSION })
    }

    fn error(&self, error: &rusqlite::Error) -> Error {
        // SQLite reports a number that cannot grow as a full disk.
        if error.sqlite_error_code() == Some(ErrorCode::DiskFull)
            && let Some(detail) = self.opened().and_then(check::exhausted_number)
        {
            return StoreError::Corrupt { path: self.path.clone(), detail }.into();
        }
        describe(&self.path, error, self.locker.timeout())
    }
}

/// Runs a change as one transaction.
fn run<T>(
    connection: &mut Connection,
    change: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    // Immediate: a deferred transaction that reads first can fail to upgrade, and would have to be retried.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let result = change(&transaction)?;
    transaction.commit()?;
    Ok(result)
}

/// The database file exists from its first moment with no permission for anyone else.
fn create_private(path: &Path) -> Result<()> {
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(_) => Ok(()),
        // Left by a killed process, empty, or made by one that was faster: the migration handles both.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(Error::io("write", path, error)),
    }
}

/// Creates the write-ahead log of a marked database, unless it exists or its directory is read-only.
fn make_log(path: &Path) -> Result<()> {
    let log = beside(path, "-wal");
    match make_file(&log) {
        Ok(_) => Ok(()),
        Err(error)
            if matches!(
                error.kind(),
                // A reader of a read-only directory needs no log: nobody can write there.
                ErrorKind::AlreadyExists | ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(Error::io("write", log, error)),
    }
}

/// Whether the database has no writer and can be read without shared memory: the shared memory cannot be created,
/// because the directory is read-only or the disk is full, and the write-ahead log is empty.
fn is_at_rest(path: &Path, error: &Error) -> bool {
    let dir = path.parent().unwrap_or(Path::new("."));
    let log = beside(path, "-wal");
    let for_nobody = match error.code() {
        Code::DiskFull => true,
        Code::Store | Code::Io => rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_err(),
        _ => false,
    };
    // With pages in the log the database file alone would be an old state.
    for_nobody && !log.metadata().is_ok_and(|found| found.len() > 0)
}

pub(super) fn describe(path: &Path, error: &rusqlite::Error, waited: Duration) -> Error {
    let (path, detail) = (path.to_owned(), error.to_string());
    let io = |kind: ErrorKind| Error::io("write", path.clone(), kind.into());
    let extended = error.sqlite_error().map(|error| error.extended_code);
    match error.sqlite_error_code() {
        // The shared memory could not grow: SQLite reports a full disk in this way.
        _ if extended == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) => io(ErrorKind::StorageFull),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::Store(StoreError::Corrupt { path, detail })
        }
        // Every table and column of the version is created with it.
        _ if check::is_missing_in_schema(&detail) => Error::Store(StoreError::Corrupt { path, detail }),
        Some(ErrorCode::DiskFull) => io(ErrorKind::StorageFull),
        Some(ErrorCode::ReadOnly) => io(ErrorKind::PermissionDenied),
        _ if is_busy(error) => Error::File(FileError::Locked { holder: holder_of(&path), path, waited }),
        // A file beside the database could not be made: that is all SQLite says.
        Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure) if has_no_space(&path) => {
            io(ErrorKind::StorageFull)
        }
        _ => Error::Store(StoreError::Failed { path, detail }),
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    use ErrorCode::{DatabaseBusy, DatabaseLocked, FileLockingProtocolFailed};
    matches!(error.sqlite_error_code(), Some(DatabaseBusy | DatabaseLocked | FileLockingProtocolFailed))
}

/// The process that holds SQLite's locks: on the shared memory while it recovers, else on the file.
fn holder_of(path: &Path) -> Option<FileLockHolder> {
    find_writer(&beside(path, "-shm")).or_else(|| find_writer(path))
}

/// Whether the file system has no free block or no free inode.
fn has_no_space(path: &Path) -> bool {
    let dir = path.parent().unwrap_or(Path::new("."));
    rustix::fs::statvfs(dir)
        // File systems without a fixed number of inodes (btrfs) report 0 of 0.
        .is_ok_and(|space| space.f_bavail == 0 || (space.f_files > 0 && space.f_favail == 0))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// A path as SQLite reads it in a URI, whatever its bytes.
fn uri_path(path: &Path) -> String {
    sessile_wire::percent::encode_path(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locker() -> Locker {
        Locker::new(Duration::from_secs(5))
    }

    #[test]
    fn reading_creates_nothing_and_new_files_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/state.db");
        assert!(Store::open_for_reading(&path, &locker()).unwrap().is_none());
        assert!(!path.parent().unwrap().exists());
        Store::open_for_writing(&path, &locker()).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().mode() & 0o777, 0o700);
        assert!(Store::open_for_reading(&path, &locker()).unwrap().is_some());
    }

    #[test]
    fn a_newer_database_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let store = Store::open_for_writing(&path, &locker()).unwrap();
        store.connection().unwrap().execute_batch("PRAGMA user_version = 9999").unwrap();
        drop(store);
        assert!(matches!(
            Store::open_for_writing(&path, &locker()),
            Err(Error::Store(StoreError::TooNew { found: 9999, .. }))
        ));
        assert!(matches!(
            Store::open_for_reading(&path, &locker()),
            Err(Error::Store(StoreError::TooNew { found: 9999, .. }))
        ));
    }

    #[test]
    fn another_writer_is_waited_for_as_long_as_the_locker_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let other = Store::open_for_writing(&path, &locker()).unwrap();
        other.connection().unwrap().execute_batch("BEGIN IMMEDIATE").unwrap();
        let begun = std::time::Instant::now();
        let mut store = Store::open_for_writing(&path, &Locker::new(Duration::ZERO)).unwrap();
        let error = store.trust(&[("a".into(), "b".into())], 0).unwrap_err();
        assert!(matches!(error, Error::File(FileError::Locked { waited: Duration::ZERO, .. })), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(4));
    }

    #[test]
    fn a_damaged_database_is_named_as_such() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        LockedDir::lock(&locker(), dir.path(), 0o700)
            .unwrap()
            .replace(Path::new("state.db"), &"no database at all ".repeat(500), 0o600)
            .unwrap();
        assert!(matches!(
            Store::open_for_reading(&path, &locker()),
            Err(Error::Store(StoreError::Corrupt { .. }))
        ));
        assert!(matches!(
            Store::open_for_writing(&path, &locker()),
            Err(Error::Store(StoreError::Corrupt { .. }))
        ));
    }

    #[test]
    fn damaged_database_of_any_name_is_moved_aside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other.db");
        LockedDir::lock(&locker(), dir.path(), 0o700)
            .unwrap()
            .replace(Path::new("other.db"), &"no database at all ".repeat(500), 0o600)
            .unwrap();
        let report = Store::recover(&path, &locker(), 7000).unwrap().unwrap();
        assert_eq!(report.kept, dir.path().join("other.db.damaged-7"));
        assert!(report.kept.exists() && Store::open_for_reading(&path, &locker()).unwrap().is_some());
    }

    #[test]
    fn the_bundled_sqlite_has_no_wal_reset_bug() {
        assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
    }
}
