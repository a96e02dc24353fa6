//! Which of its things an agent said, in whatever way it says so.

use serde_json::Value;
use sessile::conversation::TaskState;

use super::dialect::Dialect;
use super::event::{ArtifactView, MessageView, StatusView, TaskView};

/// The answer to a message.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// A task, which may go on.
    Task(TaskView),
    /// A message, and that was all.
    Message(MessageView),
}

/// What comes in a stream.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A task as it is now.
    Task(TaskView),
    /// A message, and that was all.
    Message(MessageView),
    /// A task's new state.
    Status(StatusView),
    /// A task's result, or a piece of it.
    Artifact(ArtifactView),
}

impl Event {
    /// What this JSON is, or nothing if it is none of them.
    pub(super) fn read(mut raw: Value, dialect: Dialect) -> Option<Self> {
        let kinds = ["task", "message", "status-update", "artifact-update"];
        let said = raw.get("kind").and_then(Value::as_str);
        if let Some(kind) = kinds.into_iter().find(|kind| Some(*kind) == said) {
            return Event::of_kind(kind, raw, dialect);
        }
        let object = raw.as_object_mut()?;
        let fields = ["task", "message", "msg", "statusUpdate", "artifactUpdate"];
        // The `message` of an object that has more to it is not what it is about.
        let wrapped = |field: &&str| object.get(*field).is_some_and(Value::is_object);
        if let Some(field) = fields.into_iter().find(|field| wrapped(field)) {
            let inner = object.remove(field)?;
            let kind = match field {
                "statusUpdate" => "status-update",
                "artifactUpdate" => "artifact-update",
                "msg" => "message",
                field => field,
            };
            return Event::of_kind(kind, inner, dialect);
        }
        // Neither named nor wrapped: it is what it looks like.
        let has = |key: &str| raw.get(key).is_some();
        let kind = match () {
            () if has("id") && has("status") => "task",
            () if has("messageId") => "message",
            () if has("taskId") && has("status") => "status-update",
            () if has("artifact") => "artifact-update",
            () => return None,
        };
        Event::of_kind(kind, raw, dialect)
    }

    fn of_kind(kind: &str, raw: Value, dialect: Dialect) -> Option<Self> {
        match kind {
            "task" => TaskView::read(raw, dialect).map(Event::Task),
            "message" => Some(Event::Message(MessageView::read(raw, dialect))),
            "status-update" => Some(Event::Status(StatusView::read(raw, dialect))),
            _ => ArtifactView::read(raw, dialect).map(Event::Artifact),
        }
    }

    /// All that the agent said.
    pub(crate) fn raw(&self) -> &Value {
        match self {
            Event::Task(task) => &task.raw,
            Event::Message(message) => &message.raw,
            Event::Status(status) => &status.raw,
            Event::Artifact(artifact) => &artifact.raw,
        }
    }

    /// The task that it is about.
    pub(crate) fn task_id(&self) -> Option<&str> {
        match self {
            Event::Task(task) => Some(&task.id),
            Event::Message(message) => message.task_id.as_deref(),
            Event::Status(status) => status.task_id.as_deref(),
            Event::Artifact(artifact) => artifact.task_id.as_deref(),
        }
    }

    /// The context that it belongs to.
    pub(crate) fn context_id(&self) -> Option<&str> {
        match self {
            Event::Task(task) => task.context_id.as_deref(),
            Event::Message(message) => message.context_id.as_deref(),
            Event::Status(status) => status.context_id.as_deref(),
            Event::Artifact(artifact) => artifact.context_id.as_deref(),
        }
    }

    /// How far the task is, if it says so.
    pub(crate) fn state(&self) -> Option<TaskState> {
        match self {
            Event::Task(task) => Some(task.state),
            Event::Status(status) => Some(status.state),
            Event::Message(_) | Event::Artifact(_) => None,
        }
    }

    /// The texts in it.
    pub(crate) fn text(&self) -> String {
        match self {
            Event::Task(task) => task.text(),
            Event::Message(message) => message.text(),
            Event::Status(status) => status.text(),
            Event::Artifact(artifact) => artifact.text(),
        }
    }

    /// Whether nothing more is to be expected.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Event::Task(task) => task.state.is_terminal() || task.state.waits(),
            Event::Message(_) => true,
            Event::Status(status) => status.is_final,
            Event::Artifact(_) => false,
        }
    }
}

impl From<Reply> for Event {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Task(task) => Event::Task(task),
            Reply::Message(message) => Event::Message(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(raw: Value, dialect: Dialect) -> Event {
        Event::read(raw, dialect).unwrap()
    }

    #[test]
    fn every_way_to_say_a_task_is_one() {
        let task = |state: &str, message: &str| {
            let said =
                json!({"messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "hello"}]});
            json!({"id": "t", "contextId": "c", "status": {"state": state, (message): said}, "x-unknown": 1})
        };
        let mut kind = task("input-required", "message");
        kind["kind"] = "task".into();
        let ways = [
            (json!({"task": task("TASK_STATE_INPUT_REQUIRED", "message")}), Dialect::One),
            (kind, Dialect::Kinds),
            (json!({"task": task("TASK_STATE_INPUT_REQUIRED", "update")}), Dialect::Buffers),
            (task("TASK_STATE_INPUT_REQUIRED", "message"), Dialect::One),
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
    fn changes_are_told_apart() {
        let raw = json!({"statusUpdate": {"taskId": "t", "contextId": "", "status": {"state": "TASK_STATE_WORKING"}}});
        let status = read(raw, Dialect::One);
        assert_eq!((status.context_id(), status.is_final()), (None, false));
        let raw =
            json!({"kind": "status-update", "taskId": "t", "final": true, "status": {"state": "working"}});
        assert!(read(raw, Dialect::Kinds).is_final());
        let raw = json!({"artifactUpdate": {"taskId": "t", "append": true, "lastChunk": true, "artifact": {
            "artifactId": "a", "name": "../x", "parts": [{"text": "1"}, {"text": "2"}]}}});
        let Event::Artifact(artifact) = read(raw, Dialect::One) else { panic!("no artifact") };
        assert!(artifact.append && artifact.last_chunk);
        assert_eq!((artifact.name.as_deref(), artifact.text().as_str()), (Some("../x"), "1\n2"));
        let raw = json!({"msg": {"messageId": "m", "role": "ROLE_AGENT", "content": [{"text": "hi"}]}});
        assert_eq!(read(raw, Dialect::Buffers).text(), "hi");
        for raw in [json!({}), json!([]), json!({"task": {}}), json!({"artifactUpdate": {}}), json!("task")] {
            assert!(Event::read(raw.clone(), Dialect::One).is_none(), "{raw}");
        }
    }
}
