//! Calls that a person typed at the prompt of a hooked shell.

use crate::hook::{EnteredBy, HOOK, HookedShell};
use crate::settings::Layer;
use crate::state::State;

impl State {
    /// The hooked shell that this call was typed at: the call is interactive, and its parent process is that shell.
    pub fn hooked_prompt(&self) -> Option<&HookedShell> {
        let find = || {
            let parent = rustix::process::getppid().filter(|_| self.call().is_interactive())?;
            HookedShell::load(self, parent.as_raw_nonzero().get())
        };
        self.resolution.hooked_prompt.get_or_init(find).as_ref()
    }

    /// Whether a person typed this call at the prompt of a shell whose session the hook entered. Such a call is not inside
    /// that session.
    pub fn is_at_hooked_prompt(&self) -> bool {
        let Some(session) = self.enclosing_session().filter(|_| self.entered_by().is_some()) else {
            return false;
        };
        let entered = self.hooked_prompt().and_then(|shell| shell.entered.as_ref());
        entered.is_some_and(|entered| entered.session == session && entered.by != EnteredBy::Started)
    }

    /// How the hook entered the session of this call, by the variable that hooked shells export.
    pub fn entered_by(&self) -> Option<EnteredBy> {
        let word = self.world().variable(&self.app().variable(HOOK))?;
        EnteredBy::of_word(word.to_str()?)
    }

    /// The session that this call is inside of. A call that a person typed at a hooked prompt is outside.
    pub fn inside_session(&self) -> Option<&str> {
        self.enclosing_session().filter(|_| !self.is_at_hooked_prompt())
    }

    /// Whether this call leaves the session of its variable aside: it was typed at a hooked prompt, and the session is a
    /// blocked one, or the call names a context of its own and the session is only the hook's.
    pub(crate) fn leaves_hook_session(&self) -> bool {
        if self.call().session_origin().layer != Layer::Environment {
            return false;
        }
        let is_aside = match self.entered_by() {
            Some(EnteredBy::Blocked) => true,
            Some(EnteredBy::Terminal | EnteredBy::Directory) => self.call().override_of("context").is_some(),
            _ => false,
        };
        is_aside && self.is_at_hooked_prompt()
    }
}
