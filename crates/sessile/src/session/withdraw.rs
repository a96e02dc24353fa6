//! Withdrawal of protected targets from the rooms of sessions whose approval has ended.

use crate::context::{Guard, approval};
use crate::error::Result;
use crate::names::ContextName;
use crate::session::Session;
use crate::state::State;

/// Sessions that are looked at in one call.
const MOST_SESSIONS: usize = 1000;

impl State {
    /// Removes protected targets from the rooms of sessions whose context has no valid approval, even while commands
    /// run there. With a name, only from rooms of that context. Returns the number of changed rooms.
    pub fn withdraw_unapproved(&self, name: Option<&ContextName>) -> Result<usize> {
        // What nobody ever approved was never open.
        if approval::all(self)?.is_empty() {
            return Ok(0);
        }
        let Some(sessions) = self.sessions_to_look_at()? else { return Ok(0) };
        let mut count = 0;
        for session in sessions.list(None, true, MOST_SESSIONS)? {
            let Some(pinned) = session.context.as_deref() else { continue };
            if name.is_none_or(|name| name.as_str() == pinned) && self.is_shut(pinned)? {
                count += usize::from(self.withdraw_targets(&session)?);
            }
        }
        Ok(count)
    }

    /// Removes protected targets from the room of a session. Returns whether it had any.
    pub(crate) fn withdraw_targets(&self, session: &Session) -> Result<bool> {
        crate::tool::withdraw(self, session)
    }

    /// Whether a context needs an approval and has none.
    fn is_shut(&self, name: &str) -> Result<bool> {
        let Ok(name) = name.parse() else { return Ok(false) };
        // A context of a project that is elsewhere cannot be looked at from here.
        let Ok(Some(context)) = self.contexts().find(&name) else { return Ok(false) };
        Ok(context.guard == Guard::Approval && approval::in_force_of(self, &context)?.is_empty())
    }
}
