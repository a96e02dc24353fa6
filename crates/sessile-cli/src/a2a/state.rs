//! How far a task is.

use std::fmt;

/// The state of a task, in the words of version 0.3; version 1.0 says the same in capitals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TaskState {
    /// It was taken, and nothing more.
    Submitted,
    /// It is being worked on.
    Working,
    /// It waits for a message.
    InputRequired,
    /// It waits for someone to authenticate.
    AuthRequired,
    /// It is done.
    Completed,
    /// It was called off.
    Canceled,
    /// It went wrong.
    Failed,
    /// The agent would not have it.
    Rejected,
    /// The agent says something else, or nothing.
    Unknown,
}

const WORDS: [(TaskState, &str); 9] = [
    (TaskState::Submitted, "submitted"),
    (TaskState::Working, "working"),
    (TaskState::InputRequired, "input-required"),
    (TaskState::AuthRequired, "auth-required"),
    (TaskState::Completed, "completed"),
    (TaskState::Canceled, "canceled"),
    (TaskState::Failed, "failed"),
    (TaskState::Rejected, "rejected"),
    (TaskState::Unknown, "unknown"),
];

impl TaskState {
    /// What an agent of any version means by a word.
    pub(crate) fn parse(word: &str) -> Self {
        let bare = word.strip_prefix("TASK_STATE_").unwrap_or(word).to_ascii_lowercase().replace('_', "-");
        let bare = if bare == "cancelled" { "canceled" } else { &bare };
        WORDS.iter().find(|(_, name)| *name == bare).map_or(TaskState::Unknown, |(state, _)| *state)
    }

    /// Its word.
    pub(crate) fn as_str(self) -> &'static str {
        WORDS.iter().find(|(state, _)| *state == self).map_or("unknown", |(_, name)| name)
    }

    /// The word of version 1.0.
    pub(super) fn in_capitals(self) -> String {
        match self {
            TaskState::Unknown => "TASK_STATE_UNSPECIFIED".to_owned(),
            state => format!("TASK_STATE_{}", state.as_str().to_ascii_uppercase().replace('-', "_")),
        }
    }

    /// Whether nothing will change it any more.
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, TaskState::Completed | TaskState::Canceled | TaskState::Failed | TaskState::Rejected)
    }

    /// Whether it waits for its user.
    pub(crate) fn is_interrupted(self) -> bool {
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
    fn both_versions_say_the_same() {
        for (state, word) in WORDS {
            assert_eq!((TaskState::parse(word), state.to_string().as_str()), (state, word));
            assert_eq!(TaskState::parse(&state.in_capitals()), state);
        }
        assert_eq!(TaskState::parse("TASK_STATE_CANCELLED"), TaskState::Canceled);
        assert_eq!(TaskState::parse("TASK_STATE_AUTH_REQUIRED"), TaskState::AuthRequired);
        assert_eq!(TaskState::parse("on fire"), TaskState::Unknown);
    }
}
