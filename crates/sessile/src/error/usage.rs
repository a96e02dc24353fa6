//! Errors of arguments, values and confirmations.

use std::path::PathBuf;

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::{quoted, shown};

/// Errors of arguments, values and confirmations.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// The arguments contradict each other.
    #[error("{0}")]
    Arguments(String),
    /// A name that may not be one.
    #[error("{} is not a valid {what} name: {reason}", quoted(name))]
    InvalidName {
        /// Kind of the name.
        what: &'static str,
        /// The name given.
        name: String,
        /// Reason of the refusal.
        reason: std::borrow::Cow<'static, str>,
    },
    /// A value that does not fit.
    #[error("{place}: {} is not {expected}", quoted(value))]
    InvalidValue {
        /// The flag, variable or setting.
        place: String,
        /// The value given.
        value: String,
        /// Expected form.
        expected: String,
    },
    /// A change without a scope.
    #[error("{what}: choose a scope")]
    ScopeRequired {
        /// Requested action.
        what: String,
        /// The flags that would say it.
        flags: &'static str,
    },
    /// Confirmation required without a terminal.
    #[error("{what}: confirmation required, but the call is not interactive")]
    ConfirmationRequired {
        /// Action to confirm, with the affected objects.
        what: String,
    },
    /// A person is needed.
    #[error("{what} requires an interactive terminal")]
    TerminalRequired {
        /// Requested action.
        what: String,
        /// Alternative.
        instead: String,
    },
    /// The terminal has a selection that a call which is not interactive may not use.
    #[error("terminal {} has selected {selection}, which this call may not use: {reason}", shown(device.display()))]
    SelectionWithheld {
        /// The session or context that the terminal has selected.
        selection: String,
        /// The flag that names it.
        flag: String,
        /// The terminal's device.
        device: PathBuf,
        /// Reason why the call is not interactive.
        reason: &'static str,
    },
    /// A time namespace shifts the clock since boot.
    #[error("{what} is refused in a time namespace that shifts the clock since boot")]
    ShiftedClock {
        /// Requested action.
        what: String,
    },
    /// A secret outside the vault.
    #[error("{place}: secrets are not allowed here")]
    SecretRefused {
        /// Location of the finding.
        place: String,
        /// Alternative.
        instead: &'static str,
    },
}

impl Diagnostic for UsageError {
    fn code(&self) -> Code {
        match self {
            Self::Arguments(_) => Code::Usage,
            Self::InvalidName { .. } => Code::InvalidName,
            Self::InvalidValue { .. } => Code::InvalidValue,
            Self::ScopeRequired { .. } => Code::ScopeRequired,
            Self::ConfirmationRequired { .. } => Code::ConfirmationRequired,
            Self::TerminalRequired { .. } | Self::ShiftedClock { .. } => Code::TerminalRequired,
            Self::SelectionWithheld { .. } => Code::SelectionWithheld,
            Self::SecretRefused { .. } => Code::SecretRefused,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::ScopeRequired { flags, .. } => (*flags).to_owned(),
            Self::ConfirmationRequired { .. } => "pass --yes to confirm".to_owned(),
            Self::TerminalRequired { instead, .. } => instead.clone(),
            Self::SelectionWithheld { flag, .. } => {
                format!("pass --session or --context: {flag}")
            }
            Self::ShiftedClock { .. } => "run it on a terminal outside the time namespace".to_owned(),
            // The text is static, but the command in it has the application's name.
            Self::SecretRefused { instead, .. } => instead.replace("{name}", name),
            _ => return None,
        })
    }
}
