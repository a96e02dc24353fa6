//! Backups of the database, made while others write, and restoring one.
//!
//! A restore brings data back, never permissions: approvals end, trust counts only where both sides have it, the
//! current PIN stays, stopped sessions stay stopped, and live terminals keep their selections.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, MAIN_DB, OpenFlags, OptionalExtension, Transaction, TransactionBehavior};

use crate::error::{Error, FileError, Result, StoreError};
use crate::files::{LockedDir, Locker, NewFile, with_ending};
use crate::store::open::describe;
use crate::store::{Store, answers, check, migrate, recover};
use crate::text::{quoted, shown};

/// All pages at once: a copy in steps restarts at every write, and never ends with enough writers.
/// Writers do not wait for a reader.
const ALL_PAGES: std::ffi::c_int = std::ffi::c_int::MAX;

/// Number of names beside the database that are tried.
const MOST_NAMES: usize = 10_000;

/// Private copy of a backup, checked for restoring, which does not change with its file.
#[derive(Debug)]
pub struct BackupSnapshot {
    connection: Connection,
    path: PathBuf,
}

impl BackupSnapshot {
    /// Reads a backup, checks its integrity, and migrates an older one in memory. The file is not changed.
    pub fn read(path: &Path, locker: &Locker) -> Result<Self> {
        let found = path.metadata().map_err(|_| FileError::NotFound(path.to_owned()))?;
        crate::files::require_file(path, &found)?;
        let unfit = |detail: String| Error::Store(StoreError::NotACopy { path: path.to_owned(), detail });
        let wrong = |error: rusqlite::Error| match describe(path, &error, locker.timeout()) {
            // SQLite rolls the transaction back before it reads, and so it would change the file.
            _ if has_journal(path) => {
                let journal = with_ending(path, JOURNAL);
                unfit(format!("{} contains an unfinished transaction", shown(journal.display())))
            }
            Error::Store(StoreError::Corrupt { path, detail } | StoreError::Failed { path, detail }) => {
                Error::Store(StoreError::NotACopy { path, detail })
            }
            other => other,
        };
        let read = || {
            let source = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            // The file may be a live database of another process.
            source.busy_timeout(locker.longest())?;
            // An unnamed database is SQLite's private temporary file.
            let mut copy = Connection::open("")?;
            Backup::new(&source, &mut copy)?.run_to_completion(ALL_PAGES, Duration::ZERO, None)?;
            let version: i64 = copy.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            // The check itself repeats names of the schema.
            let mut damage = match check::invalid_schema(&copy)? {
                None => damage(&copy, Check::Full)?,
                invalid => invalid,
            };
            // The copy has whole pages, whatever the file has.
            if damage.is_none() {
                damage = check::truncation(&source, path)?;
            }
            Ok((version, damage, copy))
        };
        let (version, damage, mut connection) = read().map_err(wrong)?;
        match version {
            newer if newer > migrate::VERSION => {
                let path = path.to_owned();
                return Err(StoreError::TooNew { path, found: newer, known: migrate::VERSION }.into());
            }
            1.. => {}
            _ => return Err(unfit("not a state database".to_owned())),
        }
        if let Some(damage) = damage {
            return Err(unfit(damage));
        }
        if let Some(program) = stored_program(&connection).map_err(wrong)? {
            return Err(unfit(program));
        }
        if version < migrate::VERSION {
            migrate::run(&mut connection, version).map_err(wrong)?;
        }
        // After the migration: the checks know the current schema only.
        let expected = new_in_memory().map_err(wrong)?;
        if let Some(damage) = check::missing_column(&connection, &expected).map_err(wrong)? {
            return Err(unfit(damage));
        }
        if let Some(damage) = check::invalid_rows(&connection).map_err(wrong)?.into_iter().next() {
            return Err(unfit(damage));
        }
        Ok(BackupSnapshot { connection, path: path.to_owned() })
    }

    /// The file that was read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The private copy.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Attaches another private copy to a connection, as the schema `copy`.
    pub fn attach_to(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        connection.execute_batch("ATTACH DATABASE '' AS copy")?;
        Backup::new_with_names(&self.connection, MAIN_DB, connection, c"copy")?.run_to_completion(
            ALL_PAGES,
            Duration::ZERO,
            None,
        )
    }
}

/// A new, empty database with the current schema, in memory.
pub fn new_in_memory() -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    migrate::run(&mut connection, 0)?;
    Ok(connection)
}

/// Whether an error of a restore says that rows of the backup do not fit into the store.
pub fn is_unfit_row(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{ConstraintViolation, TypeMismatch};
    match error.sqlite_error_code() {
        Some(code) => matches!(code, ConstraintViolation | TypeMismatch),
        // An error of the conversion of a value.
        None => true,
    }
}

/// Ending of the file in which SQLite keeps what a transaction replaces.
const JOURNAL: &str = "-journal";

fn has_journal(path: &Path) -> bool {
    // SQLite leaves an empty journal behind in some modes, which holds no transaction.
    with_ending(path, JOURNAL).metadata().is_ok_and(|found| found.len() > 0)
}

/// Check of a copy.
#[derive(Clone, Copy, Debug)]
enum Check {
    /// Tables only.
    Quick,
    /// Also that tables and their indexes have the same rows.
    Full,
}

/// The first thing that SQLite finds wrong with a database.
fn damage(connection: &Connection, check: Check) -> rusqlite::Result<Option<String>> {
    let pragma = match check {
        Check::Quick => "PRAGMA quick_check(1)",
        Check::Full => "PRAGMA integrity_check(1)",
    };
    let found: String = connection.query_row(pragma, [], |row| row.get(0))?;
    Ok(Some(found).filter(|found| found != "ok"))
}

/// The first trigger or view of a database. No store has any, and one in a backup would run during the restore: it could take
/// a revocation back.
fn stored_program(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let select = "SELECT type, name FROM main.sqlite_schema WHERE type IN ('trigger', 'view') LIMIT 1";
    let describe = |row: &rusqlite::Row<'_>| {
        Ok(format!(
            "the schema contains a {}, {}",
            row.get::<_, String>(0)?,
            quoted(row.get::<_, String>(1)?)
        ))
    };
    connection.query_row(select, [], describe).optional()
}

impl Store {
    /// Copies the database into a new file, complete or not at all. An existing file is an error.
    fn back_up_to(&self, path: &Path) -> Result<()> {
        let exists = || Error::File(FileError::Exists(path.to_owned()));
        // Checked early, because copying a large database only to fail at its name would be wasted.
        if path.symlink_metadata().is_ok() {
            return Err(exists());
        }
        if self.copy_beside(path, Check::Full)?.publish(path)? { Ok(()) } else { Err(exists()) }
    }

    /// Copies the database into a new file: the target, or without one the first free name
    /// `DATABASE.backup-SECOND-COUNT` beside the database. Returns its path.
    pub(crate) fn back_up(&self, target: Option<&Path>, now_ms: i64) -> Result<PathBuf> {
        match target {
            Some(target) => self.back_up_to(target).map(|()| target.to_owned()),
            None => self.publish_beside("backup", Check::Full, now_ms),
        }
    }

    /// Keeps the content that a restore replaces, as `DATABASE.replaced-SECOND-COUNT`. A damaged index does not prevent it.
    pub(crate) fn keep_replaced(&self, now_ms: i64) -> Result<PathBuf> {
        self.publish_beside("replaced", Check::Quick, now_ms)
    }

    fn publish_beside(&self, label: &str, check: Check, now_ms: i64) -> Result<PathBuf> {
        let copy = self.copy_beside(&self.path, check)?;
        let second = now_ms.div_euclid(1000);
        // `publish` never replaces a file, so two backups in one second get two names.
        for count in 0..MOST_NAMES {
            let path = with_ending(&self.path, &format!(".{label}-{second}-{count}"));
            if copy.publish(&path)? {
                return Ok(path);
            }
        }
        Err(FileError::Exists(with_ending(&self.path, &format!(".{label}-{second}-0"))).into())
    }

    fn copy_beside(&self, target: &Path, check: Check) -> Result<NewFile> {
        let new = NewFile::beside(target)?;
        let mut copy =
            Self::connect(new.path(), OpenFlags::SQLITE_OPEN_READ_WRITE, &self.locker)?.into_connection()?;
        let damage = self.read(|connection| {
            Backup::new(connection, &mut copy)?.run_to_completion(ALL_PAGES, Duration::ZERO, None)?;
            // A copy of a write-ahead database would need two more files beside it.
            copy.pragma_update(None, "journal_mode", "DELETE")?;
            damage(&copy, check)
        })?;
        // Closed before it is published: a rename would part an open database from its journal.
        drop(copy);
        match damage {
            Some(detail) => Err(StoreError::Corrupt { path: self.path.clone(), detail }.into()),
            None => Ok(new),
        }
    }

    /// Opens a database alone: fails with [`FileError::Locked`] while any other connection has it open, busy or idle, and
    /// keeps others out until it is closed.
    pub(crate) fn open_exclusive(path: &Path, locker: &Locker) -> Result<Self> {
        let store = Self::connect(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE,
            // Another open connection, an idle one included, keeps the lock as long as it lives: waiting
            // would not help.
            &locker.clone().with_timeout(Duration::ZERO),
        )?;
        store.read(|connection| {
            // Set before the first access, it takes the exclusive lock on the file with that access and keeps it.
            connection.execute_batch(
                "PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=FULL; BEGIN EXCLUSIVE; COMMIT",
            )
        })?;
        Ok(store)
    }

    /// Reads a backup and checks that it can be restored here.
    pub(crate) fn open_copy(&self, path: &Path) -> Result<BackupSnapshot> {
        let snapshot = BackupSnapshot::read(path, &self.locker)?;
        // A service's store has this schema too, and its users' sessions would replace those of the user.
        let is_service = snapshot.connection.table_exists(None, "service");
        if is_service.map_err(|error| describe(path, &error, self.locker.timeout()))? {
            let detail = "the file is the store of a session service".to_owned();
            return Err(StoreError::NotACopy { path: path.to_owned(), detail }.into());
        }
        Ok(snapshot)
    }

    /// Replaces the content with a backup, in one transaction. The replaced content is first copied to a new file
    /// beside the database, whose path is returned; no writer gets in between. Assigned numbers are not assigned
    /// again, and holders and waiters of locks keep their places.
    pub(crate) fn restore(&mut self, copy: &BackupSnapshot, now_ms: i64) -> Result<PathBuf> {
        // Two restores at once would each keep what the other one replaced.
        let (alone, name) = LockedDir::of_file(&self.locker, &self.path, 0o700)?;
        answers::discard(&alone, &name)?;
        // A second connection: SQLite refuses to copy from one that is writing (SQLITE_LOCKED).
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let reader = Self::connect_marked(&self.path, flags, &self.locker, self.is_marked())?;
        self.change(|connection| copy.attach_to(connection))?;
        // The error waits until the copy is detached, or the next restore could not attach one.
        let restored = self.replace_content(&reader, copy.path(), now_ms);
        self.change(|connection| connection.execute_batch("DETACH DATABASE copy"))?;
        restored
    }

    fn replace_content(&mut self, reader: &Store, copy: &Path, now_ms: i64) -> Result<PathBuf> {
        let (path, patience) = (self.path.clone(), self.locker.timeout());
        let failed = |error: rusqlite::Error| describe(&path, &error, patience);
        let begin = TransactionBehavior::Immediate;
        let transaction = self.connection_mut()?.transaction_with_behavior(begin).map_err(failed)?;
        let dir = path.parent().unwrap_or(Path::new("."));
        replace(&transaction, dir, now_ms).map_err(|error| match is_unfit_row(&error) {
            true => StoreError::NotACopy { path: copy.to_owned(), detail: error.to_string() }.into(),
            false => failed(error),
        })?;
        // Nobody else writes meanwhile, and the reader sees exactly what is about to be replaced. After the rows: a backup
        // that fails leaves no copy behind.
        let kept = reader.keep_replaced(now_ms)?;
        transaction.commit().map_err(failed)?;
        Ok(kept)
    }
}

/// The revision that each value of a session had reached, whether it is still there or was removed.
const SAVE_REVISIONS: &str = "
    DROP TABLE IF EXISTS temp.reached;
    CREATE TEMP TABLE reached AS
        SELECT user, session, replace(kind, '-gone', '') AS kind, key, max(revision) AS revision
        FROM main.entry GROUP BY 1, 2, 3, 4";

/// Raises restored revisions above those already seen, so that a client with a newer value gets a conflict. Sessions that the backup
/// does not have leave their revisions behind: a later restore may bring them back.
const RAISE_REVISIONS: &str = "
    UPDATE main.entry SET revision = 1 + (
        SELECT reached.revision FROM temp.reached
        WHERE reached.user = entry.user AND reached.session = entry.session AND reached.key = entry.key
          AND reached.kind = replace(entry.kind, '-gone', ''))
    WHERE EXISTS (
        SELECT 1 FROM temp.reached
        WHERE reached.user = entry.user AND reached.session = entry.session AND reached.key = entry.key
          AND reached.kind = replace(entry.kind, '-gone', '') AND reached.revision >= entry.revision);
    INSERT INTO main.entry (user, session, kind, key, value, revision, changed_ms)
        SELECT user, session, kind || '-gone', key, 'null', revision, 0 FROM temp.reached
        WHERE NOT EXISTS (
            SELECT 1 FROM main.entry
            WHERE entry.user = reached.user AND entry.session = reached.session AND entry.key = reached.key
              AND replace(entry.kind, '-gone', '') = reached.kind);
    DROP TABLE temp.reached";

/// Ends sessions of the backup that have ended since, and keeps the context of every session. Operations that were
/// pending in the backup have finished since; resuming one could revert its effect. Operations that only the backup
/// has are marked: undoing one grants no trust.
const SETTLE_COPY: &str = "
    UPDATE copy.session SET (ended_ms, end_reason) = (
        SELECT now.ended_ms, now.end_reason FROM main.session AS now
        WHERE now.user = session.user AND now.id = session.id)
    WHERE ended_ms IS NULL AND EXISTS (
        SELECT 1 FROM main.session AS now
        WHERE now.user = session.user AND now.id = session.id AND now.ended_ms IS NOT NULL);
    UPDATE copy.session SET context = (
        SELECT now.context FROM main.session AS now WHERE now.user = session.user AND now.id = session.id)
    WHERE EXISTS (SELECT 1 FROM main.session AS now WHERE now.user = session.user AND now.id = session.id);
    UPDATE copy.operation SET state = 'unknown' WHERE state = 'intent';
    UPDATE copy.operation SET state = 'restored' WHERE state NOT IN ('unknown', 'restored') AND NOT EXISTS (
        SELECT 1 FROM main.operation AS now
        WHERE now.id = operation.id AND now.state = operation.state AND now.effects = operation.effects)";

const INTERSECT_TRUST: &str = "
    DELETE FROM main.trusted WHERE NOT EXISTS (
        SELECT 1 FROM copy.trusted AS old WHERE old.path = trusted.path AND old.fingerprint = trusted.fingerprint)";

/// The columns of a table, separated by commas. Their order may differ between two databases of one version.
pub fn column_list(connection: &Connection, table: &str) -> rusqlite::Result<String> {
    let names = connection
        .prepare("SELECT name FROM pragma_table_info(?1, 'main')")?
        .query_map([table], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(names.join(", "))
}

/// Remembers the revision that each entry has reached, before a restore replaces the entries.
pub fn save_revisions(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(SAVE_REVISIONS)
}

/// Raises the revisions of restored entries above those that [`save_revisions`] found.
pub fn raise_revisions(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(RAISE_REVISIONS)
}

/// Ends sessions of the backup without a room, because a room is removed with its session.
fn end_without_room(transaction: &Transaction<'_>, dir: &Path, now_ms: i64) -> rusqlite::Result<()> {
    let live: Vec<(String, String)> = transaction
        .prepare("SELECT user, id FROM copy.session WHERE ended_ms IS NULL")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let end = "UPDATE copy.session SET ended_ms = ?3, end_reason = 'restored' WHERE user = ?1 AND id = ?2";
    for (user, id) in live {
        if !dir.join("rooms").join(&id).is_dir() {
            transaction.execute(end, (user, id, now_ms))?;
        }
    }
    Ok(())
}

fn replace(transaction: &Transaction<'_>, dir: &Path, now_ms: i64) -> rusqlite::Result<()> {
    save_revisions(transaction)?;
    // On the copy, before the tables are replaced: afterwards the current state is gone.
    transaction.execute_batch(SETTLE_COPY)?;
    end_without_room(transaction, dir, now_ms)?;
    for table in recover::TABLES {
        let columns = column_list(transaction, table)?;
        let insert = format!("INTO main.{table} ({columns}) SELECT {columns} FROM copy.{table}");
        match *table {
            // Places in a queue belong to processes that are alive.
            "ticket" => {}
            // What a terminal has selected belongs to the terminal, which may be alive.
            "pointer" => {
                transaction.execute_batch("DELETE FROM main.pointer WHERE scope <> 'terminal'")?;
                transaction.execute_batch(&format!("INSERT {insert} WHERE scope <> 'terminal'"))?;
            }
            // Operations that processes are making now are theirs to close.
            "operation" => {
                transaction.execute_batch("DELETE FROM main.operation WHERE state <> 'intent'")?;
                transaction.execute_batch(&format!("INSERT OR IGNORE {insert}"))?;
            }
            "trusted" => transaction.execute_batch(INTERSECT_TRUST)?,
            // A PIN that is set now stays, with its count of wrong tries.
            "pin" => transaction.execute_batch(&format!("INSERT OR IGNORE {insert}"))?,
            // The record of both sides stays, and every approval in it is revoked.
            "approval" => {
                transaction.execute_batch(&format!("INSERT OR IGNORE {insert}"))?;
                transaction
                    .execute("UPDATE main.approval SET revoked_ms = ?1 WHERE revoked_ms IS NULL", [now_ms])?;
            }
            _ => transaction.execute_batch(&format!("DELETE FROM main.{table}; INSERT {insert}"))?,
        }
    }
    // Fencing tokens and operation numbers only grow, also across a restore.
    recover::raise_numbers(transaction, "SELECT name, seq FROM copy.sqlite_sequence")?;
    raise_revisions(transaction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locker() -> Locker {
        Locker::new(Duration::from_secs(5))
    }

    #[test]
    fn older_backup_is_migrated_and_its_file_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let old = dir.path().join("old.db");
        let connection = Connection::open(&old).unwrap();
        // Also in the mode that a database has which was copied with its log.
        connection.execute_batch("PRAGMA journal_mode=WAL").unwrap();
        for migration in [
            include_str!("migrations/0001_pointers_approvals_trust.sql"),
            include_str!("migrations/0002_sessions_locks_history.sql"),
            include_str!("migrations/0003_conversations.sql"),
        ] {
            connection.execute_batch(migration).unwrap();
        }
        connection
            .execute_batch(
                "INSERT INTO pin (id, hash) VALUES (1, 'old');
                 INSERT INTO approval (context, granted_ms, expires_ms, boot, expires_boot_ms, granted_by, terminal, with_pin)
                 VALUES ('prod', 0, 9000000000000000, '', 9000000000000000, 'ann', '', 0);
                 INSERT INTO conversation_item VALUES ('u', 'c', 1, 'message', '{}', 0);
                 PRAGMA user_version = 3",
            )
            .unwrap();
        let mut store = Store::open_for_writing(&dir.path().join("state.db"), &locker()).unwrap();
        let copy = store.open_copy(&old).unwrap();
        let kept = store.restore(&copy, 7_000).unwrap();
        assert_eq!(kept, dir.path().join("state.db.replaced-7-0"));
        assert_eq!(store.pin().unwrap().unwrap().hash, "old");
        assert!(store.approvals(None, 0).unwrap().is_empty());
        assert_eq!(store.all_approvals().unwrap()[0].revoked_ms, Some(7_000));
        let items = "SELECT count(*) FROM conversation_item";
        assert_eq!(store.read(|c| c.query_row(items, [], |row| row.get::<_, i64>(0))).unwrap(), 1);
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(version, 3);
    }

    #[test]
    fn exclusive_open_fails_while_an_idle_connection_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        let idle = Store::open_for_writing(&path, &locker()).unwrap();
        let refused = Store::open_exclusive(&path, &locker());
        assert!(matches!(refused, Err(Error::File(FileError::Locked { .. }))), "{refused:?}");
        drop(idle);
        let alone = Store::open_exclusive(&path, &locker()).unwrap();
        let impatient = Locker::new(Duration::ZERO);
        assert!(Store::open_for_writing(&path, &impatient).is_err());
        drop(alone);
        Store::open_for_writing(&path, &impatient).unwrap();
    }
}
