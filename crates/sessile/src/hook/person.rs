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

    /// Whether this call works in the session of a hooked shell without a person at it.
    pub fn is_hook_worker(&self) -> bool {
        let is_of_variable = self.call().session_origin().layer == Layer::Environment;
        is_of_variable && self.entered_by().is_some() && !self.call().is_interactive()
    }

    /// Whether a person typed this call at a prompt outside the session that the hook entered. A shell that inherited the
    /// session from another terminal may select something else for its own, but is inside otherwise.
    pub(crate) fn is_outside_hook_session(&self) -> bool {
        self.is_at_hooked_prompt() && !self.is_in_inherited_shell()
    }

    /// Whether this call was typed in a shell that was started in the session of a hooked shell on another terminal.
    pub(crate) fn is_in_inherited_shell(&self) -> bool {
        self.hooked_prompt().is_some_and(|shell| shell.is_inside)
    }

    /// The session that this call is inside of. A call that a person typed at a hooked prompt is outside.
    pub fn inside_session(&self) -> Option<&str> {
        self.enclosing_session().filter(|_| !self.is_outside_hook_session())
    }

    /// The session that this call cannot leave: inside it, the selection of the terminal does not change.
    pub(crate) fn pinned_session(&self) -> Option<&str> {
        self.enclosing_session().filter(|_| !self.is_at_hooked_prompt())
    }

    /// Whether this call ignores the session in its variable: a person typed it at a hooked prompt, and either the
    /// session is blocked, or the call names a context and the hook started the session.
    pub(crate) fn leaves_hook_session(&self) -> bool {
        if self.call().session_origin().layer != Layer::Environment {
            return false;
        }
        let is_aside = match self.entered_by() {
            Some(EnteredBy::Blocked) => true,
            Some(EnteredBy::Terminal | EnteredBy::Directory) => {
                let entered =
                    self.hooked_prompt().and_then(|shell| shell.entered.as_ref()?.context.as_deref());
                let named = self.call().overrides().explain("context");
                // The variable that the hook followed names the context of this very session.
                named.is_some_and(|(name, origin)| origin.layer == Layer::Flag || name.as_str() != entered)
            }
            _ => false,
        };
        is_aside && self.is_at_hooked_prompt()
    }
}
