//! Acquisition of a turn or lock.
//!
//! Waiting is a task of its own: the client may disconnect at any moment, also while the store is about to grant the
//! turn. The task notices that and releases the place.
//!
//! - Waiters of a process whose last heartbeat (`serve/heartbeat.rs`) is older than a second are skipped. A skipped
//!   waiter keeps its place until it expires, so that skipping a live one costs it one turn of waiting and nothing
//!   else. A waiter whose request timed out under an idempotency key is skipped in the same way.
//! - A place belongs to the last request for it. The same request, sent again under its key to any process,
//!   takes the place over; the earlier one can then neither acquire nor release it.
//! - A place that no client learned of is released, and a retry with its key gets a new place. The fencing token is assigned when the
//!   place is held.
//! - A waiter leaves its wait with the store, which may carry it out in the transaction of the release that it waits for. Otherwise it
//!   is woken and asks.
//! - The messages of a turn are read after it is held: no other request can append then, and the stored answer of an
//!   idempotency key stays small.

use std::time::Duration;

use sessile_wire::backoff::Backoff;
use sessile_wire::lock_mode::LockMode;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::app::AppState;
use super::caller::UserStore;
use super::input;
use super::metrics::{Gauge, GaugeGuard};
use super::problem::ApiProblem;
use crate::change::{Busy, ChangeOutcome, StoreChange};
use crate::ids::SessionId;
use crate::model::{Resource, Ticket};
use crate::store::WaitResult;

/// Attempts to release a place in a store that is unavailable, and the first and longest delay between two of them.
const TRIES: u32 = 10;
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// A lease on a turn or lock to acquire.
#[derive(Debug)]
pub(crate) struct LeaseRequest {
    pub(crate) resource: Resource,
    pub(crate) holder: String,
    pub(crate) busy: Busy,
    pub(crate) mode: LockMode,
    pub(crate) ttl_ms: i64,
    pub(crate) wait_ms: i64,
    /// Session that a lock belongs to.
    pub(crate) session: Option<SessionId>,
}

struct LeaseWait {
    app: AppState,
    bound: UserStore,
    key: Option<String>,
    /// Claim of this request: the same request sent again takes the place over.
    claim: String,
    wanted: LeaseRequest,
    _busy: Option<mpsc::Sender<()>>,
    _counted: GaugeGuard,
}

/// Sender of the lease. A lease that is not received is released with the channel.
type Reply = oneshot::Sender<Result<(Ticket, LeaseGuard), ApiProblem>>;

/// Acquires a turn or lock, waiting in the queue.
pub(crate) async fn take(
    app: &AppState,
    bound: UserStore,
    key: Option<String>,
    wanted: LeaseRequest,
) -> Result<(Ticket, LeaseGuard), ApiProblem> {
    let (reply, answer) = oneshot::channel();
    let waiting = LeaseWait {
        app: app.clone(),
        bound,
        key,
        claim: input::new_id()?,
        wanted,
        _busy: app.busy.upgrade(),
        _counted: app.metrics.up(Gauge::Waiting),
    };
    // axum drops the handler's future when the client disconnects, at whatever point it awaits.
    tokio::spawn(waiting.run(reply));
    answer.await.unwrap_or_else(|_| Err(ApiProblem::closing_down()))
}

impl LeaseWait {
    async fn run(self, mut reply: Reply) {
        let outcome = self.held(&mut reply).await.map(|ticket| {
            let given = LeaseGuard(Some(self.back()));
            (ticket, given)
        });
        // Whoever asked may be gone by now.
        drop(reply.send(outcome));
    }

    async fn held(&self, reply: &mut Reply) -> Result<Ticket, ApiProblem> {
        let LeaseRequest { resource, holder, busy, mode, ttl_ms, wait_ms, session } = &self.wanted;
        let until = Instant::now() + Duration::from_millis(wait_ms.unsigned_abs());
        // Joined before the request is stored, so that a release in between is not missed.
        let line = self.bound.wakeups().line(self.bound.user(), &resource.key());
        // The messages are read when it is held: what is answered to a key again would keep them all.
        let ask = StoreChange::Ask {
            resource: resource.clone(),
            holder: holder.clone(),
            claim: self.claim.clone(),
            busy: *busy,
            mode: *mode,
            ttl_ms: *ttl_ms,
            wait_ms: *wait_ms,
            session: session.clone(),
            history: 0,
        };
        let asked = match self.bound.change(ask, self.key.clone()).await {
            Ok(done) => ticket(done)?,
            Err(problem) => {
                // Whether there is a place now is not known. Under a key it is found again; without one nobody would.
                if self.key.is_none() && problem.is_unreachable() {
                    tokio::spawn(self.back().leave());
                }
                return Err(problem);
            }
        };
        if asked.token.is_some() {
            return Ok(asked);
        }
        let waiter = line.join(asked.place);
        loop {
            let gone = async {
                tokio::select! {
                    () = reply.closed() => {}
                    () = self.app.closed() => {}
                }
            };
            let wait = StoreChange::Wait {
                resource: resource.clone(),
                place: asked.place,
                claim: self.claim.clone(),
                ttl_ms: *ttl_ms,
                session: session.clone(),
                history: 0,
            };
            let mut pending = self.bound.wait_with_release(wait.clone())?;
            let made = tokio::select! {
                biased;
                // A client that is gone comes first: it must not be granted a lease that nobody holds.
                () = gone => {
                    self.back().leave().await;
                    return Err(ApiProblem::closing_down());
                }
                outcome = pending.outcome() => {
                    // Of the release that the store has handled.
                    if is_held(&outcome) {
                        waiter.take_wakeup();
                    }
                    Some(outcome)
                }
                () = tokio::time::sleep_until(until) => match pending.withdraw().await {
                    None => {
                        self.back().wait_no_longer().await;
                        return Err(ApiProblem::timed_out("the lock or turn is still held by another holder"));
                    }
                    made => made,
                },
                () = waiter.wait_until_due(|| self.bound.woken(resource, asked.place)) => pending.withdraw().await,
            };
            // Nothing interrupts this: it may be held when it returns.
            let outcome = match made {
                Some(outcome) => self.bound.waited(&wait, outcome).await,
                None => self.bound.change(wait, None).await,
            };
            match outcome {
                Ok(done) => {
                    let now = ticket(done)?;
                    if now.token.is_none() {
                        continue;
                    }
                    // Much may have happened since it was let in.
                    if !self.bound.is_token_valid().await {
                        self.back().leave().await;
                        return Err(ApiProblem::unauthenticated());
                    }
                    return Ok(now);
                }
                // The place outlives a store that is away for a moment.
                Err(problem) if problem.is_unreachable() => {}
                Err(problem) => {
                    // If the session is over, the waiters behind this one fail in the same way.
                    self.bound.wakeups().notify_all(self.bound.user(), resource.key());
                    self.back().leave().await;
                    return Err(problem);
                }
            }
        }
    }

    fn back(&self) -> PlaceRelease {
        PlaceRelease {
            bound: self.bound.clone(),
            resource: self.wanted.resource.clone(),
            claim: self.claim.clone(),
            key: self.key.clone(),
            busy: self.app.busy.upgrade(),
        }
    }
}

/// Whether a wait acquired its place.
fn is_held(outcome: &WaitResult) -> bool {
    matches!(outcome, Ok(Ok(ChangeOutcome::Ticket { ticket, .. })) if ticket.token.is_some())
}

/// Place in the outcome of a change.
pub(crate) fn ticket(done: ChangeOutcome) -> Result<Ticket, ApiProblem> {
    match done {
        ChangeOutcome::Ticket { ticket, .. } => Ok(ticket),
        other => Err(unexpected(&other)),
    }
}

/// Problem of an answer of the wrong kind.
pub(crate) fn unexpected(answer: &impl std::fmt::Debug) -> ApiProblem {
    let text = format!("{answer:?}");
    // Shortened, because an answer may hold messages, and the cause goes to the log.
    ApiProblem::internal(format!("unexpected outcome: {}", sessile::text::shortened(&text, 40)))
}

/// A lease that is released when the guard is dropped, unless it is kept: for work that may fail before the client knows of
/// the lease.
#[must_use]
pub(crate) struct LeaseGuard(Option<PlaceRelease>);

struct PlaceRelease {
    bound: UserStore,
    resource: Resource,
    claim: String,
    key: Option<String>,
    busy: Option<mpsc::Sender<()>>,
}

impl PlaceRelease {
    async fn leave(self) {
        let (resource, claim, key) = (self.resource.clone(), self.claim.clone(), self.key.clone());
        self.change(StoreChange::Leave { resource, place: None, claim, key }).await;
    }

    /// A request with a key may be sent again and return to its place.
    async fn wait_no_longer(self) {
        let (resource, claim) = (self.resource.clone(), self.claim.clone());
        match self.key {
            Some(_) => self.change(StoreChange::StepAside { resource, claim }).await,
            None => self.leave().await,
        }
    }

    async fn change(self, change: StoreChange) {
        let PlaceRelease { bound, busy, .. } = self;
        // Those behind it wait for it, so a store that is away for a moment is asked again. If it stays away, the place is
        // gone when its time is over.
        let mut backoff = Backoff::new(RETRY_DELAYS.0, RETRY_DELAYS.1);
        for _ in 0..TRIES {
            match bound.change(change.clone(), None).await {
                Err(problem) if problem.is_unreachable() => tokio::time::sleep(backoff.next_delay()).await,
                _ => break,
            }
        }
        drop(busy);
    }
}

impl LeaseGuard {
    pub(crate) fn keep(mut self) {
        self.0 = None;
    }

    /// Releases the lease, and waits until it is released.
    pub(crate) async fn give_back(mut self) {
        if let Some(back) = self.0.take() {
            back.leave().await;
        }
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        // Without a runtime everything has ended, and the place ends with its time.
        if let (Some(back), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(back.leave());
        }
    }
}
