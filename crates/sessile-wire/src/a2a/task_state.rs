//! States of a task.

use std::fmt;

use serde::{Deserialize, Serialize};

/// State of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskState {
    /// Accepted, not started.
    Submitted,
    /// In progress.
    Working,
    /// Waits for input of the user.
    InputRequired,
    /// Waits for a credential.
    AuthRequired,
    /// Ended with a result.
    Completed,
    /// Canceled.
    Canceled,
    /// Failed.
    Failed,
    /// Refused by the agent.
    Rejected,
    /// Not stated by the agent, or not known to this version.
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

    /// Name of the state, as version 0.3 spells it.
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

    /// State by its name in any version of the protocol. Other names are [`TaskState::Unknown`].
    pub fn of(word: &str) -> Self {
        // Version 1.0 spells states as enum values of protocol buffers.
        let word = word.trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace('_', "-");
        // Agents use both spellings.
        let word = if word == "cancelled" { "canceled" } else { word.as_str() };
        TaskState::ALL.into_iter().find(|state| state.as_str() == word).unwrap_or(TaskState::Unknown)
    }

    /// Name of the state, as version 1.0 spells it.
    pub(super) fn to_v1(self) -> String {
        match self {
            // The enum of version 1.0 has no value for an unknown state.
            TaskState::Unknown => "TASK_STATE_UNSPECIFIED".to_owned(),
            state => format!("TASK_STATE_{}", state.as_str().to_ascii_uppercase().replace('-', "_")),
        }
    }

    /// Whether the task has ended.
    pub fn is_terminal(self) -> bool {
        matches!(self, TaskState::Completed | TaskState::Canceled | TaskState::Failed | TaskState::Rejected)
    }

    /// Whether the task waits for the user.
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
    fn state_is_parsed_in_every_spelling() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::of(state.as_str()), state);
            assert_eq!(TaskState::of(&state.to_v1()), state);
        }
        assert_eq!(TaskState::of("TASK_STATE_CANCELLED"), TaskState::Canceled);
        assert_eq!(TaskState::of("paused"), TaskState::Unknown);
    }
}
