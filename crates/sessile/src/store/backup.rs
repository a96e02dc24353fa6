//! Copies of the database, made while others write.

use std::path::Path;
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, TransactionBehavior};

use crate::error::Result;
use crate::files::LockedDir;
use crate::store::{Store, recover};

/// Everything at once: a copy in steps begins anew whenever someone writes, and with enough writers never ends.
/// Writers do not wait for a reader.
const ALL_PAGES: std::ffi::c_int = std::ffi::c_int::MAX;

impl Store {
    /// Copies everything into another database file, which is then a consistent whole.
    pub fn back_up_to(&self, path: &Path) -> Result<()> {
        let target = Store::at(path, self.locker())?;
        self.read(|connection| {
            let mut target = target.into_connection();
            Backup::new(connection, &mut target)?.run_to_completion(ALL_PAGES, Duration::ZERO, None)?;
            // A copy of a write-ahead database would need two more files beside it.
            target.pragma_update(None, "journal_mode", "DELETE")
        })
    }

    /// Fails unless a file is a copy that can be restored here.
    pub fn check_copy(&self, path: &Path) -> Result<()> {
        Store::open_copy(path, self.locker()).map(drop)
    }

    /// Puts the content of another database into the place of this one's, which is first copied to `kept`: in one
    /// transaction, with no writer between the two. Numbers that were handed out are not handed out again, and who
    /// holds or waits for a lock goes on doing so.
    pub fn restore_from(&mut self, path: &Path, kept: &Path) -> Result<()> {
        drop(Store::open_copy(path, self.locker())?);
        let source = path.to_string_lossy().into_owned();
        let alone = LockedDir::of_file(self.locker(), self.path(), 0o700)?;
        self.back_up_to(kept)?;
        self.change(|connection| {
            connection.execute("ATTACH DATABASE ?1 AS copy", [&source])?;
            let replaced = replace(connection);
            connection.execute_batch("DETACH DATABASE copy")?;
            replaced
        })?;
        drop(alone);
        Ok(())
    }
}

/// The revision that each value of a session had reached, whether it is still there or was removed.
const SAVE_REVISIONS: &str = "
    DROP TABLE IF EXISTS temp.reached;
    CREATE TEMP TABLE reached AS
        SELECT user, session, replace(kind, '-gone', '') AS kind, key, max(revision) AS revision
        FROM main.entry GROUP BY 1, 2, 3, 4";

/// Lets what was restored go on behind what was reached, so that who has seen a newer value finds out.
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
        WHERE EXISTS (SELECT 1 FROM main.session WHERE session.user = reached.user AND session.id = reached.session)
          AND NOT EXISTS (
            SELECT 1 FROM main.entry
            WHERE entry.user = reached.user AND entry.session = reached.session AND entry.key = reached.key
              AND replace(entry.kind, '-gone', '') = reached.kind);
    DROP TABLE temp.reached";

fn replace(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SAVE_REVISIONS)?;
    for table in recover::TABLES.iter().filter(|table| **table != "ticket") {
        transaction.execute_batch(&format!(
            "DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM copy.{table}"
        ))?;
    }
    recover::raise_numbers(&transaction, "SELECT name, seq FROM copy.sqlite_sequence")?;
    transaction.execute_batch(RAISE_REVISIONS)?;
    transaction.commit()
}
