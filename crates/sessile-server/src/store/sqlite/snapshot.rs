//! Loading of the rows that a change depends on.

use rusqlite::{Connection, OptionalExtension, Result, Row};

use super::rows;
use crate::change::PRESENT_MS;
use crate::ids::Position;
use crate::rules::{ChangeSnapshot, Dependencies, QueuePlace, QueueSnapshot, StoredEntry};

/// Whether a process is alive: this one, `?3`, and those with a heartbeat since `?4`.
macro_rules! is_present {
    () => {
        "process IN (SELECT ?3 UNION ALL SELECT id FROM process WHERE seen_ms > ?4)"
    };
}

/// Places of a queue that a change can depend on, out of possibly thousands: held ones, expired ones, the one at a
/// position and the one of a claim. Of waiters with a live process, the first two and the first two exclusive ones:
/// if the change removes the first, the second is next.
const PLACES: &str = concat!(
    "SELECT place, token, holder, asked_ms, expires_ms, shared, session, process, claim, ",
    is_present!(),
    " FROM place WHERE user = ?1 AND resource = ?2
         AND (token IS NOT NULL OR expires_ms <= ?5 OR place = ?6 OR claim = ?7 OR place IN (
             SELECT place FROM place WHERE user = ?1 AND resource = ?2 AND token IS NULL AND expires_ms > ?5 AND ",
    is_present!(),
    " ORDER BY place LIMIT 2) OR place IN (
             SELECT place FROM place WHERE user = ?1 AND resource = ?2 AND token IS NULL AND expires_ms > ?5
                 AND shared = 0 AND ",
    is_present!(),
    " ORDER BY place LIMIT 2))"
);

/// Loads what a change depends on.
pub(super) fn load(
    connection: &Connection,
    user: &str,
    process: &str,
    now: i64,
    dependencies: &Dependencies<'_>,
) -> Result<ChangeSnapshot> {
    let Dependencies { session, name, settings, queue, position, claim, entry, conversation } = dependencies;
    let mut snapshot = ChangeSnapshot { now, ..ChangeSnapshot::default() };
    if let Some(id) = session {
        snapshot.session = rows::record(connection, user, id.as_str())?;
        if let Some(record) = snapshot.session.as_mut().filter(|_| *settings) {
            record.session.settings = rows::settings(connection, user, id.as_str())?;
        }
    }
    if let Some(name) = name {
        let named = rows::named_record(connection, user, name)?;
        snapshot.named = named.filter(|named| Some(&named.session.id) != *session);
    }
    if let Some((resource, _)) = queue {
        let view = QueueView { connection, user, resource, process, now };
        snapshot.queue = view.load(*position, *claim)?;
    }
    if let (Some(session), Some(key)) = (session, entry) {
        snapshot.entry = connection
            .prepare_cached(
                "SELECT kind, revision FROM entry
                 WHERE user = ?1 AND session = ?2 AND kind IN ('state', 'state-gone') AND key = ?3",
            )?
            .query_row((user, session.as_str(), key), |row| {
                Ok(StoredEntry::new(row.get_ref(0)?.as_str().unwrap_or_default(), row.get(1)?))
            })
            .optional()?;
    }
    if let (Some(session), true) = (session, conversation) {
        let stored: Option<String> = connection
            .prepare_cached(
                "SELECT value FROM entry WHERE user = ?1 AND session = ?2 AND kind = 'conversation'",
            )?
            .query_row((user, session.as_str()), |row| row.get(0))
            .optional()?;
        snapshot.conversation = stored.and_then(|stored| serde_json::from_str(&stored).ok());
    }
    Ok(snapshot)
}

/// A queue of a user, as one process sees it.
pub(super) struct QueueView<'a> {
    pub(super) connection: &'a Connection,
    pub(super) user: &'a str,
    pub(super) resource: &'a str,
    pub(super) process: &'a str,
    pub(super) now: i64,
}

impl QueueView<'_> {
    /// Loads the places that matter to a client at a position, or with a claim.
    pub(super) fn load(&self, position: Option<Position>, claim: Option<&str>) -> Result<QueueSnapshot> {
        let QueueView { connection, user, resource, process, now } = self;
        let next = connection
            .prepare_cached("SELECT next FROM queue WHERE user = ?1 AND resource = ?2")?
            .query_row((user, resource), |row| row.get(0))
            .optional()?;
        // A place takes its number from this row, so without the row there are no places.
        let Some(next) = next else { return Ok(QueueSnapshot::default()) };
        let position = position.map(Position::get);
        let places = connection
            .prepare_cached(PLACES)?
            .query_map((user, resource, process, now - PRESENT_MS, now, position, claim), place)?
            .collect::<Result<_>>()?;
        Ok(QueueSnapshot { next, places })
    }
}

fn place(row: &Row<'_>) -> Result<QueuePlace> {
    let ticket = rows::ticket(row, 0)?;
    Ok(QueuePlace { ticket, process: row.get(7)?, claim: row.get(8)?, is_present: row.get(9)? })
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, StatementStatus};

    use super::*;

    #[test]
    fn statements_of_a_queue_are_prepared_once() {
        let dir = tempfile::tempdir().unwrap();
        let connection = super::super::connect(&dir.path().join("service.db")).unwrap();
        super::super::extend(&connection, dir.path()).unwrap();
        connection
            .execute_batch("INSERT INTO queue (user, resource, next) VALUES ('ann', 'r', 1), ('bob', 'r', 1)")
            .unwrap();
        for (number, user) in [(1, "ann"), (2, "bob"), (3, "ann")] {
            let view = QueueView {
                connection: &connection,
                user,
                resource: "r",
                process: &number.to_string(),
                now: number,
            };
            let position = Some(Position::new(number));
            view.load(position, Some(user)).unwrap();
        }
        let prepared_again = |connection: &Connection, sql| {
            connection.prepare_cached(sql).unwrap().get_status(StatementStatus::RePrepare)
        };
        assert_eq!(prepared_again(&connection, PLACES), 0);
    }
}
