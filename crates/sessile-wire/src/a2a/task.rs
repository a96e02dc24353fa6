//! Tasks, messages and updates that an agent sends.

use serde_json::Value;

use super::dialect::Dialect;
use super::field::{flag, list, non_empty, string};
use super::part::{Part, join_chunks, joined_text};
use super::task_state::TaskState;

/// Snapshot of a task.
#[derive(Debug, Clone)]
pub struct AgentTask {
    /// JSON as the agent sent it.
    pub raw: Value,
    /// Id of the task.
    pub id: String,
    /// Context of the conversation.
    pub context_id: Option<String>,
    /// State of the task.
    pub state: TaskState,
    dialect: Dialect,
}

/// Message of an agent.
#[derive(Debug, Clone)]
pub struct AgentMessage {
    /// JSON as the agent sent it.
    pub raw: Value,
    /// Id of the message.
    pub message_id: Option<String>,
    /// Context of the conversation.
    pub context_id: Option<String>,
    /// Task that the message belongs to.
    pub task_id: Option<String>,
    /// Whether the agent repeats a message of the user.
    pub is_user: bool,
    dialect: Dialect,
}

/// Change of the state of a task.
#[derive(Debug, Clone)]
pub struct StatusUpdate {
    /// JSON as the agent sent it.
    pub raw: Value,
    /// Id of the task.
    pub task_id: Option<String>,
    /// Context of the conversation.
    pub context_id: Option<String>,
    /// New state of the task.
    pub state: TaskState,
    /// Whether the stream ends with this update.
    pub is_final: bool,
    dialect: Dialect,
}

/// Result of a task, or a chunk of one.
#[derive(Debug, Clone)]
pub struct ArtifactUpdate {
    /// JSON as the agent sent it: the update in a stream, the artifact itself in a task.
    pub raw: Value,
    /// Id of the artifact.
    pub artifact_id: Option<String>,
    /// File name; may be any text, also a path out of the directory.
    pub name: Option<String>,
    /// Id of the task.
    pub task_id: Option<String>,
    /// Context of the conversation.
    pub context_id: Option<String>,
    /// Whether the parts are appended to the earlier chunks of this artifact.
    pub is_append: bool,
    /// Whether the artifact is complete with this chunk.
    pub is_last_chunk: bool,
    dialect: Dialect,
}

impl AgentTask {
    /// Parses a task. Returns `None` if it has no id.
    pub fn read(raw: Value, dialect: Dialect) -> Option<Self> {
        // Without an id a task can be neither asked for nor canceled.
        let id = non_empty(&raw, "id")?;
        let state = state(&raw);
        Some(AgentTask { id, context_id: non_empty(&raw, "contextId"), state, dialect, raw })
    }

    /// Word of a state that no version of the protocol has.
    pub fn undefined_state(&self) -> Option<&str> {
        undefined_state(&self.raw)
    }

    /// Message that accompanies the state.
    pub fn message(&self) -> Option<AgentMessage> {
        status_message(&self.raw, self.dialect)
    }

    /// Results of the task.
    pub fn artifacts(&self) -> Vec<ArtifactUpdate> {
        let read = |artifact: &Value| {
            let task = (Some(self.id.clone()), self.context_id.clone());
            ArtifactUpdate::new(artifact.clone(), artifact, task, self.dialect)
        };
        list(&self.raw, "artifacts").iter().map(read).collect()
    }

    /// Earlier messages, if the agent sends them along.
    pub fn history(&self) -> Vec<AgentMessage> {
        let messages = list(&self.raw, "history").iter().cloned();
        messages.map(|message| AgentMessage::read(message, self.dialect)).collect()
    }

    /// Everything that a person reads of the task: the artifacts, and the message with the state unless it repeats them.
    pub fn parts(&self) -> Vec<Part> {
        let artifacts = self.artifacts();
        let mut parts: Vec<Part> = artifacts.iter().flat_map(ArtifactUpdate::parts).collect();
        if let Some(message) = self.message()
            && (parts.is_empty() || message.text() != self.text())
        {
            parts.extend(message.parts());
        }
        parts
    }

    /// Text of the results, or of the message with the state if they have none.
    pub fn text(&self) -> String {
        let results: Vec<_> = self.artifacts().iter().map(ArtifactUpdate::text).collect();
        match results.iter().all(String::is_empty) {
            true => self.message().map(|message| message.text()).unwrap_or_default(),
            false => results.join("\n"),
        }
    }
}

impl AgentMessage {
    /// Parses a message.
    pub(super) fn read(raw: Value, dialect: Dialect) -> Self {
        AgentMessage {
            message_id: non_empty(&raw, "messageId"),
            context_id: non_empty(&raw, "contextId"),
            task_id: non_empty(&raw, "taskId"),
            is_user: matches!(string(&raw, &["role"]).as_deref(), Some("user" | "ROLE_USER")),
            raw,
            dialect,
        }
    }

    /// Parts of the content.
    pub fn parts(&self) -> Vec<Part> {
        // `content` is the name in version 0.3 over HTTP+JSON.
        let key = if self.raw.get("parts").is_some() { "parts" } else { "content" };
        list(&self.raw, key).iter().map(|part| Part::from_json(part, self.dialect)).collect()
    }

    /// Text parts.
    pub fn text(&self) -> String {
        joined_text(&self.parts())
    }
}

impl StatusUpdate {
    pub(super) fn read(raw: Value, dialect: Dialect) -> Self {
        let state = state(&raw);
        // Agents that leave the field out mean the state.
        let declared = raw.get("final").and_then(Value::as_bool);
        StatusUpdate {
            task_id: non_empty(&raw, "taskId"),
            context_id: non_empty(&raw, "contextId"),
            is_final: declared.unwrap_or(state.is_terminal() || state.waits()),
            state,
            raw,
            dialect,
        }
    }

    /// Message that accompanies the state.
    pub fn message(&self) -> Option<AgentMessage> {
        status_message(&self.raw, self.dialect)
    }

    /// Text of that message.
    pub fn text(&self) -> String {
        self.message().map(|message| message.text()).unwrap_or_default()
    }
}

impl ArtifactUpdate {
    pub(super) fn read(raw: Value, dialect: Dialect) -> Option<Self> {
        let artifact = raw.get("artifact").filter(|artifact| artifact.is_object())?.clone();
        let task = (non_empty(&raw, "taskId"), non_empty(&raw, "contextId"));
        Some(ArtifactUpdate::new(raw, &artifact, task, dialect))
    }

    fn new(
        raw: Value,
        artifact: &Value,
        (task_id, context_id): (Option<String>, Option<String>),
        dialect: Dialect,
    ) -> Self {
        ArtifactUpdate {
            artifact_id: non_empty(artifact, "artifactId"),
            name: non_empty(artifact, "name"),
            task_id,
            context_id,
            is_append: flag(&raw, "append"),
            is_last_chunk: flag(&raw, "lastChunk"),
            dialect,
            raw,
        }
    }

    /// Appends a chunk.
    pub fn append(&mut self, chunk: &ArtifactUpdate) {
        let more = list(chunk.raw.get("artifact").unwrap_or(&chunk.raw), "parts").to_vec();
        let within = self.raw.get("artifact").is_some();
        let own = if within { self.raw.get_mut("artifact") } else { Some(&mut self.raw) };
        if let Some(Value::Array(parts)) = own.and_then(|artifact| artifact.get_mut("parts")) {
            let mut more = more.into_iter();
            // A chunk of a text continues the text; as a part of its own it would begin a new line.
            if let Some(first) = more.next() {
                let continued =
                    match (parts.last_mut().and_then(|last| last.get_mut("text")), first.get("text")) {
                        (Some(Value::String(text)), Some(Value::String(chunk))) => {
                            text.push_str(chunk);
                            true
                        }
                        _ => false,
                    };
                if !continued {
                    parts.push(first);
                }
            }
            parts.extend(more);
        }
        self.is_last_chunk |= chunk.is_last_chunk;
    }

    /// The artifact itself, as the agent sent it.
    pub fn artifact(&self) -> &Value {
        self.raw.get("artifact").unwrap_or(&self.raw)
    }

    /// Parts of the content, with the chunks of a text joined.
    pub fn parts(&self) -> Vec<Part> {
        let parts = list(self.artifact(), "parts").iter();
        join_chunks(parts.map(|part| Part::from_json(part, self.dialect)).collect())
    }

    /// Text parts.
    pub fn text(&self) -> String {
        joined_text(&self.parts())
    }
}

fn state(raw: &Value) -> TaskState {
    let word = raw.get("status").and_then(|status| status.get("state")).and_then(Value::as_str);
    word.map_or(TaskState::Unknown, TaskState::of)
}

/// Word of a state that no version of the protocol has. An absent or unspecified state is not one.
pub(super) fn undefined_state(raw: &Value) -> Option<&str> {
    let word = raw.get("status")?.get("state")?.as_str()?;
    let is_unspecified = matches!(word, "" | "unknown" | "TASK_STATE_UNSPECIFIED");
    (TaskState::of(word) == TaskState::Unknown && !is_unspecified).then_some(word)
}

fn status_message(raw: &Value, dialect: Dialect) -> Option<AgentMessage> {
    let status = raw.get("status")?;
    let message = status.get("message").or_else(|| status.get("update"))?;
    message.is_object().then(|| AgentMessage::read(message.clone(), dialect))
}
