//! Queues: who holds something, and who waits for it. A place whose time is over is gone, whoever looks next.
//!
//! All of a queue is read while its row, or its session's, is locked; what becomes of it is decided here and written at
//! the end.

use tokio_postgres::{Error, Row};

use super::sql::Sql;
use super::transaction::{Step, params};
use crate::change::{Busy, Refusal, WAITING_MS};
use crate::model::Ticket;

/// A queue of a user.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) resource: String,
    pub(super) now: i64,
    next: i64,
    places: Vec<Place>,
    counted: bool,
    changed: Option<i64>,
    gone: Vec<i64>,
}

#[derive(Clone, Debug)]
struct Place {
    rank: i64,
    ticket: Ticket,
}

type Outcome = Result<Ticket, Refusal>;

impl Queue {
    pub(super) fn read(resource: String, now: i64, next: &[Row], places: &[Row]) -> Result<Self, Error> {
        let next = next.first().map_or(Ok(1), |row| row.try_get(0))?;
        let place = |row: &Row| {
            let ticket = Ticket {
                place: row.try_get(0)?,
                token: row.try_get(2)?,
                holder: row.try_get(3)?,
                asked_ms: row.try_get(4)?,
                expires_ms: row.try_get(5)?,
            };
            Ok(Place { rank: row.try_get(1)?, ticket })
        };
        let places = places.iter().map(place).collect::<Result<_, Error>>()?;
        Ok(Queue { resource, now, next, places, ..Queue::default() })
    }

    /// Asks for a place.
    pub(super) fn ask(&mut self, holder: &str, busy: Busy, ttl_ms: i64) -> Outcome {
        self.sweep();
        let first = self.first().map(|first| first.ticket.clone());
        match (self.holder(), busy) {
            (Some(held), Busy::Reject) => return Err(held_by(&held)),
            (None, Busy::Reject) => first.as_ref().map_or(Ok(()), |waits| Err(held_by(waits)))?,
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
            expires_ms: self.now.saturating_add(WAITING_MS),
        };
        self.places.push(Place { rank: i64::from(busy != Busy::Interrupt), ticket: ticket.clone() });
        self.changed = Some(place);
        if is_first { self.hold(place, ttl_ms) } else { Ok(ticket) }
    }

    /// Keeps a place that waits; it is held if it is the first.
    pub(super) fn wait(&mut self, place: i64, ttl_ms: i64) -> Outcome {
        self.sweep();
        let found = self.get(place)?.clone();
        if found.token.is_some() {
            return Ok(found);
        }
        if self.holder().is_none() && self.first().is_some_and(|first| first.ticket.place == place) {
            return self.hold(place, ttl_ms);
        }
        self.extend(place, WAITING_MS)
    }

    /// Begins the time of a held place anew.
    pub(super) fn renew(&mut self, token: i64, ttl_ms: i64) -> Outcome {
        let held = self.held_with(token)?;
        self.extend(held.place, ttl_ms)
    }

    /// Gives a place back, if it is there.
    pub(super) fn leave(&mut self, place: i64) -> Result<(), Refusal> {
        self.sweep();
        self.get(place)?;
        self.remove(place);
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
        let Queue { resource, next, places, counted, changed, gone, .. } = self;
        let user = || user.to_owned();
        if !gone.is_empty() {
            steps.push(Step::Run(Sql::DropPlaces, params![user(), resource.clone(), gone]));
        }
        if counted {
            steps.push(Step::Run(Sql::SetQueue, params![user(), resource.clone(), next]));
        }
        let changed =
            changed.and_then(|changed| places.into_iter().find(|place| place.ticket.place == changed));
        if let Some(Place { rank, ticket }) = changed {
            let Ticket { place, token, holder, asked_ms, expires_ms } = ticket;
            let params = params![user(), resource, place, rank, token, holder, asked_ms, expires_ms];
            steps.push(Step::Run(Sql::PutPlace, params));
        }
    }

    /// The first of all, held or not.
    fn first(&self) -> Option<&Place> {
        self.places.iter().min_by_key(|place| (place.ticket.token.is_none(), place.rank, place.ticket.place))
    }

    fn get(&mut self, place: i64) -> Result<&mut Ticket, Refusal> {
        let found = self.places.iter_mut().find(|found| found.ticket.place == place);
        found.map(|found| &mut found.ticket).ok_or(Refusal::Lost { token: place })
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
        let now = self.now;
        let over = |place: &Place| place.ticket.expires_ms <= now;
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
