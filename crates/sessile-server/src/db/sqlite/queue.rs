//! Queues: who holds something, and who waits for it. A place whose time is over is gone, whoever looks next. One that is
//! waited for in a process that is not heard of is passed over, and kept for whoever asks for it again.

use rusqlite::{Connection, OptionalExtension, Result, Row};

use crate::change::{Busy, COMES_UP_MS, HEARD_EVERY_MS, KEPT_MS, NOWHERE, PRESENT_MS, Refusal};
use crate::model::Ticket;

/// A queue of a user.
pub(super) struct Queue<'a> {
    pub(super) connection: &'a Connection,
    pub(super) user: &'a str,
    pub(super) resource: &'a str,
    /// This one.
    pub(super) process: &'a str,
    pub(super) now: i64,
}

/// What came of waiting.
pub(super) struct Waited {
    pub(super) ticket: Ticket,
    /// Whether it is held from now on.
    pub(super) begins: bool,
}

/// Whether a process is there: this one, `?3`, and those that were heard of since `?4`.
const IS_PRESENT: &str = "process IN (SELECT ?3 UNION ALL SELECT id FROM process WHERE seen_ms > ?4)";

/// Says that a process is alive. Once in a while is enough.
pub(super) fn keep(connection: &Connection, process: &str, now: i64) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO process (id, seen_ms) VALUES (?1, ?2)
             ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms WHERE seen_ms < excluded.seen_ms - ?3",
        )?
        .execute((process, now, HEARD_EVERY_MS / 2))
        .map(drop)
}

/// Forgets processes that died long ago.
pub(super) fn forget(connection: &Connection, now: i64) -> Result<()> {
    connection
        .prepare_cached("DELETE FROM process WHERE seen_ms < ?1")?
        .execute([now - 100 * KEPT_MS])
        .map(drop)
}

const COLUMNS: &str = "place, token, holder, asked_ms, expires_ms";

fn ticket(row: &Row<'_>) -> Result<Ticket> {
    Ok(Ticket {
        place: row.get(0)?,
        token: row.get(1)?,
        holder: row.get(2)?,
        asked_ms: row.get(3)?,
        expires_ms: row.get(4)?,
    })
}

impl Queue<'_> {
    /// Whether a place is gone, or can be held, or is held already: whether there is a reason to wait for it no longer.
    pub(super) fn is_due(&self, place: i64) -> Result<bool> {
        let waits = self.get(place)?.is_some_and(|mine| mine.token.is_none());
        Ok(!waits || self.next_to_hold()? == Some(place))
    }

    /// The place that can be held now, if somebody waits at it.
    pub(super) fn next_to_hold(&self) -> Result<Option<i64>> {
        Ok(self.first()?.filter(|first| first.token.is_none()).map(|first| first.place))
    }

    /// Asks for a place.
    pub(super) fn ask(
        &self,
        holder: &str,
        claim: &str,
        busy: Busy,
        (ttl_ms, wait_ms): (i64, i64),
    ) -> Result<std::result::Result<Ticket, Refusal>> {
        self.sweep()?;
        let holding = self.holder()?;
        let first = self.first()?;
        match (&holding, busy) {
            (Some(held), Busy::Reject) => return Ok(Err(held_by(held))),
            (None, Busy::Reject) => {
                if let Some(waits) = first {
                    return Ok(Err(held_by(&Ticket { expires_ms: self.now + COMES_UP_MS, ..waits })));
                }
            }
            (Some(held), Busy::Interrupt) => self.remove(held.place)?,
            _ => {}
        }
        let is_first = busy == Busy::Interrupt || first.is_none();
        let place = self.next()?;
        self.connection
            .prepare_cached(
                "INSERT INTO place (user, resource, place, token, holder, process, claim, asked_ms, expires_ms)
                 VALUES (?1, ?2, ?3, NULL, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute((
                self.user,
                self.resource,
                place,
                holder,
                self.process,
                claim,
                self.now,
                self.until(wait_ms),
            ))?;
        if is_first {
            self.hold(place, ttl_ms).map(Ok)
        } else {
            self.get(place).map(|found| found.ok_or(lost(place)))
        }
    }

    /// Makes a place that was asked for before that of who asks now.
    pub(super) fn claim(&self, place: i64, claim: &str, wait_ms: i64) -> Result<()> {
        // Whoever held it for a time did not mean the time that it is waited for.
        self.connection
            .prepare_cached(
                "UPDATE place SET process = ?4, claim = ?5,
                     expires_ms = CASE WHEN token IS NULL THEN ?6 ELSE expires_ms END
                 WHERE user = ?1 AND resource = ?2 AND place = ?3 AND expires_ms > ?7",
            )?
            .execute((self.user, self.resource, place, self.process, claim, self.until(wait_ms), self.now))
            .map(drop)
    }

    /// Holds a place if it is the first.
    pub(super) fn wait(
        &self,
        place: i64,
        claim: &str,
        ttl_ms: i64,
    ) -> Result<std::result::Result<Waited, Refusal>> {
        self.sweep()?;
        let Some(ticket) = self.get_claimed(place, claim)? else { return Ok(Err(lost(place))) };
        if ticket.token.is_none()
            && self.holder()?.is_none()
            && self.first()?.is_some_and(|first| first.place == place)
        {
            return Ok(Ok(Waited { ticket: self.hold(place, ttl_ms)?, begins: true }));
        }
        Ok(Ok(Waited { ticket, begins: false }))
    }

    /// Begins the time of a held place anew.
    pub(super) fn renew(&self, token: i64, ttl_ms: i64) -> Result<std::result::Result<Ticket, Refusal>> {
        let Some(held) = self.held_with(token)? else { return Ok(Err(lost(token))) };
        self.extend(held.place, ttl_ms)?;
        self.get(held.place).map(|found| found.ok_or(lost(token)))
    }

    /// Gives a place back that somebody asked for; whether it was there.
    pub(super) fn leave(&self, place: Option<i64>, claim: &str) -> Result<bool> {
        self.sweep()?;
        let left = self
            .connection
            .prepare_cached(
                "DELETE FROM place WHERE user = ?1 AND resource = ?2 AND claim = ?3 AND place = coalesce(?4, place)",
            )?
            .execute((self.user, self.resource, claim, place))?;
        Ok(left > 0)
    }

    /// Waits no longer at a place that somebody asked for; whether it was there and not held.
    pub(super) fn step_aside(&self, claim: &str) -> Result<bool> {
        self.sweep()?;
        let left = self
            .connection
            .prepare_cached(
                "UPDATE place SET process = ?4 WHERE user = ?1 AND resource = ?2 AND claim = ?3 AND token IS NULL",
            )?
            .execute((self.user, self.resource, claim, NOWHERE))?;
        Ok(left > 0)
    }

    /// Gives back what is held with a token; whether it was.
    pub(super) fn release(&self, token: i64) -> Result<bool> {
        let held = self.held_with(token)?;
        if let Some(held) = &held {
            self.remove(held.place)?;
        }
        Ok(held.is_some())
    }

    /// The place that is held with a token, if it still is.
    pub(super) fn held_with(&self, token: i64) -> Result<Option<Ticket>> {
        self.sweep()?;
        Ok(self.holder()?.filter(|held| held.token == Some(token)))
    }

    /// Who holds it.
    pub(super) fn holder(&self) -> Result<Option<Ticket>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM place WHERE user = ?1 AND resource = ?2 AND token IS NOT NULL AND expires_ms > ?3"
        );
        self.connection
            .prepare_cached(&sql)?
            .query_row((self.user, self.resource, self.now), ticket)
            .optional()
    }

    /// The first of all who are there, held or not.
    fn first(&self) -> Result<Option<Ticket>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM place WHERE user = ?1 AND resource = ?2 AND expires_ms > ?5
                 AND (token IS NOT NULL OR {IS_PRESENT})
             ORDER BY token IS NULL, place LIMIT 1"
        );
        let params = (self.user, self.resource, self.process, self.now - PRESENT_MS, self.now);
        self.connection.prepare_cached(&sql)?.query_row(params, ticket).optional()
    }

    fn get(&self, place: i64) -> Result<Option<Ticket>> {
        let sql = format!("SELECT {COLUMNS} FROM place WHERE user = ?1 AND resource = ?2 AND place = ?3");
        self.connection.prepare_cached(&sql)?.query_row((self.user, self.resource, place), ticket).optional()
    }

    fn get_claimed(&self, place: i64, claim: &str) -> Result<Option<Ticket>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM place WHERE user = ?1 AND resource = ?2 AND place = ?3 AND claim = ?4"
        );
        self.connection
            .prepare_cached(&sql)?
            .query_row((self.user, self.resource, place, claim), ticket)
            .optional()
    }

    /// When a place that is waited for so long is gone.
    fn until(&self, wait_ms: i64) -> i64 {
        self.now.saturating_add(wait_ms).saturating_add(KEPT_MS)
    }

    fn hold(&self, place: i64, ttl_ms: i64) -> Result<Ticket> {
        let token = self.next()?;
        let sql = format!(
            "UPDATE place SET token = ?4, expires_ms = ?5 WHERE user = ?1 AND resource = ?2 AND place = ?3
             RETURNING {COLUMNS}"
        );
        self.connection
            .prepare_cached(&sql)?
            .query_row((self.user, self.resource, place, token, self.now + ttl_ms), ticket)
    }

    fn extend(&self, place: i64, ttl_ms: i64) -> Result<()> {
        self.connection
            .prepare_cached(
                "UPDATE place SET expires_ms = ?4 WHERE user = ?1 AND resource = ?2 AND place = ?3",
            )?
            .execute((self.user, self.resource, place, self.now + ttl_ms))
            .map(drop)
    }

    fn remove(&self, place: i64) -> Result<()> {
        self.connection
            .prepare_cached("DELETE FROM place WHERE user = ?1 AND resource = ?2 AND place = ?3")?
            .execute((self.user, self.resource, place))
            .map(drop)
    }

    fn sweep(&self) -> Result<()> {
        self.connection
            .prepare_cached("DELETE FROM place WHERE user = ?1 AND resource = ?2 AND expires_ms <= ?3")?
            .execute((self.user, self.resource, self.now))
            .map(drop)
    }

    /// The next number of the queue.
    fn next(&self) -> Result<i64> {
        self.connection
            .prepare_cached(
                "INSERT INTO queue (user, resource, next) VALUES (?1, ?2, 2)
                 ON CONFLICT (user, resource) DO UPDATE SET next = next + 1 RETURNING next - 1",
            )?
            .query_row((self.user, self.resource), |row| row.get(0))
    }
}

fn held_by(ticket: &Ticket) -> Refusal {
    Refusal::Held { holder: ticket.holder.clone(), expires_ms: ticket.expires_ms }
}

fn lost(token: i64) -> Refusal {
    Refusal::Lost { token }
}
