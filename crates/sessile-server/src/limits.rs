//! Limits of requests, connections and waits.

use std::time::Duration;

use sessile_wire::service::limits::{MAX_MESSAGES, MAX_PAGE_ITEMS, MAX_TTL_MS, MAX_WAIT_MS};

/// Rate limit of an action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Sustained rate, per second.
    pub rate: f64,
    /// Burst.
    pub burst: f64,
}

/// Limits of the service.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Bytes of a message, or of a value, as JSON.
    pub message_bytes: usize,
    /// Messages of one request.
    pub messages: usize,
    /// Nesting limit of JSON.
    pub depth: usize,
    /// Items of one page.
    pub page: i64,
    /// Bytes of one page, which then ends early with a cursor.
    pub page_bytes: usize,
    /// Concurrent requests of one user.
    pub concurrent: usize,
    /// Waiting requests of one user, for a turn or a lock. Counted apart, because waiters would otherwise block the request
    /// that releases what they wait for.
    pub waiting: usize,
    /// Event streams of one user.
    pub streams: usize,
    /// Sustained requests of one user, per second.
    pub rate: f64,
    /// Burst of requests of one user.
    pub burst: f64,
    /// Pending logins of all machines.
    pub logins: i64,
    /// Rate limit of new logins per address, so that one address cannot use up all pending logins.
    pub login_each: RateLimit,
    /// Rate limit of new logins, of all addresses.
    pub login_all: RateLimit,
    /// Rate limit of polling for a token, per address.
    pub poll_each: RateLimit,
    /// Rate limit of polling for tokens, of all addresses.
    pub poll_all: RateLimit,
    /// Rate limit of invalid tokens per address. Beyond it, invalid tokens are refused without a look-up.
    pub guess_each: RateLimit,
    /// Rate limit of invalid tokens, of all addresses.
    pub guess_all: RateLimit,
    /// Timeout of a request's head, and of an idle connection.
    pub head: Duration,
    /// Timeout of a request's body.
    pub body: Duration,
    /// Timeout of a write to a client that does not read.
    pub answer: Duration,
    /// Concurrent connections. Further ones wait in the kernel's backlog.
    pub connections: usize,
    /// Longest wait for a turn or a lock.
    pub wait_ms: i64,
    /// Longest lease of a turn or a lock.
    pub ttl_ms: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            body_bytes: 1 << 20,
            message_bytes: 256 << 10,
            messages: MAX_MESSAGES,
            depth: 64,
            page: MAX_PAGE_ITEMS,
            page_bytes: 4 << 20,
            concurrent: 256,
            waiting: 256,
            streams: 2000,
            rate: 1000.0,
            burst: 2000.0,
            logins: 1000,
            login_each: RateLimit { rate: 0.1, burst: 10.0 },
            login_all: RateLimit { rate: 5.0, burst: 100.0 },
            poll_each: RateLimit { rate: 20.0, burst: 100.0 },
            poll_all: RateLimit { rate: 1000.0, burst: 2000.0 },
            guess_each: RateLimit { rate: 5.0, burst: 100.0 },
            guess_all: RateLimit { rate: 20.0, burst: 200.0 },
            head: Duration::from_secs(30),
            body: Duration::from_secs(30),
            answer: Duration::from_secs(30),
            connections: 16_384,
            wait_ms: MAX_WAIT_MS,
            ttl_ms: MAX_TTL_MS,
        }
    }
}
