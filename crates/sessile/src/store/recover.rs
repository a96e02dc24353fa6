//! Recovery of a damaged database: moved aside, and its readable rows copied into a new one.

use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

use crate::error::{Error, Result, StoreError};
use crate::files::{LockedDir, Locker, with_ending};
use crate::store::{Store, answers, check};

/// Report of a recovery.
#[derive(Clone, Debug)]
pub(crate) struct RecoveryReport {
    /// Path of the damaged database.
    pub kept: PathBuf,
    /// Number of recovered rows.
    pub rows: usize,
}

/// Rows written in one transaction.
// The lock is released between two batches, so that a large recovery does not stop every other command.
const BATCH: usize = 500;

pub(super) const TABLES: &[&str] = &[
    "pointer",
    "approval",
    "trusted",
    "pin",
    "session",
    "entry",
    "message",
    "ticket",
    "operation",
    "conversation",
    "conversation_item",
];

impl Store {
    /// Moves a damaged database aside, never over another file, and saves what can be read of it. `None` if it is
    /// sound by now: another process was quicker.
    pub(crate) fn recover(path: &Path, locker: &Locker, now_ms: i64) -> Result<Option<RecoveryReport>> {
        let stamp = now_ms / 1000;
        let dir = path.parent().unwrap_or(Path::new("."));
        // Nobody else may write to the file while it is moved.
        let alone = LockedDir::lock(locker, dir, 0o700)?;
        // Checked again under the lock: two commands may have found the damage at the same time.
        let sound = Store::open_for_reading(path, locker).and_then(|store| match store {
            Some(store) => store.integrity_problems().map(|problems| problems.is_empty()),
            None => Ok(true),
        });
        match sound {
            Ok(true) => return Ok(None),
            Ok(false) | Err(Error::Store(StoreError::Corrupt { .. })) => {}
            Err(other) => return Err(other),
        }
        let name = |ending: &str| with_ending(Path::new(path.file_name().unwrap_or_default()), ending);
        let kept =
            (0..)
                .map(|count| {
                    if count == 0 { format!(".damaged-{stamp}") } else { format!(".damaged-{stamp}-{count}") }
                })
                .find(|ending| !dir.join(name(ending)).exists())
                .unwrap_or_default();
        answers::discard(&alone, Path::new(path.file_name().unwrap_or_default()))?;
        // The database last: after a crash in between, no log of the old database stands beside a new one.
        for beside in ["-wal", "-shm", ""] {
            if dir.join(name(beside)).exists() {
                alone.rename(&name(beside), &name(&format!("{kept}{beside}")))?;
            }
        }
        let kept = dir.join(name(&kept));
        let mut store = Store::make(path, locker, &alone)?;
        // The rows are written under the lock some at a time.
        drop(alone);
        let rows = copy_readable(&kept, &mut store, now_ms);
        Ok(Some(RecoveryReport { kept, rows }))
    }
}

/// Copies row after row; where a table cannot be read on, the next one is tried.
fn copy_readable(from: &Path, to: &mut Store, now_ms: i64) -> usize {
    let Ok(damaged) = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY) else { return 0 };
    let numbers = last_numbers(&damaged, now_ms);
    // Numbers before rows: from here on another process can draw a ticket.
    let raised = to.write(|connection| numbers.iter().try_for_each(|last| raise_number(connection, last)));
    // Without them a number could be handed out again; the rows alone would not show it.
    if raised.is_err() {
        return 0;
    }
    TABLES.iter().map(|table| copy_table(&damaged, to, table).unwrap_or(0)).sum()
}

/// The last number handed out for each table that counts. Where that cannot be read it is one that is larger than any
/// could be: the time.
fn last_numbers(damaged: &Connection, now: i64) -> Vec<(String, i64)> {
    ["approval", "ticket", "operation"]
        .into_iter()
        .map(|table| {
            let last = damaged
                .query_row("SELECT seq FROM sqlite_sequence WHERE name = ?1", [table], |row| row.get(0));
            let last = match last {
                Err(rusqlite::Error::QueryReturnedNoRows) => 0,
                Ok(last) if (0..=check::LARGEST).contains(&last) => last,
                _ => now,
            };
            (table.to_owned(), last)
        })
        .collect()
}

/// Raises the last numbers handed out to those that a query finds, where they are larger.
pub(super) fn raise_numbers(connection: &Connection, query: &str) -> rusqlite::Result<()> {
    let found: Vec<(String, i64)> = connection
        .prepare(query)?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    found.iter().try_for_each(|last| raise_number(connection, last))
}

fn raise_number(connection: &Connection, (table, number): &(String, i64)) -> rusqlite::Result<()> {
    let raise = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";
    if connection.execute(raise, (table, number))? == 0 {
        connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table, number))?;
    }
    Ok(())
}

/// The columns of a table that both databases have. The damaged one can have names that are not text.
fn common_columns(damaged: &Connection, to: &Store, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut select = damaged.prepare("SELECT name FROM pragma_table_info(?1, 'main')")?;
    let mut rows = select.query([table])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        // Read as bytes: `get::<String>` would fail for the whole table.
        found.extend(row.get_ref(0)?.as_str().ok().map(str::to_owned));
    }
    let known = to
        .connection()
        .map_err(|_| rusqlite::Error::InvalidQuery)?
        .prepare("SELECT name FROM pragma_table_info(?1, 'main')")?
        .query_map([table], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    found.retain(|name| known.contains(name));
    Ok(found)
}

/// Whether a row has a number that cannot grow, an id that is not one, or JSON that cannot be parsed.
fn is_invalid(table: &str, columns: &[String], values: &[Value]) -> bool {
    columns.iter().zip(values).any(|(column, value)| {
        check::is_exhausted(column, value.into())
            || check::is_invalid_id(table, column, value.into())
            || check::is_invalid_json(table, column, value.into())
    })
}

/// Empties the labels and the owner of a session that cannot be parsed: the session is worth more than them.
fn mend_session(table: &str, columns: &[String], mut values: Vec<Value>) -> Vec<Value> {
    for (column, value) in columns.iter().zip(&mut values).filter(|_| table == "session") {
        if check::is_invalid_json(table, column, (&*value).into()) {
            *value = Value::Text("{}".to_owned());
        }
    }
    values
}

fn copy_table(damaged: &Connection, to: &mut Store, table: &str) -> rusqlite::Result<usize> {
    let columns = common_columns(damaged, to, table)?;
    if columns.is_empty() {
        return Ok(0);
    }
    let mut select = damaged.prepare(&format!("SELECT {} FROM {table}", columns.join(", ")))?;
    let places: Vec<String> = (1..=columns.len()).map(|place| format!("?{place}")).collect();
    let insert =
        // Another process may have written a row with this key since the new database was made.
        format!("INSERT OR IGNORE INTO {table} ({}) VALUES ({})", columns.join(", "), places.join(", "));
    let mut rows = select.query([])?;
    let mut copied = 0;
    loop {
        let mut batch: Vec<Vec<Value>> = Vec::new();
        while batch.len() < BATCH
            && let Ok(Some(row)) = rows.next()
        {
            let values: rusqlite::Result<Vec<Value>> =
                (0..columns.len()).map(|column| row.get(column)).collect();
            let mended = values.ok().map(|values| mend_session(table, &columns, values));
            batch.extend(mended.filter(|values| !is_invalid(table, &columns, values)));
        }
        if batch.is_empty() {
            return Ok(copied);
        }
        let added = to.write(|connection| {
            let mut insert = connection.prepare_cached(&insert)?;
            // A row that makes no sense any more is left out, not those beside it.
            Ok(batch
                .iter()
                .map(|values| insert.execute(rusqlite::params_from_iter(values)).unwrap_or(0))
                .sum::<usize>())
        });
        copied += added.unwrap_or(0);
    }
}
