//! Queues: who holds something, and who waits for it. A place whose time is over is gone, whoever looks next. One that is
//! waited for in a process that is not heard of is passed over, and kept for whoever asks for it again.
//!
//! All of a queue is read while its row, or its session's, is locked; what becomes of it is decided here and written at
//! the end.

use std::sync::Arc;

use tokio_postgres::{Error, Row};

use super::Inner;
use super::sql::Sql;
use super::transaction::{Link, Step, Trouble, params, trouble};
use crate::change::{Busy, COMES_UP_MS, KEPT_MS, NOWHERE, Refusal};
use crate::model::Ticket;

macro_rules! now {
    () => {
        "floor(extract(epoch FROM now()) * 1000)::bigint"
    };
}

/// The processes that were heard of in the last milliseconds. They are nobody's, and so is the table.
pub(super) const PRESENT: &str = concat!("SELECT id FROM process WHERE seen_ms > ", now!(), " - $1");

const KEEP: &str = concat!(
    "INSERT INTO process (id, seen_ms) VALUES ($1, ",
    now!(),
    ") ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms"
);

const FORGET: &str = concat!("DELETE FROM process WHERE seen_ms < ", now!(), " - $1");

/// Says that this process is alive, and forgets those that died long ago.
pub(super) async fn keep(inner: &Arc<Inner>) -> Result<(), Trouble> {
    let mut link = Link::for_service(inner).await?;
    let steps =
        [Step::Other(KEEP, params![inner.process.to_string()]), Step::Other(FORGET, params![100 * KEPT_MS])];
    link.send(&steps).await.map(drop).map_err(|error| trouble(&error, false))
}

/// A queue of a user.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) resource: String,
    pub(super) now: i64,
    /// This one.
    process: String,
    /// Those that were heard of.
    present: Vec<String>,
    next: i64,
    places: Vec<Place>,
    counted: bool,
    changed: Option<i64>,
    gone: Vec<i64>,
}

#[derive(Clone, Debug)]
struct Place {
    ticket: Ticket,
    process: String,
    claim: String,
}

/// What came of waiting.
pub(super) struct Waited {
    pub(super) ticket: Ticket,
    /// Whether it is held from now on.
    pub(super) begins: bool,
}

type Outcome = Result<Ticket, Refusal>;

impl Queue {
    pub(super) fn read(
        (resource, now): (String, i64),
        next: &[Row],
        places: &[Row],
        process: &str,
        present: &[Row],
    ) -> Result<Self, Error> {
        let next = next.first().map_or(Ok(1), |row| row.try_get(0))?;
        let place = |row: &Row| {
            let ticket = Ticket {
                place: row.try_get(0)?,
                token: row.try_get(1)?,
                holder: row.try_get(2)?,
                asked_ms: row.try_get(3)?,
                expires_ms: row.try_get(4)?,
            };
            Ok(Place { ticket, process: row.try_get(5)?, claim: row.try_get(6)? })
        };
        let places = places.iter().map(place).collect::<Result<_, Error>>()?;
        let present = present.iter().map(|row| row.try_get(0)).collect::<Result<_, Error>>()?;
        Ok(Queue { resource, now, next, places, process: process.to_owned(), present, ..Queue::default() })
    }

    /// Asks for a place.
    pub(super) fn ask(
        &mut self,
        holder: &str,
        claim: &str,
        busy: Busy,
        (ttl_ms, wait_ms): (i64, i64),
    ) -> Outcome {
        self.sweep();
        let first = self.first().map(|first| first.ticket.clone());
        match (self.holder(), busy) {
            (Some(held), Busy::Reject) => return Err(held_by(&held)),
            (None, Busy::Reject) => {
                let waits = first.clone().map(|waits| Ticket { expires_ms: self.now + COMES_UP_MS, ..waits });
                waits.map_or(Ok(()), |waits| Err(held_by(&waits)))?;
            }
            (Some(held), Busy::Interrupt) => self.remove(held.place),
            _ => {}
        }
        let is_first = busy == Busy::Interrupt || first.is_none();
        let place = self.number();
        let ticket = Ticket {
            place,
            token: None,
            holder: holder.to_owned(),
            asked_ms: self.now,
            expires_ms: self.until(wait_ms),
        };
        self.places.push(Place {
            ticket: ticket.clone(),
            process: self.process.clone(),
            claim: claim.to_owned(),
        });
        self.changed = Some(place);
        if is_first { self.hold(place, ttl_ms) } else { Ok(ticket) }
    }

    /// Makes a place that was asked for before that of who asks now.
    pub(super) fn claim(&mut self, place: i64, claim: &str, wait_ms: i64) {
        let (now, until, process) = (self.now, self.until(wait_ms), self.process.clone());
        let found = self.places.iter_mut().find(|found| found.ticket.place == place);
        if let Some(found) = found.filter(|found| found.ticket.expires_ms > now) {
            // Whoever held it for a time did not mean the time that it is waited for.
            if found.ticket.token.is_none() {
                found.ticket.expires_ms = until;
            }
            (found.process, found.claim) = (process, claim.to_owned());
            self.changed = Some(place);
        }
    }

    /// Holds a place if it is the first.
    pub(super) fn wait(&mut self, place: i64, claim: &str, ttl_ms: i64) -> Result<Waited, Refusal> {
        self.sweep();
        let ticket = self.claimed(place, claim)?;
        if ticket.token.is_none()
            && self.holder().is_none()
            && self.first().is_some_and(|first| first.ticket.place == place)
        {
            return Ok(Waited { ticket: self.hold(place, ttl_ms)?, begins: true });
        }
        Ok(Waited { ticket, begins: false })
    }

    /// Begins the time of a held place anew.
    pub(super) fn renew(&mut self, token: i64, ttl_ms: i64) -> Outcome {
        let held = self.held_with(token)?;
        self.extend(held.place, ttl_ms)
    }

    /// Gives a place back that somebody asked for, if it is there.
    pub(super) fn leave(&mut self, place: Option<i64>, claim: &str) -> Result<(), Refusal> {
        self.sweep();
        let is_it =
            |found: &&Place| found.claim == claim && place.is_none_or(|place| found.ticket.place == place);
        let left = self.places.iter().find(is_it).map(|found| found.ticket.place);
        self.remove(left.ok_or(Refusal::Lost { token: place.unwrap_or(0) })?);
        Ok(())
    }

    /// Waits no longer at a place that somebody asked for, if it is there and not held.
    pub(super) fn step_aside(&mut self, claim: &str) -> Result<(), Refusal> {
        self.sweep();
        let is_it = |found: &&mut Place| found.claim == claim && found.ticket.token.is_none();
        let found = self.places.iter_mut().find(is_it).ok_or(Refusal::Lost { token: 0 })?;
        found.process = NOWHERE.to_owned();
        self.changed = Some(found.ticket.place);
        Ok(())
    }

    /// Gives back what is held with a token.
    pub(super) fn release(&mut self, token: i64) -> Result<(), Refusal> {
        let held = self.held_with(token)?;
        self.remove(held.place);
        Ok(())
    }

    /// The place that is held with a token, if it still is.
    pub(super) fn held_with(&mut self, token: i64) -> Outcome {
        self.sweep();
        self.holder().filter(|held| held.token == Some(token)).ok_or(Refusal::Lost { token })
    }

    /// Who holds it.
    pub(super) fn holder(&self) -> Option<Ticket> {
        let holds = |place: &&Place| place.ticket.token.is_some() && place.ticket.expires_ms > self.now;
        self.places.iter().find(holds).map(|place| place.ticket.clone())
    }

    /// The place that can be held now, if somebody waits at it.
    pub(super) fn next_to_hold(&self) -> Option<i64> {
        self.first().filter(|first| first.ticket.token.is_none()).map(|first| first.ticket.place)
    }

    /// What is to be written.
    pub(super) fn write(self, user: &str, steps: &mut Vec<Step>) {
        let Queue { resource, next, places, counted, changed, gone, process: here, present, .. } = self;
        let user = || user.to_owned();
        if !gone.is_empty() {
            steps.push(Step::Run(Sql::DropPlaces, params![user(), resource.clone(), gone]));
        }
        if counted {
            steps.push(Step::Run(Sql::SetQueue, params![user(), resource.clone(), next]));
        }
        let changed =
            changed.and_then(|changed| places.into_iter().find(|place| place.ticket.place == changed));
        if let Some(Place { ticket, process, claim }) = changed {
            // With the place, so that nobody passes it over in between. Seldom: all would wait for its row.
            if ticket.token.is_none() && !present.contains(&here) {
                steps.push(Step::Other(KEEP, params![here]));
            }
            let Ticket { place, token, holder, asked_ms, expires_ms } = ticket;
            let params =
                params![user(), resource, place, token, holder, asked_ms, expires_ms, process, claim];
            steps.push(Step::Run(Sql::PutPlace, params));
        }
    }

    /// The first of all who are there, held or not.
    fn first(&self) -> Option<&Place> {
        let is_there = |place: &&Place| {
            let is_present = place.process == self.process || self.present.contains(&place.process);
            place.ticket.token.is_some() || is_present
        };
        let there = self.places.iter().filter(is_there);
        there.min_by_key(|place| (place.ticket.token.is_none(), place.ticket.place))
    }

    fn get(&mut self, place: i64) -> Result<&mut Ticket, Refusal> {
        let found = self.places.iter_mut().find(|found| found.ticket.place == place);
        found.map(|found| &mut found.ticket).ok_or(Refusal::Lost { token: place })
    }

    fn claimed(&self, place: i64, claim: &str) -> Outcome {
        let is_it = |found: &&Place| found.ticket.place == place && found.claim == claim;
        let found = self.places.iter().find(is_it);
        found.map(|found| found.ticket.clone()).ok_or(Refusal::Lost { token: place })
    }

    /// When a place that is waited for so long is gone.
    fn until(&self, wait_ms: i64) -> i64 {
        self.now.saturating_add(wait_ms).saturating_add(KEPT_MS)
    }

    fn hold(&mut self, place: i64, ttl_ms: i64) -> Outcome {
        let token = self.number();
        self.get(place)?.token = Some(token);
        self.extend(place, ttl_ms)
    }

    fn extend(&mut self, place: i64, ttl_ms: i64) -> Outcome {
        let expires_ms = self.now.saturating_add(ttl_ms);
        self.changed = Some(place);
        let ticket = self.get(place)?;
        ticket.expires_ms = expires_ms;
        Ok(ticket.clone())
    }

    fn remove(&mut self, place: i64) {
        self.places.retain(|found| found.ticket.place != place);
        self.gone.push(place);
    }

    fn sweep(&mut self) {
        let over = |place: &Place| place.ticket.expires_ms <= self.now;
        self.gone.extend(self.places.iter().filter(|place| over(place)).map(|place| place.ticket.place));
        self.places.retain(|place| !over(place));
    }

    /// The next number of the queue.
    fn number(&mut self) -> i64 {
        self.counted = true;
        self.next += 1;
        self.next - 1
    }
}

fn held_by(ticket: &Ticket) -> Refusal {
    Refusal::Held { holder: ticket.holder.clone(), expires_ms: ticket.expires_ms }
}
