//! What is sent to an agent.

use serde_json::{Map, Value, json};
use sessile::vault::Secret;

use super::dialect::Dialect;
use super::part::Part;

/// A message to an agent, and how its reply is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outgoing {
    /// Its id, which the sender makes.
    pub(crate) message_id: String,
    /// The context that it belongs to.
    pub(crate) context_id: Option<String>,
    /// The task that it is about, which must not have ended.
    pub(crate) task_id: Option<String>,
    /// Its content.
    pub(crate) parts: Vec<Part>,
    /// The media types that a reply may have.
    pub(crate) accepted_output_modes: Vec<String>,
    /// How many of the messages so far the reply may repeat.
    pub(crate) history_length: Option<u32>,
    /// Whether the reply comes only when the task has ended or waits.
    pub(crate) blocking: bool,
    /// Who is told when something changes.
    pub(crate) push: Option<PushConfig>,
    /// Extensions that the message makes use of.
    pub(crate) extensions: Vec<String>,
    /// What else there is to say, for agents that understand it.
    pub(crate) metadata: Option<Map<String, Value>>,
}

/// Who is told of a task's changes, and how it knows that the agent is the one who tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PushConfig {
    /// Its id; without one the agent makes one.
    pub(crate) id: Option<String>,
    /// Where the agent sends them.
    pub(crate) url: String,
    /// What the agent repeats, so that it is recognised.
    pub(crate) token: Option<Secret>,
    /// The scheme of authentication, as in `Bearer`.
    pub(crate) scheme: Option<String>,
    /// What belongs to the scheme.
    pub(crate) credentials: Option<Secret>,
}

impl Outgoing {
    /// The parameters of a request that sends it.
    pub(super) fn to_json(&self, dialect: Dialect) -> Value {
        let mut message = Map::new();
        if dialect == Dialect::Kinds {
            message.insert("kind".to_owned(), "message".into());
        }
        message.insert("messageId".to_owned(), self.message_id.as_str().into());
        maybe(&mut message, "contextId", self.context_id.as_deref());
        maybe(&mut message, "taskId", self.task_id.as_deref());
        let role = if dialect == Dialect::Kinds { "user" } else { "ROLE_USER" };
        message.insert("role".to_owned(), role.into());
        let parts: Vec<_> = self.parts.iter().map(|part| part.to_json(dialect)).collect();
        let content = if dialect == Dialect::Buffers { "content" } else { "parts" };
        message.insert(content.to_owned(), parts.into());
        if !self.extensions.is_empty() {
            message.insert("extensions".to_owned(), self.extensions.clone().into());
        }

        let mut wanted = Map::new();
        if !self.accepted_output_modes.is_empty() {
            wanted.insert("acceptedOutputModes".to_owned(), self.accepted_output_modes.clone().into());
        }
        maybe(&mut wanted, "historyLength", self.history_length);
        match dialect {
            Dialect::One => wanted.insert("returnImmediately".to_owned(), (!self.blocking).into()),
            _ => wanted.insert("blocking".to_owned(), self.blocking.into()),
        };
        if let Some(push) = &self.push {
            let key = match dialect {
                Dialect::One => "taskPushNotificationConfig",
                Dialect::Kinds => "pushNotificationConfig",
                Dialect::Buffers => "pushNotification",
            };
            wanted.insert(key.to_owned(), push.to_json(dialect));
        }

        let mut params = Map::new();
        let key = if dialect == Dialect::Buffers { "request" } else { "message" };
        params.insert(key.to_owned(), message.into());
        params.insert("configuration".to_owned(), wanted.into());
        maybe(&mut params, "metadata", self.metadata.clone());
        params.into()
    }
}

impl PushConfig {
    pub(super) fn to_json(&self, dialect: Dialect) -> Value {
        let mut config = Map::new();
        maybe(&mut config, "id", self.id.as_deref());
        config.insert("url".to_owned(), self.url.as_str().into());
        maybe(&mut config, "token", self.token.as_ref().map(Secret::expose));
        if let Some(scheme) = &self.scheme {
            let mut how = match dialect {
                Dialect::One => json!({ "scheme": scheme }),
                _ => json!({ "schemes": [scheme] }),
            };
            if let (Some(how), Some(secret)) = (how.as_object_mut(), &self.credentials) {
                how.insert("credentials".to_owned(), secret.expose().into());
            }
            config.insert("authentication".to_owned(), how);
        }
        config.into()
    }
}

/// Adds what there is.
pub(super) fn maybe(map: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(key.to_owned(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outgoing() -> Outgoing {
        Outgoing {
            message_id: "m".to_owned(),
            context_id: Some("c".to_owned()),
            parts: vec![Part::Text("hi".to_owned())],
            history_length: Some(0),
            blocking: true,
            push: Some(PushConfig {
                url: "https://a.example/".to_owned(),
                scheme: Some("Bearer".to_owned()),
                credentials: Some(Secret::new("hunter2")),
                ..PushConfig::default()
            }),
            ..Outgoing::default()
        }
    }

    #[test]
    fn a_message_is_written_as_each_dialect_wants_it() {
        let push = |how: Value| json!({"url": "https://a.example/", "authentication": how});
        let schemes = push(json!({"schemes": ["Bearer"], "credentials": "hunter2"}));
        assert_eq!(
            outgoing().to_json(Dialect::One),
            json!({
                "message": {"messageId": "m", "contextId": "c", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
                "configuration": {
                    "historyLength": 0, "returnImmediately": false,
                    "taskPushNotificationConfig": push(json!({"scheme": "Bearer", "credentials": "hunter2"})),
                },
            })
        );
        assert_eq!(
            outgoing().to_json(Dialect::Kinds),
            json!({
                "message": {"kind": "message", "messageId": "m", "contextId": "c", "role": "user",
                            "parts": [{"kind": "text", "text": "hi"}]},
                "configuration": {"historyLength": 0, "blocking": true, "pushNotificationConfig": schemes.clone()},
            })
        );
        assert_eq!(
            outgoing().to_json(Dialect::Buffers),
            json!({
                "request": {"messageId": "m", "contextId": "c", "role": "ROLE_USER", "content": [{"text": "hi"}]},
                "configuration": {"historyLength": 0, "blocking": true, "pushNotification": schemes},
            })
        );
        assert!(!format!("{:?}", outgoing()).contains("hunter2"));
    }
}
