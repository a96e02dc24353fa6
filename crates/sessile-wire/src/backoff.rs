//! Exponential backoff with jitter.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Delays between retries: they double up to a maximum. It does not sleep; the retry loop does.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    next: Duration,
    max: Duration,
    has_jitter: bool,
    /// Source of jitter. The keys are random for each instance, and need no I/O.
    random: RandomState,
}

impl Backoff {
    /// Delays from about `first` to `max`.
    pub fn new(first: Duration, max: Duration) -> Self {
        Backoff { first, next: first, max, has_jitter: true, random: RandomState::new() }
    }

    /// Same delays without jitter, for a schedule that a server or a standard prescribes.
    pub fn without_jitter(self) -> Self {
        Backoff { has_jitter: false, ..self }
    }

    /// Longest delay that the next call of [`Backoff::next_delay`] can return.
    pub fn upper_bound(&self) -> Duration {
        self.next
    }

    /// Delay before the next retry: between half of the current delay and all of it, so that callers which failed together do
    /// not retry together.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = delay.saturating_mul(2).min(self.max);
        if !self.has_jitter {
            return delay;
        }
        let permille = u32::try_from(self.random.hash_one(delay) % 1000).unwrap_or(0);
        // The same keys would give the same jitter for equal delays.
        self.random = RandomState::new();
        delay / 2 + (delay / 2000).saturating_mul(permille)
    }

    /// Starts again with the first delay, after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_to_the_maximum_within_their_jitter() {
        let millis = Duration::from_millis;
        let mut backoff = Backoff::new(millis(100), millis(500));
        for bound in [100, 200, 400, 500, 500] {
            assert_eq!(backoff.upper_bound(), millis(bound));
            let delay = backoff.next_delay();
            assert!((millis(bound / 2)..=millis(bound)).contains(&delay), "{bound}: {delay:?}");
        }
        backoff.reset();
        let mut exact = backoff.clone().without_jitter();
        assert_eq!([exact.next_delay(), exact.next_delay()], [millis(100), millis(200)]);
        assert_eq!(backoff.upper_bound(), millis(100));
    }

    #[test]
    fn jitter_differs_between_instances() {
        let delay = |_| Backoff::new(Duration::from_secs(1), Duration::from_secs(1)).next_delay();
        let first = delay(0);
        assert!((0..50).map(delay).any(|other| other != first));
    }
}
