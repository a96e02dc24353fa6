//! Says that this process is alive, so that those who wait in it keep their places.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::change::WAITING_MS;
use crate::db::Db;

/// Often enough that one that fails, or takes too long, is made up for.
const EVERY: Duration = Duration::from_millis(WAITING_MS.unsigned_abs() / 4);

/// It is said for as long as this is not dropped.
#[derive(Debug)]
pub(super) struct Alive(JoinHandle<()>);

impl Alive {
    pub(super) fn new(db: Db) -> Self {
        Alive(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let _ = tokio::time::timeout(EVERY, db.keep()).await;
            }
        }))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.abort();
    }
}
