//! Who waits is woken here, instead of asking the store again and again.
//!
//! Changes of this process wake at once. What another process does is told by the store, or seen by looking: by the first
//! of those who wait here, for they are in the order of the store's queue, and nobody behind the first can be next.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use crate::model::UserId;

type Key = (UserId, String);

/// The lines of those who wait, by the user and the key of what they wait for.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    lines: Mutex<HashMap<Key, Weak<Line>>>,
}

/// Those who wait in this process for one thing.
#[derive(Debug, Default)]
pub(crate) struct Line {
    seats: Mutex<Seats>,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct Seats {
    taken: BTreeMap<(i64, u64), Arc<Seat>>,
    /// It came free while nobody was here to be told.
    came_free: bool,
}

#[derive(Debug, Default)]
struct Seat {
    due: AtomicBool,
    called: Notify,
}

impl Seat {
    fn call(&self, due: bool) {
        if due {
            self.due.store(true, Ordering::Release);
        }
        self.called.notify_one();
    }
}

/// A seat in a line, until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiter {
    line: Arc<Line>,
    key: (i64, u64),
    seat: Arc<Seat>,
}

impl Wake {
    /// The line for something. It has to be there before the store is asked for a place, so that nothing is missed.
    pub(crate) fn line(&self, user: &UserId, resource: &str) -> Arc<Line> {
        let mut lines = lock(&self.lines);
        let key = (user.clone(), resource.to_owned());
        if let Some(line) = lines.get(&key).and_then(Weak::upgrade) {
            return line;
        }
        // Lines that nobody stands in go when there are many.
        if lines.len() % 256 == 255 {
            lines.retain(|_, line| line.strong_count() > 0);
        }
        let line = Arc::new(Line::default());
        lines.insert(key, Arc::downgrade(&line));
        line
    }

    /// Something may have come free: whoever is first here looks.
    pub(crate) fn came_free(&self, user: &UserId, resource: String) {
        if let Some(line) = self.existing(user, resource) {
            let mut seats = lock(&line.seats);
            match seats.taken.values().next() {
                Some(first) => first.call(true),
                None => seats.came_free = true,
            }
        }
    }

    /// It is over: everybody looks.
    pub(crate) fn over(&self, user: &UserId, resource: String) {
        if let Some(line) = self.existing(user, resource) {
            for seat in lock(&line.seats).taken.values() {
                seat.call(true);
            }
        }
    }

    fn existing(&self, user: &UserId, resource: String) -> Option<Arc<Line>> {
        lock(&self.lines).get(&(user.clone(), resource)).and_then(Weak::upgrade)
    }
}

impl Line {
    /// Takes a seat, for a place in the store's queue.
    pub(crate) fn join(self: &Arc<Self>, place: i64) -> Waiter {
        // A place may be waited for twice: by a request, and by the same one sent again.
        let key = (place, self.next.fetch_add(1, Ordering::Relaxed));
        let seat = Arc::new(Seat::default());
        let mut seats = lock(&self.seats);
        seats.taken.insert(key, Arc::clone(&seat));
        if seats.came_free {
            seats.came_free = false;
            if let Some(first) = seats.taken.values().next() {
                first.call(true);
            }
        }
        drop(seats);
        Waiter { line: Arc::clone(self), key, seat }
    }
}

impl Waiter {
    /// Until the store should be asked. Whoever is the first here also listens to what the store tells.
    pub(crate) async fn due<F: Future<Output = ()>>(&self, told: impl Fn() -> F) {
        loop {
            if self.seat.due.swap(false, Ordering::AcqRel) {
                return;
            }
            let first = lock(&self.line.seats).taken.keys().next() == Some(&self.key);
            let called = self.seat.called.notified();
            let is_time = async { if first { told().await } else { std::future::pending().await } };
            tokio::select! {
                () = called => {}
                () = is_time => return,
            }
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut seats = lock(&self.line.seats);
        let was_due = self.seat.due.load(Ordering::Acquire);
        seats.taken.remove(&self.key);
        // Whoever is first now has to know, and takes over a call that was not answered.
        if let Some(first) = seats.taken.values().next() {
            first.call(was_due);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
