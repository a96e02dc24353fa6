//! Whether the shell of a call is hooked, and in step with its selection.

use serde::Serialize;

use crate::hook::follow::is_pending;
use crate::hook::startup_file::assignment;
use crate::state::State;

/// State of the shell that a call was typed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShellStatus {
    /// Whether the shell has loaded the hook.
    pub hooked: bool,
    /// Whether its variables are those that the hook set, for what is selected now.
    pub in_step: bool,
    /// Whether the shell follows a change of the selection at its next prompt.
    pub pending: bool,
    /// Variables that have another value.
    pub overridden: Vec<OverriddenVariable>,
}

/// Variable of a hooked shell that has another value than the hook set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OverriddenVariable {
    /// Name.
    pub name: String,
    /// Line of a start-up file that sets it, such as `~/.bashrc:12`.
    pub place: Option<String>,
}

impl ShellStatus {
    /// State of the shell of an interactive call; none for any other call.
    pub fn of(state: &State) -> Option<Self> {
        state.call().interactive_terminal()?;
        let Some(shell) = state.hooked_prompt() else {
            return Some(ShellStatus {
                hooked: false,
                in_step: false,
                pending: false,
                overridden: Vec::new(),
            });
        };
        let is_other = |name: &str, value: Option<&str>| {
            state.world().variable(name).map(|found| found.to_string_lossy()).as_deref() != value
        };
        let others = shell.variables.iter().filter(|(name, value)| is_other(name, value.as_deref()));
        let overridden: Vec<OverriddenVariable> = others
            .map(|(name, _)| OverriddenVariable {
                name: name.clone(),
                place: assignment(state, shell.shell, name),
            })
            .collect();
        let pending = is_pending(state, shell);
        let in_step = overridden.is_empty() && !pending;
        Some(ShellStatus { hooked: true, in_step, pending, overridden })
    }

    /// In one line, for people.
    pub fn line(&self) -> String {
        if !self.hooked {
            return "not hooked; commands typed here are not affected".to_owned();
        }
        if self.in_step {
            return "in step".to_owned();
        }
        let pending = self.pending.then(|| "follows the selection from the next prompt on".to_owned());
        let each = self.overridden.iter().map(|variable| match &variable.place {
            Some(place) => format!("{} overridden by {}", variable.name, crate::text::shown(place)),
            None => format!("{} overridden in this shell", variable.name),
        });
        pending.into_iter().chain(each).collect::<Vec<_>>().join(", ")
    }
}
