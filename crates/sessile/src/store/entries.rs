//! A session's settings and small values: each with a revision, changed only by who saw the last one.

use rusqlite::OptionalExtension;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::store::{OperationRow, Store, check, operations};

/// Kind of a value of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A setting that holds in the session.
    Setting,
    /// A value that the session's programs keep.
    State,
}

impl EntryKind {
    /// Word of the kind in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            EntryKind::Setting => "setting",
            EntryKind::State => "state",
        }
    }
}

/// Address of an entry: user, session and kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryPlace<'a> {
    /// The user.
    pub user: &'a str,
    /// The session.
    pub session: &'a str,
    /// `setting` or `state`.
    pub kind: &'a str,
}

/// Row of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EntryRow {
    /// The key.
    pub key: String,
    /// The value, as JSON.
    pub value: String,
    /// Revision, the number of changes.
    pub revision: i64,
}

/// Outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EntryChange {
    /// Made, with the previous entry.
    Made {
        /// Previous entry.
        old: Option<EntryRow>,
        /// The new revision; nothing after a removal.
        revision: Option<i64>,
    },
    /// Current revision, which differs from the expected one; `None` if the entry does not exist.
    Conflict(Option<i64>),
    /// Session not found or ended.
    NoSession,
}

impl Store {
    /// One entry.
    pub(crate) fn entry(&self, place: EntryPlace<'_>, key: &str) -> Result<Option<EntryRow>> {
        self.read(|connection| find(connection, place, key))
    }

    /// All entries of a kind, in order.
    pub(crate) fn entries(&self, place: EntryPlace<'_>) -> Result<Vec<EntryRow>> {
        self.answer(&("entries", place.user, place.session, place.kind), |connection| {
            connection
                .prepare_cached(
                    "SELECT key, value, revision FROM entry WHERE user = ?1 AND session = ?2 AND kind = ?3 ORDER BY key",
                )?
                .query_map((place.user, place.session, place.kind), |row| {
                    Ok(EntryRow { key: row.get(0)?, value: row.get(1)?, revision: row.get(2)? })
                })?
                .collect()
        })
    }

    /// Sets an entry, or removes it with `None`. If `expected` is set, the current revision must be equal; 0 means
    /// that the entry must not exist. A removed entry keeps its revision counter, so that no revision repeats. The
    /// operation that `record` makes of the old entry goes into the history in the same transaction.
    pub(crate) fn change_entry(
        &mut self,
        place: EntryPlace<'_>,
        key: &str,
        value: Option<&str>,
        expected: Option<i64>,
        now_ms: i64,
        record: impl FnOnce(Option<&EntryRow>) -> Option<OperationRow>,
    ) -> Result<EntryChange> {
        self.write(|connection| {
            let lives = connection
                .prepare_cached("SELECT 1 FROM session WHERE user = ?1 AND id = ?2 AND ended_ms IS NULL")?
                .exists((place.user, place.session))?;
            // Checked in the transaction: the session may end while the caller waits for the lock.
            if !lives {
                return Ok(EntryChange::NoSession);
            }
            let old = find(connection, place, key)?;
            let last = last_revision(connection, place, key)?;
            let seen = old.as_ref().map_or(0, |old| old.revision);
            if expected.is_some_and(|expected| expected != seen) {
                return Ok(EntryChange::Conflict(old.map(|old| old.revision)));
            }
            // Removing nothing uses up no revision and leaves no operation.
            if value.is_none() && old.is_none() {
                return Ok(EntryChange::Made { old: None, revision: None });
            }
            let revision = last
                .checked_add(1)
                .ok_or_else(|| check::corrupt("entry.revision has a number that is out of range"))?;
            let stored_kind = if value.is_some() { place.kind.to_owned() } else { gone(place.kind) };
            // A key is stored under its own kind or as removed, never both, or its revision would be
            // ambiguous.
            for kind in [place.kind.to_owned(), gone(place.kind)] {
                connection
                    .prepare_cached(
                        "DELETE FROM entry WHERE user = ?1 AND session = ?2 AND kind = ?3 AND key = ?4",
                    )?
                    .execute((place.user, place.session, kind, key))?;
            }
            let stored = EntryPlace { kind: &stored_kind, ..place };
            insert(connection, stored, key, value.unwrap_or("null"), revision, now_ms)?;
            // In the same transaction: a change without its operation could not be undone.
            if let Some(operation) = record(old.as_ref()) {
                operations::insert(connection, &operation)?;
            }
            Ok(EntryChange::Made { old, revision: value.map(|_| revision) })
        })
    }
}

/// The kind under which a removed entry's last revision is kept.
fn gone(kind: &str) -> String {
    format!("{kind}-gone")
}

pub(super) fn insert(
    connection: &rusqlite::Connection,
    place: EntryPlace<'_>,
    key: &str,
    value: &str,
    revision: i64,
    now_ms: i64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO entry (user, session, kind, key, value, revision, changed_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((place.user, place.session, place.kind, key, value, revision, now_ms))
        .map(drop)
}

fn find(
    connection: &rusqlite::Connection,
    place: EntryPlace<'_>,
    key: &str,
) -> rusqlite::Result<Option<EntryRow>> {
    connection
        .prepare_cached(
            "SELECT key, value, revision FROM entry WHERE user = ?1 AND session = ?2 AND kind = ?3 AND key = ?4",
        )?
        .query_row((place.user, place.session, place.kind, key), |row| {
            Ok(EntryRow { key: row.get(0)?, value: row.get(1)?, revision: row.get(2)? })
        })
        .optional()
}

fn last_revision(
    connection: &rusqlite::Connection,
    place: EntryPlace<'_>,
    key: &str,
) -> rusqlite::Result<i64> {
    connection
        .prepare_cached(
            "SELECT coalesce(max(revision), 0) FROM entry
             WHERE user = ?1 AND session = ?2 AND kind IN (?3, ?4) AND key = ?5",
        )?
        .query_row((place.user, place.session, place.kind, gone(place.kind), key), |row| row.get(0))
}
