//! Wakeups of the next waiter in a queue only: if all waiters polled each time, all would wait for each other. A
//! wakeup is only a hint: a waiter without one polls a little later.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::ids::{Position, UserName};

/// Time after which a waiter looks without a wakeup.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Added interval per waiter: with many waiters each looks less often, so that the load stays bounded.
const LOOK_PER_WAITER: Duration = Duration::from_millis(2);

/// Number of channels; a place has one of them, and may share it.
const CHANNELS: u64 = 1024;

/// Channels on which waiters are woken.
#[derive(Clone, Debug)]
pub(super) struct Wakeups {
    channels: Arc<Vec<Arc<Notify>>>,
    waiters: Arc<AtomicU32>,
}

/// A waiter, counted until it is dropped.
struct Waiter(Arc<AtomicU32>);

impl Waiter {
    fn new(waiters: &Arc<AtomicU32>) -> Self {
        waiters.fetch_add(1, Ordering::Relaxed);
        Waiter(Arc::clone(waiters))
    }

    fn timeout(&self) -> Duration {
        LOOK_AGAIN.max(LOOK_PER_WAITER * self.0.load(Ordering::Relaxed))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Wakeups {
    pub(super) fn new() -> Self {
        let channels = Arc::new((0..CHANNELS).map(|_| Arc::default()).collect());
        Wakeups { channels, waiters: Arc::default() }
    }

    fn channel(&self, mark: u64) -> Option<Arc<Notify>> {
        self.channels.get(usize::try_from(mark % CHANNELS).unwrap_or(0)).cloned()
    }

    /// Wakes the waiter at the place with a mark, and those that share its channel.
    pub(super) fn wake(&self, mark: u64) {
        if let Some(channel) = self.channel(mark) {
            // Not `notify_one`, which could wake only another place that shares the channel.
            channel.notify_waiters();
        }
    }

    /// Returns at the next wakeup, counted from this call and not from when it is awaited, or a little later anyway.
    pub(super) fn wait(&self, mark: u64) -> impl Future<Output = ()> + Send + use<> {
        let (woken, waiter) = (self.channel(mark).map(Notify::notified_owned), Waiter::new(&self.waiters));
        async move {
            match woken {
                Some(woken) => drop(tokio::time::timeout(waiter.timeout(), woken).await),
                None => tokio::time::sleep(waiter.timeout()).await,
            }
        }
    }
}

/// Mark of a place, the same in every process.
pub(super) fn mark(user: &UserName, resource: &str, place: Position) -> u64 {
    hash(user, resource).wrapping_add(place.get().unsigned_abs())
}

/// Hash of a queue, or of another thing of a user.
pub(super) fn hash(user: &UserName, what: &str) -> u64 {
    // FNV-1a and not the standard hasher, whose keys differ from process to process.
    let bytes = user.as_str().bytes().chain([0]).chain(what.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
