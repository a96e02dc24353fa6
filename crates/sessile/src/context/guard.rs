//! Guards: conditions of a context's use.

use std::path::Path;

use serde::Serialize;

use crate::context::guard_weakening::guard_in;
use crate::context::{Context, approval};
use crate::error::{GuardError, Result};
use crate::history::recorded_text;
use crate::names::ContextName;
use crate::settings::Origin;
use crate::state::State;
use crate::store::Store;

/// A guard. It is a rail against accidents, not a wall against a hostile program of the same user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// No condition.
    #[default]
    None,
    /// To be named by a flag, a variable or the session.
    Explicit,
    /// Requires an explicit selection and a valid approval by a person.
    Approval,
}

impl Guard {
    /// Names of all guards.
    pub const NAMES: &'static [&'static str] = &["none", "explicit", "approval"];

    /// A guard by its name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Guard::None),
            "explicit" => Some(Guard::Explicit),
            "approval" => Some(Guard::Approval),
            _ => None,
        }
    }

    /// Name.
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// A guard and whether it lets this call through.
#[derive(Clone, Debug, Serialize)]
pub struct GuardState {
    /// The guard.
    pub guard: Guard,
    /// Whether it is satisfied.
    pub satisfied: bool,
    /// Expiry of the valid approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_until: Option<String>,
}

impl Context {
    /// Fails unless the guard is satisfied for a call that was led here by `origin`.
    pub fn check_guard(&self, state: &State, origin: &Origin) -> Result<()> {
        // Without a guard that needs it the store is not opened: this is on the path of every command.
        let store =
            if self.guard == Guard::Approval || self.may_lack_guard() { state.store()? } else { None };
        self.check_guard_in(state, store, origin)
    }

    /// The guard that counts. A file that may have lost its guard by accident keeps the recorded one.
    pub(super) fn effective_guard(&self, state: &State, store: Option<&Store>) -> Result<Guard> {
        if self.guard == Guard::Approval || !self.may_lack_guard() {
            return Ok(self.guard);
        }
        Ok(recorded_guard(state, store, self.path(), &self.name)?.max(self.guard))
    }

    /// The same with the approvals of this store.
    pub(super) fn check_guard_in(&self, state: &State, store: Option<&Store>, origin: &Origin) -> Result<()> {
        let guard = self.effective_guard(state, store)?;
        // First: an approval does not open a context that was selected by accident.
        if guard >= Guard::Explicit && !origin.layer.is_explicit() {
            return Err(
                GuardError::NotExplicit { name: self.name.to_string(), origin: origin.to_string() }.into()
            );
        }
        if guard == Guard::Approval && approval::in_force_in(state, store, self)?.is_empty() {
            return Err(GuardError::ApprovalRequired(self.name.to_string()).into());
        }
        Ok(())
    }

    /// The guard as `status` shows it.
    pub fn guard_state(&self, state: &State, origin: &Origin) -> Result<GuardState> {
        let approved_until = match self.guard {
            Guard::Approval => {
                let approvals = approval::in_force_of(state, self)?;
                // RFC 3339 times in UTC sort as text.
                approvals.into_iter().map(|approval| approval.expires_at).max()
            }
            _ => None,
        };
        Ok(GuardState {
            guard: self.guard,
            satisfied: self.check_guard(state, origin).is_ok(),
            approved_until,
        })
    }
}

/// The guard that the history knows of the context in a file; the strictest if the context was approved once.
pub(super) fn recorded_guard(
    state: &State,
    store: Option<&Store>,
    path: &Path,
    name: &ContextName,
) -> Result<Guard> {
    let Some(store) = store else { return Ok(Guard::None) };
    if approval::was_given(store, path, name)? {
        return Ok(Guard::Approval);
    }
    let recorded = recorded_text(store, &state.account(), path)?;
    Ok(guard_in(path, recorded.as_deref(), name.as_str()))
}
