//! When a yes is needed, who may give it. Nobody there means no.

use crate::error::{Result, UsageError};
use crate::state::State;

/// What to do about a change that needs a yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// It was given on the command line.
    Given,
    /// A person is there to be asked. End of input is a no.
    Ask,
}

/// Whether a person can be asked by this call: standard input and error are a terminal, and neither `CI` nor `--no-input`
/// is set.
pub fn can_ask(state: &State) -> bool {
    state.call().is_interactive() && state.world().streams().stderr
}

/// Whether a yes was given or can be asked for; an error, with `what`, if neither. There is no variable for it.
pub fn consent(state: &State, what: impl Into<String>) -> Result<Consent> {
    if state.args().yes {
        Ok(Consent::Given)
    } else if can_ask(state) {
        Ok(Consent::Ask)
    } else {
        Err(UsageError::ConfirmationRequired { what: what.into() }.into())
    }
}

/// Whether what a person typed is a yes.
pub fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
