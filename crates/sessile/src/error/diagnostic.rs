//! The interface of every error that a command, an HTTP answer or an MCP result reports.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::code::Code;
use crate::error::FileLocation;

/// Additional fields of a JSON report: names and times that the message has in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetails {
    /// Name of the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Variable that can replace the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// Expiry of the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expired_at: Option<String>,
    /// Name of the guarded context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// Code, hint and fix command of an error; its `Display` is the message.
pub trait Diagnostic: std::error::Error {
    /// Stable code of the error.
    fn code(&self) -> Code;

    /// Next step in words, for the users of an application.
    fn hint(&self, _app: &App) -> Option<String> {
        None
    }

    /// Command that can be pasted to fix the cause, where one is certain.
    fn fix_command(&self, _app: &App) -> Option<String> {
        None
    }

    /// Whether the same call may succeed later without any change by its caller.
    fn is_retryable(&self) -> bool {
        self.code().is_retryable()
    }

    /// Time to wait before a retry.
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// Position in a file that the error is about.
    fn location(&self) -> Option<&FileLocation> {
        None
    }

    /// Additional fields of the JSON report.
    fn details(&self) -> ErrorDetails {
        ErrorDetails::default()
    }
}
