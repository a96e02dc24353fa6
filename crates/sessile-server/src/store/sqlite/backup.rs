//! Backup and restore of a store in a file.
//!
//! A restore brings data back, never permissions. A token is valid afterwards only if it was valid on both sides.
//! Disabled users stay disabled, ended sessions stay ended, and fencing tokens, revisions and event numbers only
//! grow.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, Result, Transaction, TransactionBehavior, named_params};
use sessile::Error;
use sessile::database::{
    self, BackupSnapshot, ExclusiveDatabase, column_list, raise_revisions, save_revisions,
};
use sessile::error::{FileError, StoreError};
use sessile::files::{LockedDir, Locker};

use super::retention::SESSIONS_REMOVED;
use super::{PATIENCE, connect, describe, extend};
use crate::ids::{TokenId, UserName};
use crate::store::ServiceStoreError;

/// Time for which a restore waits for other processes to close the store.
const CLOSING: Duration = Duration::from_secs(2);

/// Error of a backup or a restore.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file is not the store of a session service.
    #[error("{} is not the store of a session service: {detail}", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// The reason.
        detail: String,
    },
    /// The store cannot be opened because its directory cannot be written.
    #[error("cannot open store {}: its file system or directory is read-only", .0.display())]
    ReadOnly(PathBuf),
    /// Another process has the store open.
    #[error("store {} is in use by a running service", .0.display())]
    InUse(PathBuf),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] ServiceStoreError),
}

/// Result of a restore.
#[derive(Clone, Debug)]
pub struct RestoreReport {
    /// Copy of the replaced store; `None` if no store was replaced.
    pub kept: Option<PathBuf>,
    /// Number of tokens that are valid in the backup and revoked now.
    pub revoked_tokens: usize,
}

/// A backup that was checked and can be restored.
#[derive(Debug)]
pub struct ServiceBackup {
    snapshot: BackupSnapshot,
}

/// Whether a file is the store of a session service, or a backup of one.
pub fn is_service_store(path: &Path) -> bool {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // SQLite would wait for a pipe.
    path.is_file()
        && Connection::open_with_flags(path, flags)
            .and_then(|connection| connection.table_exists(None, "service"))
            .unwrap_or(false)
}

/// Copies a store into a new file while services use it. Without a target the file is beside the store. Returns its path.
pub fn back_up(
    store: &Path,
    target: Option<&Path>,
    now_ms: i64,
) -> std::result::Result<PathBuf, BackupError> {
    if store.exists() && !is_service_store(store) {
        let dir = store.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // SQLite needs to create a file beside a store to read it.
        if rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_err() {
            return Err(BackupError::ReadOnly(store.to_owned()));
        }
        let detail = "tables are missing".to_owned();
        return Err(BackupError::NotAStore { path: store.to_owned(), detail });
    }
    Ok(database::back_up(store, target, &Locker::new(PATIENCE), now_ms)?)
}

impl ServiceBackup {
    /// Reads a backup, checks its integrity, and brings its schema up to date in memory. The file is not changed.
    pub fn read(path: &Path) -> std::result::Result<Self, BackupError> {
        let not_a_store = |detail: String| BackupError::NotAStore { path: path.to_owned(), detail };
        let snapshot = BackupSnapshot::read(path, &Locker::new(PATIENCE)).map_err(|error| match error {
            Error::Store(StoreError::NotACopy { detail, .. }) => not_a_store(detail),
            other => other.into(),
        })?;
        let failed = |error: rusqlite::Error| BackupError::Store(describe(&error));
        if !snapshot.connection().table_exists(None, "service").map_err(failed)? {
            return Err(not_a_store("tables are missing".to_owned()));
        }
        let connection = snapshot.connection();
        extend(connection, path).map_err(|error| match error {
            ServiceStoreError::Failed(detail) => not_a_store(detail),
            other => other.into(),
        })?;
        let expected = database::new_in_memory().map_err(failed)?;
        extend(&expected, path)?;
        if let Some(damage) = database::missing_column(connection, &expected).map_err(failed)? {
            return Err(not_a_store(damage));
        }
        if let Some(damage) = invalid_id(connection).map_err(failed)? {
            return Err(not_a_store(damage));
        }
        Ok(ServiceBackup { snapshot })
    }

    /// Replaces the content of a store in one transaction, and keeps the replaced store in a new file beside it. No process
    /// may have the store open. With `keep_tokens`, tokens that the replaced store does not have stay valid.
    pub fn restore(
        &self,
        store: &Path,
        keep_tokens: bool,
        now_ms: i64,
    ) -> std::result::Result<RestoreReport, BackupError> {
        // Before `connect`, which creates the file.
        let is_new = !store.exists();
        // The store is migrated first, so that both sides have the same columns.
        extend(&connect(store)?, store)?;
        let exclusive = open_exclusive(store)?;
        // Under the exclusive lock, so that no change falls between this copy and the restore.
        let kept = if is_new { None } else { Some(exclusive.keep_replaced(now_ms)?) };
        let mut connection = exclusive.into_connection()?;
        let failed = |error: rusqlite::Error| BackupError::Store(describe(&error));
        self.snapshot.attach_to(&mut connection).map_err(failed)?;
        let replaced = replace(&mut connection, keep_tokens, now_ms).map_err(|error| {
            let path = self.snapshot.path().to_owned();
            match database::is_unfit_row(&error) {
                true => BackupError::NotAStore { path, detail: error.to_string() },
                false => failed(error),
            }
        });
        match (replaced, kept) {
            (Ok(revoked_tokens), kept) => Ok(RestoreReport { kept, revoked_tokens }),
            (Err(error), Some(kept)) => {
                // Nothing was replaced, so the copy is of no use.
                let (dir, name) = LockedDir::of_file(&Locker::new(PATIENCE), &kept, 0o700)?;
                dir.remove(Path::new(&name))?;
                Err(error)
            }
            (Err(error), None) => Err(error),
        }
    }
}

/// The first value of a backup that is not the id which readers expect there.
fn invalid_id(connection: &Connection) -> Result<Option<String>> {
    type IsValid = fn(&str) -> bool;
    let is_user: IsValid = |text| text.parse::<UserName>().is_ok();
    let is_token: IsValid = |text| text.parse::<TokenId>().is_ok();
    let columns: [(&str, &str, IsValid); 5] = [
        ("account", "user", is_user),
        ("session", "user", is_user),
        ("token", "id", is_token),
        ("token", "user", is_user),
        ("upkeep", "user", is_user),
    ];
    for (table, column, is_valid) in columns {
        let mut select = connection.prepare(&format!("SELECT DISTINCT {column} FROM {table}"))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            if !is_valid(row.get_ref(0)?.as_str()?) {
                return Ok(Some(format!("{table}.{column} has an invalid value")));
            }
        }
    }
    Ok(None)
}

fn open_exclusive(path: &Path) -> std::result::Result<ExclusiveDatabase, BackupError> {
    let begun = Instant::now();
    loop {
        match ExclusiveDatabase::open(path, &Locker::new(PATIENCE)) {
            // A command that administers the store has it open for a moment.
            Err(Error::File(FileError::Locked { .. })) if begun.elapsed() < CLOSING => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(Error::File(FileError::Locked { path, .. })) => return Err(BackupError::InUse(path)),
            other => return Ok(other?),
        }
    }
}

/// Rule of a restore for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merge {
    /// The backup's rows replace the current rows.
    Replace,
    /// The current rows stay, and rows that only the backup has are added.
    Union,
    /// The current rows stay.
    Keep,
    /// All rows go.
    Clear,
}

/// Every table of a store. A test compares this with the schema, so that a new table needs a decision.
const TABLES: &[(&str, Merge)] = &[
    ("session", Merge::Replace),
    ("label", Merge::Replace),
    ("entry", Merge::Replace),
    ("message", Merge::Replace),
    // Notes on rows of `message`.
    ("leftover", Merge::Replace),
    ("event", Merge::Replace),
    ("answered", Merge::Replace),
    ("account", Merge::Replace),
    ("token", Merge::Replace),
    // The record of accesses loses nothing.
    ("audit", Merge::Union),
    // Which session an agent's context belongs to never changes.
    ("agent_context", Merge::Union),
    // Numbers are raised in `PREPARE`, so that no fencing token comes twice.
    ("queue", Merge::Union),
    // Leases of locks guard something outside the store; turns are dropped in `PREPARE`.
    ("place", Merge::Keep),
    ("process", Merge::Clear),
    // Who is due for a sweep, and how long ended sessions are kept, belong to the data.
    ("upkeep", Merge::Replace),
    ("store_setting", Merge::Replace),
    ("lease", Merge::Clear),
    // An approved login could be collected a second time.
    ("login", Merge::Clear),
    ("service", Merge::Keep),
    // Prepared in `REMEMBER_REMOVED`.
    ("removed_session", Merge::Keep),
    ("removed_account", Merge::Keep),
    ("removed_token", Merge::Keep),
    // The command line's own, which a service does not use.
    ("pointer", Merge::Keep),
    ("approval", Merge::Keep),
    ("trusted", Merge::Keep),
    ("pin", Merge::Keep),
    ("ticket", Merge::Keep),
    ("operation", Merge::Keep),
    ("conversation", Merge::Keep),
    ("conversation_item", Merge::Keep),
];

/// Brings the backup and the current store to what both allow, before tables are merged.
const PREPARE: &str = "
    UPDATE copy.session SET (ended_ms, end_reason) = (
        SELECT now.ended_ms, now.end_reason FROM main.session AS now
        WHERE now.user = session.user AND now.id = session.id)
    WHERE ended_ms IS NULL AND EXISTS (
        SELECT 1 FROM main.session AS now
        WHERE now.user = session.user AND now.id = session.id AND now.ended_ms IS NOT NULL);
    UPDATE copy.session SET (revision, next_event) = (
        SELECT max(session.revision, now.revision + 1), max(session.next_event, now.next_event)
        FROM main.session AS now WHERE now.user = session.user AND now.id = session.id)
    WHERE EXISTS (SELECT 1 FROM main.session AS now WHERE now.user = session.user AND now.id = session.id);
    UPDATE copy.account SET disabled_ms = coalesce(
        disabled_ms, (SELECT now.disabled_ms FROM main.account AS now WHERE now.user = account.user));
    UPDATE main.queue SET next = max(next, coalesce((
        SELECT old.next FROM copy.queue AS old WHERE old.user = queue.user AND old.resource = queue.resource), 0));
    DELETE FROM main.place WHERE token IS NULL OR resource LIKE 'turn:%'";

/// Remembers what the restore removes: sessions that the backup does not have, users that are disabled, tokens that are revoked.
const REMEMBER_REMOVED: &str = "
    DELETE FROM removed_session WHERE EXISTS (
        SELECT 1 FROM main.session AS now WHERE now.user = removed_session.user AND now.id = removed_session.id);
    DELETE FROM removed_account WHERE EXISTS (SELECT 1 FROM main.account AS now WHERE now.user = removed_account.user);
    DELETE FROM removed_token WHERE EXISTS (SELECT 1 FROM main.token AS now WHERE now.hash = removed_token.hash);
    INSERT INTO removed_session (user, id, ended_ms, end_reason, revision, next_event)
        SELECT user, id, ended_ms, end_reason, revision, next_event FROM main.session AS now
        WHERE NOT EXISTS (SELECT 1 FROM copy.session AS old WHERE old.user = now.user AND old.id = now.id);
    INSERT INTO removed_account (user, disabled_ms)
        SELECT user, disabled_ms FROM main.account AS now WHERE disabled_ms IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM copy.account AS old WHERE old.user = now.user);
    INSERT INTO removed_token (hash, revoked_ms)
        SELECT hash, revoked_ms FROM main.token AS now WHERE revoked_ms IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM copy.token AS old WHERE old.hash = now.hash)";

/// Lets the backup go on where what earlier restores removed had stopped.
const APPLY_REMOVED: &str = "
    UPDATE copy.session SET (ended_ms, end_reason) = (
        SELECT gone.ended_ms, gone.end_reason FROM removed_session AS gone
        WHERE gone.user = session.user AND gone.id = session.id)
    WHERE ended_ms IS NULL AND EXISTS (
        SELECT 1 FROM removed_session AS gone
        WHERE gone.user = session.user AND gone.id = session.id AND gone.ended_ms IS NOT NULL);
    UPDATE copy.session SET (revision, next_event) = (
        SELECT max(session.revision, gone.revision + 1), max(session.next_event, gone.next_event)
        FROM removed_session AS gone WHERE gone.user = session.user AND gone.id = session.id)
    WHERE EXISTS (
        SELECT 1 FROM removed_session AS gone WHERE gone.user = session.user AND gone.id = session.id);
    UPDATE copy.account SET disabled_ms = coalesce(
        disabled_ms, (SELECT gone.disabled_ms FROM removed_account AS gone WHERE gone.user = account.user));
    UPDATE copy.token SET revoked_ms = coalesce(
        revoked_ms, (SELECT gone.revoked_ms FROM removed_token AS gone WHERE gone.hash = token.hash))";

/// Ends the backup's sessions that the retention has removed since: those that began before the last time up to which it has
/// removed sessions, and that neither the store nor an earlier restore knows. That time only grows.
const END_EXPIRED: &str = "
    UPDATE copy.session SET ended_ms = :now, end_reason = 'removed'
    WHERE ended_ms IS NULL AND started_ms < (SELECT value FROM main.store_setting WHERE name = :removed)
      AND NOT EXISTS (SELECT 1 FROM main.session AS now WHERE now.user = session.user AND now.id = session.id)
      AND NOT EXISTS (
        SELECT 1 FROM removed_session AS gone WHERE gone.user = session.user AND gone.id = session.id)";
const KEEP_REMOVAL_TIME: &str = "
    INSERT INTO copy.store_setting (name, value) SELECT name, value FROM main.store_setting WHERE name = :removed
    ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)";

/// A token that both sides have is what the current store says.
const KEEP_TOKENS: &str = "
    UPDATE copy.token SET (id, user, scopes, made_ms, expires_ms) = (
        SELECT now.id, now.user, now.scopes, now.made_ms, now.expires_ms
        FROM main.token AS now WHERE now.hash = token.hash)
    WHERE EXISTS (SELECT 1 FROM main.token AS now WHERE now.hash = token.hash)";

const REVOKE_TOKENS: &str = "
    UPDATE copy.token SET revoked_ms = coalesce(
        (SELECT now.revoked_ms FROM main.token AS now WHERE now.hash = token.hash), :now)
    WHERE revoked_ms IS NULL AND CASE
        WHEN EXISTS (SELECT 1 FROM main.token AS now WHERE now.hash = token.hash)
        THEN EXISTS (SELECT 1 FROM main.token AS now WHERE now.hash = token.hash AND now.revoked_ms IS NOT NULL)
        ELSE NOT :keep END";

/// Merges the attached backup into the store. Returns how many tokens it revoked.
fn replace(connection: &mut Connection, keep_tokens: bool, now_ms: i64) -> Result<usize> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Noted before the rows are replaced, and applied after: a client with an old ETag must not match a
    // restored value.
    save_revisions(&transaction)?;
    // Before the merge, which deletes the rows that it remembers.
    transaction.execute_batch(REMEMBER_REMOVED)?;
    transaction.execute(END_EXPIRED, named_params! { ":now": now_ms, ":removed": SESSIONS_REMOVED })?;
    transaction.execute(KEEP_REMOVAL_TIME, named_params! { ":removed": SESSIONS_REMOVED })?;
    transaction.execute_batch(PREPARE)?;
    transaction.execute_batch(APPLY_REMOVED)?;
    transaction.execute_batch(KEEP_TOKENS)?;
    let revoked =
        transaction.execute(REVOKE_TOKENS, named_params! { ":now": now_ms, ":keep": keep_tokens })?;
    for (table, merge) in TABLES {
        merge_table(&transaction, table, *merge)?;
    }
    raise_revisions(&transaction)?;
    transaction.commit()?;
    Ok(revoked)
}

fn merge_table(transaction: &Transaction<'_>, table: &str, merge: Merge) -> Result<()> {
    if matches!(merge, Merge::Replace | Merge::Clear) {
        transaction.execute_batch(&format!("DELETE FROM main.{table}"))?;
    }
    if matches!(merge, Merge::Replace | Merge::Union) {
        // By name, and without the generated `over_ms`, which cannot be inserted.
        let columns = column_list(transaction, table)?;
        let or_ignore = if merge == Merge::Union { "OR IGNORE" } else { "" };
        transaction.execute_batch(&format!(
            "INSERT {or_ignore} INTO main.{table} ({columns}) SELECT {columns} FROM copy.{table}"
        ))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_that_the_retention_removed_is_not_revived() {
        let dir = tempfile::tempdir().unwrap();
        let (path, copy) = (dir.path().join("service.db"), dir.path().join("copy"));
        let connection = connect(&path).unwrap();
        extend(&connection, &path).unwrap();
        let insert = "INSERT INTO session (user, id, owner, labels, idle_ms, max_ms, started_ms, boot, started_boot_ms, \
                      started_awake_ms, check_ms, used_ms) VALUES ('ann', ?1, '{}', '{}', 1, 1, ?2, '', 0, 0, 0, ?2)";
        let old = "0199c1d2-7a52-7f31-8a52-6f1f2a9d3b10";
        let young = "0199c1d2-7a52-7f31-8a52-6f1f2a9d3b11";
        connection.execute(insert, (old, 1_000)).unwrap();
        connection.execute(insert, (young, 9_000)).unwrap();
        back_up(&path, Some(&copy), 0).unwrap();
        let ann = "ann".parse().unwrap();
        let limit = crate::store::SweepLimit { before_ms: 5_000, most: 100 };
        connection.execute("UPDATE session SET ended_ms = 2000 WHERE id = ?1", [old]).unwrap();
        while !super::super::retention::delete_session(&connection, &ann, &old.parse().unwrap(), limit)
            .unwrap()
        {}
        connection.execute("DELETE FROM session WHERE id = ?1", [young]).unwrap();
        drop(connection);
        ServiceBackup::read(&copy).unwrap().restore(&path, false, 10_000).unwrap();
        let connection = connect(&path).unwrap();
        let ended = |id: &str| -> Option<i64> {
            connection
                .query_row("SELECT ended_ms FROM session WHERE id = ?1", [id], |row| row.get(0))
                .unwrap()
        };
        assert_eq!(ended(old), Some(10_000));
        assert_eq!(ended(young), None, "the session began after the last removal");
    }

    #[test]
    fn every_table_has_a_rule() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("service.db");
        let connection = connect(&path).unwrap();
        extend(&connection, &path).unwrap();
        let mut there: Vec<String> = connection
            .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_>>()
            .unwrap();
        there.sort();
        let mut ruled: Vec<&str> = TABLES.iter().map(|(table, _)| *table).collect();
        ruled.sort_unstable();
        assert_eq!(there, ruled);
    }
}
