//! Quota of one user: rate limit, and limits of concurrent requests, waiters and streams.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{Limits, RateLimit};

/// Quota of one user.
#[derive(Debug)]
pub(crate) struct UserQuota {
    bucket: Mutex<RateBucket>,
    at_once: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    streams: Arc<Semaphore>,
}

/// Token bucket of a rate limit.
#[derive(Debug)]
pub(crate) struct RateBucket {
    left: f64,
    at: Instant,
    rate: f64,
    burst: f64,
}

impl UserQuota {
    pub(crate) fn new(limits: &Limits) -> Self {
        let pace = RateLimit { rate: limits.rate, burst: limits.burst };
        UserQuota {
            bucket: Mutex::new(RateBucket::new(pace)),
            at_once: Arc::new(Semaphore::new(limits.concurrent)),
            waiting: Arc::new(Semaphore::new(limits.waiting)),
            streams: Arc::new(Semaphore::new(limits.streams)),
        }
    }

    /// Charges one request. Over the rate limit, returns the milliseconds until the next one is allowed.
    pub(crate) fn take(&self) -> Result<(), i64> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now())
    }

    pub(crate) fn at_once(&self) -> Option<OwnedSemaphorePermit> {
        // Refused and not queued: waiting requests of one user would pile up in memory.
        Arc::clone(&self.at_once).try_acquire_owned().ok()
    }

    pub(crate) fn waiting(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.waiting).try_acquire_owned().ok()
    }

    pub(crate) fn stream(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.streams).try_acquire_owned().ok()
    }
}

impl RateBucket {
    pub(crate) fn new(pace: RateLimit) -> Self {
        RateBucket { left: pace.burst, at: Instant::now(), rate: pace.rate, burst: pace.burst }
    }

    /// Whether the bucket is full by now, so that it can be forgotten.
    pub(crate) fn is_full(&self, now: Instant) -> bool {
        self.left + now.saturating_duration_since(self.at).as_secs_f64() * self.rate >= self.burst
    }

    /// Refunds one request.
    pub(crate) fn refund(&mut self) {
        self.left = (self.left + 1.0).min(self.burst);
    }

    /// Charges one request. If the bucket is empty, returns the milliseconds until it is not.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), i64> {
        // A peer's request is timed before it gets the lock, so times may go back.
        let since = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        self.left = (self.left + since * self.rate).min(self.burst);
        if self.left >= 1.0 {
            self.left -= 1.0;
            return Ok(());
        }
        // Bounded below, so that a rate of 0 gives a finite time.
        let seconds = (1.0 - self.left) / self.rate.max(0.001);
        #[expect(clippy::cast_possible_truncation, reason = "the wait is at most a thousand seconds")]
        Err((seconds * 1000.0).ceil() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn bucket_refills_over_time_up_to_its_size() {
        let start = Instant::now();
        let mut bucket = RateBucket { left: 2.0, at: start, rate: 10.0, burst: 2.0 };
        assert_eq!((bucket.take(start), bucket.take(start)), (Ok(()), Ok(())));
        assert_eq!(bucket.take(start), Err(100));
        assert_eq!(bucket.take(start + Duration::from_millis(150)), Ok(()));
        let later = start + Duration::from_secs(60);
        assert_eq!((bucket.take(later), bucket.take(later)), (Ok(()), Ok(())));
        assert!(bucket.take(later).is_err());
    }
}
