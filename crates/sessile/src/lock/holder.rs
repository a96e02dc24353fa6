//! Holders and waiters of locks.

use serde::{Deserialize, Serialize};
use sessile_wire::lock_mode::LockMode;

use crate::process::ProcessId;
use crate::world::World;

/// Process that has a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// The OS user.
    pub user: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub process: Option<ProcessId>,
    /// The session it works in.
    pub session: Option<String>,
    /// Purpose, in a few words; never an argument's value.
    pub purpose: String,
}

impl LockHolder {
    /// This process.
    pub fn own(world: &World, session: Option<String>, purpose: impl Into<String>) -> Self {
        LockHolder {
            user: world.user_name(),
            host: world.host_name(),
            process: ProcessId::own(),
            session,
            purpose: purpose.into(),
        }
    }

    /// In one line.
    pub fn short(&self) -> String {
        let process =
            self.process.as_ref().map_or_else(String::new, |process| format!(" pid {}", process.pid));
        let session = self.session.as_ref().map_or_else(String::new, |id| format!(" in session {id}"));
        format!("{}@{}{process}{session}", self.user, self.host)
    }

    /// Whether two holders work in the same session.
    pub fn is_same_session(&self, other: &LockHolder) -> bool {
        self.session.is_some() && self.session == other.session
    }

    /// In one line, for somebody who waits.
    pub fn described_to(&self, waiter: &LockHolder) -> String {
        let line = self.short();
        if self.is_same_session(waiter) { format!("this session ({line})") } else { line }
    }

    /// Whether the holder is known to be stopped by a signal or a debugger.
    pub(super) fn is_stopped(&self) -> bool {
        self.process
            .as_ref()
            // The pid alone may belong to another process by now, which happens to be stopped.
            .is_some_and(|process| crate::process::is_stopped(process.pid) && process.is_alive())
    }
}

/// Holder and mode of a ticket, as the store has them.
///
/// The mode is part of the holder's JSON and has no column: a column would cost every command that opens the store. A
/// program that does not know the mode takes a shared ticket for an exclusive one, which is safe.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredHolder {
    #[serde(flatten)]
    pub(super) holder: LockHolder,
    #[serde(default, skip_serializing_if = "is_exclusive")]
    pub(super) mode: LockMode,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_exclusive(mode: &LockMode) -> bool {
    !mode.is_shared()
}

impl StoredHolder {
    pub(super) fn of_json(text: &str) -> Self {
        let nobody = || LockHolder {
            user: String::new(),
            host: String::new(),
            process: None,
            session: None,
            purpose: String::new(),
        };
        serde_json::from_str(text)
            // An unreadable holder still excludes others: exclusive is the safe reading.
            .unwrap_or_else(|_| StoredHolder { holder: nobody(), mode: LockMode::Exclusive })
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}
