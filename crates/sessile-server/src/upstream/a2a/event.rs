//! Events of an agent, reduced to what a reply of the service is made of: ids, states and text.

use serde_json::Value;
use sessile_wire::a2a::{AgentEvent, AgentMessage, ArtifactUpdate, Part, RpcError, RpcErrorKind, TaskState};

use super::super::UpstreamError;
use super::interface::UpstreamInterface;

/// Event of an agent.
#[derive(Debug)]
pub(super) enum TextEvent {
    /// Message that completes the reply.
    Message { context_id: Option<String>, text: String },
    /// Snapshot of a task.
    Task {
        id: String,
        context_id: Option<String>,
        state: TaskState,
        text: String,
        artifacts: Vec<TextArtifact>,
    },
    /// Change of the state of a task.
    Status {
        task_id: Option<String>,
        context_id: Option<String>,
        state: TaskState,
        text: String,
        is_final: bool,
    },
    /// Result of a task, or a chunk of one.
    Artifact { task_id: Option<String>, context_id: Option<String>, artifact: TextArtifact, is_append: bool },
}

/// Text of a result.
#[derive(Debug)]
pub(super) struct TextArtifact {
    pub(super) id: String,
    pub(super) text: String,
}

/// Parses untrusted JSON.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, UpstreamError> {
    sessile::json::from_slice(bytes).map_err(|error| UpstreamError::Unusable(format!("not JSON: {error}")))
}

impl UpstreamInterface {
    /// Event in a response or in an item of a stream. Returns `None` for a message of the user that the agent repeats.
    pub(super) fn event(&self, bytes: &[u8]) -> Result<Option<TextEvent>, UpstreamError> {
        let mut response = parse(bytes)?;
        if let Some(error) = response.get("error").filter(|error| error.is_object()) {
            let RpcError { kind, code, .. } = RpcError::read(error);
            // A failure of the agent may pass; a request that it does not understand or allow will not succeed later.
            let is_transient =
                kind == RpcErrorKind::Internal || code.is_some_and(|code| (500..600).contains(&code));
            return Err(UpstreamError::Declined {
                kind: Some(kind),
                detail: error.to_string(),
                is_transient,
            });
        }
        if !self.is_rest() {
            response = response.get_mut("result").map(Value::take).unwrap_or_default();
        }
        let event = AgentEvent::read(response, self.dialect()).ok_or_else(|| {
            UpstreamError::Unusable("neither a message, a task nor a task update".to_owned())
        })?;
        Ok(TextEvent::of(event))
    }
}

impl TextEvent {
    fn of(event: AgentEvent) -> Option<Self> {
        Some(match event {
            AgentEvent::Message(message) if message.is_user => return None,
            AgentEvent::Message(message) => {
                TextEvent::Message { text: message_text(&message), context_id: message.context_id }
            }
            AgentEvent::Task(task) => TextEvent::Task {
                text: task.message().as_ref().map(message_text).unwrap_or_default(),
                artifacts: task.artifacts().iter().map(TextArtifact::of).collect(),
                id: task.id,
                context_id: task.context_id,
                state: task.state,
            },
            AgentEvent::Status(status) => TextEvent::Status {
                text: status.message().as_ref().map(message_text).unwrap_or_default(),
                task_id: status.task_id,
                context_id: status.context_id,
                state: status.state,
                is_final: status.is_final,
            },
            AgentEvent::Artifact(artifact) => TextEvent::Artifact {
                is_append: artifact.is_append,
                artifact: TextArtifact::of(&artifact),
                task_id: artifact.task_id,
                context_id: artifact.context_id,
            },
        })
    }
}

impl TextArtifact {
    fn of(artifact: &ArtifactUpdate) -> Self {
        // Agents that append to a text put every chunk into a part of its own, so parts are not lines.
        let text = texts(&artifact.parts()).concat();
        TextArtifact { id: artifact.artifact_id.clone().unwrap_or_default(), text }
    }
}

/// Text of a message, one part per line.
fn message_text(message: &AgentMessage) -> String {
    texts(&message.parts()).join("\n")
}

/// Text of parts: text unchanged, data as JSON, files omitted.
fn texts(parts: &[Part]) -> Vec<String> {
    let text = |part: &Part| match part {
        Part::Text(text) | Part::TextFile { text, .. } => Some(text.clone()),
        Part::Data(Value::Null) => None,
        Part::Data(data) => Some(data.to_string()),
        Part::File { .. } | Part::Link { .. } | Part::Typed { .. } | Part::Other(_) => None,
    };
    parts.iter().filter_map(text).collect()
}
