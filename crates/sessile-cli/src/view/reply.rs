//! Replies, events and tasks of agents.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sessile::conversation::TaskState;
use sessile_wire::a2a::{AgentEvent, AgentMessage, AgentTask, ArtifactUpdate};
use sessile_wire::service::ReplyDelta;

/// Mark of output whose content comes from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutputSource {
    /// An agent, or the upstream of a service.
    Agent,
}

/// A whole reply. `R` is the reply as it was received.
#[derive(Debug, Serialize)]
pub(crate) struct ReplyView<R> {
    pub(crate) source: OutputSource,
    pub(crate) agent_url: String,
    pub(crate) text: String,
    pub(crate) state: Option<TaskState>,
    pub(crate) context_id: Option<String>,
    pub(crate) task_id: Option<String>,
    /// Id of the conversation.
    pub(crate) conversation: Option<String>,
    pub(crate) artifacts: Vec<ArtifactView>,
    /// Paths of the saved artifacts.
    pub(crate) saved: Vec<String>,
    pub(crate) reply: Option<R>,
}

/// An artifact, without its content.
#[derive(Debug, Serialize)]
pub(crate) struct ArtifactView {
    id: Option<String>,
    name: Option<String>,
}

/// An event of a stream. `R` is the event as it was received.
#[derive(Debug, Serialize)]
pub(crate) struct EventView<'a, R> {
    source: OutputSource,
    event: &'static str,
    context_id: Option<&'a str>,
    task_id: Option<&'a str>,
    state: Option<TaskState>,
    text: String,
    raw: R,
}

/// A task.
#[derive(Debug, Serialize)]
pub(crate) struct TaskView<'a> {
    source: OutputSource,
    agent_url: &'a str,
    task_id: &'a str,
    context_id: Option<&'a str>,
    state: TaskState,
    text: String,
    /// Paths of the saved artifacts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) saved: Vec<String>,
    /// Messages of the task, where the caller asked for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    history: Vec<TaskMessageView>,
    raw: &'a Value,
}

/// A message in the history of a task.
#[derive(Debug, Serialize)]
struct TaskMessageView {
    role: &'static str,
    text: String,
}

/// Members that the views share, for readers of this program's output.
#[derive(Debug, Deserialize)]
pub(crate) struct AgentOutput {
    #[serde(rename = "source")]
    _source: OutputSource,
    pub(crate) reply: Option<Value>,
    pub(crate) raw: Option<Value>,
}

impl AgentOutput {
    /// Names of the members that hold received content.
    pub(crate) const REPLY: &str = "reply";
    pub(crate) const RAW: &str = "raw";
}

impl<R> ReplyView<R> {
    /// Reply of which only the text is known.
    pub(crate) fn new(agent_url: &str, text: String, reply: Option<R>) -> Self {
        ReplyView {
            source: OutputSource::Agent,
            agent_url: agent_url.to_owned(),
            text,
            state: None,
            context_id: None,
            task_id: None,
            conversation: None,
            artifacts: Vec::new(),
            saved: Vec::new(),
            reply,
        }
    }
}

impl From<&ArtifactUpdate> for ArtifactView {
    fn from(artifact: &ArtifactUpdate) -> Self {
        ArtifactView { id: artifact.artifact_id.clone(), name: artifact.name.clone() }
    }
}

impl<'a> From<&'a AgentEvent> for EventView<'a, &'a Value> {
    fn from(event: &'a AgentEvent) -> Self {
        EventView {
            source: OutputSource::Agent,
            event: event_kind(event),
            context_id: event.context_id(),
            task_id: event.task_id(),
            state: event.state(),
            text: event.text(),
            raw: event.raw(),
        }
    }
}

impl<'a> From<&'a ReplyDelta> for EventView<'a, &'a ReplyDelta> {
    fn from(delta: &'a ReplyDelta) -> Self {
        EventView {
            source: OutputSource::Agent,
            event: "message",
            context_id: None,
            task_id: None,
            state: None,
            text: delta.content.clone(),
            raw: delta,
        }
    }
}

impl<'a> TaskView<'a> {
    pub(crate) fn new(agent_url: &'a str, task: &'a AgentTask) -> Self {
        TaskView {
            source: OutputSource::Agent,
            agent_url,
            task_id: &task.id,
            context_id: task.context_id.as_deref(),
            state: task.state,
            text: task.text(),
            saved: Vec::new(),
            history: Vec::new(),
            raw: &task.raw,
        }
    }

    /// Adds the messages of the task's history.
    pub(crate) fn with_history(mut self, task: &AgentTask) -> Self {
        let role = |message: &AgentMessage| if message.is_user { "user" } else { "agent" };
        let each = task.history();
        self.history = each.iter().map(|one| TaskMessageView { role: role(one), text: one.text() }).collect();
        self
    }
}

/// Name of the kind of an event.
pub(crate) fn event_kind(event: &AgentEvent) -> &'static str {
    match event {
        AgentEvent::Task(_) => "task",
        AgentEvent::Message(_) => "message",
        AgentEvent::Status(_) => "status",
        AgentEvent::Artifact(_) => "artifact",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_output_reads_replies_and_events() {
        let reply = serde_json::to_value(ReplyView::new("https://a.example", "hi".into(), Some(7))).unwrap();
        assert_eq!(AgentOutput::deserialize(&reply).unwrap().reply, Some(7.into()));
        assert!(reply.get(AgentOutput::REPLY).is_some());
        let delta = ReplyDelta { content: "hi".into() };
        let event = serde_json::to_value(EventView::from(&delta)).unwrap();
        assert!(AgentOutput::deserialize(&event).unwrap().raw.is_some());
        assert!(event.get(AgentOutput::RAW).is_some());
        assert!(AgentOutput::deserialize(&serde_json::json!({ "source": "user" })).is_err());
    }
}
