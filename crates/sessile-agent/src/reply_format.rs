//! Answers in the shape of each version and binding.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::options::{AgentBinding, Protocol};
use crate::wire::{Fault, ReplyTarget};

impl ReplyTarget {
    /// Envelope of a result.
    pub(crate) fn wrap(&self, result: Value) -> Value {
        match self.binding {
            AgentBinding::JsonRpc => json!({"jsonrpc": "2.0", "id": self.id, "result": result}),
            AgentBinding::Rest => result,
        }
    }

    /// Formats a stream event: an object with one of `task`, `message`, `statusUpdate` and `artifactUpdate`.
    pub(crate) fn say(&self, said: &Value) -> Value {
        match (self.protocol, self.binding) {
            (Protocol::V1, _) => self.wrap(said.clone()),
            (Protocol::V03, AgentBinding::Rest) => self.wrap(older_rest(said)),
            (Protocol::V03, AgentBinding::JsonRpc) => {
                let Some((name, inner)) = said.as_object().and_then(|said| said.iter().next()) else {
                    return self.wrap(Value::Null);
                };
                let kind = match name.as_str() {
                    "statusUpdate" => "status-update",
                    "artifactUpdate" => "artifact-update",
                    other => other,
                };
                let mut inner = older(inner);
                inner["kind"] = json!(kind);
                if kind == "status-update" {
                    inner["final"] = json!(crate::tasks::is_last(said));
                }
                self.wrap(inner)
            }
        }
    }

    /// A task by itself.
    pub(crate) fn task(&self, task: &Value) -> Value {
        match (self.protocol, self.binding) {
            (Protocol::V1, _) => self.wrap(task.clone()),
            (Protocol::V03, AgentBinding::Rest) => self.wrap(older_rest(task)),
            (Protocol::V03, AgentBinding::JsonRpc) => self.say(&json!({"task": task})),
        }
    }

    /// A configuration of push notifications, which has a task's id.
    pub(crate) fn push(&self, config: &Value) -> Value {
        let mut inner = config.clone();
        if let Some(inner) = inner.as_object_mut() {
            inner.remove("taskId");
        }
        let (task, id) = (&config["taskId"], &config["id"]);
        match (self.protocol, self.binding) {
            (Protocol::V1, _) => config.clone(),
            (Protocol::V03, AgentBinding::JsonRpc) => {
                json!({"taskId": task, "pushNotificationConfig": inner})
            }
            (Protocol::V03, AgentBinding::Rest) => {
                let (task, id) = (task.as_str().unwrap_or_default(), id.as_str().unwrap_or_default());
                let name = format!("tasks/{task}/pushNotificationConfigs/{id}");
                json!({"name": name, "pushNotificationConfig": inner})
            }
        }
    }

    /// An error: its status and body.
    pub(crate) fn fault(&self, fault: &Fault) -> (u16, Value) {
        let (code, v1, grpc, reason, v03, message) = match fault {
            Fault::TaskNotFound(id) => {
                (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND", 404, format!("Task {id} was not found"))
            }
            Fault::NotCancelable => (
                -32002,
                400,
                "FAILED_PRECONDITION",
                "TASK_NOT_CANCELABLE",
                409,
                "Task cannot be canceled".to_owned(),
            ),
            Fault::NoPush => (
                -32003,
                400,
                "FAILED_PRECONDITION",
                "PUSH_NOTIFICATION_NOT_SUPPORTED",
                501,
                "Push Notification is not supported".to_owned(),
            ),
            Fault::Unsupported(why) => {
                (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION", 501, why.clone())
            }
            Fault::NoExtendedCard => (
                -32007,
                400,
                "FAILED_PRECONDITION",
                "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
                404,
                "Authenticated Extended Card is not configured".to_owned(),
            ),
            Fault::Version(version) => (
                -32009,
                400,
                "FAILED_PRECONDITION",
                "VERSION_NOT_SUPPORTED",
                400,
                format!("A2A version '{version}' is not supported"),
            ),
            Fault::InvalidParams(why) => {
                (-32602, 400, "INVALID_ARGUMENT", "INVALID_PARAMS", 422, why.clone())
            }
            Fault::MethodNotFound => {
                (-32601, 404, "NOT_FOUND", "METHOD_NOT_FOUND", 404, "Method not found".to_owned())
            }
            Fault::NotAllowed => {
                (-32601, 405, "NOT_FOUND", "METHOD_NOT_FOUND", 405, "Method Not Allowed".to_owned())
            }
            Fault::Parse => {
                (-32700, 400, "INVALID_ARGUMENT", "INVALID_REQUEST", 400, "Invalid JSON payload".to_owned())
            }
        };
        let details = json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org",
            "metadata": {},
        }]);
        match (self.binding, self.protocol) {
            (AgentBinding::JsonRpc, Protocol::V1) => {
                let error = json!({"code": code, "message": message, "data": details});
                (200, json!({"jsonrpc": "2.0", "id": self.id, "error": error}))
            }
            (AgentBinding::JsonRpc, Protocol::V03) => {
                let error = json!({"code": code, "message": message});
                (200, json!({"jsonrpc": "2.0", "id": self.id, "error": error}))
            }
            (AgentBinding::Rest, Protocol::V1) => {
                let error = json!({"code": v1, "status": grpc, "message": message, "details": details});
                (v1, json!({"error": error}))
            }
            (AgentBinding::Rest, Protocol::V03) => (v03, json!({"message": message})),
        }
    }

    /// Media type of a body.
    pub(crate) fn media_type(&self) -> &'static str {
        match (self.binding, self.protocol) {
            (AgentBinding::Rest, Protocol::V1) => "application/a2a+json",
            _ => "application/json",
        }
    }
}

/// Into the JSON of 0.3's JSON-RPC.
fn older(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(state) = value["state"].as_str() {
        let state = state.trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace('_', "-");
        value["state"] = json!(state);
    }
    if let Some(role) = value["role"].as_str() {
        value["role"] = json!(role.trim_start_matches("ROLE_").to_ascii_lowercase());
        value["kind"] = json!("message");
    }
    if let Some(parts) = value["parts"].as_array() {
        value["parts"] = parts.iter().map(older_part).collect();
    }
    descend(&mut value, older);
    value
}

fn older_part(part: &Value) -> Value {
    if !part["text"].is_null() {
        return json!({"kind": "text", "text": part["text"]});
    }
    if !part["data"].is_null() {
        return json!({"kind": "data", "data": part["data"]});
    }
    let (how, what) = if part["raw"].is_null() { ("uri", &part["url"]) } else { ("bytes", &part["raw"]) };
    json!({"kind": "file", "file": {how: what, "name": part["filename"], "mimeType": part["mediaType"]}})
}

/// Into the JSON of 0.3's REST, which is its protocol buffers'.
fn older_rest(value: &Value) -> Value {
    let mut value = value.clone();
    if value["state"] == "TASK_STATE_CANCELED" {
        value["state"] = json!("TASK_STATE_CANCELLED");
    }
    if let Some(parts) = value["parts"].as_array() {
        let parts = parts.iter().map(older_rest_part).collect();
        if value["role"].is_string() {
            value.as_object_mut().and_then(|message| message.remove("parts"));
            value["content"] = parts;
        } else {
            value["parts"] = parts;
        }
    }
    if crate::tasks::is_last(&value) {
        value["statusUpdate"]["final"] = json!(true);
    }
    descend(&mut value, older_rest);
    value
}

fn older_rest_part(part: &Value) -> Value {
    if !part["text"].is_null() {
        return json!({"text": part["text"]});
    }
    if !part["data"].is_null() {
        return json!({"data": {"data": part["data"]}});
    }
    // The official SDK codes the bytes twice: what it has is coded already, and protocol buffers do it again.
    let (how, what) = match part["raw"].as_str() {
        Some(raw) => ("fileWithBytes", json!(STANDARD.encode(raw))),
        None => ("fileWithUri", part["url"].clone()),
    };
    json!({"file": {how: what, "name": part["filename"], "mimeType": part["mediaType"]}})
}

/// Applies the change to nested values. Metadata and data of clients stay unchanged.
fn descend(value: &mut Value, change: fn(&Value) -> Value) {
    for name in ["status", "message", "task", "statusUpdate", "artifactUpdate", "artifact"] {
        if value[name].is_object() {
            value[name] = change(&value[name]);
        }
    }
    for name in ["history", "artifacts"] {
        for inner in value[name].as_array_mut().into_iter().flatten() {
            *inner = change(inner);
        }
    }
    // Asking for a name that is not there has put nothing in; asking to change it would have.
    if let Some(object) = value.as_object_mut() {
        object.retain(|_, inner| !inner.is_null());
    }
}
