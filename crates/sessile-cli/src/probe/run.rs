//! The users, their turns, and the threads that take them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::canary::{Canaries, Code};
use super::ledger::{Ledger, Progress};
use super::service::{Kind, Service, User};

/// A thread only asks and waits.
const STACK: usize = 1 << 20;

/// Who says how much, and how quickly.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) users: u32,
    pub(crate) turns: u32,
    /// How many requests are under way at once.
    pub(crate) concurrency: u32,
    /// Requests in a second, at most.
    pub(crate) rate: Option<f64>,
    pub(crate) canaries: Canaries,
}

/// How many sessions are ended at once, at most.
const AT_ONCE: u32 = 16;

/// What became of what was begun at the service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    pub(crate) started: u64,
    pub(crate) ended: u64,
    /// Whether it was not to be ended.
    pub(crate) is_kept: bool,
    /// The first reason why one was not.
    pub(crate) why_not: Option<Kind>,
}

/// A probe that is under way. Whoever has seen enough drops it: nobody waits for an answer that is still to come.
pub(crate) struct Run {
    shared: Arc<Shared>,
    begun: Instant,
    /// How long all the turns took.
    talked: OnceLock<Duration>,
}

struct Shared {
    plan: Plan,
    service: Box<dyn Service>,
    waiting: Mutex<VecDeque<User>>,
    /// Those who have taken all their turns.
    done: Mutex<Vec<User>>,
    ledger: Mutex<Ledger>,
    is_over: AtomicBool,
    /// How many threads are at work.
    working: AtomicUsize,
    /// When the next request may be made.
    next: Mutex<Instant>,
}

impl Run {
    /// Gets the users ready; nothing is asked yet.
    pub(crate) fn new(plan: Plan, service: Box<dyn Service>) -> Self {
        let users = (1..=plan.users).map(|number| {
            let name = format!("probe-{}-{number}", plan.canaries.run);
            User { number, session: format!("{name}-session"), name, turn: 1, ..User::default() }
        });
        let shared = Shared {
            waiting: Mutex::new(users.collect()),
            done: Mutex::default(),
            ledger: Mutex::default(),
            is_over: AtomicBool::new(false),
            working: AtomicUsize::new(0),
            next: Mutex::new(Instant::now()),
            plan,
            service,
        };
        Run { shared: Arc::new(shared), begun: Instant::now(), talked: OnceLock::new() }
    }

    /// Lets all users take their turns, then reads what is stored. Whether it came to that, and was not ended before;
    /// `watch` is told again and again how far it is.
    pub(crate) fn finish(
        &self,
        is_ended: &dyn Fn() -> bool,
        watch: &mut dyn FnMut(Progress),
    ) -> std::io::Result<bool> {
        for work in [Shared::turn as fn(&Shared, User), Shared::read] {
            self.start(work)?;
            while self.shared.working.load(Ordering::SeqCst) > 0 {
                if is_ended() {
                    self.shared.is_over.store(true, Ordering::SeqCst);
                    return Ok(false);
                }
                let progress = lock(&self.shared.ledger).progress();
                watch(progress);
                thread::sleep(Duration::from_millis(5));
            }
            let _ = self.talked.set(self.begun.elapsed());
            // What is stored is read when nobody says anything more.
            let done: VecDeque<User> = std::mem::take(&mut *lock(&self.shared.done)).into();
            *lock(&self.shared.waiting) = done;
        }
        Ok(true)
    }

    /// Ends what was begun at the service, in so much time; or leaves it there, without any. Nobody talks any more, but for
    /// those who still wait for an answer. What became of it, where there is something to end.
    pub(crate) fn end(&self, within: Option<Duration>) -> Option<Ended> {
        let shared = &self.shared;
        let begun = shared.service.begun()?;
        let ended = Ended { started: begun.len() as u64, is_kept: within.is_none(), ..Ended::default() };
        let Some(within) = within else { return Some(ended) };
        let deadline = Instant::now() + within;
        let (left, ended) = (Mutex::new(begun), Mutex::new(ended));
        let work = || {
            // What is taken off the list is ended or told; what stays on it had no time.
            while Instant::now() < deadline
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
            for _ in 1..shared.plan.concurrency.min(AT_ONCE) {
                let _ = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            }
            work();
        });
        Some(ended.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was seen so far.
    pub(crate) fn ledger(&self) -> Ledger {
        lock(&self.shared.ledger).clone()
    }

    /// The plan.
    pub(crate) fn plan(&self) -> &Plan {
        &self.shared.plan
    }

    /// How long users have talked, without reading what is stored.
    pub(crate) fn talked(&self) -> Duration {
        self.talked.get().copied().unwrap_or_else(|| self.begun.elapsed())
    }

    fn start(&self, work: fn(&Shared, User)) -> std::io::Result<()> {
        for number in 0..self.shared.plan.concurrency {
            let shared = Arc::clone(&self.shared);
            shared.working.fetch_add(1, Ordering::SeqCst);
            let started = thread::Builder::new().stack_size(STACK).spawn(move || {
                let _working = Working(&shared.working);
                while let Some(user) = shared.next_user() {
                    work(&shared, user);
                }
            });
            if let Err(error) = started {
                self.shared.working.fetch_sub(1, Ordering::SeqCst);
                // Fewer than were wanted would not be the test that was asked for.
                self.shared.is_over.store(true, Ordering::SeqCst);
                let error = format!("thread {} of {}: {error}", number + 1, self.shared.plan.concurrency);
                return Err(std::io::Error::other(error));
            }
        }
        Ok(())
    }
}

/// A thread at work, however it ends.
struct Working<'a>(&'a AtomicUsize);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    /// Who is next. If nobody is, those who are left are in the hands of other threads.
    fn next_user(&self) -> Option<User> {
        if self.is_over.load(Ordering::SeqCst) {
            return None;
        }
        lock(&self.waiting).pop_front()
    }

    /// One turn of a user, who then queues up again behind the others.
    fn turn(&self, mut user: User) {
        if !self.wait() {
            return;
        }
        let canaries = &self.plan.canaries;
        let at = Code { user: user.number, turn: user.turn };
        let (message, begun) = (canaries.message(at), Instant::now());
        let said = self.service.say(&mut user, &message);
        let latency = begun.elapsed();
        let mut seen = Ledger::default();
        match said {
            Ok(said) => seen.heard(canaries, at, &said, latency),
            Err(trouble) => seen.missed(canaries, at, trouble),
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

    #[expect(clippy::needless_pass_by_value, reason = "threads take turns and histories in one way")]
    fn read(&self, user: User) {
        if self.wait()
            && let Some(stored) = self.service.history(&user)
        {
            let mut seen = Ledger::default();
            seen.read(&self.plan.canaries, user.number, stored);
            lock(&self.ledger).merge(seen);
        }
    }

    /// Waits until a request may be made. Not, if it is over.
    fn wait(&self) -> bool {
        self.pace(|| self.is_over.load(Ordering::SeqCst))
    }

    fn pace(&self, is_over: impl Fn() -> bool) -> bool {
        if let Some(rate) = self.plan.rate {
            let own = {
                let mut next = lock(&self.next);
                let own = (*next).max(Instant::now());
                *next = own + Duration::from_secs_f64(1.0 / rate);
                own
            };
            while let Some(left) = own.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
                if is_over() {
                    return false;
                }
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
