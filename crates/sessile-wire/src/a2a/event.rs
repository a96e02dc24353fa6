//! Events of an agent: replies to a request and items of a stream.

use serde_json::Value;

use super::dialect::Dialect;
use super::task::{AgentMessage, AgentTask, ArtifactUpdate, StatusUpdate, undefined_state};
use super::task_state::TaskState;

/// Object that an agent sends in reply to a message or as an item of a stream.
#[derive(Debug, Clone)]
pub enum AgentEvent {
    /// Snapshot of a task.
    Task(AgentTask),
    /// Message that completes the reply.
    Message(AgentMessage),
    /// Change of the state of a task.
    Status(StatusUpdate),
    /// Result of a task, or a chunk of one.
    Artifact(ArtifactUpdate),
}

impl AgentEvent {
    /// Parses an event by its `kind`, by the field that wraps it, or by the fields that only one kind has. Returns `None` for
    /// other JSON.
    pub fn read(mut raw: Value, dialect: Dialect) -> Option<Self> {
        let kinds = ["task", "message", "status-update", "artifact-update"];
        let declared = raw.get("kind").and_then(Value::as_str);
        // The declared kind first: it is unambiguous.
        if let Some(kind) = kinds.into_iter().find(|kind| Some(*kind) == declared) {
            return AgentEvent::of_kind(kind, raw, dialect);
        }
        let object = raw.as_object_mut()?;
        // `msg` is the name of a message in version 0.3 over HTTP+JSON.
        let fields = ["task", "message", "msg", "statusUpdate", "artifactUpdate"];
        // A `message` that is a string belongs to an error, not to an event.
        let wrapped = |field: &&str| object.get(*field).is_some_and(Value::is_object);
        if let Some(field) = fields.into_iter().find(|field| wrapped(field)) {
            let inner = object.remove(field)?;
            let kind = match field {
                "statusUpdate" => "status-update",
                "artifactUpdate" => "artifact-update",
                "msg" => "message",
                field => field,
            };
            return AgentEvent::of_kind(kind, inner, dialect);
        }
        let has = |key: &str| raw.get(key).is_some();
        let kind = match () {
            // Before the others: a task also has `status`, and may have `artifacts`.
            () if has("id") && has("status") => "task",
            () if has("messageId") => "message",
            () if has("taskId") && has("status") => "status-update",
            () if has("artifact") => "artifact-update",
            () => return None,
        };
        AgentEvent::of_kind(kind, raw, dialect)
    }

    fn of_kind(kind: &str, raw: Value, dialect: Dialect) -> Option<Self> {
        match kind {
            "task" => AgentTask::read(raw, dialect).map(AgentEvent::Task),
            "message" => Some(AgentEvent::Message(AgentMessage::read(raw, dialect))),
            "status-update" => Some(AgentEvent::Status(StatusUpdate::read(raw, dialect))),
            _ => ArtifactUpdate::read(raw, dialect).map(AgentEvent::Artifact),
        }
    }

    /// JSON as the agent sent it.
    pub fn raw(&self) -> &Value {
        match self {
            AgentEvent::Task(task) => &task.raw,
            AgentEvent::Message(message) => &message.raw,
            AgentEvent::Status(status) => &status.raw,
            AgentEvent::Artifact(artifact) => &artifact.raw,
        }
    }

    /// Task that the event belongs to.
    pub fn task_id(&self) -> Option<&str> {
        match self {
            AgentEvent::Task(task) => Some(&task.id),
            AgentEvent::Message(message) => message.task_id.as_deref(),
            AgentEvent::Status(status) => status.task_id.as_deref(),
            AgentEvent::Artifact(artifact) => artifact.task_id.as_deref(),
        }
    }

    /// Context of the conversation.
    pub fn context_id(&self) -> Option<&str> {
        match self {
            AgentEvent::Task(task) => task.context_id.as_deref(),
            AgentEvent::Message(message) => message.context_id.as_deref(),
            AgentEvent::Status(status) => status.context_id.as_deref(),
            AgentEvent::Artifact(artifact) => artifact.context_id.as_deref(),
        }
    }

    /// State of the task, if the event carries one.
    pub fn state(&self) -> Option<TaskState> {
        match self {
            AgentEvent::Task(task) => Some(task.state),
            AgentEvent::Status(status) => Some(status.state),
            AgentEvent::Message(_) | AgentEvent::Artifact(_) => None,
        }
    }

    /// Text of the event.
    pub fn text(&self) -> String {
        match self {
            AgentEvent::Task(task) => task.text(),
            AgentEvent::Message(message) => message.text(),
            AgentEvent::Status(status) => status.text(),
            AgentEvent::Artifact(artifact) => artifact.text(),
        }
    }

    /// Word of a state that no version of the protocol has.
    pub fn undefined_state(&self) -> Option<&str> {
        match self {
            AgentEvent::Task(_) | AgentEvent::Status(_) => undefined_state(self.raw()),
            AgentEvent::Message(_) | AgentEvent::Artifact(_) => None,
        }
    }

    /// Whether no further event is expected.
    pub fn is_final(&self) -> bool {
        match self {
            // A task that waits for the user sends nothing more until then.
            AgentEvent::Task(task) => task.state.is_terminal() || task.state.waits(),
            AgentEvent::Message(_) => true,
            AgentEvent::Status(status) => status.is_final,
            AgentEvent::Artifact(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(raw: Value, dialect: Dialect) -> AgentEvent {
        AgentEvent::read(raw, dialect).unwrap()
    }

    #[test]
    fn task_is_recognized_in_every_dialect() {
        let task = |state: &str, message: &str| {
            let said =
                json!({"messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "hello"}]});
            json!({"id": "t", "contextId": "c", "status": {"state": state, (message): said}, "x-unknown": 1})
        };
        let mut kind = task("input-required", "message");
        kind["kind"] = "task".into();
        let ways = [
            (json!({"task": task("TASK_STATE_INPUT_REQUIRED", "message")}), Dialect::V1),
            (kind, Dialect::V03JsonRpc),
            (json!({"task": task("TASK_STATE_INPUT_REQUIRED", "update")}), Dialect::V03Rest),
            (task("TASK_STATE_INPUT_REQUIRED", "message"), Dialect::V1),
        ];
        for (raw, dialect) in ways {
            let event = read(raw, dialect);
            assert_eq!((event.task_id(), event.context_id()), (Some("t"), Some("c")));
            assert_eq!((event.state(), event.is_final()), (Some(TaskState::InputRequired), true));
            assert_eq!(event.text(), "hello");
            assert_eq!(event.raw()["x-unknown"], 1);
        }
    }

    #[test]
    fn updates_are_recognized_by_kind() {
        let raw = json!({"statusUpdate": {"taskId": "t", "contextId": "", "status": {"state": "TASK_STATE_WORKING"}}});
        let status = read(raw, Dialect::V1);
        assert_eq!((status.context_id(), status.is_final()), (None, false));
        let raw =
            json!({"kind": "status-update", "taskId": "t", "final": true, "status": {"state": "working"}});
        assert!(read(raw, Dialect::V03JsonRpc).is_final());
        let raw = json!({"artifactUpdate": {"taskId": "t", "append": true, "lastChunk": true, "artifact": {
            "artifactId": "a", "name": "../x", "parts": [{"text": "1"}, {"text": "2"}]}}});
        let AgentEvent::Artifact(artifact) = read(raw, Dialect::V1) else { panic!("no artifact") };
        assert!(artifact.is_append && artifact.is_last_chunk);
        assert_eq!((artifact.name.as_deref(), artifact.text().as_str()), (Some("../x"), "1\n2"));
        let raw = json!({"msg": {"messageId": "m", "role": "ROLE_AGENT", "content": [{"text": "hi"}]}});
        assert_eq!(read(raw, Dialect::V03Rest).text(), "hi");
        for raw in [json!({}), json!([]), json!({"task": {}}), json!({"artifactUpdate": {}}), json!("task")] {
            assert!(AgentEvent::read(raw.clone(), Dialect::V1).is_none(), "{raw}");
        }
    }
}
