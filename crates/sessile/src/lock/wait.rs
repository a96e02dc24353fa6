//! Progress of a wait in the queue of a lock, as the user sees it.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::files::{LinePosition, LockWait, Locker, SILENCE, WaitNotice};
use crate::lock::LockHolder;
use crate::lock::holder::StoredHolder;
use crate::store::{Store, TicketRow};

/// Shortest time between two reports of one wait.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// Reports of one wait: the first after a short silence, then one for each new position.
pub(super) struct LineProgress<'a> {
    locker: &'a Locker,
    resource: &'a str,
    holder: &'a LockHolder,
    begun: Instant,
    reported: Option<(usize, Instant)>,
    /// Notice of the reporter, kept until the next report or the end of the wait.
    notice: Option<WaitNotice>,
}

impl<'a> LineProgress<'a> {
    pub(super) fn new(locker: &'a Locker, resource: &'a str, holder: &'a LockHolder) -> Self {
        LineProgress { locker, resource, holder, begun: Instant::now(), reported: None, notice: None }
    }

    /// The waiter.
    pub(super) fn holder(&self) -> &LockHolder {
        self.holder
    }

    /// Time that the wait has taken.
    pub(super) fn waited(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Time that is left.
    pub(super) fn remaining(&self) -> Duration {
        self.locker.timeout().saturating_sub(self.begun.elapsed())
    }

    /// Reports the position of a ticket if it is new.
    pub(super) fn report(&mut self, store: &Store, token: i64) {
        let is_early = match self.reported {
            None => self.begun.elapsed() < SILENCE,
            // The first in line stays the first: nothing new to report.
            Some((position, at)) => position == 1 || at.elapsed() < REPORT_EVERY,
        };
        if is_early {
            return;
        }
        let line = position(store, self.resource, token, self.holder);
        if self.reported.is_some_and(|(reported, _)| reported == line.position) {
            return;
        }
        self.reported = Some((line.position, Instant::now()));
        let remaining = self.remaining();
        tracing::info!(lock = line.name, position = line.position, ?remaining, "waiting for lock");
        let path = Path::new(self.resource);
        // The old one first: both may draw on the same line of a terminal.
        self.notice = None;
        self.notice = Some(self.locker.report(&LockWait { path, holder: None, remaining, line: Some(line) }));
    }
}

/// Position of a ticket in its queue.
fn position(store: &Store, resource: &str, token: i64, waiter: &LockHolder) -> LinePosition {
    // A report must not make the wait fail.
    let tickets = store.tickets(resource).unwrap_or_default();
    let waits =
        |ticket: &&TicketRow| ticket.resource == resource && ticket.held_ms.is_none() && ticket.token < token;
    let holder = first_holder(&tickets, resource).map(|holder| holder.described_to(waiter));
    let position = tickets.iter().filter(waits).count() + 1;
    LinePosition { name: lock_name(resource).to_owned(), position, holder }
}

/// First holder of a resource.
pub(super) fn first_holder(tickets: &[TicketRow], resource: &str) -> Option<LockHolder> {
    let held = tickets.iter().find(|ticket| ticket.resource == resource && ticket.held_ms.is_some())?;
    Some(StoredHolder::of_json(&held.holder).holder)
}

/// Name of the lock of a resource.
pub(super) fn lock_name(resource: &str) -> &str {
    resource.rsplit(':').next().unwrap_or(resource)
}
