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
    #[error("token {0} no longer holds the lock: it expired, was released or was broken")]
    Lost(i64),
    /// Held with another token. That one is not named: whoever knows it can release the lock.
    #[error("token {token} does not hold lock {}", quoted(name))]
    OtherHolder {
        /// The lock.
        name: String,
        /// The token that was given.
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
                format!(
                    "the lock is already held here: renew or release it with its token: {name} lock renew {lock} --token N"
                )
            }
            Self::Held { .. } => {
                format!("wait longer with --lock-timeout, or look: {name} lock list")
            }
            Self::NotFound(_) => format!("`{name} lock list` shows those that are held"),
            Self::Lost(_) => "stop what the lock protected, then acquire it again".to_owned(),
            Self::OtherHolder { .. } => format!("it has changed hands: look again with `{name} lock list`"),
        })
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Held { .. } => Some(Duration::from_millis(500)),
            _ => None,
        }
    }
}
