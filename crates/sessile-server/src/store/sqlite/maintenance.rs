//! Maintenance: users due for a sweep, the lease of the sweeper, and settings of the store.

use rusqlite::{Connection, OptionalExtension, Result};

use crate::ids::UserName;
use crate::store::columns::Column;
use crate::store::{ExpiringRows, Sweep, SweepKind};

/// Users that may have rows older than a time.
pub(super) fn due(connection: &Connection, sweep: Sweep, most: i64) -> Result<Vec<UserName>> {
    let Sweep { kind, before_ms, now_ms } = sweep;
    connection
        .prepare_cached(
            "SELECT user FROM upkeep WHERE kind = ?1 AND (since_ms < ?2 OR since_ms > ?3) LIMIT ?4",
        )?
        .query_map((kind.name(), before_ms, now_ms, most), |row| Ok(row.get::<_, Column<_>>(0)?.0))?
        .collect()
}

/// Records the time of a user's oldest row after a sweep.
pub(super) fn mark_swept(connection: &Connection, user: &UserName, sweep: Sweep) -> Result<()> {
    let Sweep { kind, before_ms, now_ms } = sweep;
    let oldest = match kind {
        SweepKind::Rows(ExpiringRows::Answered) => "SELECT min(at_ms) FROM answered WHERE user = ?1",
        SweepKind::Rows(ExpiringRows::Events) => "SELECT min(at_ms) FROM event WHERE user = ?1",
        // Their ids are in the order of time.
        SweepKind::Rows(ExpiringRows::Audit) => "SELECT at_ms FROM audit WHERE user = ?1 ORDER BY id LIMIT 1",
        SweepKind::Sessions => "SELECT min(over_ms) FROM session WHERE user = ?1",
    };
    let oldest: Option<Option<i64>> =
        connection.prepare_cached(oldest)?.query_row([user.as_str()], |row| row.get(0)).optional()?;
    let since_ms = oldest.flatten().unwrap_or(now_ms).min(now_ms).max(before_ms);
    connection
        .prepare_cached("UPDATE upkeep SET since_ms = ?3 WHERE user = ?1 AND kind = ?2")?
        .execute((user.as_str(), kind.name(), since_ms))
        .map(drop)
}

/// Acquires or renews a lease.
pub(super) fn acquire_lease(
    connection: &Connection,
    name: &str,
    process: &str,
    now: i64,
    lease_ms: i64,
) -> Result<bool> {
    let changed = connection
        .prepare_cached(
            "INSERT INTO lease (name, holder, until_ms) VALUES (?1, ?2, ?4)
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms
             WHERE lease.holder = excluded.holder OR lease.until_ms <= ?3",
        )?
        .execute((name, process, now, now.saturating_add(lease_ms)))?;
    Ok(changed == 1)
}

/// A setting of the store, from when it was created.
pub(super) fn setting(connection: &Connection, name: &str) -> Result<Option<i64>> {
    connection
        .prepare_cached("SELECT value FROM store_setting WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

#[cfg(test)]
mod tests {
    use super::super::{ADDED, connect, extend};

    #[test]
    fn older_store_gets_labels_and_upkeep_and_keeps_ended_sessions() {
        let dir = tempfile::tempdir().unwrap();
        let connection = connect(&dir.path().join("service.db")).unwrap();
        connection.execute_batch("CREATE TABLE service (version INTEGER NOT NULL) STRICT").unwrap();
        for (number, sql) in (1..).zip(&ADDED[..5]) {
            connection.execute_batch(sql).unwrap();
            connection.execute("INSERT INTO service (version) VALUES (?1)", [number]).unwrap();
        }
        connection
            .execute_batch(
                r#"INSERT INTO account (user, made_ms) VALUES ('ann', 1);
                   INSERT INTO session (user, id, owner, labels, idle_ms, max_ms, started_ms, boot, started_boot_ms,
                                        started_awake_ms, check_ms, used_ms)
                   VALUES ('ann', 'a', '{}', '{"team":"web","empty":""}', 5, 100, 10, '', 0, 0, 0, 20);"#,
            )
            .unwrap();
        extend(&connection, dir.path()).unwrap();
        let text = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
        let labels = "SELECT group_concat(user || ' ' || key || '=' || value || ' ' || session) FROM label";
        assert_eq!(text(labels), "ann empty= a,ann team=web a");
        assert_eq!(text("SELECT over_ms || '' FROM session"), "25");
        let upkeep = "SELECT group_concat(user || ' ' || kind || ' ' || since_ms) FROM upkeep";
        assert_eq!(text(upkeep), "ann answered 0,ann audit 0,ann events 0,ann sessions 0");
        assert_eq!(super::setting(&connection, crate::store::retention::KEEP_SESSIONS.0).unwrap(), None);
    }
}
