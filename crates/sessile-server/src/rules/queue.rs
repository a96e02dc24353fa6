//! Queues: one exclusive place or any number of shared ones are held at a time, the others wait in order.
//!
//! A shared place waits for every exclusive one before it, held or waiting, so that a stream of shared requests starves
//! no exclusive one. Turns are exclusive.
//!
//! The next change of a queue removes its expired places. A waiting place of a process whose heartbeat is overdue is
//! skipped, and kept for a client that retries its request.

use sessile_wire::lock_mode::LockMode;

use super::write::Write;
use crate::change::{Busy, COMES_UP_MS, KEPT_MS, NOWHERE, Refusal};
use crate::ids::{FencingToken, Position, SessionId};
use crate::model::Ticket;

/// Stored place of a queue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueuePlace {
    pub(crate) ticket: Ticket,
    /// Process in which the client waits.
    pub(crate) process: String,
    /// Claim of the request that the place belongs to.
    pub(crate) claim: String,
    /// Whether the process is alive: this one, or one with a recent heartbeat.
    pub(crate) is_present: bool,
}

/// Rows of a queue that were loaded.
#[derive(Debug)]
pub(crate) struct QueueSnapshot {
    /// The next number: positions and fencing tokens are taken from it, so that neither is used twice.
    pub(crate) next: i64,
    /// The places that the change depends on. The held ones, the expired ones, and of those whose process is alive the first
    /// two and the first two exclusive ones are always among them.
    pub(crate) places: Vec<QueuePlace>,
}

/// Empty queue.
impl Default for QueueSnapshot {
    fn default() -> Self {
        QueueSnapshot { next: 1, places: Vec::new() }
    }
}

/// A queue while a change is decided.
#[derive(Debug)]
pub(crate) struct QueueState {
    resource: String,
    now: i64,
    process: String,
    next: i64,
    places: Vec<QueuePlace>,
    is_counted: bool,
    changed: Option<Position>,
    removed: Vec<Position>,
}

/// Outcome of waiting.
#[derive(Debug)]
pub(super) struct WaitOutcome {
    pub(super) ticket: Ticket,
    /// Whether the place is held from now on.
    pub(super) is_acquired: bool,
}

type Outcome = Result<Ticket, Refusal>;

impl QueueState {
    /// The queue of a resource, for a change that this process makes.
    pub(crate) fn new(resource: String, snapshot: QueueSnapshot, process: &str, now: i64) -> Self {
        let QueueSnapshot { next, places } = snapshot;
        QueueState {
            resource,
            now,
            process: process.to_owned(),
            next,
            places,
            is_counted: false,
            changed: None,
            removed: Vec::new(),
        }
    }

    /// Asks for a place, and acquires it if no other excludes it.
    pub(super) fn ask(
        &mut self,
        holder: &str,
        claim: &str,
        (busy, mode): (Busy, LockMode),
        (ttl_ms, wait_ms): (i64, i64),
        session: Option<&SessionId>,
    ) -> Outcome {
        self.sweep();
        let blocker = self.blocker(Position::new(i64::MAX), mode).map(|place| place.ticket.clone());
        match (&blocker, busy) {
            (Some(held), Busy::Reject) if held.token.is_some() => return Err(held_by(held)),
            // A waiter has no lease yet, so its expiry would tell the caller to come back much too late.
            (Some(waiting), Busy::Reject) => {
                return Err(held_by(&Ticket { expires_ms: self.now + COMES_UP_MS, ..waiting.clone() }));
            }
            (_, Busy::Interrupt) => {
                let excluded = self.held().filter(|held| held.mode.conflicts_with(mode));
                for position in excluded.map(|held| held.place).collect::<Vec<_>>() {
                    self.remove(position);
                }
            }
            _ => {}
        }
        // An interrupting request passes the waiters too, else it would wait behind those it outranks.
        let is_first = busy == Busy::Interrupt || blocker.is_none();
        let position = Position::new(self.take_number());
        let ticket = Ticket {
            place: position,
            token: None,
            holder: holder.to_owned(),
            session: session.map(SessionId::to_string),
            mode,
            asked_ms: self.now,
            expires_ms: self.waiting_expiry(wait_ms),
        };
        self.places.push(QueuePlace {
            ticket: ticket.clone(),
            process: self.process.clone(),
            claim: claim.to_owned(),
            is_present: true,
        });
        self.changed = Some(position);
        if is_first { self.acquire(position, ttl_ms) } else { Ok(ticket) }
    }

    /// Gives a place to the request that asks for it again.
    pub(super) fn reclaim(&mut self, position: Position, claim: &str, wait_ms: i64) {
        let (now, expires_ms) = (self.now, self.waiting_expiry(wait_ms));
        let found = self.places.iter_mut().find(|place| place.ticket.place == position);
        if let Some(place) = found.filter(|place| place.ticket.expires_ms > now) {
            // A held place keeps its lease: the time to wait is not the time to hold.
            if place.ticket.token.is_none() {
                place.ticket.expires_ms = expires_ms;
            }
            place.process.clone_from(&self.process);
            claim.clone_into(&mut place.claim);
            place.is_present = true;
            self.changed = Some(position);
        }
    }

    /// Acquires a place if it is next.
    pub(super) fn wait(
        &mut self,
        position: Position,
        claim: &str,
        ttl_ms: i64,
    ) -> Result<WaitOutcome, Refusal> {
        self.sweep();
        let is_mine = |place: &&QueuePlace| place.ticket.place == position && place.claim == claim;
        let place = self.places.iter().find(is_mine).ok_or(Refusal::PlaceLost { place: Some(position) })?;
        let ticket = place.ticket.clone();
        // A place that is held already is answered as it is: the request may have been sent twice.
        if ticket.token.is_none() && place.is_present && self.blocker(position, ticket.mode).is_none() {
            return Ok(WaitOutcome { ticket: self.acquire(position, ttl_ms)?, is_acquired: true });
        }
        Ok(WaitOutcome { ticket, is_acquired: false })
    }

    /// Renews the lease of the held place.
    pub(super) fn renew(&mut self, token: FencingToken, ttl_ms: i64) -> Outcome {
        let position = self.held_with(token)?;
        self.extend(position, ttl_ms)
    }

    /// Removes the place of a claim, held or not.
    pub(super) fn leave(&mut self, position: Option<Position>, claim: &str) -> Result<(), Refusal> {
        self.sweep();
        let is_mine = |place: &&QueuePlace| {
            place.claim == claim && position.is_none_or(|position| place.ticket.place == position)
        };
        let found = self.places.iter().find(is_mine).map(|place| place.ticket.place);
        self.remove(found.ok_or(Refusal::PlaceLost { place: position })?);
        Ok(())
    }

    /// Stops waiting at the place of a claim: the place stays, and is skipped.
    pub(super) fn step_aside(&mut self, claim: &str) -> Result<(), Refusal> {
        self.sweep();
        let is_mine = |place: &&mut QueuePlace| place.claim == claim && place.ticket.token.is_none();
        let place = self.places.iter_mut().find(is_mine).ok_or(Refusal::PlaceLost { place: None })?;
        // No heartbeat belongs to it, so every process skips the place.
        NOWHERE.clone_into(&mut place.process);
        place.is_present = false;
        self.changed = Some(place.ticket.place);
        Ok(())
    }

    /// Releases the lease of a token.
    pub(super) fn release(&mut self, token: FencingToken) -> Result<(), Refusal> {
        let position = self.held_with(token)?;
        self.remove(position);
        Ok(())
    }

    /// Position of the place that is held with a token.
    pub(super) fn held_with(&mut self, token: FencingToken) -> Result<Position, Refusal> {
        self.sweep();
        let held = self.held().find(|held| held.token == Some(token));
        held.map(|held| held.place).ok_or(Refusal::Lost { token })
    }

    /// The held places.
    fn held(&self) -> impl Iterator<Item = &Ticket> {
        let is_held =
            |place: &&QueuePlace| place.ticket.token.is_some() && place.ticket.expires_ms > self.now;
        self.places.iter().filter(is_held).map(|place| &place.ticket)
    }

    /// Refuses if a place is held.
    pub(super) fn check_free(&self) -> Result<(), Refusal> {
        self.held().next().map_or(Ok(()), |held| Err(held_by(held)))
    }

    /// First position that can be acquired now, if a client waits there. None behind it can be acquired before it.
    pub(crate) fn next_to_acquire(&self) -> Option<Position> {
        let waits = |place: &&QueuePlace| {
            place.ticket.token.is_none() && place.is_present && place.ticket.expires_ms > self.now
        };
        let first = self.places.iter().filter(waits).min_by_key(|place| place.ticket.place)?;
        let Ticket { place, mode, .. } = first.ticket;
        self.blocker(place, mode).is_none().then_some(place)
    }

    /// Whether a place is removed, held or next: whether its client has no reason to wait any longer.
    pub(crate) fn is_due(&self, position: Position) -> bool {
        let place = self.places.iter().find(|place| place.ticket.place == position);
        match place.map(|place| &place.ticket) {
            Some(Ticket { token: None, mode, .. }) => self.blocker(position, *mode).is_none(),
            _ => true,
        }
    }

    /// Adds what the change of the queue writes.
    pub(super) fn write(self, writes: &mut Vec<Write<'_>>) {
        let QueueState { resource, next, places, is_counted, changed, removed, .. } = self;
        if !removed.is_empty() {
            writes.push(Write::DeletePlaces { resource: resource.clone(), positions: removed });
        }
        if is_counted {
            writes.push(Write::SetNextNumber { resource: resource.clone(), next });
        }
        let changed =
            changed.and_then(|changed| places.into_iter().find(|place| place.ticket.place == changed));
        if let Some(place) = changed {
            // In the same transaction as the place, so that nobody skips it in between.
            if place.ticket.token.is_none() && place.is_present {
                writes.push(Write::Heartbeat);
            }
            writes.push(Write::PutPlace { resource, place });
        }
    }

    /// The first place that excludes one at a position: a held one, or else a waiting one before it whose process is alive.
    fn blocker(&self, position: Position, mode: LockMode) -> Option<&QueuePlace> {
        let blocks = |place: &&QueuePlace| {
            let QueuePlace { ticket, is_present, .. } = place;
            ticket.mode.conflicts_with(mode)
                // A snapshot holds expired places until a sweep removes them.
                && ticket.expires_ms > self.now
                && ticket.place != position
                && (ticket.token.is_some() || (*is_present && ticket.place < position))
        };
        let places = self.places.iter().filter(blocks);
        // A holder comes before a waiter, because refusals name it and its expiry.
        places.min_by_key(|place| (place.ticket.token.is_none(), place.ticket.place))
    }

    /// Expiry of a place whose client waits for a time.
    fn waiting_expiry(&self, wait_ms: i64) -> i64 {
        self.now.saturating_add(wait_ms).saturating_add(KEPT_MS)
    }

    fn acquire(&mut self, position: Position, ttl_ms: i64) -> Outcome {
        // From the same counter as positions, and only now: tokens grow in the order of holding.
        let token = FencingToken::new(self.take_number());
        self.ticket(position)?.token = Some(token);
        self.extend(position, ttl_ms)
    }

    fn extend(&mut self, position: Position, ttl_ms: i64) -> Outcome {
        let expires_ms = self.now.saturating_add(ttl_ms);
        self.changed = Some(position);
        let ticket = self.ticket(position)?;
        ticket.expires_ms = expires_ms;
        Ok(ticket.clone())
    }

    fn ticket(&mut self, position: Position) -> Result<&mut Ticket, Refusal> {
        let found = self.places.iter_mut().find(|place| place.ticket.place == position);
        found.map(|place| &mut place.ticket).ok_or(Refusal::PlaceLost { place: Some(position) })
    }

    fn remove(&mut self, position: Position) {
        self.places.retain(|place| place.ticket.place != position);
        self.removed.push(position);
    }

    /// Removes the expired places.
    fn sweep(&mut self) {
        let now = self.now;
        let expired = self.places.extract_if(.., |place| place.ticket.expires_ms <= now);
        self.removed.extend(expired.map(|place| place.ticket.place));
    }

    fn take_number(&mut self) -> i64 {
        self.is_counted = true;
        self.next += 1;
        self.next - 1
    }
}

fn held_by(ticket: &Ticket) -> Refusal {
    Refusal::Held { holder: ticket.holder.clone(), expires_ms: ticket.expires_ms }
}
