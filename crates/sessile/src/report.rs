//! An error in the words of the output contract: one line of JSON for programs, a few lines for people.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::app::App;
use crate::code::Code;
use crate::error::{Error, Place};
use crate::settings::project::root_of;
use crate::text::{shown, shown_lines};
use crate::vault::Expired;

/// What is told about a failure. The exit status that goes with it is [`Code::exit`].
#[derive(Clone, Debug)]
pub struct Report {
    /// The stable code.
    pub code: Code,
    /// What went wrong, and where.
    pub message: String,
    /// The next step, in words.
    pub hint: Option<String>,
    /// A command that can be pasted to mend it.
    pub fix_command: Option<String>,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// How long to wait before the same call is worth another try.
    pub retry_after: Option<Duration>,
    /// The line of a file that the message is about.
    pub place: Option<Place>,
    /// What programs are told beside it, by name.
    pub details: Vec<(&'static str, String)>,
}

impl Error {
    /// How long to wait before the same call is worth another try.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::LockHeld { .. } | Error::NamedLockHeld { .. } => Some(Duration::from_millis(500)),
            Error::ConcurrentChange { .. } | Error::RevisionConflict { .. } => Some(Duration::ZERO),
            Error::RateLimited { wait, .. } => *wait,
            _ => None,
        }
    }

    /// Whether the same call may succeed later without anything being changed by its caller.
    pub fn retryable(&self) -> bool {
        match self {
            // The server was not even reached.
            Error::CredentialsExpired(expired) => expired.reason.is_some() && !expired.refused,
            other => other.code().retryable(),
        }
    }

    /// The same error without the line of the file.
    #[must_use]
    pub fn without_excerpt(mut self) -> Self {
        if let Error::FileSyntax { place, .. } | Error::FileValue { place, .. } = &mut self {
            place.text.clear();
        }
        self
    }

    /// The place in a file it speaks of, with the line to show.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Error::FileSyntax { place, .. } | Error::FileValue { place, .. } => Some(place),
            _ => None,
        }
    }

    /// What programs are told beside the message, by name.
    pub fn details(&self) -> Vec<(&'static str, String)> {
        match self {
            Error::CredentialsExpired(expired) => {
                let Expired { name, variable, expired_at, .. } = &**expired;
                let mut details = vec![("credential", name.clone()), ("variable", variable.clone())];
                details.extend(expired_at.clone().map(|at| ("expired_at", at)));
                details
            }
            Error::GuardExplicit { name, .. } | Error::GuardApproval(name) | Error::GuardWeakened(name) => {
                vec![("context", name.clone())]
            }
            _ => Vec::new(),
        }
    }

    /// The error as it is told to the users of an application.
    pub fn report(&self, app: &App) -> Report {
        let mut place = self.place().cloned();
        // A stranger may have written a project's file, or chosen what it leads to.
        if let Some(place) = place.as_mut().filter(|place| root_of(app, &place.path).is_some()) {
            place.text.clear();
        }
        Report {
            place,
            code: self.code(),
            message: self.to_string(),
            hint: self.hint(app),
            fix_command: self.fix_command(app),
            retryable: self.retryable(),
            retry_after: self.retry_after(),
            details: self.details(),
        }
    }
}

impl Report {
    /// A failure of which nothing more is known.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Report {
            code,
            retryable: code.retryable(),
            message,
            hint: None,
            fix_command: None,
            retry_after: None,
            place: None,
            details: Vec::new(),
        }
    }

    /// The object that programs read on standard error.
    pub fn to_json(&self) -> Value {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let mut json = json!({ "error": {
            "code": self.code.as_str(),
            "message": self.message,
            "exit_code": self.code.exit(),
            "retryable": self.retryable,
            "retry_after_ms": self.retry_after.map(millis),
            "hint": self.hint,
            "fix_command": self.fix_command,
        }});
        for (name, value) in &self.details {
            json["error"][name] = json!(value);
        }
        json
    }

    /// The lines that people read, safe for terminals; the labels are handed in so that they can be coloured.
    pub fn to_text(&self, error_label: &str, hint_label: &str) -> String {
        let mut text = format!("{error_label} {}\n", shown_lines(&self.message));
        if let Some(Place { line, column, text: excerpt, .. }) =
            self.place.as_ref().filter(|place| !place.text.is_empty())
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
