//! Who is told of a task's changes, as the agent says it.

use std::fmt;

use serde_json::Value;

use super::part::text;

/// One who is told. What the agent says of it may hold a token, so it does not print.
#[derive(Clone)]
pub(crate) struct PushView {
    /// All that the agent said.
    pub(crate) raw: Value,
    /// Its id.
    pub(crate) id: Option<String>,
    /// The task.
    pub(crate) task_id: Option<String>,
    /// Where the agent sends changes.
    pub(crate) url: String,
}

impl PushView {
    /// Nothing, if it does not say where.
    pub(super) fn read(raw: Value) -> Option<Self> {
        let inner = raw.get("pushNotificationConfig").unwrap_or(&raw);
        let url = text(inner, &["url"])?;
        let id = text(inner, &["id"]).filter(|id| !id.is_empty());
        // Version 0.3 over HTTP+JSON says both ids in a name: tasks/T/pushNotificationConfigs/C.
        let name = text(&raw, &["name"]).unwrap_or_default();
        let pieces: Vec<&str> = name.split('/').collect();
        let (named_task, named_id) = match pieces.as_slice() {
            ["tasks", task, "pushNotificationConfigs", id] => (Some(*task), Some(*id)),
            _ => (None, None),
        };
        Some(PushView {
            url,
            id: id.or_else(|| named_id.map(str::to_owned)),
            task_id: text(&raw, &["taskId"]).or_else(|| named_task.map(str::to_owned)),
            raw,
        })
    }
}

impl fmt::Debug for PushView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushView")
            .field("id", &self.id)
            .field("task_id", &self.task_id)
            .finish_non_exhaustive()
    }
}
