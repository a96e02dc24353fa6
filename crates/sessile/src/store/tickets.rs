//! Tickets: holder and waiters of a resource, in order. The number is the fencing token.

use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::Result;
use crate::store::Store;

/// Row of a ticket.
#[derive(Clone, Debug)]
pub(crate) struct TicketRow {
    /// Number.
    pub token: i64,
    /// Resource.
    pub resource: String,
    /// Holder, as JSON.
    pub holder: String,
    /// Time of the request, in milliseconds.
    pub asked_ms: i64,
    /// Time of the acquisition, in milliseconds.
    pub held_ms: Option<i64>,
    /// The end of a lease.
    pub expires_ms: Option<i64>,
    /// Boot id at the acquisition of the lease.
    pub boot: Option<String>,
    /// The end of the lease on that start's clock.
    pub expires_boot_ms: Option<i64>,
}

/// Outcome of an attempt to hold a waiting ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TurnInLine {
    /// The ticket is held. Others of stopped processes were removed.
    Held(Vec<i64>),
    /// Another ticket comes first.
    Blocked,
    /// The ticket was removed: a later one passed it while its process was stopped.
    Passed,
}

/// The end of a lease, on both clocks.
#[derive(Clone, Debug)]
pub(crate) struct LeaseEnd {
    /// The wall clock.
    pub expires_ms: i64,
    /// Boot id.
    pub boot: String,
    /// That start's clock.
    pub expires_boot_ms: i64,
}

const COLUMNS: &str = "token, resource, holder, asked_ms, held_ms, expires_ms, boot, expires_boot_ms";

fn row(row: &Row<'_>) -> rusqlite::Result<TicketRow> {
    Ok(TicketRow {
        token: row.get(0)?,
        resource: row.get(1)?,
        holder: row.get(2)?,
        asked_ms: row.get(3)?,
        held_ms: row.get(4)?,
        expires_ms: row.get(5)?,
        boot: row.get(6)?,
        expires_boot_ms: row.get(7)?,
    })
}

/// Beginning of the resources that are named locks.
pub(crate) const LOCK_PREFIX: &str = "lock:";

/// Removes the leases on locks that a session holds: they end with it.
pub(super) fn drop_leases_of(connection: &Connection, session: &str) -> rusqlite::Result<()> {
    connection
        // A range, because LIKE could not use the index; the bound is the last code point of Unicode.
        .prepare_cached(
            "DELETE FROM ticket WHERE resource >= ?1 AND resource < ?1 || char(1114111)
             AND expires_ms IS NOT NULL AND instr(holder, '\"session\":\"' || ?2 || '\"') > 0",
        )?
        .execute((LOCK_PREFIX, session))
        .map(drop)
}

/// Resource of a session's turns.
pub(crate) fn turn_resource(user: &str, session: &str) -> String {
    format!("turn:{user}:{session}")
}

impl Store {
    /// Draws a ticket. `before_seen` is called with its number before anyone else can see it.
    pub(crate) fn draw_ticket<T>(
        &mut self,
        resource: &str,
        holder: &str,
        now_ms: i64,
        before_seen: impl FnOnce(i64) -> Result<T>,
    ) -> Result<(i64, T)> {
        let mut failed = None;
        let drawn = self.write(|connection| {
            connection
                .prepare_cached("INSERT INTO ticket (resource, holder, asked_ms) VALUES (?1, ?2, ?3)")?
                .execute((resource, holder, now_ms))?;
            let token = connection.last_insert_rowid();
            match before_seen(token) {
                Ok(made) => Ok((token, made)),
                Err(error) => {
                    failed = Some(error);
                    // Any error rolls the transaction back; the real one is in `failed`, as SQLite's type
                    // cannot carry it.
                    Err(rusqlite::Error::QueryReturnedNoRows)
                }
            }
        });
        match failed {
            Some(error) => Err(error),
            None => drawn,
        }
    }

    /// The last ticket before another for which `is_wanted` is true.
    pub(crate) fn last_ticket_before(
        &self,
        resource: &str,
        token: i64,
        mut is_wanted: impl FnMut(&TicketRow) -> bool,
    ) -> Result<Option<TicketRow>> {
        self.read(|connection| {
            find_before(connection, resource, token, |ticket| is_wanted(&ticket).then_some(ticket))
        })
    }

    /// Marks a waiting ticket as held, and removes the tickets that it passes, in one transaction. `passed` gets each ticket
    /// before it: none if the ticket blocks this one, else whether it is removed.
    pub(crate) fn hold_next(
        &mut self,
        resource: &str,
        token: i64,
        now_ms: i64,
        passed: impl Fn(&TicketRow) -> Option<bool>,
    ) -> Result<TurnInLine> {
        self.write(|connection| {
            let mut removed = Vec::new();
            let blocked = find_before(connection, resource, token, |ticket| match passed(&ticket) {
                None => Some(TurnInLine::Blocked),
                Some(is_removed) => {
                    removed.extend(is_removed.then_some(ticket.token));
                    None
                }
            })?;
            if let Some(blocked) = blocked {
                return Ok(blocked);
            }
            let held = connection
                // A ticket that is held already keeps the time of its acquisition.
                .prepare_cached("UPDATE ticket SET held_ms = coalesce(held_ms, ?2) WHERE token = ?1")?
                .execute((token, now_ms))?;
            if held == 0 {
                return Ok(TurnInLine::Passed);
            }
            let mut statement = connection.prepare_cached("DELETE FROM ticket WHERE token = ?1")?;
            for token in &removed {
                statement.execute([token])?;
            }
            Ok(TurnInLine::Held(removed))
        })
    }

    /// The tickets of a resource, or of all whose names begin so, the holder of each first.
    pub(crate) fn tickets(&self, prefix: &str) -> Result<Vec<TicketRow>> {
        self.read(|connection| {
            connection
                // A range uses the index by resource, unlike LIKE.
                .prepare_cached(&format!(
                    "SELECT {COLUMNS} FROM ticket WHERE resource >= ?1 AND resource < ?1 || char(1114111)
                     ORDER BY resource, token"
                ))?
                .query_map([prefix], row)?
                .collect()
        })
    }

    /// Marks a ticket as held, with the expiry of a lease. Returns false if the ticket no longer exists: it was
    /// broken.
    pub(crate) fn hold_ticket(&mut self, token: i64, now_ms: i64, lease: Option<&LeaseEnd>) -> Result<bool> {
        self.write(|connection| {
            let changed = connection
                // Renewing a lease does not move the time of its acquisition.
                .prepare_cached(
                    "UPDATE ticket SET held_ms = coalesce(held_ms, ?2), expires_ms = ?3, boot = ?4, expires_boot_ms = ?5
                     WHERE token = ?1",
                )?
                .execute((
                    token,
                    now_ms,
                    lease.map(|lease| lease.expires_ms),
                    lease.map(|lease| &lease.boot),
                    lease.map(|lease| lease.expires_boot_ms),
                ))?;
            Ok(changed == 1)
        })
    }

    /// A ticket by its number.
    pub(crate) fn ticket(&self, token: i64) -> Result<Option<TicketRow>> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!("SELECT {COLUMNS} FROM ticket WHERE token = ?1"))?
                .query_row([token], row)
                .optional()
        })
    }

    /// Whether a ticket is still there.
    pub(crate) fn has_ticket(&self, token: i64) -> Result<bool> {
        self.read(|connection| {
            connection.prepare_cached("SELECT 1 FROM ticket WHERE token = ?1")?.exists([token])
        })
    }

    /// Takes a ticket away if its lease still ends when the caller saw it end, or it still is none.
    pub(crate) fn drop_ticket_of(&mut self, token: i64, expires_ms: Option<i64>) -> Result<bool> {
        self.write(|connection| {
            let gone = connection
                // IS, because `=` is never true for NULL. A lease that was renewed meanwhile is not dropped.
                .prepare_cached("DELETE FROM ticket WHERE token = ?1 AND expires_ms IS ?2")?
                .execute((token, expires_ms))?;
            Ok(gone == 1)
        })
    }

    /// Deletes a ticket; returns false if it no longer exists.
    pub(crate) fn drop_ticket(&mut self, token: i64) -> Result<bool> {
        self.write(|connection| {
            Ok(connection.prepare_cached("DELETE FROM ticket WHERE token = ?1")?.execute([token])? == 1)
        })
    }
}

/// The first result of `find` over the tickets before another, the newest first.
fn find_before<T>(
    connection: &Connection,
    resource: &str,
    token: i64,
    mut find: impl FnMut(TicketRow) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM ticket WHERE resource = ?1 AND token < ?2 ORDER BY token DESC"
    ))?;
    let mut rows = statement.query((resource, token))?;
    while let Some(found) = rows.next()? {
        if let Some(result) = find(row(found)?) {
            return Ok(Some(result));
        }
    }
    Ok(None)
}
