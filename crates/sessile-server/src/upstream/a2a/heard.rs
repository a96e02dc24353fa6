//! What an agent says: which of its things it is, in whatever way it says so.

use serde_json::Value;
use sessile::conversation::TaskState;

use super::super::Fault;
use super::card::{Dialect, Interface};

/// Something that an agent said.
#[derive(Debug)]
pub(super) enum Heard {
    /// A message, and that was all.
    Message { context_id: Option<String>, text: String },
    /// A task as it is now.
    Task { id: String, context_id: Option<String>, state: TaskState, text: String, artifacts: Vec<Artifact> },
    /// A task's new state; whether nothing more comes in this stream.
    Status {
        task_id: Option<String>,
        context_id: Option<String>,
        state: TaskState,
        text: String,
        is_final: bool,
    },
    /// A task's result, or a piece of it.
    Artifact { task_id: Option<String>, context_id: Option<String>, artifact: Artifact, append: bool },
}

/// A result of a task.
#[derive(Debug)]
pub(super) struct Artifact {
    pub(super) id: String,
    pub(super) text: String,
}

pub(super) fn parsed(bytes: &[u8]) -> Result<Value, Fault> {
    sessile::json::from_slice(bytes).map_err(|error| Fault::Unusable(format!("it is not JSON: {error}")))
}

impl Interface {
    /// What an answer or an event says; nothing if it repeats what the user said.
    pub(super) fn heard(&self, bytes: &[u8]) -> Result<Option<Heard>, Fault> {
        let mut said = parsed(bytes)?;
        if let Some(error) = said.get("error").filter(|error| error.is_object()) {
            let code = error["code"].as_i64();
            // An agent's own failure may pass; what it does not understand or allow does not.
            let is_passing = code == Some(-32603) || code.is_some_and(|code| (500..600).contains(&code));
            return Err(Fault::Declined { code, told: error.to_string(), is_passing });
        }
        if !self.is_rest {
            said = said.get_mut("result").map(Value::take).unwrap_or_default();
        }
        let unusable =
            || Fault::Unusable("it is neither a message nor a task nor a change of one".to_owned());
        let (kind, inner) = kind(&said).ok_or_else(unusable)?;
        let context_id = filled(inner, "contextId");
        Ok(Some(match kind {
            "message" => {
                if matches!(inner["role"].as_str(), Some("user" | "ROLE_USER")) {
                    return Ok(None);
                }
                Heard::Message { context_id, text: self.lines(inner) }
            }
            "task" => Heard::Task {
                id: filled(inner, "id").ok_or_else(unusable)?,
                context_id,
                state: state(inner),
                text: self.status_text(inner),
                artifacts: list(inner, "artifacts").iter().map(|artifact| self.artifact(artifact)).collect(),
            },
            "status-update" => Heard::Status {
                task_id: filled(inner, "taskId"),
                context_id,
                state: state(inner),
                text: self.status_text(inner),
                is_final: inner["final"].as_bool().unwrap_or(false),
            },
            _ => Heard::Artifact {
                task_id: filled(inner, "taskId"),
                context_id,
                artifact: self.artifact(&inner["artifact"]),
                append: inner["append"].as_bool().unwrap_or(false),
            },
        }))
    }

    fn artifact(&self, artifact: &Value) -> Artifact {
        // Pieces of one text: an agent that adds to it has put every piece into a part of its own.
        let text = self.texts(list(artifact, "parts")).concat();
        Artifact { id: filled(artifact, "artifactId").unwrap_or_default(), text }
    }

    fn status_text(&self, of: &Value) -> String {
        let status = &of["status"];
        let message = status.get("message").or_else(|| status.get("update"));
        message.map(|message| self.lines(message)).unwrap_or_default()
    }

    /// The parts of a message, each on lines of its own.
    fn lines(&self, message: &Value) -> String {
        let key = if message.get("parts").is_some() { "parts" } else { "content" };
        self.texts(list(message, key)).join("\n")
    }

    /// Texts as they are, data as JSON; files are nothing that can be said.
    fn texts(&self, parts: &[Value]) -> Vec<String> {
        let text = |part: &Value| {
            if let Some(text) = part["text"].as_str() {
                return Some(text.to_owned());
            }
            let data = part.get("data").filter(|data| !data.is_null())?;
            let inner = if self.dialect == Dialect::Buffers { data.get("data") } else { None };
            Some(inner.unwrap_or(data).to_string())
        };
        parts.iter().filter_map(text).collect()
    }
}

/// Which of its things it is, and the thing itself: by its kind, by what is around it, or by what it looks like.
fn kind(said: &Value) -> Option<(&str, &Value)> {
    let kinds = ["task", "message", "status-update", "artifact-update"];
    if let Some(kind) = said["kind"].as_str().filter(|kind| kinds.contains(kind)) {
        return Some((kind, said));
    }
    let around = [
        ("task", "task"),
        ("message", "message"),
        ("msg", "message"),
        ("statusUpdate", "status-update"),
        ("artifactUpdate", "artifact-update"),
    ];
    let within = |(field, kind)| Some((kind, said.get(field).filter(|inner| inner.is_object())?));
    around.into_iter().find_map(within).or_else(|| {
        let has = |key: &str| said.get(key).is_some();
        let kind = match () {
            () if has("id") && has("status") => "task",
            () if has("messageId") => "message",
            () if has("taskId") && has("status") => "status-update",
            () if has("artifact") => "artifact-update",
            () => return None,
        };
        Some((kind, said))
    })
}

fn state(of: &Value) -> TaskState {
    of.pointer("/status/state").and_then(Value::as_str).map_or(TaskState::Unknown, TaskState::of)
}

/// A field with a text that is not empty: an empty id is none.
fn filled(of: &Value, key: &str) -> Option<String> {
    of[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of[key].as_array().map_or(&[], Vec::as_slice)
}
