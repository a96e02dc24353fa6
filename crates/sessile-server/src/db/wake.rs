//! Waking who is next in a queue, and nobody else: if all looked each time, all would wait for each other. Only a hint:
//! who is not woken looks by himself a little later.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::model::UserId;

/// Who is not woken looks after this long.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Where many wait each looks less often, so that all of them together stay affordable.
const LOOK_PER_LISTENER: Duration = Duration::from_millis(2);

/// So many bells; a place has one of them, and may share it.
const BELLS: u64 = 1024;

/// Bells that those who wait listen to.
#[derive(Clone, Debug)]
pub(super) struct Bells {
    bells: Arc<Vec<Arc<Notify>>>,
    listeners: Arc<AtomicU32>,
}

/// Somebody who listens, until it is dropped.
struct Listener(Arc<AtomicU32>);

impl Listener {
    fn new(listeners: &Arc<AtomicU32>) -> Self {
        listeners.fetch_add(1, Ordering::Relaxed);
        Listener(Arc::clone(listeners))
    }

    fn patience(&self) -> Duration {
        LOOK_AGAIN.max(LOOK_PER_LISTENER * self.0.load(Ordering::Relaxed))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Bells {
    pub(super) fn new() -> Self {
        let bells = Arc::new((0..BELLS).map(|_| Arc::default()).collect());
        Bells { bells, listeners: Arc::default() }
    }

    fn bell(&self, mark: u64) -> Option<Arc<Notify>> {
        self.bells.get(usize::try_from(mark % BELLS).unwrap_or(0)).cloned()
    }

    /// Wakes who waits at the place with a mark, and whoever shares its bell.
    pub(super) fn ring(&self, mark: u64) {
        if let Some(bell) = self.bell(mark) {
            bell.notify_waiters();
        }
    }

    /// Returns when it rings, counted from this call and not from when it is awaited, or a little later anyway.
    pub(super) fn heard(&self, mark: u64) -> impl Future<Output = ()> + Send + use<> {
        let (rings, listener) = (self.bell(mark).map(Notify::notified_owned), Listener::new(&self.listeners));
        async move {
            match rings {
                Some(rings) => drop(tokio::time::timeout(listener.patience(), rings).await),
                None => tokio::time::sleep(listener.patience()).await,
            }
        }
    }
}

/// What stands for a place in every process.
pub(super) fn mark(user: &UserId, resource: &str, place: i64) -> u64 {
    hash(user, resource).wrapping_add(place.unsigned_abs())
}

/// What stands for a queue, or another thing of a user.
pub(super) fn hash(user: &UserId, what: &str) -> u64 {
    let bytes = user.0.bytes().chain([0]).chain(what.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
