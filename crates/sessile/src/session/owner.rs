//! Owners of sessions.

use serde::{Deserialize, Serialize};

use crate::process::ProcessId;
use crate::world::World;

/// Owner of a session: the process that started it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The OS user.
    pub user: String,
    /// The machine.
    pub host: String,
    /// The terminal it was started on, if on one.
    pub terminal: Option<String>,
    /// Process that started the session, if not on a terminal.
    pub process: Option<ProcessId>,
    /// Name of the agent that works in the session.
    pub agent: Option<String>,
}

impl Owner {
    /// Owner of this call.
    pub fn of(world: &World, agent: Option<String>) -> Self {
        let terminal = world.terminal().map(|terminal| terminal.device.display().to_string());
        let parent = || rustix::process::getppid().and_then(|pid| ProcessId::of(pid.as_raw_nonzero().get()));
        Owner {
            user: world.user_name(),
            host: world.host_name(),
            process: if terminal.is_none() { parent() } else { None },
            terminal,
            agent,
        }
    }

    /// In one line, for people.
    pub fn short(&self) -> String {
        let place = match (&self.terminal, &self.process) {
            (Some(terminal), _) => format!(" {terminal}"),
            (None, Some(process)) => format!(" pid {}", process.pid),
            (None, None) => String::new(),
        };
        let agent = self.agent.as_ref().map_or_else(String::new, |agent| format!(" ({agent})"));
        format!("{}@{}{place}{agent}", self.user, self.host)
    }
}
