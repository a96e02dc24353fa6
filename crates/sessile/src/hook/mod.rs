//! Shell integration: a shell that has loaded the hook follows the selections of its terminal and its directory.
//!
//! The shell calls [`follow`] before a prompt. It compares the session in the shell's variables with the current
//! selection, and returns the changes of variables that bring the shell in step. For a context without a session the
//! hook starts one, for this shell alone. A selection that may not be used (an untrusted project, a missing approval,
//! a session that was stopped elsewhere) leads to a blocked session, whose room has no targets. Only a person's
//! command or another directory ends it.
//!
//! Each hooked shell has a record in `shells/` of the state directory, [`HookedShell`]. It decides whether a person
//! typed a call at the prompt of that shell ([`crate::State::hooked_prompt`]). Such a call is outside the session
//! that the hook entered; every other call that carries the session is inside. The record is also the time stamp that
//! the shell compares watched files with ([`Watch`]), so an unchanged prompt starts no process.

mod follow;
mod person;
mod record;
mod selection;
mod sessions;
mod shell_status;
mod startup_file;
mod watch;

pub use follow::{HookStep, follow};
pub(crate) use record::live_shells;
pub use record::{EnteredBy, EnteredSession, HookedShell};
pub use selection::outside;
pub(crate) use sessions::is_blocked;
pub use sessions::{has_hook_label, is_of_hook, prompt_label};
pub use shell_status::{OverriddenVariable, ShellStatus};
pub use startup_file::HookLine;
pub(crate) use startup_file::{START_UP_FILES, assigned, is_comment};
pub use watch::Watch;

/// Variable that says how the hook entered the session, without the application's prefix.
pub(crate) const HOOK: &str = "HOOK";
