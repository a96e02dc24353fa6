//! Limits of concurrent calls. Slow calls have places of their own, so that quick ones never wait for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::tool::{Limit, Tool};

/// Calls that wait for an agent, a lock or a command, at once.
const SLOW: u32 = 32;

/// Other calls that are processes of their own, at once.
const QUICK: u32 = 8;

/// Calls that are read in this process, at once.
pub(super) const READERS: usize = 8;

/// Places of concurrent calls.
#[derive(Debug)]
pub(super) struct CallLanes {
    slow: Semaphore,
    quick: Semaphore,
    readers: Arc<Semaphore>,
}

impl CallLanes {
    pub(super) fn new() -> Self {
        CallLanes {
            slow: Semaphore::new(SLOW as usize),
            quick: Semaphore::new(QUICK as usize),
            readers: Arc::new(Semaphore::new(READERS)),
        }
    }

    /// Waits for a place of a call that is a process.
    pub(super) async fn acquire(&self, tool: &Tool) -> Option<SemaphorePermit<'_>> {
        let lane = if matches!(tool.limit, Limit::Usual) { &self.quick } else { &self.slow };
        lane.acquire().await.ok()
    }

    /// Place of a call in this process, if one is free. Reading may be slow when a service is behind it, so a call that
    /// finds none becomes a process instead of waiting.
    pub(super) fn try_read(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.readers).try_acquire_owned().ok()
    }

    /// Waits for a place of a call in this process.
    pub(super) async fn read(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.readers).acquire_owned().await.ok()
    }

    /// Waits until every process has ended, or for this long.
    pub(super) async fn drain(&self, limit: Duration) {
        let all = async { tokio::join!(self.slow.acquire_many(SLOW), self.quick.acquire_many(QUICK)) };
        let _ = timeout(limit, all).await;
    }
}
