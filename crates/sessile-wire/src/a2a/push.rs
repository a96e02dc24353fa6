//! Push notifications of a task.

use std::fmt;

use serde_json::{Map, Value, json};

use super::dialect::Dialect;
use super::field::{insert_some, non_empty, string};
use crate::secret::Secret;

/// Receiver of push notifications, and how it authenticates the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PushConfig {
    /// Id; `None` lets the agent generate one.
    pub id: Option<String>,
    /// URL that the agent sends notifications to.
    pub url: String,
    /// Token that the agent sends along.
    pub token: Option<Secret>,
    /// Authentication scheme, such as `Bearer`.
    pub scheme: Option<String>,
    /// Credentials for the scheme.
    pub credentials: Option<Secret>,
}

impl PushConfig {
    pub(super) fn to_json(&self, dialect: Dialect) -> Value {
        let mut config = Map::new();
        insert_some(&mut config, "id", self.id.as_deref());
        config.insert("url".to_owned(), self.url.as_str().into());
        insert_some(&mut config, "token", self.token.as_ref().map(Secret::expose));
        if let Some(scheme) = &self.scheme {
            let mut how = match dialect {
                Dialect::V1 => json!({ "scheme": scheme }),
                // Version 0.3 has a list of schemes.
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

/// Push notification that an agent has registered. The JSON may hold a token, so `Debug` omits it.
#[derive(Clone)]
pub struct PushRegistration {
    /// JSON as the agent sent it.
    pub raw: Value,
    /// Id of the registration.
    pub id: Option<String>,
    /// Id of the task.
    pub task_id: Option<String>,
    /// URL that the agent sends notifications to.
    pub url: String,
}

impl PushRegistration {
    /// Parses a registration. Returns `None` if it has no URL.
    pub fn read(raw: Value) -> Option<Self> {
        // Version 0.3 wraps the configuration, version 1.0 does not.
        let inner = raw.get("pushNotificationConfig").unwrap_or(&raw);
        let url = string(inner, &["url"])?;
        let id = non_empty(inner, "id");
        // Version 0.3 over HTTP+JSON has both ids in a name: tasks/T/pushNotificationConfigs/C.
        let name = string(&raw, &["name"]).unwrap_or_default();
        let pieces: Vec<&str> = name.split('/').collect();
        let (named_task, named_id) = match pieces.as_slice() {
            ["tasks", task, "pushNotificationConfigs", id] => (Some(*task), Some(*id)),
            _ => (None, None),
        };
        Some(PushRegistration {
            url,
            id: id.or_else(|| named_id.map(str::to_owned)),
            task_id: string(&raw, &["taskId"]).or_else(|| named_task.map(str::to_owned)),
            raw,
        })
    }
}

impl fmt::Debug for PushRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushRegistration")
            .field("id", &self.id)
            .field("task_id", &self.task_id)
            .finish_non_exhaustive()
    }
}
