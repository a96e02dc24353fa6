//! Heartbeats of processes: the waiters of a process without a recent one are skipped.

use rusqlite::{Connection, Result};

use crate::change::{HEARD_EVERY_MS, KEPT_MS};

/// Records that a process is alive, unless that was recorded a moment ago.
pub(super) fn send(connection: &Connection, process: &str, now: i64) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO process (id, seen_ms) VALUES (?1, ?2)
             ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms WHERE seen_ms < excluded.seen_ms - ?3",
        )?
        // Each waiting change sends one too; a second write so soon tells nothing new.
        .execute((process, now, HEARD_EVERY_MS / 2))
        .map(drop)
}

/// Deletes processes that died long ago.
pub(super) fn delete_dead(connection: &Connection, now: i64) -> Result<()> {
    connection
        .prepare_cached("DELETE FROM process WHERE seen_ms < ?1")?
        .execute([now - 100 * KEPT_MS])
        .map(drop)
}
