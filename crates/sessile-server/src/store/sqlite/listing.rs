//! Lists with filters. However much a user has, one query reads at most [`SCAN_ROWS`] rows per filter.

use rusqlite::{Connection, Params, Result, Row};

use super::rows;
use crate::ids::{FencingToken, SessionId};
use crate::model::SessionRecord;
use crate::query::{ListPage, LockRecord, SCAN_ROWS};
use crate::store::columns::Column;
use crate::store::lists::{self, LockPlace, LockScan, SessionCandidate};

/// Live sessions, and whether they have the label: `?2` the time, `?3` and `?4` the label, `?5` the number of rows.
// The index is named: a statement that cannot use it fails instead of reading every ended session.
const LIVE: &str = "SELECT id, ?3 IS NULL OR EXISTS (
         SELECT 1 FROM label WHERE user = ?1 AND key = ?3 AND value = ?4 AND session = live.id)
     FROM (SELECT id FROM session INDEXED BY session_over
           WHERE user = ?1 AND over_ms > ?2 ORDER BY over_ms LIMIT ?5) AS live";

/// Sessions with a label, the newest first, and whether they are live.
const LABELLED: &str = "SELECT session, (
         SELECT over_ms > ?2 FROM session WHERE user = ?1 AND id = found.session)
     FROM (SELECT session FROM label
           WHERE user = ?1 AND key = ?3 AND value = ?4 AND session < ?5 ORDER BY session DESC LIMIT ?6) AS found";

/// Sessions, the newest first, and whether they are live.
const NEWEST: &str =
    "SELECT id, over_ms > ?2 FROM session WHERE user = ?1 AND id < ?3 ORDER BY id DESC LIMIT ?4";

const PLACES: &str =
    "SELECT resource, place, token, holder, asked_ms, expires_ms, shared, session, process <> '' FROM place
     WHERE user = ?1 AND resource > ?2 AND resource <= ?3 ORDER BY resource, place LIMIT ?4";

/// A page of the sessions of a user.
pub(super) struct Listing<'a> {
    pub(super) live: bool,
    pub(super) label: Option<&'a (String, String)>,
    pub(super) after: Option<&'a str>,
    pub(super) limit: i64,
}

impl Listing<'_> {
    pub(super) fn page(
        &self,
        connection: &Connection,
        user: &str,
        now: i64,
    ) -> Result<ListPage<SessionRecord>> {
        let (ids, next) = self.pick(connection, user, now)?;
        let mut items = Vec::with_capacity(ids.len());
        for id in ids {
            // A session that is ended ahead of its time has its end in the future if a clock was set back.
            if let Some(session) = rows::session(connection, user, id.as_str())?
                && (!self.live || session.is_live(now))
            {
                items.push(session);
            }
        }
        Ok(ListPage { items, next })
    }

    fn pick(&self, connection: &Connection, user: &str, now: i64) -> Result<lists::SessionPick> {
        let (key, value) = self.label.map(|(key, value)| (key, value)).unzip();
        if self.live {
            let live = candidates(connection, LIVE, (user, now, key, value, SCAN_ROWS + 1))?;
            if let Some(picked) = lists::pick_live(live, self.after, self.limit) {
                return Ok(picked);
            }
        }
        // Where every row matches, no more of them are read than are asked for.
        let scan = if self.live { SCAN_ROWS.max(self.limit) } else { self.limit.max(0) };
        let after = self.after.unwrap_or(lists::LAST_ID);
        let mut found = match self.label {
            Some(_) => candidates(connection, LABELLED, (user, now, key, value, after, scan))?,
            None => candidates(connection, NEWEST, (user, now, after, scan))?,
        };
        if !self.live {
            found.iter_mut().for_each(|candidate| candidate.matches = true);
        }
        Ok(lists::pick(found, scan, self.limit))
    }
}

fn candidates(connection: &Connection, sql: &str, params: impl Params) -> Result<Vec<SessionCandidate>> {
    let candidate = |row: &Row<'_>| {
        Ok(SessionCandidate {
            id: row.get::<_, Column<_>>(0)?.0,
            matches: row.get::<_, Option<bool>>(1)?.unwrap_or(false),
        })
    };
    connection.prepare_cached(sql)?.query_map(params, candidate)?.collect()
}

/// A page of the locks of a user that are held.
pub(super) fn locks(
    connection: &Connection,
    user: &str,
    after: Option<&str>,
    limit: i64,
    now: i64,
) -> Result<ListPage<LockRecord>> {
    let after = format!("lock:{}", after.unwrap_or(""));
    let scan = SCAN_ROWS.max(limit);
    match lists::locks(places(connection, user, &after, lists::AFTER_LOCKS, scan)?, scan, limit, now) {
        LockScan::Page(page) => Ok(page),
        LockScan::Whole(name) => {
            let all = places(connection, user, &after, &format!("lock:{name}"), i64::MAX)?;
            Ok(lists::whole_lock(all, name, now))
        }
    }
}

/// Locks that a session holds.
pub(super) fn session_locks(
    connection: &Connection,
    user: &str,
    session: &SessionId,
    now: i64,
) -> Result<Vec<(String, FencingToken)>> {
    let lock = |row: &Row<'_>| {
        let resource: String = row.get(0)?;
        let name = resource.strip_prefix("lock:").unwrap_or(&resource).to_owned();
        Ok((name, FencingToken::new(row.get(1)?)))
    };
    let sql = "SELECT resource, token FROM place
               WHERE user = ?1 AND session = ?2 AND token IS NOT NULL AND expires_ms > ?3 ORDER BY resource, place";
    connection.prepare_cached(sql)?.query_map((user, session.as_str(), now), lock)?.collect()
}

fn places(connection: &Connection, user: &str, after: &str, to: &str, scan: i64) -> Result<Vec<LockPlace>> {
    let place = |row: &Row<'_>| {
        let resource: String = row.get(0)?;
        Ok(LockPlace {
            name: resource.strip_prefix("lock:").unwrap_or(&resource).to_owned(),
            ticket: rows::ticket(row, 1)?,
            has_process: row.get(8)?,
        })
    };
    connection.prepare_cached(PLACES)?.query_map((user, after, to, scan), place)?.collect()
}

#[cfg(test)]
mod tests {
    use rusqlite::{Connection, StatementStatus};

    use super::{LABELLED, LIVE, Listing, NEWEST};

    const NOW: i64 = 1_000_000;

    /// A store in which a user has sessions: those of `live`, older than `over` that have expired; one in ten has a label.
    fn store(live: u32, over: u32) -> (tempfile::TempDir, Connection) {
        let dir = tempfile::tempdir().unwrap();
        let connection = super::super::connect(&dir.path().join("service.db")).unwrap();
        super::super::extend(&connection, dir.path()).unwrap();
        let insert = "INSERT INTO session (user, id, owner, labels, idle_ms, max_ms, started_ms, boot, started_boot_ms,
                                           started_awake_ms, check_ms, used_ms)
                      VALUES ('ann', ?1, '{}', '{}', ?2, ?2, 0, '', 0, 0, 0, 0)";
        connection.execute_batch("BEGIN").unwrap();
        for number in 0..live + over {
            let id = format!("0199aaaa-0000-7000-8000-{number:012x}");
            let expires = if number < live { 2 * NOW } else { 1 };
            connection.prepare_cached(insert).unwrap().execute((&id, expires)).unwrap();
            if number % 10 == 9 {
                connection.execute("INSERT INTO label VALUES ('ann', 'k', 'v', ?1)", [&id]).unwrap();
            }
        }
        connection.execute_batch("COMMIT").unwrap();
        (dir, connection)
    }

    /// Steps of SQLite's machine that a list takes.
    fn steps(connection: &Connection, live: bool, label: bool) -> i32 {
        let spent = || {
            let of = |sql| connection.prepare_cached(sql).unwrap().get_status(StatementStatus::VmStep);
            [LIVE, LABELLED, NEWEST].map(of).iter().sum::<i32>()
        };
        let label = label.then(|| ("k".to_owned(), "v".to_owned()));
        let listing = Listing { live, label: label.as_ref(), after: None, limit: 1 };
        let before = spent();
        listing.page(connection, "ann", NOW).unwrap();
        spent() - before
    }

    #[test]
    fn list_costs_the_same_however_many_sessions_have_ended() {
        let (_few_dir, few) = store(10, 1000);
        let (_many_dir, many) = store(10, 50_000);
        for (live, label) in [(true, false), (true, true), (false, false), (false, true)] {
            let (little, much) = (steps(&few, live, label), steps(&many, live, label));
            assert!(little > 0 && much <= little, "live {live}, label {label}: {little} steps, then {much}");
        }
    }

    #[test]
    fn list_of_many_live_sessions_is_bounded() {
        let (_dir, connection) = store(20_000, 20_000);
        for (live, label) in [(true, false), (true, true)] {
            let steps = steps(&connection, live, label);
            assert!((1..20_000).contains(&steps), "live {live}, label {label}: {steps} steps");
        }
    }
}
