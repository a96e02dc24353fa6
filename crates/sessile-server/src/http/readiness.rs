//! Whether the store takes writes: a full disk, a read-only file and a standby all answer reads.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::store::{ServiceStore, ServiceStoreError};

/// Time for which a successful write counts.
const FRESH: Duration = Duration::from_secs(5);

/// Time for which a failed write counts.
const FRESH_FAILURE: Duration = Duration::from_secs(1);

/// Timeout of a write.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The result of the last write that was tried.
#[derive(Debug, Default)]
pub(super) struct Readiness(Mutex<Option<(Instant, Option<String>)>>);

impl Readiness {
    /// Fails unless the store can be read now and took a write within the last few seconds.
    pub(super) async fn check(&self, db: &ServiceStore) -> Result<(), ServiceStoreError> {
        // Reads are not cached: a store that is down takes the process out of rotation at the next check.
        db.ready().await?;
        // Held across the write, so that parallel checks share one: `/readyz` needs no token.
        let mut last = self.0.lock().await;
        let is_fresh = last.as_ref().is_some_and(|(at, failure)| {
            at.elapsed() < if failure.is_none() { FRESH } else { FRESH_FAILURE }
        });
        if !is_fresh {
            let failure = match tokio::time::timeout(TIMEOUT, db.check_writable()).await {
                Ok(written) => written.err().map(|error| error.to_string()),
                Err(_) => Some(format!("a write timed out after {} s", TIMEOUT.as_secs())),
            };
            *last = Some((Instant::now(), failure));
        }
        match last.as_ref().and_then(|(_, failure)| failure.clone()) {
            Some(why) => Err(ServiceStoreError::Unavailable(why)),
            None => Ok(()),
        }
    }
}
