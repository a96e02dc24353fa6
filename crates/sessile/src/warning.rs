//! Warnings: conditions that do not fail a call.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::shown_lines;

/// A condition that does not fail a call and that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The condition.
    pub message: String,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Warning {
    /// The lines that people read, safe for terminals; the labels are handed in so that they can be coloured.
    pub fn to_text(&self, warning_label: &str, hint_label: &str) -> String {
        let mut text = format!("{warning_label} {}\n", shown_lines(&self.message));
        if let Some(hint) = &self.hint {
            text.push_str(&format!("{hint_label} {}\n", shown_lines(hint)));
        }
        text
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text("warning:", "hint:"))
    }
}
