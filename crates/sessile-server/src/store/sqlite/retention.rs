//! Deletion of expired rows in small slices, because other changes wait for the one writer.

use rusqlite::{Connection, OptionalExtension, Result};

use crate::ids::{SessionId, UserName};
use crate::model::Resource;
use crate::store::columns::Column;
use crate::store::{ExpiringRows, SweepLimit};

/// Setting of a store: sessions that were over before this time may be removed.
pub(super) const SESSIONS_REMOVED: &str = "sessions-removed-ms";

/// Removes some of what a user has that is older than a time. How many rows.
pub(super) fn delete_expired(
    connection: &Connection,
    user: &UserName,
    what: ExpiringRows,
    limit: SweepLimit,
) -> Result<usize> {
    let SweepLimit { before_ms, most } = limit;
    let sql = match what {
        ExpiringRows::Answered => {
            "DELETE FROM answered WHERE user = ?1 AND key IN (
                 SELECT key FROM answered WHERE user = ?1 AND at_ms < ?2 ORDER BY at_ms LIMIT ?3)"
        }
        ExpiringRows::Events => {
            "DELETE FROM event WHERE user = ?1 AND (session, number) IN (
                 SELECT session, number FROM event WHERE user = ?1 AND at_ms < ?2 ORDER BY at_ms LIMIT ?3)"
        }
        // Their ids are in the order of time.
        ExpiringRows::Audit => {
            "DELETE FROM audit WHERE user = ?1 AND at_ms < ?2 AND id IN (
                 SELECT id FROM audit WHERE user = ?1 ORDER BY id LIMIT ?3)"
        }
    };
    connection.prepare_cached(sql)?.execute((user.as_str(), before_ms, most))
}

/// Sessions of a user that were over before a time.
pub(super) fn expired_sessions(
    connection: &Connection,
    user: &UserName,
    limit: SweepLimit,
) -> Result<Vec<SessionId>> {
    let SweepLimit { before_ms, most } = limit;
    connection
        .prepare_cached(
            "SELECT id FROM session
             WHERE user = ?1 AND over_ms < ?2 ORDER BY over_ms LIMIT ?3",
        )?
        .query_map((user.as_str(), before_ms, most), |row| Ok(row.get::<_, Column<_>>(0)?.0))?
        .collect()
}

/// Deletes a session that ended before a time, or a slice of its last rows. Returns whether the session is deleted
/// completely.
pub(super) fn delete_session(
    connection: &Connection,
    user: &UserName,
    session: &SessionId,
    limit: SweepLimit,
) -> Result<bool> {
    let SweepLimit { before_ms, most } = limit;
    let turn = Resource::Turn { session: session.clone() }.key();
    let (user, session) = (user.as_str(), session.as_str());
    let last: Option<i64> = connection
        .prepare_cached("SELECT next_message - 1 FROM session WHERE user = ?1 AND id = ?2 AND over_ms < ?3")?
        .query_row((user, session, before_ms), |row| row.get(0))
        .optional()?;
    let Some(last) = last else { return Ok(true) };
    // From the end, as if it was rewound: who reads it meanwhile finds no gaps.
    let stay = last.saturating_sub(most).max(0);
    connection
        .prepare_cached("DELETE FROM message WHERE user = ?1 AND session = ?2 AND number > ?3")?
        .execute((user, session, stay))?;
    connection
        .prepare_cached("UPDATE session SET next_message = ?3 + 1 WHERE user = ?1 AND id = ?2")?
        .execute((user, session, stay))?;
    let events = connection
        .prepare_cached(
            "DELETE FROM event WHERE user = ?1 AND session = ?2 AND number IN (
                 SELECT number FROM event WHERE user = ?1 AND session = ?2 ORDER BY number LIMIT ?3)",
        )?
        .execute((user, session, most))?;
    if stay > 0 || i64::try_from(events).is_ok_and(|events| events >= most) {
        return Ok(false);
    }
    // A restore of an older backup must not revive it.
    connection
        .prepare_cached(
            "INSERT INTO store_setting (name, value) VALUES (?1, ?2)
             ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
        )?
        .execute((SESSIONS_REMOVED, before_ms))?;
    for sql in [
        "DELETE FROM place WHERE user = ?1 AND resource = ?2",
        "DELETE FROM queue WHERE user = ?1 AND resource = ?2",
    ] {
        connection.prepare_cached(sql)?.execute((user, &turn))?;
    }
    for sql in [
        "DELETE FROM entry WHERE user = ?1 AND session = ?2",
        "DELETE FROM label WHERE user = ?1 AND session = ?2",
        "DELETE FROM session WHERE user = ?1 AND id = ?2",
    ] {
        connection.prepare_cached(sql)?.execute((user, session))?;
    }
    Ok(true)
}
