//! Heartbeat of this process while requests wait in it: waiters of a process whose heartbeat is overdue are skipped.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::change::HEARD_EVERY_MS;
use crate::http::{Gauge, Metrics};
use crate::store::ServiceStore;

/// Interval of heartbeats, short enough that one may fail or be late.
const INTERVAL: Duration = Duration::from_millis(HEARD_EVERY_MS.unsigned_abs());

/// Timeout of one heartbeat.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Task that sends heartbeats until it is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat(JoinHandle<()>);

impl Heartbeat {
    pub(super) fn new(db: ServiceStore, metrics: Arc<Metrics>) -> Self {
        Heartbeat(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(INTERVAL);
            // After a stall one heartbeat is enough; a burst of missed ones would only write the same row.
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                // An idle service writes nothing.
                if metrics.now(Gauge::Waiting) > 0 {
                    // A failed heartbeat is followed by the next one; waiters that are skipped meanwhile keep
                    // their places.
                    let _ = tokio::time::timeout(TIMEOUT, db.heartbeat()).await;
                }
            }
        }))
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.abort();
    }
}
