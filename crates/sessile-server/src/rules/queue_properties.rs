//! Properties of queues under random requests: exclusion, order, growing tokens, and independence of the places that are not
//! loaded.

use std::collections::BTreeSet;

use proptest::prelude::*;
use sessile_wire::lock_mode::LockMode;

use super::queue::{QueuePlace, QueueSnapshot, QueueState};
use super::write::Write;
use crate::change::{Busy, NOWHERE};
use crate::ids::{FencingToken, Position};

const HERE: &str = "this-process";
const TTL_MS: i64 = 40;
const WAIT_MS: i64 = 100_000;

/// One request. Numbers choose among the places that exist.
#[derive(Clone, Copy, Debug)]
enum QueueRequest {
    Ask(Busy, LockMode),
    Wait(usize),
    Release(usize),
    Renew(usize),
    Leave(usize),
    StepAside(usize),
    Pass(i64),
}

fn queue_request() -> impl Strategy<Value = QueueRequest> {
    let mode = prop_oneof![Just(LockMode::Exclusive), Just(LockMode::Shared), Just(LockMode::Shared)];
    let busy = prop_oneof![4 => Just(Busy::Enqueue), 1 => Just(Busy::Reject), 1 => Just(Busy::Interrupt)];
    let which = 0..12_usize;
    prop_oneof![
        4 => (busy, mode).prop_map(|(busy, mode)| QueueRequest::Ask(busy, mode)),
        6 => which.clone().prop_map(QueueRequest::Wait),
        3 => which.clone().prop_map(QueueRequest::Release),
        1 => which.clone().prop_map(QueueRequest::Renew),
        1 => which.clone().prop_map(QueueRequest::Leave),
        1 => which.prop_map(QueueRequest::StepAside),
        1 => (1..60_i64).prop_map(QueueRequest::Pass),
    ]
}

/// A queue as a store has it.
#[derive(Clone, Debug)]
struct StoredQueue {
    now: i64,
    next: i64,
    places: Vec<QueuePlace>,
}

impl StoredQueue {
    /// Rows that a store loads for a change at a position or with a claim.
    fn loaded(&self, position: Option<Position>, claim: Option<&str>) -> Vec<QueuePlace> {
        let waits = |place: &&QueuePlace| {
            place.ticket.token.is_none() && place.ticket.expires_ms > self.now && place.is_present
        };
        let first = |mode: Option<LockMode>| {
            let of_mode = move |place: &&QueuePlace| mode.is_none_or(|mode| place.ticket.mode == mode);
            let mut found: Vec<Position> =
                self.places.iter().filter(waits).filter(of_mode).map(|place| place.ticket.place).collect();
            found.sort_unstable();
            found.into_iter().take(2)
        };
        let wanted: BTreeSet<Position> = first(None).chain(first(Some(LockMode::Exclusive))).collect();
        let is_loaded = |place: &&QueuePlace| {
            place.ticket.token.is_some()
                || place.ticket.expires_ms <= self.now
                || Some(place.ticket.place) == position
                || Some(place.claim.as_str()) == claim
                || wanted.contains(&place.ticket.place)
        };
        self.places.iter().filter(is_loaded).cloned().collect()
    }

    fn queue(&self, places: Vec<QueuePlace>) -> QueueState {
        QueueState::new("lock:l".to_owned(), QueueSnapshot { next: self.next, places }, HERE, self.now)
    }

    fn store(&mut self, queue: QueueState) {
        let mut writes = Vec::new();
        queue.write(&mut writes);
        for write in writes {
            match write {
                Write::DeletePlaces { positions, .. } => {
                    self.places.retain(|place| !positions.contains(&place.ticket.place));
                }
                Write::SetNextNumber { next, .. } => self.next = next,
                Write::PutPlace { place, .. } => {
                    self.places.retain(|old| old.ticket.place != place.ticket.place);
                    self.places.push(place);
                }
                _ => {}
            }
        }
        self.places.sort_by_key(|place| place.ticket.place);
    }

    /// Makes a request with the rows that a store loads, and checks that all rows give the same.
    fn make(&mut self, request: QueueRequest, number: usize) {
        let chosen = |which: usize| self.places.get(which % self.places.len().max(1)).cloned();
        let mut claim = format!("claim-{number}");
        let mut position = None;
        let target = match request {
            QueueRequest::Ask(..) => None,
            QueueRequest::Pass(time) => {
                self.now += time;
                return;
            }
            QueueRequest::Wait(which)
            | QueueRequest::Release(which)
            | QueueRequest::Renew(which)
            | QueueRequest::Leave(which)
            | QueueRequest::StepAside(which) => {
                let Some(place) = chosen(which) else { return };
                claim.clone_from(&place.claim);
                position = Some(place.ticket.place);
                Some(place)
            }
        };
        let decide = |queue: &mut QueueState| {
            let token = target.as_ref().and_then(|place| place.ticket.token).unwrap_or(FencingToken::new(-1));
            match (request, position) {
                (QueueRequest::Ask(busy, mode), _) => {
                    queue.ask("me", &claim, (busy, mode), (TTL_MS, WAIT_MS), None).map(Some)
                }
                (QueueRequest::Wait(_), Some(position)) => {
                    queue.wait(position, &claim, TTL_MS).map(|waited| Some(waited.ticket))
                }
                (QueueRequest::Release(_), _) => queue.release(token).map(|()| None),
                (QueueRequest::Renew(_), _) => queue.renew(token, TTL_MS).map(Some),
                (QueueRequest::Leave(_), position) => queue.leave(position, &claim).map(|()| None),
                (QueueRequest::StepAside(_), _) => queue.step_aside(&claim).map(|()| None),
                (QueueRequest::Wait(_) | QueueRequest::Pass(_), _) => Ok(None),
            }
        };
        let before = self.clone();
        let mut few = self.queue(self.loaded(position, Some(&claim)));
        let mut all = self.queue(self.places.clone());
        let (outcome, expected) = (decide(&mut few), decide(&mut all));
        assert_eq!(outcome, expected, "{request:?} depends on a row that is not loaded: {before:#?}");
        if outcome.is_err() {
            return;
        }
        assert_eq!(few.next_to_acquire(), all.next_to_acquire(), "{request:?}: {before:#?}");
        self.store(few);
        if let Ok(Some(ticket)) = &outcome
            && !matches!(request, QueueRequest::Renew(_) | QueueRequest::Ask(Busy::Interrupt, _))
            && ticket.token.is_some()
            && before.held().all(|held| held.ticket.place != ticket.place)
        {
            let overtaken = before.places.iter().find(|place| {
                place.ticket.token.is_none()
                    && place.is_present
                    && place.ticket.expires_ms > self.now
                    && place.ticket.place < ticket.place
                    && place.ticket.mode.conflicts_with(ticket.mode)
            });
            assert!(overtaken.is_none(), "{ticket:?} overtook {overtaken:?}");
        }
    }

    fn held(&self) -> impl Iterator<Item = &QueuePlace> {
        let is_held =
            |place: &&QueuePlace| place.ticket.token.is_some() && place.ticket.expires_ms > self.now;
        self.places.iter().filter(is_held)
    }
}

proptest! {
    #[test]
    fn queue_excludes_keeps_order_and_moves(requests in prop::collection::vec(queue_request(), 1..80)) {
        let mut stored = StoredQueue { now: 1000, next: 1, places: Vec::new() };
        let mut last = 0;
        for (number, request) in requests.into_iter().enumerate() {
            let before: BTreeSet<i64> =
                stored.held().filter_map(|place| place.ticket.token).map(FencingToken::get).collect();
            stored.make(request, number);
            let exclusive = stored.held().filter(|place| !place.ticket.mode.is_shared()).count();
            let all = stored.held().count();
            prop_assert!(exclusive == 0 || all == 1, "{stored:#?}");
            for token in stored.held().filter_map(|place| place.ticket.token).map(FencingToken::get) {
                prop_assert!(before.contains(&token) || token > last, "{token} after {last}");
                last = last.max(token);
            }
        }
        // Whatever has happened, everybody who waits comes up once all holders let go.
        for number in 0..1000 {
            stored.now += TTL_MS;
            let queue = stored.queue(stored.loaded(None, None));
            let Some(position) = queue.next_to_acquire() else { break };
            let which = stored.places.iter().position(|place| place.ticket.place == position).unwrap();
            stored.make(QueueRequest::Wait(which), number);
        }
        let waits = |place: &&QueuePlace| {
            place.ticket.token.is_none() && place.process != NOWHERE && place.ticket.expires_ms > stored.now
        };
        prop_assert_eq!(stored.places.iter().filter(waits).count(), 0);
    }
}
