//! A damaged database: moved aside, and what can still be read of it put into a new one.

use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

use crate::error::{Error, Result};
use crate::files::{LockedDir, Locker};
use crate::store::Store;

/// What was done about a damaged database.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// Where the damaged one is kept.
    pub kept: PathBuf,
    /// How many rows were saved.
    pub rows: usize,
}

const TABLES: &[&str] =
    &["pointer", "approval", "trusted", "pin", "session", "entry", "message", "ticket", "operation"];

impl Store {
    /// Moves a damaged database aside, never over another file, and saves what can be read of it. `None` if it is
    /// sound by now: another process was quicker.
    pub fn recover(path: &Path, locker: &Locker, stamp: &str) -> Result<Option<Recovered>> {
        let dir = path.parent().unwrap_or(Path::new("."));
        let alone = LockedDir::lock(locker, dir, 0o700)?;
        let sound = Store::open_for_reading(path, locker).and_then(|store| match store {
            Some(store) => store.integrity_problems().map(|problems| problems.is_empty()),
            None => Ok(true),
        });
        match sound {
            Ok(true) => return Ok(None),
            Ok(false) | Err(Error::StoreCorrupt { .. }) => {}
            Err(other) => return Err(other),
        }
        let name = |ending: &str| PathBuf::from(format!("state.db{ending}"));
        let kept =
            (0..)
                .map(|count| {
                    if count == 0 { format!(".damaged-{stamp}") } else { format!(".damaged-{stamp}-{count}") }
                })
                .find(|ending| !dir.join(name(ending)).exists())
                .unwrap_or_default();
        for beside in ["-wal", "-shm", ""] {
            if dir.join(name(beside)).exists() {
                alone.rename(&name(beside), &name(&format!("{kept}{beside}")))?;
            }
        }
        let kept = dir.join(name(&kept));
        let mut store = Store::make(path, locker)?;
        // Each row is written under the lock by itself.
        drop(alone);
        let rows = copy_readable(&kept, &mut store);
        Ok(Some(Recovered { kept, rows }))
    }
}

/// Copies row after row; where a table cannot be read on, the next one is tried.
fn copy_readable(from: &Path, to: &mut Store) -> usize {
    let Ok(damaged) = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY) else { return 0 };
    TABLES.iter().map(|table| copy_table(&damaged, to, table).unwrap_or(0)).sum()
}

fn copy_table(damaged: &Connection, to: &mut Store, table: &str) -> rusqlite::Result<usize> {
    let mut select = damaged.prepare(&format!("SELECT * FROM {table}"))?;
    let columns: Vec<String> = select.column_names().map(str::to_owned).collect();
    let places: Vec<String> = (1..=columns.len()).map(|place| format!("?{place}")).collect();
    let insert =
        format!("INSERT OR IGNORE INTO {table} ({}) VALUES ({})", columns.join(", "), places.join(", "));
    let mut rows = select.query([])?;
    let mut copied = 0;
    while let Ok(Some(row)) = rows.next() {
        let values: rusqlite::Result<Vec<Value>> = (0..columns.len()).map(|column| row.get(column)).collect();
        let Ok(values) = values else { continue };
        let added = to.write(|connection| connection.execute(&insert, rusqlite::params_from_iter(values)));
        copied += added.unwrap_or(0);
    }
    Ok(copied)
}
