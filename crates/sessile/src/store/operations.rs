//! The history: one row for each change, written before it is made and closed after.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::Result;
use crate::store::Store;

/// Row of an operation.
#[derive(Clone, Debug)]
pub struct OperationRow {
    /// Number.
    pub id: i64,
    /// Time, in milliseconds.
    pub at_ms: i64,
    /// Account.
    pub user: String,
    /// Id of the session.
    pub session: Option<String>,
    /// Key of the terminal: its device and the process that leads it.
    pub terminal: Option<String>,
    /// Command.
    pub command: String,
    /// Subject.
    pub subject: String,
    /// Effects, as JSON.
    pub effects: String,
    /// `intent`, `done` or `unknown`.
    pub state: String,
    /// The process that made it, as JSON.
    pub process: String,
    /// The operation it undoes.
    pub undoes: Option<i64>,
    /// The operation that undid it.
    pub undone_by: Option<i64>,
}

const COLUMNS: &str =
    "id, at_ms, user, session, terminal, command, subject, effects, state, process, undoes, undone_by";

fn row(row: &Row<'_>) -> rusqlite::Result<OperationRow> {
    Ok(OperationRow {
        id: row.get(0)?,
        at_ms: row.get(1)?,
        user: row.get(2)?,
        session: row.get(3)?,
        terminal: row.get(4)?,
        command: row.get(5)?,
        subject: row.get(6)?,
        effects: row.get(7)?,
        state: row.get(8)?,
        process: row.get(9)?,
        undoes: row.get(10)?,
        undone_by: row.get(11)?,
    })
}

/// Filter of operations.
#[derive(Clone, Debug, Default)]
pub struct OperationFilter<'a> {
    /// Of this session.
    pub session: Option<&'a str>,
    /// Of this terminal.
    pub terminal: Option<&'a str>,
    /// Not older than this.
    pub since_ms: Option<i64>,
    /// Before this one.
    pub before: Option<i64>,
    /// After this one.
    pub after: Option<i64>,
    /// At most this many.
    pub limit: Option<usize>,
}

impl Store {
    /// Records an operation; returns its number.
    pub(crate) fn add_operation(&mut self, new: &OperationRow) -> Result<i64> {
        self.write(|connection| insert(connection, new))
    }

    /// Closes an operation that was made.
    pub(crate) fn close_operation(&mut self, id: i64, state: &str) -> Result<()> {
        self.write(|connection| {
            connection
                .prepare_cached("UPDATE operation SET state = ?2 WHERE id = ?1")?
                .execute((id, state))?;
            // Only a completed undo marks its operation; one of unknown outcome leaves it undoable.
            if state == "done" {
                connection
                    .prepare_cached(
                        "UPDATE operation SET undone_by = ?1
                         WHERE id = (SELECT undoes FROM operation WHERE id = ?1)",
                    )?
                    .execute([id])?;
            }
            Ok(())
        })
    }

    /// Forgets an operation that was not made.
    pub(crate) fn void_operation(&mut self, id: i64) -> Result<()> {
        // AUTOINCREMENT does not hand the number out again.
        self.write(|connection| connection.execute("DELETE FROM operation WHERE id = ?1", [id]).map(drop))
    }

    /// One operation.
    pub(crate) fn operation(&self, user: &str, id: i64) -> Result<Option<OperationRow>> {
        self.read(|connection| {
            connection
                .prepare(&format!("SELECT {COLUMNS} FROM operation WHERE user = ?1 AND id = ?2"))?
                .query_row((user, id), row)
                .optional()
        })
    }

    /// The operations of a user, the newest first.
    pub(crate) fn operations(&self, user: &str, filter: &OperationFilter<'_>) -> Result<Vec<OperationRow>> {
        self.read(|connection| {
            connection
                .prepare(&format!(
                    "SELECT {COLUMNS} FROM operation
                     WHERE user = ?1
                       AND (?2 IS NULL OR session = ?2) AND (?3 IS NULL OR terminal = ?3)
                       AND (?4 IS NULL OR at_ms >= ?4) AND (?5 IS NULL OR id < ?5) AND (?7 IS NULL OR id > ?7)
                     ORDER BY id DESC LIMIT ?6"
                ))?
                .query_map(
                    params![
                        user,
                        filter.session,
                        filter.terminal,
                        filter.since_ms,
                        filter.before,
                        i64::try_from(filter.limit.unwrap_or(usize::MAX)).unwrap_or(i64::MAX),
                        filter.after
                    ],
                    row,
                )?
                .collect()
        })
    }

    /// The effects of a user's last operations that were made and whose effects hold a text, the newest first.
    pub(crate) fn effects_holding(&self, user: &str, text: &str, limit: i64) -> Result<Vec<String>> {
        self.read(|connection| {
            connection
                // `instr` and not LIKE, which would read `%` and `_` in the text as patterns.
                .prepare(
                    "SELECT effects FROM operation
                     WHERE user = ?1 AND state IN ('done', 'restored') AND instr(effects, ?2) > 0 ORDER BY id DESC LIMIT ?3",
                )?
                .query_map((user, text, limit), |row| row.get(0))?
                .collect()
        })
    }

    /// The last operation of a user by a command that was made and whose effects hold a text.
    pub(crate) fn last_operation_holding(
        &self,
        user: &str,
        command: &str,
        text: &str,
    ) -> Result<Option<OperationRow>> {
        self.read(|connection| {
            connection
                .prepare(&format!(
                    "SELECT {COLUMNS} FROM operation
                     WHERE user = ?1 AND command = ?2 AND state = 'done' AND instr(effects, ?3) > 0
                     ORDER BY id DESC LIMIT 1"
                ))?
                .query_row((user, command, text), row)
                .optional()
        })
    }

    /// The operations that were begun and never closed.
    pub(crate) fn open_operations(&self) -> Result<Vec<OperationRow>> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM operation WHERE state = 'intent' ORDER BY id"
                ))?
                .query_map([], row)?
                .collect()
        })
    }
}

pub(super) fn insert(connection: &Connection, new: &OperationRow) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(
            "INSERT INTO operation (at_ms, user, session, terminal, command, subject, effects, state, process, undoes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        )?
        .execute(params![
            new.at_ms,
            new.user,
            new.session,
            new.terminal,
            new.command,
            new.subject,
            new.effects,
            new.state,
            new.process,
            new.undoes
        ])?;
    Ok(connection.last_insert_rowid())
}
