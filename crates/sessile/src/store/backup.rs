//! Copies of the database, made while others write.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use crate::error::Result;
use crate::store::Store;

/// Pages copied at a time, between which others may write.
const PAGES: std::ffi::c_int = 256;
const PAUSE: Duration = Duration::from_millis(1);

impl Store {
    /// Copies everything into another database file, which is then a consistent whole.
    pub fn back_up_to(&self, path: &Path) -> Result<()> {
        let target = Store::at(path, self.locker())?;
        self.read(|connection| {
            let mut target = target.into_connection();
            Backup::new(connection, &mut target)?.run_to_completion(PAGES, PAUSE, None)?;
            // A copy of a write-ahead database would need two more files beside it.
            target.pragma_update(None, "journal_mode", "DELETE")
        })
    }

    /// Fails unless a file is a copy that can be restored here.
    pub fn check_copy(&self, path: &Path) -> Result<()> {
        Store::open_copy(path, self.locker()).map(drop)
    }

    /// Puts the content of another database into the place of this one's, in one transaction that readers see as a
    /// whole. Numbers that were handed out are not handed out again.
    pub fn restore_from(&mut self, path: &Path) -> Result<()> {
        let source = Store::open_copy(path, self.locker())?;
        let last = self.last_numbers()?;
        self.replace_content(&source)?;
        self.write(|connection| {
            for (table, number) in &last {
                let changed = connection.execute(
                    "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1",
                    (table, number),
                )?;
                if changed == 0 {
                    connection.execute(
                        "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)",
                        (table, number),
                    )?;
                }
            }
            Ok(())
        })
    }

    fn replace_content(&mut self, source: &Store) -> Result<()> {
        let path = self.path().to_owned();
        let copy = |from: &Connection, to: &mut Connection| {
            Backup::new(from, to)?.run_to_completion(std::ffi::c_int::MAX, PAUSE, None)
        };
        source.read(|from| {
            let mut to = Connection::open(&path)?;
            to.busy_timeout(Duration::from_secs(5))?;
            copy(from, &mut to)
        })
    }

    fn last_numbers(&self) -> Result<Vec<(String, i64)>> {
        self.read(|connection| {
            connection
                .prepare("SELECT name, seq FROM sqlite_sequence")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
    }
}
