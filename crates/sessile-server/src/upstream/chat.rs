//! Requests and responses of chat completions.

use serde_json::{Map, Value, json};

use super::UpstreamError;

/// Fields of a message that are sent. Endpoints may refuse a request with unknown fields.
const MEMBERS: [&str; 5] = ["role", "content", "name", "tool_calls", "tool_call_id"];

const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

/// Chunk of a streamed reply.
#[derive(Debug, PartialEq)]
pub(super) struct ChatChunk {
    pub(super) text: String,
    pub(super) is_last: bool,
}

/// Body of a request.
pub(super) fn request<'a>(model: &str, messages: impl Iterator<Item = &'a Value>, streams: bool) -> Vec<u8> {
    let messages: Vec<Value> = messages.map(message).collect();
    json!({ "model": model, "messages": messages, "stream": streams }).to_string().into_bytes()
}

/// Message of a session as one of a chat. Any other JSON becomes a message of the user.
pub(super) fn message(body: &Value) -> Value {
    let is_chat = body["role"].as_str().is_some_and(|role| ROLES.contains(&role))
        && (body["content"].is_string() || body["content"].is_array() || body["tool_calls"].is_array());
    if is_chat {
        let members = MEMBERS.iter().filter_map(|name| Some(((*name).to_owned(), body.get(name)?.clone())));
        return Value::Object(members.collect::<Map<_, _>>());
    }
    let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
    json!({ "role": "user", "content": text })
}

/// Text of a reply that is not streamed.
pub(super) fn reply(bytes: &[u8]) -> Result<String, UpstreamError> {
    let answer = parse(bytes)?;
    let content = answer.pointer("/choices/0/message/content").and_then(Value::as_str);
    content.map(str::to_owned).ok_or_else(|| UpstreamError::Unusable("no text in the reply".to_owned()))
}

/// Parses an event of a stream.
pub(super) fn chunk(data: &str) -> Result<ChatChunk, UpstreamError> {
    let event = parse(data.as_bytes())?;
    // Endpoints report failures after the first token within the stream, whose status was 200.
    if let Some(error) = event.get("error") {
        return Err(UpstreamError::Unusable(error.to_string()));
    }
    let text = event.pointer("/choices/0/delta/content").and_then(Value::as_str).unwrap_or_default();
    let is_last = event.pointer("/choices/0/finish_reason").is_some_and(Value::is_string);
    Ok(ChatChunk { text: text.to_owned(), is_last })
}

fn parse(bytes: &[u8]) -> Result<Value, UpstreamError> {
    sessile::json::from_slice(bytes).map_err(|error| UpstreamError::Unusable(format!("not JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_json_is_sent_as_a_message_of_the_user() {
        let chat = json!({ "role": "assistant", "content": "a", "stars": 5, "name": "bot" });
        assert_eq!(message(&chat), json!({ "role": "assistant", "content": "a", "name": "bot" }));
        assert_eq!(message(&json!("hello")), json!({ "role": "user", "content": "hello" }));
        for odd in [
            json!({ "a": 1 }),
            json!(7),
            json!({ "role": "root", "content": "x" }),
            json!({ "role": "user" }),
        ] {
            assert_eq!(message(&odd), json!({ "role": "user", "content": odd.to_string() }));
        }
    }

    #[test]
    fn response_without_text_is_refused() {
        assert_eq!(reply(br#"{"choices":[{"message":{"content":"hi"}}]}"#).unwrap(), "hi");
        for none in [&b"{}"[..], b"<html>", br#"{"choices":[{"message":{"content":null}}]}"#, b"\xff"] {
            assert!(reply(none).is_err());
        }
        let last = chunk(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#).unwrap();
        assert_eq!(last, ChatChunk { text: String::new(), is_last: true });
        assert!(chunk(r#"{"error":{"message":"no"}}"#).is_err());
    }
}
