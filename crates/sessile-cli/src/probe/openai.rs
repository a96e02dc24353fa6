//! Services that speak as OpenAI's chat completions do.

use serde_json::{Value, json};
use ureq::http::Method;

use super::service::{ProbeFailure, ProbeReply, Service, StoredHistory, User};
use super::transport::ProbeTransport;

/// Such a service.
pub(crate) struct OpenAiService {
    pub(crate) wire: ProbeTransport,
    pub(crate) model: String,
    /// Whether the service keeps the history, so that only the new message is sent.
    pub(crate) is_stateful: bool,
}

impl Service for OpenAiService {
    fn say(&self, user: &mut User, message: &str) -> Result<ProbeReply, ProbeFailure> {
        let new = json!({ "role": "user", "content": message });
        let messages: Vec<&Value> = user.messages.iter().chain([&new]).collect();
        let body = json!({ "model": self.model, "messages": messages, "user": user.name, "stream": false });
        let path = (&Method::POST, "/chat/completions");
        let whole = self.wire.ask((user, message), path, Some(&body.to_string()))?;
        let answer: Value = sessile::json::from_str(&whole)
            .map_err(|_| ProbeFailure::unusable("the response is not JSON", &whole))?;
        let said = answer.pointer("/choices/0/message/content").map(content);
        let text = said.ok_or_else(|| ProbeFailure::unusable("the response has no choices", &whole))?;
        if !self.is_stateful {
            // Only after an answer, so that the roles in the history alternate.
            user.messages.push(new);
            user.messages.push(json!({ "role": "assistant", "content": text }));
        }
        Ok(ProbeReply { text, whole })
    }

    fn history(&self, _user: &User) -> Option<Result<StoredHistory, ProbeFailure>> {
        None
    }
}

/// A text, or the texts of its parts.
fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}
