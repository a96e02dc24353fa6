//! The users, their turns, and the threads that take them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::canary::{Canaries, CodeWordId};
use super::capture::take_received;
use super::judge::judge;
use super::ledger::{Ledger, ProbeProgress};
use super::service::{FailureKind, Service, User};

/// A thread only asks and waits.
const STACK: usize = 1 << 20;

/// Rounds of a probe and its limits.
#[derive(Debug)]
pub(crate) struct ProbePlan {
    /// Users of each round.
    pub(crate) rounds: Vec<u32>,
    pub(crate) turns: u32,
    /// Most requests in flight.
    pub(crate) concurrency: u32,
    /// Most requests in a second.
    pub(crate) rate: Option<f64>,
    /// Time after which no turn begins.
    pub(crate) max_time: Option<Duration>,
    /// Code words of the users of all rounds.
    pub(crate) canaries: Canaries,
}

impl ProbePlan {
    /// Users of all rounds.
    pub(crate) fn users(&self) -> u32 {
        self.rounds.iter().sum()
    }

    /// Requests of all rounds, without reading histories.
    pub(crate) fn requests(&self) -> u32 {
        self.users() * (self.turns + 1)
    }
}

/// Result of a round.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Round {
    pub(crate) users: u32,
    /// Requests in flight.
    pub(crate) concurrency: u32,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
}

impl Round {
    /// Whether at least half of the requests were answered.
    pub(crate) fn is_conclusive(&self) -> bool {
        self.answered > 0 && self.answered >= self.failed
    }
}

/// Reason why a probe ended before its last round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The time is used up.
    MaxTime,
    /// More than half of a round failed.
    Failures,
    /// The system refused a thread; why.
    Threads(String),
    /// Users are mixed up, and more load would show the same.
    MixedUp,
}

/// Limit of sessions that are ended in parallel.
const AT_ONCE: u32 = 16;

/// Result of ending the sessions at the service.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionCleanup {
    pub(crate) started: u64,
    pub(crate) ended: u64,
    /// Whether it was not to be ended.
    pub(crate) is_kept: bool,
    /// The first reason why one was not.
    pub(crate) why_not: Option<FailureKind>,
}

/// Running probe. Dropping it does not wait for open requests.
pub(crate) struct Run {
    shared: Arc<RunState>,
    begun: Instant,
    /// Duration of all turns.
    talked: Option<Duration>,
    rounds: Vec<Round>,
    stop: Option<StopReason>,
}

struct RunState {
    plan: ProbePlan,
    service: Box<dyn Service>,
    waiting: Mutex<VecDeque<User>>,
    /// Users that have taken all their turns.
    done: Mutex<Vec<User>>,
    ledger: Mutex<Ledger>,
    /// Whether the probe sends no further requests.
    is_over: AtomicBool,
    /// Whether no further turn begins.
    is_stopped: AtomicBool,
    /// Number of busy threads.
    working: AtomicUsize,
    /// Earliest time of the next request.
    next: Mutex<Instant>,
}

impl Run {
    /// Prepares the users without sending a request.
    pub(crate) fn new(plan: ProbePlan, service: Box<dyn Service>) -> Self {
        let shared = RunState {
            waiting: Mutex::default(),
            done: Mutex::default(),
            ledger: Mutex::default(),
            is_over: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            working: AtomicUsize::new(0),
            next: Mutex::new(Instant::now()),
            plan,
            service,
        };
        Run { shared: Arc::new(shared), begun: Instant::now(), talked: None, rounds: Vec::new(), stop: None }
    }

    /// Runs the rounds, then reads the histories. False if `is_ended` ended it early; `watch` gets the progress.
    pub(crate) fn finish(
        &mut self,
        is_ended: &dyn Fn() -> bool,
        watch: &mut dyn FnMut(ProbeProgress),
    ) -> std::io::Result<bool> {
        let mut last = 0;
        for users in self.shared.plan.rounds.clone() {
            let first = last + 1;
            last += users;
            *lock(&self.shared.waiting) = (first..=last).map(|number| self.shared.user(number)).collect();
            let before = self.progress();
            let concurrency = users.min(self.shared.plan.concurrency);
            let started = self.start(concurrency, RunState::turn);
            let is_finished = self.watch(is_ended, watch);
            if let Err(error) = started {
                if self.rounds.is_empty() {
                    return Err(error);
                }
                self.stop = Some(StopReason::Threads(error.to_string()));
            }
            let after = self.progress();
            let (answered, failed) = (after.answered - before.answered, after.failed - before.failed);
            self.rounds.push(Round { users, concurrency, answered, failed });
            if !is_finished {
                return Ok(false);
            }
            self.stop = self.stop.take().or_else(|| self.reason_to_stop(last));
            if self.stop.is_some() {
                break;
            }
        }
        self.talked = Some(self.begun.elapsed());
        // Histories are read when no user talks any more: a later round may have changed those of an earlier one.
        let mut users = std::mem::take(&mut *lock(&self.shared.done));
        // Users who were stopped in the middle have a history too.
        users.extend(lock(&self.shared.waiting).drain(..).filter(|user| user.turn > 1));
        let at_once = self.most_at_once();
        *lock(&self.shared.waiting) = users.into();
        // A probe that was stopped early still reads its histories.
        self.shared.is_stopped.store(false, Ordering::SeqCst);
        self.start(at_once, RunState::read)?;
        Ok(self.watch(is_ended, watch))
    }

    /// Waits for all threads. False if `is_ended` ended it.
    fn watch(&self, is_ended: &dyn Fn() -> bool, watch: &mut dyn FnMut(ProbeProgress)) -> bool {
        while self.shared.working.load(Ordering::SeqCst) > 0 {
            if is_ended() {
                self.shared.is_over.store(true, Ordering::SeqCst);
                return false;
            }
            if self.is_out_of_time() && self.talked.is_none() {
                self.shared.is_stopped.store(true, Ordering::SeqCst);
            }
            watch(self.progress());
            thread::sleep(Duration::from_millis(5));
        }
        true
    }

    fn is_out_of_time(&self) -> bool {
        self.shared.plan.max_time.is_some_and(|max_time| self.begun.elapsed() >= max_time)
    }

    /// Whether the round was the last one, and why. `last` is the number of its last user.
    fn reason_to_stop(&self, last: u32) -> Option<StopReason> {
        let ledger = lock(&self.shared.ledger);
        let is_last = last == self.shared.plan.users();
        let is_whole = !self.shared.is_stopped.load(Ordering::SeqCst);
        let round = self.rounds.last()?;
        match () {
            () if is_last && is_whole => None,
            () if round.failed > round.answered => Some(StopReason::Failures),
            () if ledger.leak_count() > 0 => Some(StopReason::MixedUp),
            () if judge(&ledger.replies, &[], self.shared.plan.turns).is_bad() => Some(StopReason::MixedUp),
            () if !is_whole || self.is_out_of_time() => Some(StopReason::MaxTime),
            () => None,
        }
    }

    fn progress(&self) -> ProbeProgress {
        lock(&self.shared.ledger).progress()
    }

    /// The rounds so far.
    pub(crate) fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// Reason of an early end.
    pub(crate) fn stop(&self) -> Option<&StopReason> {
        self.stop.as_ref()
    }

    /// Most requests in flight of any round.
    fn most_at_once(&self) -> u32 {
        let users = self.rounds.iter().map(|round| round.concurrency).max();
        users.unwrap_or(self.shared.plan.concurrency).max(1)
    }

    /// Ends the sessions at the service within a time, or keeps them without one. Only requests that wait for a
    /// response are still open. Returns the result, if the service has sessions.
    pub(crate) fn end(&self, within: Option<Duration>) -> Option<SessionCleanup> {
        let shared = &self.shared;
        let begun = shared.service.begun()?;
        let ended = SessionCleanup {
            started: begun.len() as u64,
            is_kept: within.is_none(),
            ..SessionCleanup::default()
        };
        let Some(within) = within else { return Some(ended) };
        let deadline = Instant::now() + within;
        let (left, ended) = (Mutex::new(begun), Mutex::new(ended));
        let work = || {
            // What is taken off the list is ended or told; what stays on it had no time.
            while Instant::now() < deadline
                // In a block, so that the lock is released before the request.
                && let Some(user) = { lock(&left).pop() }
                && shared.pace(|| Instant::now() >= deadline)
            {
                let result = shared.service.end(&user, deadline.saturating_duration_since(Instant::now()));
                let mut ended = lock(&ended);
                match result {
                    Ok(()) => ended.ended += 1,
                    Err(trouble) => ended.why_not = ended.why_not.take().or(Some(trouble.kind)),
                }
            }
        };
        thread::scope(|scope| {
            // This thread works too, so it goes on even if no other can be started.
            for _ in 1..self.most_at_once().min(AT_ONCE) {
                let _ = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            }
            work();
        });
        Some(ended.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Observations so far.
    pub(crate) fn ledger(&self) -> Ledger {
        lock(&self.shared.ledger).clone()
    }

    /// The plan.
    pub(crate) fn plan(&self) -> &ProbePlan {
        &self.shared.plan
    }

    /// Duration of the turns, without reading histories.
    pub(crate) fn talked(&self) -> Duration {
        self.talked.unwrap_or_else(|| self.begun.elapsed())
    }

    fn start(&self, threads: u32, work: fn(&RunState, User)) -> std::io::Result<()> {
        for number in 0..threads {
            let shared = Arc::clone(&self.shared);
            // Before the thread runs: `watch` must not see zero while it is being started.
            shared.working.fetch_add(1, Ordering::SeqCst);
            let started = thread::Builder::new().stack_size(STACK).spawn(move || {
                let _working = ActiveWorker(&shared.working);
                while let Some(user) = shared.next_user() {
                    work(&shared, user);
                }
            });
            if let Err(error) = started {
                self.shared.working.fetch_sub(1, Ordering::SeqCst);
                // Fewer than were wanted would not be the test that was asked for.
                self.shared.is_stopped.store(true, Ordering::SeqCst);
                let error = format!("thread {} of {threads}: {error}", number + 1);
                return Err(std::io::Error::other(error));
            }
        }
        Ok(())
    }
}

/// A thread at work, however it ends.
struct ActiveWorker<'a>(&'a AtomicUsize);

impl Drop for ActiveWorker<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl RunState {
    fn user(&self, number: u32) -> User {
        let name = format!("probe-{}-{number}", self.plan.canaries.run);
        User { number, session: format!("{name}-session"), name, turn: 1, ..User::default() }
    }

    fn is_halted(&self) -> bool {
        self.is_over.load(Ordering::SeqCst) || self.is_stopped.load(Ordering::SeqCst)
    }

    /// Next user; `None` if other threads have the remaining ones.
    fn next_user(&self) -> Option<User> {
        if self.is_halted() {
            return None;
        }
        lock(&self.waiting).pop_front()
    }

    /// One turn of a user, who then queues up again behind the others.
    fn turn(&self, mut user: User) {
        if !self.wait() {
            lock(&self.waiting).push_back(user);
            return;
        }
        let canaries = &self.plan.canaries;
        let at = CodeWordId { user: user.number, turn: user.turn };
        let (message, begun) = (canaries.message(at), Instant::now());
        let said = self.service.say(&mut user, &message);
        // Also after a failure: a leak may be in an error.
        let (latency, received) = (begun.elapsed(), take_received());
        let mut seen = Ledger::default();
        match said {
            Ok(said) => {
                seen.latencies.push(latency);
                seen.heard(canaries, at, &said, &received);
            }
            Err(trouble) => seen.missed(canaries, at, trouble, &received),
        }
        lock(&self.ledger).merge(seen);
        user.turn += 1;
        // After the last turn one more question shows what became of it.
        if user.turn > self.plan.turns + 1 {
            lock(&self.done).push(user);
        } else {
            lock(&self.waiting).push_back(user);
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "all threads of a probe take functions of one signature"
    )]
    fn read(&self, user: User) {
        if self.wait()
            && let Some(stored) = self.service.history(&user)
        {
            let mut seen = Ledger::default();
            seen.read(&self.plan.canaries, user.number, stored, &take_received());
            lock(&self.ledger).merge(seen);
        }
    }

    /// Waits until a request may be made. Not, if it is over.
    fn wait(&self) -> bool {
        self.pace(|| self.is_halted())
    }

    fn pace(&self, is_over: impl Fn() -> bool) -> bool {
        if let Some(rate) = self.plan.rate {
            let own = {
                let mut next = lock(&self.next);
                let own = (*next).max(Instant::now());
                // Reserved under the lock and slept outside of it, so that threads do not wait for each
                // other's sleep.
                *next = own + Duration::from_secs_f64(1.0 / rate);
                own
            };
            while let Some(left) = own.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
                if is_over() {
                    return false;
                }
                // In short pieces, so that an interrupt is noticed soon.
                thread::sleep(left.min(Duration::from_millis(50)));
            }
        }
        !is_over()
    }
}

/// A thread that panicked has left nothing half done in there.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
