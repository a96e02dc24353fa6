//! What an agent says: tasks, messages, and what changes in a task.

use serde_json::Value;
use sessile::conversation::TaskState;

use super::dialect::Dialect;
use super::part::{Part, joined, text};

/// A task, as it is at one time.
#[derive(Debug, Clone)]
pub(crate) struct TaskView {
    /// All that the agent said.
    pub(crate) raw: Value,
    /// Its id.
    pub(crate) id: String,
    /// The context that it belongs to.
    pub(crate) context_id: Option<String>,
    /// How far it is.
    pub(crate) state: TaskState,
    dialect: Dialect,
}

/// A message.
#[derive(Debug, Clone)]
pub(crate) struct MessageView {
    /// All that the agent said.
    pub(crate) raw: Value,
    /// Its id.
    pub(crate) message_id: Option<String>,
    /// The context that it belongs to.
    pub(crate) context_id: Option<String>,
    /// The task that it is about.
    pub(crate) task_id: Option<String>,
    /// Whether it is the user's own, repeated.
    pub(crate) is_user: bool,
    dialect: Dialect,
}

/// A change of a task's state.
#[derive(Debug, Clone)]
pub(crate) struct StatusView {
    /// All that the agent said.
    pub(crate) raw: Value,
    /// The task.
    pub(crate) task_id: Option<String>,
    /// The context that it belongs to.
    pub(crate) context_id: Option<String>,
    /// How far it is now.
    pub(crate) state: TaskState,
    /// Whether nothing more comes in this stream.
    pub(crate) is_final: bool,
    dialect: Dialect,
}

/// A result of a task, or a piece of one.
#[derive(Debug, Clone)]
pub(crate) struct ArtifactView {
    /// All that the agent said: the change in a stream, the artifact itself in a task.
    pub(crate) raw: Value,
    /// Its id.
    pub(crate) artifact_id: Option<String>,
    /// What it is called; any text, also a path to somewhere else.
    pub(crate) name: Option<String>,
    /// The task.
    pub(crate) task_id: Option<String>,
    /// The context that it belongs to.
    pub(crate) context_id: Option<String>,
    /// Whether it continues what came before under its id.
    pub(crate) append: bool,
    /// Whether it is complete with this.
    pub(crate) last_chunk: bool,
    dialect: Dialect,
}

impl TaskView {
    /// A task, or nothing if it has no id.
    pub(super) fn read(raw: Value, dialect: Dialect) -> Option<Self> {
        let id = filled(&raw, "id")?;
        let state = state(&raw);
        Some(TaskView { id, context_id: filled(&raw, "contextId"), state, dialect, raw })
    }

    /// What the agent says with its state.
    pub(crate) fn message(&self) -> Option<MessageView> {
        status_message(&self.raw, self.dialect)
    }

    /// Its results.
    pub(crate) fn artifacts(&self) -> Vec<ArtifactView> {
        let read = |artifact: &Value| {
            let task = (Some(self.id.clone()), self.context_id.clone());
            ArtifactView::new(artifact.clone(), artifact, task, self.dialect)
        };
        list(&self.raw, "artifacts").iter().map(read).collect()
    }

    /// The messages so far, if it repeats them.
    pub(crate) fn history(&self) -> Vec<MessageView> {
        let messages = list(&self.raw, "history").iter().cloned();
        messages.map(|message| MessageView::read(message, self.dialect)).collect()
    }

    /// What it says: its results, or else what comes with its state.
    pub(crate) fn text(&self) -> String {
        let results: Vec<_> = self.artifacts().iter().map(ArtifactView::text).collect();
        match results.iter().all(String::is_empty) {
            true => self.message().map(|message| message.text()).unwrap_or_default(),
            false => results.join("\n"),
        }
    }
}

impl MessageView {
    pub(super) fn read(raw: Value, dialect: Dialect) -> Self {
        MessageView {
            message_id: filled(&raw, "messageId"),
            context_id: filled(&raw, "contextId"),
            task_id: filled(&raw, "taskId"),
            is_user: matches!(text(&raw, &["role"]).as_deref(), Some("user" | "ROLE_USER")),
            raw,
            dialect,
        }
    }

    /// Its content.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let key = if self.raw.get("parts").is_some() { "parts" } else { "content" };
        list(&self.raw, key).iter().map(|part| Part::from_json(part, self.dialect)).collect()
    }

    /// The texts in it.
    pub(crate) fn text(&self) -> String {
        joined(&self.parts())
    }
}

impl StatusView {
    pub(super) fn read(raw: Value, dialect: Dialect) -> Self {
        let state = state(&raw);
        let said = raw.get("final").and_then(Value::as_bool);
        StatusView {
            task_id: filled(&raw, "taskId"),
            context_id: filled(&raw, "contextId"),
            is_final: said.unwrap_or(state.is_terminal() || state.waits()),
            state,
            raw,
            dialect,
        }
    }

    /// What the agent says with it.
    pub(crate) fn message(&self) -> Option<MessageView> {
        status_message(&self.raw, self.dialect)
    }

    /// The texts in that.
    pub(crate) fn text(&self) -> String {
        self.message().map(|message| message.text()).unwrap_or_default()
    }
}

impl ArtifactView {
    pub(super) fn read(raw: Value, dialect: Dialect) -> Option<Self> {
        let artifact = raw.get("artifact").filter(|artifact| artifact.is_object())?.clone();
        let task = (filled(&raw, "taskId"), filled(&raw, "contextId"));
        Some(ArtifactView::new(raw, &artifact, task, dialect))
    }

    fn new(
        raw: Value,
        artifact: &Value,
        (task_id, context_id): (Option<String>, Option<String>),
        dialect: Dialect,
    ) -> Self {
        let is = |key: &str| raw.get(key).and_then(Value::as_bool).unwrap_or(false);
        ArtifactView {
            artifact_id: filled(artifact, "artifactId"),
            name: filled(artifact, "name"),
            task_id,
            context_id,
            append: is("append"),
            last_chunk: is("lastChunk"),
            dialect,
            raw,
        }
    }

    /// Puts another piece at its end.
    pub(crate) fn join(&mut self, piece: &ArtifactView) {
        let more = list(piece.raw.get("artifact").unwrap_or(&piece.raw), "parts").to_vec();
        let within = self.raw.get("artifact").is_some();
        let own = if within { self.raw.get_mut("artifact") } else { Some(&mut self.raw) };
        if let Some(Value::Array(parts)) = own.and_then(|artifact| artifact.get_mut("parts")) {
            parts.extend(more);
        }
        self.last_chunk |= piece.last_chunk;
    }

    /// Its content.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let artifact = self.raw.get("artifact").unwrap_or(&self.raw);
        list(artifact, "parts").iter().map(|part| Part::from_json(part, self.dialect)).collect()
    }

    /// The texts in it.
    pub(crate) fn text(&self) -> String {
        joined(&self.parts())
    }
}

fn state(raw: &Value) -> TaskState {
    let word = raw.get("status").and_then(|status| status.get("state")).and_then(Value::as_str);
    word.map_or(TaskState::Unknown, TaskState::of)
}

fn status_message(raw: &Value, dialect: Dialect) -> Option<MessageView> {
    let status = raw.get("status")?;
    let message = status.get("message").or_else(|| status.get("update"))?;
    message.is_object().then(|| MessageView::read(message.clone(), dialect))
}

/// A field with a text that is not empty: an empty id is none.
fn filled(raw: &Value, key: &str) -> Option<String> {
    text(raw, &[key]).filter(|text| !text.is_empty())
}

fn list<'a>(raw: &'a Value, key: &str) -> &'a [Value] {
    raw.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
