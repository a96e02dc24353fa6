//! Mode of a lock: exclusive or shared.

use serde::{Deserialize, Serialize};

/// Mode in which a lock is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "service", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "service", schemars(inline, transform = crate::service::plain_enum))]
pub enum LockMode {
    /// One holder at a time.
    #[default]
    Exclusive,
    /// Any number of shared holders at a time, and no exclusive one.
    Shared,
}

impl LockMode {
    /// Mode of a request that may ask for a shared lock.
    pub fn of(is_shared: bool) -> Self {
        if is_shared { LockMode::Shared } else { LockMode::Exclusive }
    }

    /// Name of the mode.
    pub fn as_str(self) -> &'static str {
        match self {
            LockMode::Exclusive => "exclusive",
            LockMode::Shared => "shared",
        }
    }

    /// Whether the lock is shared.
    pub fn is_shared(self) -> bool {
        self == LockMode::Shared
    }

    /// Whether two holders exclude each other.
    pub fn conflicts_with(self, other: LockMode) -> bool {
        !(self.is_shared() && other.is_shared())
    }
}
