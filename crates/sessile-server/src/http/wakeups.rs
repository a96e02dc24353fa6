//! Wakeups of requests that wait for a turn or lock, instead of polling the store.
//!
//! Changes of this process wake waiters at once. The store reports changes of other processes, or the first waiter
//! polls for them. Waiters are in the order of the store's queue, so no other can be next.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;

use crate::ids::{Position, UserName};

type Key = (UserName, String);

/// Waiters of this process, by user and resource.
#[derive(Debug, Default)]
pub(crate) struct WakeupHub {
    lines: Mutex<HashMap<Key, Weak<WaitLine>>>,
}

/// Waiters of this process for one resource.
#[derive(Debug, Default)]
pub(crate) struct WaitLine {
    slots: Mutex<WaitSlots>,
    next: AtomicU64,
}

#[derive(Debug, Default)]
struct WaitSlots {
    occupied: BTreeMap<(Position, u64), Arc<WaitSlot>>,
    /// Whether the resource was released while no waiter was here.
    is_released: bool,
}

#[derive(Debug, Default)]
struct WaitSlot {
    is_due: AtomicBool,
    called: Notify,
}

impl WaitSlot {
    fn call(&self, is_due: bool) {
        if is_due {
            // A flag beside the notification: a waiter that is woken only because it has become first must
            // not ask the store.
            self.is_due.store(true, Ordering::Release);
        }
        self.called.notify_one();
    }
}

/// A waiter in a line, until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiter {
    line: Arc<WaitLine>,
    key: (Position, u64),
    slot: Arc<WaitSlot>,
}

impl WakeupHub {
    /// Line of a resource. It must exist before a place is requested from the store, or a wakeup may be missed.
    pub(crate) fn line(&self, user: &UserName, resource: &str) -> Arc<WaitLine> {
        let mut lines = lock(&self.lines);
        let key = (user.clone(), resource.to_owned());
        if let Some(line) = lines.get(&key).and_then(Weak::upgrade) {
            return line;
        }
        // Lines without waiters are removed when there are many.
        if lines.len() % 256 == 255 {
            lines.retain(|_, line| line.strong_count() > 0);
        }
        let line = Arc::new(WaitLine::default());
        lines.insert(key, Arc::downgrade(&line));
        line
    }

    /// Wakes the first waiter of a resource that may be free.
    pub(crate) fn notify_first(&self, user: &UserName, resource: String) {
        if let Some(line) = self.existing(user, resource) {
            let mut slots = lock(&line.slots);
            match slots.occupied.values().next() {
                Some(first) => first.call(true),
                // The line exists, so a client is between its request to the store and `join`.
                None => slots.is_released = true,
            }
        }
    }

    /// Wakes all waiters of a resource that no longer exists.
    pub(crate) fn notify_all(&self, user: &UserName, resource: String) {
        if let Some(line) = self.existing(user, resource) {
            for slot in lock(&line.slots).occupied.values() {
                slot.call(true);
            }
        }
    }

    fn existing(&self, user: &UserName, resource: String) -> Option<Arc<WaitLine>> {
        lock(&self.lines).get(&(user.clone(), resource)).and_then(Weak::upgrade)
    }
}

impl WaitLine {
    /// Adds a waiter for a place in the store's queue.
    pub(crate) fn join(self: &Arc<Self>, place: Position) -> Waiter {
        // A request that is sent again waits for the same place.
        let key = (place, self.next.fetch_add(1, Ordering::Relaxed));
        let slot = Arc::new(WaitSlot::default());
        let mut slots = lock(&self.slots);
        slots.occupied.insert(key, Arc::clone(&slot));
        // The first and not this one: another may have joined before it.
        if slots.is_released {
            slots.is_released = false;
            if let Some(first) = slots.occupied.values().next() {
                first.call(true);
            }
        }
        drop(slots);
        Waiter { line: Arc::clone(self), key, slot }
    }
}

impl Waiter {
    /// Waits until the store must be queried. The first waiter also listens to the store.
    pub(crate) async fn wait_until_due<F: Future<Output = ()>>(&self, told: impl Fn() -> F) {
        loop {
            if self.slot.is_due.swap(false, Ordering::AcqRel) {
                return;
            }
            let first = lock(&self.line.slots).occupied.keys().next() == Some(&self.key);
            // A call between the look above and this line is stored as a permit, so it is not missed.
            let called = self.slot.called.notified();
            let is_time = async { if first { told().await } else { std::future::pending().await } };
            tokio::select! {
                () = called => {}
                () = is_time => return,
            }
        }
    }

    /// Takes a wakeup that was handled without a query, so that the next waiter does not get it.
    pub(crate) fn take_wakeup(&self) {
        self.slot.is_due.store(false, Ordering::Release);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut slots = lock(&self.line.slots);
        let was_due = self.slot.is_due.load(Ordering::Acquire);
        slots.occupied.remove(&self.key);
        // The next waiter becomes the first, and takes over a wakeup that was not handled.
        if let Some(first) = slots.occupied.values().next() {
            first.call(was_due);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
