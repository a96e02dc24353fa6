//! A task's state in the words of version 1.0.

use sessile::conversation::TaskState;

/// The word of version 1.0: the same as ours, in capitals.
pub(super) fn in_capitals(state: TaskState) -> String {
    match state {
        TaskState::Unknown => "TASK_STATE_UNSPECIFIED".to_owned(),
        state => format!("TASK_STATE_{}", state.as_str().to_ascii_uppercase().replace('-', "_")),
    }
}
