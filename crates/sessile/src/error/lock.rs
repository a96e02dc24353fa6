//! Errors of named locks.

use std::time::Duration;

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::quoted;

/// Errors of named locks.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A named lock is held.
    #[error(
        "lock {} is held by {}; waited {}",
        quoted(name),
        holder.as_deref().unwrap_or("another"),
        crate::duration::short(*waited)
    )]
    Held {
        /// The lock.
        name: String,
        /// Holder.
        holder: Option<String>,
        /// Whether the holder works in the session of the waiter, or started the waiter.
        is_own: bool,
        /// How long this process waited.
        waited: Duration,
    },
    /// Lock that is not held.
    #[error("lock {} is not held", quoted(.0))]
    NotFound(String),
    /// No longer held.
    #[error("fencing token {0} is no longer valid: the lease expired, or the lock was released or broken")]
    Lost(i64),
    /// Lock that another token holds. The message does not contain that token, because it can release the lock.
    #[error("fencing token {token} does not hold lock {}", quoted(name))]
    OtherHolder {
        /// The lock.
        name: String,
        /// Token in the call.
        token: i64,
    },
}

impl Diagnostic for LockError {
    fn code(&self) -> Code {
        match self {
            Self::Held { .. } => Code::LockHeld,
            Self::NotFound(_) => Code::LockNotFound,
            Self::Lost(_) | Self::OtherHolder { .. } => Code::LockLost,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::Held { name: lock, is_own: true, .. } => {
                format!("the caller holds the lock already; renew it: {name} lock renew {lock} --token N")
            }
            Self::Held { .. } => {
                format!("wait longer with --lock-timeout, or list the holders: {name} lock list")
            }
            Self::NotFound(_) => format!("list the locks: {name} lock list"),
            Self::Lost(_) => "stop the protected work, then acquire the lock again".to_owned(),
            Self::OtherHolder { .. } => format!("the holder changed; list the locks: {name} lock list"),
        })
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Held { .. } => Some(Duration::from_millis(500)),
            _ => None,
        }
    }
}
