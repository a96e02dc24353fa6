//! The exit statuses of every command, as documented constants.
//!
//! A status says what *kind* of thing happened; the error's [`Code`](crate::Code) says which.

/// Done.
pub const DONE: u8 = 0;
/// Failed for a reason no other status names.
pub const FAILED: u8 = 1;
/// The arguments are wrong, or an answer or a confirmation is missing.
pub const USAGE: u8 = 2;
/// Partly done; the output says which part.
pub const PARTIAL: u8 = 3;
/// A precondition does not hold: expired session, untrusted project, unsupported system.
pub const PRECONDITION: u8 = 4;
/// The named thing does not exist.
pub const NOT_FOUND: u8 = 5;
/// Conflict: a lock is held, something changed concurrently, or the thing exists already.
pub const CONFLICT: u8 = 6;
/// Not allowed: a guard or an ownership rule refused.
pub const NOT_ALLOWED: u8 = 7;
/// Credentials are missing or expired.
pub const CREDENTIALS: u8 = 8;
/// Timed out.
pub const TIMED_OUT: u8 = 10;
/// Rate limited.
pub const RATE_LIMITED: u8 = 11;
/// A service or an agent cannot be reached.
pub const UNREACHABLE: u8 = 12;

/// Every status with its meaning, in order.
pub const ALL: &[(u8, &str)] = &[
    (DONE, "done"),
    (FAILED, "failed"),
    (USAGE, "invalid arguments, or a confirmation is missing"),
    (PARTIAL, "partly done"),
    (PRECONDITION, "precondition: expired session, untrusted project, unsupported system"),
    (NOT_FOUND, "not found"),
    (CONFLICT, "conflict: lock held, concurrent change, already exists"),
    (NOT_ALLOWED, "not allowed: guard, ownership"),
    (CREDENTIALS, "credentials missing or expired"),
    (TIMED_OUT, "timed out"),
    (RATE_LIMITED, "rate limited"),
    (UNREACHABLE, "service or agent unreachable"),
];
