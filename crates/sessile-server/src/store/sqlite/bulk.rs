//! Large forks and rewinds, a slice at a time: other changes are made in between.
//!
//! A file has one writer, and copying a long session takes a second. So a fork copies most messages to an id that is
//! not a session yet and therefore invisible, and then creates the session in one transaction. A rewind moves the end
//! of the session in one transaction, and the rows behind it are removed afterwards.

use rusqlite::{Connection, OptionalExtension, Result};

/// Messages that one transaction copies or removes.
pub(super) const SLICE: i64 = 1000;

/// After this time a fork that is still being copied is abandoned: its process died.
const ABANDONED_MS: i64 = 600_000;

/// A fork that is being copied.
#[derive(Clone, Debug)]
pub(super) struct Fork {
    pub(super) user: String,
    pub(super) from: String,
    pub(super) at: Option<i64>,
    pub(super) to: String,
    pub(super) key: Option<String>,
}

impl Fork {
    /// Copies a slice. Whether more than a slice is left; the rest is copied with the fork itself.
    pub(super) fn copy_slice(&self, connection: &Connection, now: i64) -> Result<bool> {
        let Fork { user, from, at, to, key } = self;
        let source: Option<(i64, i64)> = connection
            .prepare_cached("SELECT next_message - 1, next_event FROM session WHERE user = ?1 AND id = ?2")?
            .query_row((user, from), |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        // A retry would copy everything again, only to be answered from its key.
        let is_answered = connection
            .prepare_cached("SELECT 1 FROM answered WHERE user = ?1 AND key = ?2")?
            .exists((user, key))?;
        // What cannot be forked is refused by the fork.
        let Some((messages, next_event)) = source.filter(|_| !is_answered) else { return Ok(false) };
        let last = at.unwrap_or(messages).min(messages);
        let copied = copied(connection, user, to)?;
        if last - copied <= SLICE {
            return Ok(false);
        }
        // Noted in the transaction of the first slice, so that a crash leaves no rows that nobody removes.
        if copied == 0 {
            note(connection, user, to, next_event, now)?;
        }
        copy(connection, (user, from, to), copied, copied + SLICE)?;
        Ok(last - copied > 2 * SLICE)
    }
}

/// Number of the last message that was copied for a fork and is still valid. Copies from before a rewind of the
/// source are removed.
pub(super) fn usable(connection: &Connection, user: &str, from: &str, to: &str) -> Result<i64> {
    let from_event: Option<i64> = connection
        .prepare_cached("SELECT from_event FROM leftover WHERE user = ?1 AND session = ?2")?
        .query_row((user, to), |row| row.get(0))
        .optional()?;
    let Some(from_event) = from_event else { return Ok(0) };
    let was_rewound = connection
        .prepare_cached(
            "SELECT 1 FROM event WHERE user = ?1 AND session = ?2 AND number >= ?3 AND kind = 'messages.rewound'",
        )?
        .exists((user, from, from_event))?;
    if was_rewound {
        connection
            .prepare_cached("DELETE FROM message WHERE user = ?1 AND session = ?2")?
            .execute((user, to))?;
        return Ok(0);
    }
    copied(connection, user, to)
}

/// Copies the messages after one number up to another.
pub(super) fn copy(
    connection: &Connection,
    (user, from, to): (&str, &str, &str),
    after: i64,
    last: i64,
) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO message (user, session, number, token, body, at_ms)
             SELECT user, ?3, number, 0, body, at_ms FROM message
             WHERE user = ?1 AND session = ?2 AND number > ?4 AND number <= ?5",
        )?
        .execute((user, from, to, after, last))
        .map(drop)
}

/// Records that a session has rows that do not count.
pub(super) fn note(
    connection: &Connection,
    user: &str,
    session: &str,
    from_event: i64,
    now: i64,
) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO leftover (user, session, since_ms, from_event) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        )?
        .execute((user, session, now, from_event))
        .map(drop)
}

/// Removes a slice of the rows of a session that do not count. Whether more may be left.
pub(super) fn remove_slice(connection: &Connection, user: &str, session: &str) -> Result<bool> {
    let removed = connection
        .prepare_cached(
            "DELETE FROM message WHERE user = ?1 AND session = ?2 AND number IN (
                 SELECT number FROM message WHERE user = ?1 AND session = ?2 AND number >= coalesce(
                     (SELECT next_message FROM session WHERE user = ?1 AND id = ?2), 0)
                 ORDER BY number DESC LIMIT ?3)",
        )?
        .execute((user, session, SLICE))?;
    let is_more = i64::try_from(removed).is_ok_and(|removed| removed >= SLICE);
    if !is_more {
        connection
            .prepare_cached("DELETE FROM leftover WHERE user = ?1 AND session = ?2")?
            .execute((user, session))?;
    }
    Ok(is_more)
}

/// Sessions whose rows a process that died has left behind: forks that were not finished, and rewinds.
pub(super) fn abandoned(connection: &Connection, now: i64) -> Result<Vec<(String, String)>> {
    connection
        .prepare_cached(
            "SELECT user, session FROM leftover WHERE since_ms < ?1
                 OR EXISTS (SELECT 1 FROM session WHERE session.user = leftover.user AND id = leftover.session)",
        )?
        .query_map([now - ABANDONED_MS], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

fn copied(connection: &Connection, user: &str, to: &str) -> Result<i64> {
    connection
        .prepare_cached("SELECT coalesce(max(number), 0) FROM message WHERE user = ?1 AND session = ?2")?
        .query_row((user, to), |row| row.get(0))
}
