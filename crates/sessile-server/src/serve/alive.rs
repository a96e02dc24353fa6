//! Says that this process is alive, so that those who wait in it keep their places.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::change::WAITING_MS;
use crate::db::Db;

/// Often enough that one that fails is made up for.
const EVERY: Duration = Duration::from_millis(WAITING_MS.unsigned_abs() / 4);

/// It is said for as long as this is not dropped.
#[derive(Debug)]
pub(super) struct Alive(JoinHandle<()>);

impl Alive {
    pub(super) fn new(db: Db) -> Self {
        Alive(tokio::spawn(async move {
            loop {
                // A store that is away is asked again the next time.
                let _ = db.keep().await;
                tokio::time::sleep(EVERY).await;
            }
        }))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.abort();
    }
}
