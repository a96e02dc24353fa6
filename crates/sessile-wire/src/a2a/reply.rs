//! Reply of an agent, assembled from the events of a stream or of several requests.

use serde_json::{Map, Value};

use super::event::AgentEvent;
use super::field::insert_some;
use super::part::{Part, bare_text};
use super::task::{AgentMessage, AgentTask, ArtifactUpdate};
use super::task_state::TaskState;

/// Reply of an agent as far as it is known: a message, or a task with its artifacts.
#[derive(Debug, Clone, Default)]
pub struct AgentReply {
    message: Option<AgentMessage>,
    /// Last snapshot of the task, as the agent sent it.
    snapshot: Option<Value>,
    /// Status of the last update, as the agent sent it.
    status: Option<Value>,
    /// Message of the last status that had one.
    status_message: Option<AgentMessage>,
    /// Whether that is the last status of all.
    is_message_current: bool,
    artifacts: Vec<ArtifactUpdate>,
    task_id: Option<String>,
    context_id: Option<String>,
    state: Option<TaskState>,
    is_final: bool,
    /// Texts of the status messages that were returned for display.
    shown_status: Vec<String>,
}

impl AgentReply {
    /// Adds an event. Returns the parts that are new in it: agents repeat in a task or a last artifact what they streamed
    /// before.
    pub fn take(&mut self, event: &AgentEvent) -> Vec<Part> {
        self.task_id = event.task_id().map(str::to_owned).or_else(|| self.task_id.take());
        self.context_id = event.context_id().map(str::to_owned).or_else(|| self.context_id.take());
        self.state = event.state().or(self.state);
        self.is_final = event.is_final();
        match event {
            // An agent may repeat the message of the user.
            AgentEvent::Message(message) if message.is_user => {
                self.is_final = false;
                Vec::new()
            }
            AgentEvent::Message(message) => {
                self.message = Some(message.clone());
                message.parts()
            }
            AgentEvent::Status(update) => {
                self.status = update.raw.get("status").cloned();
                self.take_status(update.message())
            }
            AgentEvent::Artifact(update) => self.take_artifact(update),
            AgentEvent::Task(task) => self.take_task(task),
        }
    }

    fn take_status(&mut self, message: Option<AgentMessage>) -> Vec<Part> {
        self.is_message_current = message.is_some();
        let Some(message) = message else { return Vec::new() };
        let (text, parts) = (message.text(), message.parts());
        let is_same = self.status_message.as_ref().is_some_and(|known| known.raw == message.raw);
        // Frameworks stream a reply as status messages, and end with one that holds the whole.
        let is_whole = self.shown_status.len() > 1 && text.trim() == self.shown_status.concat().trim();
        let is_known =
            is_same || (!text.is_empty() && (is_whole || text.trim() == self.artifact_text().trim()));
        self.status_message = Some(message);
        if is_known {
            return Vec::new();
        }
        self.shown_status.push(text);
        parts
    }

    fn take_artifact(&mut self, update: &ArtifactUpdate) -> Vec<Part> {
        let known = self.artifacts.iter_mut().find(|known| known.artifact_id == update.artifact_id);
        let parts = match known {
            Some(known) if update.is_append => {
                known.append(update);
                update.parts()
            }
            Some(known) => {
                let before = known.parts();
                *known = update.clone();
                added_parts(&before, update.parts())
            }
            None => {
                self.artifacts.push(update.clone());
                update.parts()
            }
        };
        // Some frameworks stream a reply as status messages and send the whole of it again at the end.
        let text = bare_text(&update.parts());
        let streamed = [self.shown_status.concat(), self.shown_status.last().cloned().unwrap_or_default()];
        // With another line break at its end.
        let is_repeated =
            !text.trim().is_empty() && streamed.iter().any(|streamed| streamed.trim() == text.trim());
        parts.into_iter().filter(|part| !(is_repeated && part.text().is_some())).collect()
    }

    fn take_task(&mut self, task: &AgentTask) -> Vec<Part> {
        let mut new: Vec<Part> =
            task.artifacts().iter().flat_map(|artifact| self.take_artifact(artifact)).collect();
        self.snapshot = Some(task.raw.clone());
        self.status = None;
        new.extend(self.take_status(task.message()));
        new
    }

    /// Parts in the order in which a person reads them: the message; or the artifacts, and the message of the status unless
    /// it repeats them.
    pub fn parts(&self) -> Vec<Part> {
        if let Some(message) = &self.message {
            return message.parts();
        }
        let mut parts: Vec<Part> = self.artifacts.iter().flat_map(ArtifactUpdate::parts).collect();
        // What the agent said while it worked is not part of the result, unless it is all there is.
        if let Some(message) = &self.status_message
            && (self.is_message_current || parts.is_empty())
            && message.text() != self.artifact_text()
        {
            parts.extend(message.parts());
        }
        parts
    }

    /// Text of the message; else of the artifacts; else of the status.
    pub fn text(&self) -> String {
        match (&self.message, self.artifact_text()) {
            (Some(message), _) => message.text(),
            (None, text) if text.is_empty() => {
                self.status_message.as_ref().map(AgentMessage::text).unwrap_or_default()
            }
            (None, text) => text,
        }
    }

    fn artifact_text(&self) -> String {
        let texts = self.artifacts.iter().map(ArtifactUpdate::text).filter(|text| !text.is_empty());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Artifacts, with their chunks joined.
    pub fn artifacts(&self) -> &[ArtifactUpdate] {
        &self.artifacts
    }

    /// Message, unless the reply is a task.
    pub fn message(&self) -> Option<&AgentMessage> {
        self.message.as_ref()
    }

    /// Last known state of the task.
    pub fn state(&self) -> Option<TaskState> {
        self.state
    }

    /// Task of the reply.
    pub fn task_id(&self) -> Option<&str> {
        self.task_id.as_deref()
    }

    /// Whether the agent sends no further event until the next request.
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// The message or the task as JSON; `None` before the first event.
    pub fn raw(&self) -> Option<Value> {
        if let Some(message) = &self.message {
            return Some(message.raw.clone());
        }
        let mut task = match &self.snapshot {
            Some(Value::Object(task)) => task.clone(),
            _ => {
                let mut task = Map::new();
                insert_some(&mut task, "id", self.task_id.as_deref());
                insert_some(&mut task, "contextId", self.context_id.as_deref());
                task
            }
        };
        insert_some(&mut task, "status", self.status.clone());
        if !self.artifacts.is_empty() {
            let artifacts: Vec<Value> = self.artifacts.iter().map(|one| one.artifact().clone()).collect();
            task.insert("artifacts".to_owned(), artifacts.into());
        }
        (!task.is_empty()).then(|| task.into())
    }
}

/// Parts of an artifact that were not among its earlier parts. Of a text that continues the earlier one it is the rest.
fn added_parts(before: &[Part], now: Vec<Part>) -> Vec<Part> {
    let seen = bare_text(before);
    let whole = bare_text(&now);
    let Some(rest) = whole.strip_prefix(seen.as_str()) else { return now };
    let mut added: Vec<Part> = Vec::new();
    // The text that is new is at the end of all texts.
    let mut known = whole.len() - rest.len();
    for part in now {
        match part {
            Part::Text(text) | Part::TextFile { text, .. } if text.len() <= known => known -= text.len(),
            Part::Text(text) => {
                added.push(Part::Text(text.get(known..).unwrap_or(&text).to_owned()));
                known = 0;
            }
            Part::TextFile { text, name, mime } => {
                let text = text.get(known..).unwrap_or(&text).to_owned();
                added.push(Part::TextFile { text, name, mime });
                known = 0;
            }
            part if before.contains(&part) => {}
            part => added.push(part),
        }
    }
    added
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::a2a::Dialect;

    fn event(raw: Value) -> AgentEvent {
        AgentEvent::read(raw, Dialect::V1).unwrap()
    }

    fn status(state: &str, text: Option<&str>) -> AgentEvent {
        let mut status = json!({ "state": format!("TASK_STATE_{state}") });
        if let Some(text) = text {
            let id = format!("m-{state}-{text}");
            status["message"] = json!({"messageId": id, "role": "ROLE_AGENT", "parts": [{"text": text}]});
        }
        event(json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": status}}))
    }

    fn artifact(id: &str, parts: &Value, append: bool) -> AgentEvent {
        event(json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": append,
            "artifact": {"artifactId": id, "parts": parts}}}))
    }

    /// The reply and everything that its events showed.
    fn shown(events: &[AgentEvent]) -> (AgentReply, String) {
        let mut reply = AgentReply::default();
        let shown = events.iter().flat_map(|event| reply.take(event)).map(|part| part.summary()).collect();
        (reply, shown)
    }

    #[test]
    fn chunks_of_an_artifact_are_one_text() {
        let events = [
            artifact("a", &json!([{"text": "Hel"}]), false),
            artifact("a", &json!([{"text": "lo "}]), true),
            artifact("a", &json!([{"text": "you"}, {"data": {"n": 1}}]), true),
            status("COMPLETED", None),
        ];
        let (reply, shown) = shown(&events);
        assert_eq!(reply.text(), "Hello you");
        assert!(shown.starts_with("Hello you"), "{shown}");
        assert_eq!(reply.parts().len(), 2);
        assert_eq!(reply.raw().unwrap()["artifacts"][0]["parts"][0]["text"], "Hello you");
    }

    #[test]
    fn repeated_text_is_printed_once() {
        let whole = artifact("a", &json!([{"text": "one two"}]), false);
        let tokens = [status("WORKING", Some("one ")), status("WORKING", Some("two")), whole.clone()];
        assert_eq!(shown(&tokens).1, "one two", "tokens, then all of them");
        let twice = [status("WORKING", Some("one two")), whole.clone(), status("COMPLETED", Some("one two"))];
        let (reply, seen) = shown(&twice);
        assert_eq!((seen.as_str(), reply.text().as_str()), ("one two", "one two"));
        let task = json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
            "artifacts": [{"artifactId": "a", "parts": [{"text": "one two three"}]}]}});
        assert_eq!(
            shown(&[whole, event(task)]).1,
            "one two three",
            "the task adds the text that the stream lost"
        );
    }

    #[test]
    fn chunks_that_a_task_repeats_are_printed_once() {
        let parts = json!([{"text": "Hel"}, {"text": "lo "}, {"text": "you"}]);
        let task = json!({"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
            "artifacts": [{"artifactId": "a", "parts": parts}, {"artifactId": "b", "parts": [{"data": 1}]}]}});
        let events = [
            artifact("a", &json!([{"text": "Hel"}]), false),
            artifact("a", &json!([{"text": "lo "}]), true),
            event(task),
        ];
        let (reply, shown) = shown(&events);
        assert_eq!((shown.as_str(), reply.text().as_str()), ("Hello you1", "Hello you"));
    }

    #[test]
    fn artifact_that_repeats_its_chunks_is_printed_once() {
        let events = [
            artifact("a", &json!([{"text": "one "}]), false),
            artifact("a", &json!([{"text": "two"}]), true),
            artifact("a", &json!([{"text": "one two"}, {"url": "https://a.example/x"}]), false),
        ];
        let (reply, seen) = shown(&events);
        assert_eq!((seen.as_str(), reply.text().as_str()), ("one two[file: https://a.example/x]", "one two"));
        let replaced =
            [artifact("a", &json!([{"text": "one"}]), false), artifact("a", &json!([{"text": "2"}]), false)];
        assert_eq!(shown(&replaced).1, "one2", "another text replaces it");
    }

    #[test]
    fn status_that_repeats_the_stream_is_printed_once() {
        let tokens = ["The", " answer", "."].map(|token| status("WORKING", Some(token)));
        let mut events = tokens.to_vec();
        events.push(status("WORKING", Some("The answer.")));
        events.push(artifact("a", &json!([{"text": "The answer.\n"}]), false));
        assert_eq!(shown(&events).1, "The answer.");
    }

    #[test]
    fn status_beside_an_artifact_is_kept() {
        let events = [artifact("a", &json!([{"data": {"n": 1}}]), false), status("FAILED", Some("it broke"))];
        let (reply, _) = shown(&events);
        assert_eq!(reply.parts().len(), 2);
        assert_eq!((reply.text().as_str(), reply.state()), ("it broke", Some(TaskState::Failed)));
        assert!(reply.is_final());
    }
}
