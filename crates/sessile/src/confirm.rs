//! Confirmation of changes: required, given by flag, or asked of a person. Without a terminal the answer is no.

use crate::error::{Result, UsageError};
use crate::state::State;

/// Confirmation of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Given on the command line.
    Given,
    /// A prompt is possible. End of input means no.
    Ask,
}

/// Whether this call can prompt: standard input and error are a terminal, and neither `CI` nor `--no-input` is set.
pub fn can_ask(state: &State) -> bool {
    // The question is printed there; one that nobody sees cannot be answered.
    state.call().is_interactive() && state.world().streams().stderr
}

/// Consent by flag or by prompt; an error with `what` if neither is possible. No variable grants it.
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
