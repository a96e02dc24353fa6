//! Chat completions: what is sent, and what is read from an answer.

use serde_json::{Map, Value, json};

use super::Fault;

/// What of a message goes along. An endpoint may refuse a request for a member that it does not know.
const MEMBERS: [&str; 5] = ["role", "content", "name", "tool_calls", "tool_call_id"];

const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

/// A piece of a streamed reply.
#[derive(Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) is_last: bool,
}

/// The body of a request.
pub(super) fn request<'a>(model: &str, messages: impl Iterator<Item = &'a Value>, streams: bool) -> Vec<u8> {
    let messages: Vec<Value> = messages.map(message).collect();
    json!({ "model": model, "messages": messages, "stream": streams }).to_string().into_bytes()
}

/// A message of a session, as one of a chat. What is none is what the user said.
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

/// The text of a reply that came whole.
pub(super) fn reply(bytes: &[u8]) -> Result<String, Fault> {
    let answer = parsed(bytes)?;
    let content = answer.pointer("/choices/0/message/content").and_then(Value::as_str);
    content.map(str::to_owned).ok_or_else(|| Fault::Unusable("there is no text in it".to_owned()))
}

/// What an event of a stream says.
pub(super) fn piece(data: &str) -> Result<Piece, Fault> {
    let event = parsed(data.as_bytes())?;
    if let Some(error) = event.get("error") {
        return Err(Fault::Unusable(error.to_string()));
    }
    let text = event.pointer("/choices/0/delta/content").and_then(Value::as_str).unwrap_or_default();
    let is_last = event.pointer("/choices/0/finish_reason").is_some_and(Value::is_string);
    Ok(Piece { text: text.to_owned(), is_last })
}

fn parsed(bytes: &[u8]) -> Result<Value, Fault> {
    sessile::json::from_slice(bytes).map_err(|error| Fault::Unusable(format!("it is not JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sent_as_they_are_or_as_the_users() {
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
    fn only_text_is_a_reply() {
        assert_eq!(reply(br#"{"choices":[{"message":{"content":"hi"}}]}"#).unwrap(), "hi");
        for none in [&b"{}"[..], b"<html>", br#"{"choices":[{"message":{"content":null}}]}"#, b"\xff"] {
            assert!(reply(none).is_err());
        }
        let last = piece(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#).unwrap();
        assert_eq!(last, Piece { text: String::new(), is_last: true });
        assert!(piece(r#"{"error":{"message":"no"}}"#).is_err());
    }
}
