//! What is old, removed a little at a time: the one who writes is nobody else's meanwhile.

use rusqlite::{Connection, Result};

use crate::db::Old;
use crate::model::UserId;

/// Removes some of what a user has that is older than a time. How many rows.
pub(super) fn forget(
    connection: &Connection,
    user: &UserId,
    what: Old,
    before_ms: i64,
    most: i64,
) -> Result<usize> {
    let sql = match what {
        Old::Answered => {
            "DELETE FROM answered WHERE user = ?1 AND key IN (
                 SELECT key FROM answered WHERE user = ?1 AND at_ms < ?2 ORDER BY at_ms LIMIT ?3)"
        }
        Old::Events => {
            "DELETE FROM event WHERE user = ?1 AND (session, number) IN (
                 SELECT session, number FROM event WHERE user = ?1 AND at_ms < ?2 ORDER BY at_ms LIMIT ?3)"
        }
        // Their ids are in the order of time.
        Old::Audit => {
            "DELETE FROM audit WHERE user = ?1 AND at_ms < ?2 AND id IN (
                 SELECT id FROM audit WHERE user = ?1 ORDER BY id LIMIT ?3)"
        }
    };
    connection.prepare_cached(sql)?.execute((&user.0, before_ms, most))
}
