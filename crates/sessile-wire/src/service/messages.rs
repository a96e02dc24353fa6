//! Messages of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::limits::{MAX_INTEGER, MAX_MESSAGES, MAX_SESSION_NAME};
use super::schema::AnyValue;

/// A message.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Message")]
pub struct ServiceMessage {
    /// Number of the message in the session, from 1.
    pub number: i64,
    /// Fencing token of the turn that wrote the message; 0 if it was written outside of a turn.
    pub token: i64,
    /// Body of the message: any JSON.
    pub body: Box<RawValue>,
    /// Time of the message, in milliseconds since 1970.
    pub at_ms: i64,
}

// The item is generic so that the service can serialize messages once, measure them, and put them into the page as raw JSON.
/// A page of messages.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "MessagePage")]
pub struct MessagePage<T = ServiceMessage> {
    /// Messages of the page, oldest first.
    pub messages: Vec<T>,
    /// Value of `after` for the next page; null after the last page.
    pub next: Option<i64>,
}

/// Messages to append.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppendRequest {
    /// Bodies of the messages.
    #[schemars(with = "Vec<AnyValue>", length(min = 1, max = MAX_MESSAGES))]
    pub messages: Vec<Box<RawValue>>,
    /// Number that the last message must have, or nothing is appended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = MAX_INTEGER))]
    pub if_last: Option<i64>,
}

/// Numbers of the messages that a request appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppendResponse {
    /// Number of the first message.
    pub first: i64,
    /// Number of the last message.
    pub last: i64,
}

/// Messages that a request appended and, with `reply`, the upstream's reply to them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplyResponse {
    /// Number of the first message.
    pub first: i64,
    /// Number of the last message.
    pub last: i64,
    /// With `reply`: messages of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<NumberedMessage>,
    /// With `reply`: reply of the upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "NumberedMessage")]
    pub reply: Option<NumberedMessage>,
}

/// A message and its number.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NumberedMessage {
    /// Number of the message in the session.
    pub number: i64,
    /// Body of the message.
    pub body: Box<RawValue>,
}

/// A piece of a reply's text: the data of an event `delta` in a streamed reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyDelta {
    /// Text that continues the reply.
    pub content: String,
}

/// Messages to remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewindRequest {
    /// Number of the last message to keep, which must exist; 0 keeps none.
    #[schemars(range(min = 0, max = MAX_INTEGER))]
    pub to: i64,
}

/// Result of removing messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RewindResponse {
    /// Number of messages that were removed.
    pub removed: i64,
}

/// A session to create with the messages of another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForkRequest {
    /// Number of the last message to copy, which must exist; by default all messages are copied.
    #[schemars(range(min = 0, max = MAX_INTEGER))]
    pub at: Option<i64>,
    /// Name of the new session, unique among the user's live sessions.
    #[schemars(length(min = 1, max = MAX_SESSION_NAME))]
    pub name: Option<String>,
}

/// Role and text of a message body. A body is any JSON, so either may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChatMessage {
    /// Author: `user`, `assistant` or another role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Text of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

impl ChatMessage {
    /// Message of a role.
    pub fn new(role: &str, content: impl Into<String>) -> Self {
        ChatMessage { role: Some(role.to_owned()), content: Some(content.into()) }
    }

    /// Role and text of a body.
    pub fn of_body(body: &RawValue) -> Self {
        // Members of other types are as good as missing, and of duplicate keys the last one counts: a derived reader refuses both.
        let body: Value = serde_json::from_str(body.get()).unwrap_or_default();
        let text = |key: &str| body.get(key).and_then(Value::as_str).map(str::to_owned);
        ChatMessage { role: text("role"), content: text("content") }
    }

    /// Body of the message.
    pub fn to_body(&self) -> Box<RawValue> {
        serde_json::value::to_raw_value(self).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }

    /// Whether the user is the author.
    pub fn is_of_user(&self) -> bool {
        self.role.as_deref() == Some("user")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_is_kept_as_sent() {
        let sent = r#"{"number":1,"token":0,"body":{ "n": 1.10, "n":123456789012345678901 },"at_ms":5}"#;
        let message: ServiceMessage = serde_json::from_str(sent).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), sent);
    }

    #[test]
    fn role_and_text_of_any_body_are_read() {
        let of = |text: &str| ChatMessage::of_body(&RawValue::from_string(text.to_owned()).unwrap());
        assert_eq!(of(r#"{"role":"user","content":"hi","x":1}"#), ChatMessage::new("user", "hi"));
        assert!(of(r#"{"role":"user","content":[1]}"#).is_of_user());
        for other in ["7", "null", "[]", r#"{"role":7}"#] {
            assert_eq!(of(other), ChatMessage::default(), "{other}");
        }
    }
}
