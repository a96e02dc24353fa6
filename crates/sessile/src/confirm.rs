//! Confirmation of changes: required, given by flag, or asked of a person. Without a terminal the answer is no.

use crate::error::{Result, UsageError};
use crate::state::State;

/// Confirmation of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Given on the command line.
    Given,
    /// A person is there to be asked. End of input is a no.
    Ask,
}

/// Whether a person can be asked by this call: standard input and error are a terminal, and neither `CI` nor `--no-input`
/// is set.
pub fn can_ask(state: &State) -> bool {
    // The question is printed there; one that nobody sees cannot be answered.
    state.call().is_interactive() && state.world().streams().stderr
}

/// Confirmation that was given or can be asked for; an error with `what` otherwise. No variable gives it.
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
