//! Limits and defaults of the API, as its schemas state them. An operator may configure a service with narrower ones.

/// Largest integer that every JSON parser keeps exactly.
pub const MAX_INTEGER: i64 = (1 << 53) - 1;

/// Items of a page at most.
pub const MAX_PAGE_ITEMS: i64 = 1000;

/// Items of a page, unless the request states a limit.
pub const DEFAULT_PAGE_ITEMS: i64 = 100;

/// Messages of one request at most.
pub const MAX_MESSAGES: usize = 1000;

/// Messages that come with a turn, unless the request states a number.
pub const DEFAULT_TURN_HISTORY: i64 = 100;

/// Lease of a turn or lock, in milliseconds, unless the request states one.
pub const DEFAULT_TTL_MS: i64 = 60_000;

/// Longest lease of a turn or lock, in milliseconds.
pub const MAX_TTL_MS: i64 = 3_600_000;

/// Wait for a turn or lock, in milliseconds, unless the request states one.
pub const DEFAULT_WAIT_MS: i64 = 30_000;

/// Longest wait for a turn or lock, in milliseconds.
pub const MAX_WAIT_MS: i64 = 120_000;

/// Idle limit of a session, in milliseconds, unless the request states one.
pub const DEFAULT_IDLE_MS: i64 = 2 * HOUR_MS;

/// Lifetime of a session, in milliseconds, unless the request states one.
pub const DEFAULT_LIFETIME_MS: i64 = 8 * HOUR_MS;

/// Longest idle limit and lifetime of a session, in milliseconds: ten years.
pub const MAX_LIFETIME_MS: i64 = 10 * 365 * 24 * HOUR_MS;

/// Length of a session's name at most.
pub const MAX_SESSION_NAME: usize = 64;

/// Length of a context's name at most.
pub const MAX_CONTEXT_NAME: usize = 128;

/// Labels of a session at most.
pub const MAX_LABELS: usize = 64;

/// Length of a label's value at most.
pub const MAX_LABEL_VALUE: usize = 256;

/// Settings of a session at most: all of them are read with it.
pub const MAX_SETTINGS: usize = 64;

/// Length of a holder's name for itself at most.
pub const MAX_HOLDER: usize = 128;

/// Length of a state key or lock name at most.
pub const MAX_KEY: usize = 256;

/// Length of the reason for ending a session at most.
pub const MAX_REASON: usize = 256;

/// Length of a session's id or name in a query at most.
pub const MAX_SESSION_QUERY: usize = 128;

/// Length of an idempotency key at most.
pub const MAX_IDEMPOTENCY_KEY: usize = 255;

/// Length of a client's name and of a device code at most.
pub const MAX_LOGIN_FIELD: usize = 128;

const HOUR_MS: i64 = 3_600_000;
