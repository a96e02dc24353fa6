//! A conversation from the items of the store.

use serde_json::{Value, json};
use sessile::conversation::ConversationItem;
use sessile_wire::a2a::{AgentEvent, Dialect, Part};

use super::conversation::ChatConversation;

impl ChatConversation {
    /// Adds an item of the store.
    pub(crate) fn replay(&mut self, item: &ConversationItem) {
        match item.kind.as_str() {
            "sent" => {
                let parts = item.body["parts"].as_array().into_iter().flatten().map(sent_part);
                self.push_sent(&parts.collect::<Vec<_>>());
            }
            "failed" => {
                let text = item.body["text"].as_str().unwrap_or("no reply");
                self.push_failure(text);
            }
            kind => {
                if let Some(event) = stored_event(kind, &item.body) {
                    self.take(&event);
                }
            }
        }
    }
}

/// Event of an agent in its stored form.
fn stored_event(kind: &str, body: &Value) -> Option<AgentEvent> {
    let field = match kind {
        "task" => "task",
        "message" => "message",
        "status" => "statusUpdate",
        "artifact" => "artifactUpdate",
        _ => return None,
    };
    AgentEvent::read(json!({ field: body }), dialect_of(body))
}

/// Dialect of stored JSON. The store keeps what the agent sent, and the agent may have changed its version since.
fn dialect_of(body: &Value) -> Dialect {
    let is_rest = body.get("content").is_some() || body["status"].get("update").is_some();
    match () {
        () if body.get("kind").is_some() => Dialect::V03JsonRpc,
        () if is_rest => Dialect::V03Rest,
        () => Dialect::V1,
    }
}

/// Part of a message of the user, which is stored without the content of files.
fn sent_part(stored: &Value) -> Part {
    if let Some(text) = stored["text"].as_str() {
        return Part::Text(text.to_owned());
    }
    let file = &stored["file"];
    let text = |name: &str| file[name].as_str().map(str::to_owned);
    match (text("url"), file.is_object(), stored.get("data")) {
        (Some(url), ..) => Part::Link { url, name: text("name"), mime: text("mime") },
        (None, true, _) => {
            let name = text("name").unwrap_or_else(|| "file".to_owned());
            let size = file["size"].as_u64().unwrap_or_default();
            Part::Text(format!("[file {name}, {size} bytes]"))
        }
        (None, false, Some(data)) => Part::Data(data.clone()),
        (None, false, None) => Part::Other(stored.clone()),
    }
}
