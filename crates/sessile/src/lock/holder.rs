//! Who holds or waits for a lock.

use serde::{Deserialize, Serialize};

use crate::process::ProcessId;
use crate::world::World;

/// Whoever has a ticket.
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
    /// What it does, in a few words; never an argument's value.
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

    pub(super) fn of_json(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|_| LockHolder {
            user: String::new(),
            host: String::new(),
            process: None,
            session: None,
            purpose: String::new(),
        })
    }
}
