//! An error in the words of the output contract: one line of JSON for programs, a few lines for people.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::App;
use crate::code::Code;
use crate::error::{Diagnostic, ErrorDetails, FileLocation};
use crate::text::{shown, shown_lines};

/// Report of a failure. Its exit status is [`Code::exit`].
#[derive(Clone, Debug)]
pub struct Report {
    /// The stable code.
    pub code: Code,
    /// Problem and its location.
    pub message: String,
    /// The next step, in words.
    pub hint: Option<String>,
    /// Command that fixes the problem, ready to paste.
    pub fix_command: Option<String>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Time to wait before a retry.
    pub retry_after: Option<Duration>,
    /// The line of a file that the message is about.
    pub location: Option<FileLocation>,
    /// Names and times in the message, for programs.
    pub details: ErrorDetails,
}

/// Report as programs read it, under `error` in a line on standard error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportBody {
    /// Stable code.
    pub code: String,
    /// Problem and its location.
    pub message: String,
    /// Exit status that goes with the code.
    pub exit_code: u8,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// Time before the same call is worth another try.
    pub retry_after_ms: Option<u64>,
    /// Next step, in words.
    pub hint: Option<String>,
    /// Command that fixes the problem, ready to paste.
    pub fix_command: Option<String>,
    /// Names and times in the message.
    #[serde(flatten)]
    pub details: ErrorDetails,
}

impl Report {
    /// Report of an error for the users of an application.
    pub fn of(error: &dyn Diagnostic, app: &App) -> Self {
        let mut location = error.location().cloned();
        // The author of a project's file may be untrusted, and a link in it may lead anywhere.
        if let Some(location) =
            location.as_mut().filter(|location| app.project_root(&location.path).is_some())
        {
            location.text.clear();
        }
        Report {
            location,
            code: error.code(),
            message: error.to_string(),
            hint: error.hint(app),
            fix_command: error.fix_command(app),
            retryable: error.is_retryable(),
            retry_after: error.retry_after(),
            details: error.details(),
        }
    }

    /// A failure of which nothing more is known.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Report {
            code,
            retryable: code.is_retryable(),
            message,
            hint: None,
            fix_command: None,
            retry_after: None,
            location: None,
            details: ErrorDetails::default(),
        }
    }

    /// Report as programs read it.
    pub fn to_body(&self) -> ReportBody {
        ReportBody {
            code: self.code.as_str().to_owned(),
            message: self.message.clone(),
            exit_code: self.code.exit(),
            retryable: self.retryable,
            retry_after_ms: self.retry_after.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            hint: self.hint.clone(),
            fix_command: self.fix_command.clone(),
            details: self.details.clone(),
        }
    }

    /// Object that programs read on standard error.
    pub fn to_json(&self) -> Value {
        json!({ "error": self.to_body() })
    }

    /// The lines that people read, safe for terminals; the labels are handed in so that they can be coloured.
    pub fn to_text(&self, error_label: &str, hint_label: &str) -> String {
        // Messages can hold names and texts of others, so they are sanitized here, at the last step.
        let mut text = format!("{error_label} {}\n", shown_lines(&self.message));
        if let Some(FileLocation { line, column, text: excerpt, .. }) =
            self.location.as_ref().filter(|location| !location.text.is_empty())
        {
            let margin = " ".repeat(line.to_string().len());
            let pointer = " ".repeat(column.saturating_sub(1));
            text.push_str(&format!("{margin} |\n{line} | {}\n{margin} | {pointer}^\n", shown(excerpt)));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("{hint_label} {}\n", shown_lines(hint)));
        }
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text("error:", "hint:"))
    }
}
