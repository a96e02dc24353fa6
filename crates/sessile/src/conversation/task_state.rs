//! Where a task of an agent stands.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The states that the protocol knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// Taken, and not begun.
    Submitted,
    /// At work.
    Working,
    /// It waits for an answer.
    InputRequired,
    /// It waits for a credential.
    AuthRequired,
    /// Done.
    Completed,
    /// Ended on demand.
    Canceled,
    /// Ended in vain.
    Failed,
    /// Not taken.
    Rejected,
    /// The agent does not say.
    Unknown,
}

impl TaskState {
    const ALL: [TaskState; 9] = [
        TaskState::Submitted,
        TaskState::Working,
        TaskState::InputRequired,
        TaskState::AuthRequired,
        TaskState::Completed,
        TaskState::Canceled,
        TaskState::Failed,
        TaskState::Rejected,
        TaskState::Unknown,
    ];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskState::Submitted => "submitted",
            TaskState::Working => "working",
            TaskState::InputRequired => "input-required",
            TaskState::AuthRequired => "auth-required",
            TaskState::Completed => "completed",
            TaskState::Canceled => "canceled",
            TaskState::Failed => "failed",
            TaskState::Rejected => "rejected",
            TaskState::Unknown => "unknown",
        }
    }

    /// The state of a word, in the spelling of any version of the protocol; what is new to us is unknown.
    pub fn of(word: &str) -> Self {
        let word = word.trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace('_', "-");
        let word = if word == "cancelled" { "canceled" } else { word.as_str() };
        TaskState::ALL.into_iter().find(|state| state.as_str() == word).unwrap_or(TaskState::Unknown)
    }

    /// Whether nothing more comes of it.
    pub fn is_terminal(self) -> bool {
        matches!(self, TaskState::Completed | TaskState::Canceled | TaskState::Failed | TaskState::Rejected)
    }

    /// Whether it waits for the user.
    pub fn waits(self) -> bool {
        matches!(self, TaskState::InputRequired | TaskState::AuthRequired)
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_state_is_that_state() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::of(state.as_str()), state);
            let upper = state.as_str().to_ascii_uppercase().replace('-', "_");
            assert_eq!(TaskState::of(&format!("TASK_STATE_{upper}")), state);
        }
        assert_eq!(TaskState::of("TASK_STATE_CANCELLED"), TaskState::Canceled);
        assert_eq!(TaskState::of("paused"), TaskState::Unknown);
    }
}
