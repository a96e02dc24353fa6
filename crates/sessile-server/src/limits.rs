//! How much anybody may ask for.

use std::time::Duration;

use sessile_wire::service::limits::{MAX_MESSAGES, MAX_PAGE_ITEMS, MAX_TTL_MS, MAX_WAIT_MS};

/// How often something may be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Per second, in the long run.
    pub rate: f64,
    /// All at once.
    pub burst: f64,
}

/// What is refused if it is more.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Bytes of a message, or of a value, as JSON.
    pub message_bytes: usize,
    /// Messages of one request.
    pub messages: usize,
    /// How deep JSON may be nested.
    pub depth: usize,
    /// Things of one page.
    pub page: i64,
    /// Bytes of one page: it ends early, and says how to go on.
    pub page_bytes: usize,
    /// Requests of one user at a time.
    pub concurrent: usize,
    /// Requests of one user that wait for a turn or a lock. They are counted apart: else those who wait could keep out the one
    /// who would let them go on.
    pub waiting: usize,
    /// Event streams of one user.
    pub streams: usize,
    /// Requests of one user per second, in the long run.
    pub rate: f64,
    /// Requests of one user that may come all at once.
    pub burst: f64,
    /// Machines that wait to be let in, all together.
    pub logins: i64,
    /// How often one address may ask to be let in: in the time that a login waits, for a part of all of them.
    pub login_each: RateLimit,
    /// How often all together may.
    pub login_all: RateLimit,
    /// How often one address may ask for its token.
    pub poll_each: RateLimit,
    /// How often all together may.
    pub poll_all: RateLimit,
    /// How often one address may send a token that is not valid, before its invalid tokens are refused without a look-up.
    pub guess_each: RateLimit,
    /// How often all together may.
    pub guess_all: RateLimit,
    /// How long a client may take to send the head of a request, and to send the next one.
    pub head: Duration,
    /// How long a client may take to send a body.
    pub body: Duration,
    /// How long a client may take to read on in an answer.
    pub answer: Duration,
    /// Connections at a time. Who comes then waits to be let in.
    pub connections: usize,
    /// How long a turn or a lock can be waited for.
    pub wait_ms: i64,
    /// How long a turn or a lock can be held without being renewed.
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
