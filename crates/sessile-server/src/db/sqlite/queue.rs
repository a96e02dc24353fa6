//! Queues: who holds something, and who waits for it. A place whose time is over is gone, whoever looks next.

use rusqlite::{Connection, OptionalExtension, Result, Row};

use crate::change::{Busy, Refusal, WAITING_MS};
use crate::model::Ticket;

/// A queue of a user.
pub(super) struct Queue<'a> {
    pub(super) connection: &'a Connection,
    pub(super) user: &'a str,
    pub(super) resource: &'a str,
    pub(super) now: i64,
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

/// The place that can be held now, if somebody waits at it.
pub(super) fn next_to_hold(connection: &Connection, user: &str, resource: &str) -> Result<Option<i64>> {
    let first: Option<(i64, Option<i64>)> = connection
        .prepare_cached(
            "SELECT place, token FROM place WHERE user = ?1 AND resource = ?2 ORDER BY token IS NULL, rank, place LIMIT 1",
        )?
        .query_row((user, resource), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(first.filter(|(_, token)| token.is_none()).map(|(place, _)| place))
}

impl Queue<'_> {
    /// Asks for a place.
    pub(super) fn ask(
        &self,
        holder: &str,
        busy: Busy,
        ttl_ms: i64,
    ) -> Result<std::result::Result<Ticket, Refusal>> {
        self.sweep()?;
        let holding = self.holder()?;
        let first = self.first()?;
        match (&holding, busy) {
            (Some(held), Busy::Reject) => return Ok(Err(held_by(held))),
            (None, Busy::Reject) => {
                if let Some(waits) = &first {
                    return Ok(Err(held_by(waits)));
                }
            }
            (Some(held), Busy::Interrupt) => self.remove(held.place)?,
            _ => {}
        }
        let is_first = busy == Busy::Interrupt || first.is_none();
        let place = self.next()?;
        let rank = i64::from(busy != Busy::Interrupt);
        self.connection
            .prepare_cached(
                "INSERT INTO place (user, resource, place, rank, token, holder, asked_ms, expires_ms)
                 VALUES (?1, ?2, ?3, ?4, NULL, ?5, ?6, ?7)",
            )?
            .execute((self.user, self.resource, place, rank, holder, self.now, self.now + WAITING_MS))?;
        if is_first {
            self.hold(place, ttl_ms).map(Ok)
        } else {
            self.get(place).map(|found| found.ok_or(lost(place)))
        }
    }

    /// Keeps a place that waits; it is held if it is the first.
    pub(super) fn wait(&self, place: i64, ttl_ms: i64) -> Result<std::result::Result<Ticket, Refusal>> {
        self.sweep()?;
        let Some(found) = self.get(place)? else { return Ok(Err(lost(place))) };
        if found.token.is_some() {
            return Ok(Ok(found));
        }
        if self.holder()?.is_none() && self.first()?.is_some_and(|first| first.place == place) {
            return self.hold(place, ttl_ms).map(Ok);
        }
        self.extend(place, WAITING_MS)?;
        self.get(place).map(|found| found.ok_or(lost(place)))
    }

    /// Begins the time of a held place anew.
    pub(super) fn renew(&self, token: i64, ttl_ms: i64) -> Result<std::result::Result<Ticket, Refusal>> {
        let Some(held) = self.held_with(token)? else { return Ok(Err(lost(token))) };
        self.extend(held.place, ttl_ms)?;
        self.get(held.place).map(|found| found.ok_or(lost(token)))
    }

    /// Gives a place back; whether it was there.
    pub(super) fn leave(&self, place: i64) -> Result<bool> {
        self.sweep()?;
        let was_there = self.get(place)?.is_some();
        self.remove(place)?;
        Ok(was_there)
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

    /// The first of all, held or not.
    fn first(&self) -> Result<Option<Ticket>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM place WHERE user = ?1 AND resource = ?2 ORDER BY token IS NULL, rank, place LIMIT 1"
        );
        self.connection.prepare_cached(&sql)?.query_row((self.user, self.resource), ticket).optional()
    }

    fn get(&self, place: i64) -> Result<Option<Ticket>> {
        let sql = format!("SELECT {COLUMNS} FROM place WHERE user = ?1 AND resource = ?2 AND place = ?3");
        self.connection.prepare_cached(&sql)?.query_row((self.user, self.resource, place), ticket).optional()
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
