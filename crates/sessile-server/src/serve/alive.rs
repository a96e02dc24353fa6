//! Says that this process is alive while somebody waits in it, so that they are not passed over.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::change::HEARD_EVERY_MS;
use crate::db::Db;
use crate::http::{Gauge, Metrics};

/// Often enough that one that fails, or takes too long, is made up for.
const EVERY: Duration = Duration::from_millis(HEARD_EVERY_MS.unsigned_abs());

/// A store that does not answer is left alone for so long.
const PATIENCE: Duration = Duration::from_secs(2);

/// It is said for as long as this is not dropped.
#[derive(Debug)]
pub(super) struct Alive(JoinHandle<()>);

impl Alive {
    pub(super) fn new(db: Db, metrics: Arc<Metrics>) -> Self {
        Alive(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if metrics.now(Gauge::Waiting) > 0 {
                    let _ = tokio::time::timeout(PATIENCE, db.heartbeat()).await;
                }
            }
        }))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.abort();
    }
}
