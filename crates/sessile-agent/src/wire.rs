//! Conversion between versions and bindings, by way of the shape of 1.0.

use serde_json::{Value, json};

use crate::http::ReceivedRequest;
use crate::options::{AgentBinding, Protocol};

/// Requested action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    Subscribe,
    SetPush,
    GetPush,
    ListPush,
    DeletePush,
    ExtendedCard,
}

use Action::{
    Cancel, DeletePush, ExtendedCard, Get, GetPush, List, ListPush, Send, SetPush, Stream, Subscribe,
};

const METHODS: [(Action, &str, &str); 11] = [
    (Send, "SendMessage", "message/send"),
    (Stream, "SendStreamingMessage", "message/stream"),
    (Get, "GetTask", "tasks/get"),
    (List, "ListTasks", ""),
    (Cancel, "CancelTask", "tasks/cancel"),
    (Subscribe, "SubscribeToTask", "tasks/resubscribe"),
    (SetPush, "CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
    (GetPush, "GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"),
    (ListPush, "ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"),
    (DeletePush, "DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"),
    (ExtendedCard, "GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"),
];

/// A request that was understood.
pub(crate) struct AgentCall {
    pub(crate) action: Action,
    pub(crate) binding: AgentBinding,
    pub(crate) protocol: Protocol,
    /// Of the request, in JSON-RPC.
    pub(crate) id: Value,
    pub(crate) tenant: String,
    /// The task, where the action has one.
    pub(crate) task: String,
    /// The configuration of push notifications, where the action has one; for `SetPush` all of it.
    pub(crate) push: Value,
    pub(crate) params: Value,
}

impl AgentCall {
    /// Action of a request, or the error.
    pub(crate) fn read(seen: &ReceivedRequest) -> Result<AgentCall, (ReplyTarget, Fault)> {
        match seen.path.strip_prefix("/rest/") {
            Some(rest) => AgentCall::read_rest(seen, rest),
            None => AgentCall::read_rpc(seen),
        }
    }

    fn read_rpc(seen: &ReceivedRequest) -> Result<AgentCall, (ReplyTarget, Fault)> {
        let mut place =
            ReplyTarget { binding: AgentBinding::JsonRpc, protocol: Protocol::V1, id: Value::Null };
        if seen.path != "/rpc" || seen.method != "POST" {
            place.binding = AgentBinding::Rest;
            return Err((place, Fault::MethodNotFound));
        }
        let Ok(body) = serde_json::from_str::<Value>(&seen.body) else { return Err((place, Fault::Parse)) };
        place.id = body["id"].clone();
        let method = body["method"].as_str().unwrap_or("?");
        let found = METHODS.iter().find(|(_, v1, v03)| *v1 == method || *v03 == method);
        let Some((action, v1, _)) = found else { return Err((place, Fault::MethodNotFound)) };
        let protocol = if *v1 == method { Protocol::V1 } else { Protocol::V03 };
        let params = &body["params"];
        let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
        let is_push = matches!(action, SetPush | GetPush | ListPush | DeletePush);
        let (task, push) = match protocol {
            Protocol::V1 if is_push => {
                (text("taskId"), if *action == SetPush { params.clone() } else { params["id"].clone() })
            }
            Protocol::V03 if *action == SetPush => (text("taskId"), params["pushNotificationConfig"].clone()),
            Protocol::V03 if is_push => (text("id"), params["pushNotificationConfigId"].clone()),
            _ => (text("id"), Value::Null),
        };
        Ok(AgentCall {
            action: *action,
            binding: AgentBinding::JsonRpc,
            protocol,
            id: place.id,
            tenant: text("tenant"),
            task,
            push,
            params: params.clone(),
        })
    }

    fn read_rest(seen: &ReceivedRequest, rest: &str) -> Result<AgentCall, (ReplyTarget, Fault)> {
        let (protocol, rest) = match rest.strip_prefix("v1/") {
            Some(rest) => (Protocol::V03, rest),
            None => (Protocol::V1, rest),
        };
        let place = ReplyTarget { binding: AgentBinding::Rest, protocol, id: Value::Null };
        let body = if seen.body.trim().is_empty() { "{}" } else { &seen.body };
        let Ok(mut params) = serde_json::from_str::<Value>(body) else { return Err((place, Fault::Parse)) };
        params = camel(params);
        // 0.3 over REST calls the message `request`.
        if params["message"].is_null() && params["request"].is_object() {
            params["message"] = params["request"].take();
        }
        for (name, value) in seen.query.split('&').filter_map(|pair| pair.split_once('=')) {
            params[name] = json!(value);
        }
        let (mut tenant, mut words) = (String::new(), rest.split('/').collect::<Vec<_>>());
        let known = |word: &str| {
            word == "tasks" || word == "card" || word == "extendedAgentCard" || word.starts_with("message:")
        };
        // In 1.0 a tenant is an optional first segment.
        if protocol == Protocol::V1 && words.len() > 1 && !known(words[0]) {
            words.remove(0).clone_into(&mut tenant);
        }
        let (mut task, mut push) = ("", Value::Null);
        let action = match (seen.method.as_str(), words.as_slice()) {
            ("POST", ["message:send"]) => Send,
            ("POST", ["message:stream"]) => Stream,
            ("GET", ["tasks"]) if protocol == Protocol::V1 => List,
            ("GET", ["extendedAgentCard"]) if protocol == Protocol::V1 => ExtendedCard,
            ("GET", ["card"]) if protocol == Protocol::V03 => ExtendedCard,
            (method, ["tasks", word]) => match word.split_once(':') {
                Some((id, "cancel")) if method == "POST" => {
                    task = id;
                    Cancel
                }
                // The official SDK of 0.3 knows only the one.
                Some((_, "subscribe")) if method != "GET" && protocol == Protocol::V03 => {
                    return Err((place, Fault::NotAllowed));
                }
                Some((id, "subscribe")) => {
                    task = id;
                    Subscribe
                }
                None if method == "GET" => {
                    task = word;
                    Get
                }
                _ => return Err((place, Fault::MethodNotFound)),
            },
            (method, ["tasks", id, "pushNotificationConfigs"]) => {
                task = id;
                push = match protocol {
                    Protocol::V1 => params.clone(),
                    Protocol::V03 => params["config"]["pushNotificationConfig"].clone(),
                };
                if method == "POST" { SetPush } else { ListPush }
            }
            (method, ["tasks", id, "pushNotificationConfigs", config]) => {
                (task, push) = (id, json!(config));
                if method == "DELETE" { DeletePush } else { GetPush }
            }
            _ => return Err((place, Fault::MethodNotFound)),
        };
        let (id, binding, task) = (Value::Null, AgentBinding::Rest, task.to_owned());
        Ok(AgentCall { action, binding, protocol, id, tenant, task, push, params })
    }

    pub(crate) fn place(&self) -> ReplyTarget {
        ReplyTarget { binding: self.binding, protocol: self.protocol, id: self.id.clone() }
    }

    /// The message, in the shape of 1.0.
    pub(crate) fn message(&self) -> Value {
        let message = &self.params["message"];
        let parts = [&message["parts"], &message["content"]];
        let parts = parts.into_iter().find_map(Value::as_array).into_iter().flatten().map(part_of);
        let mut read = json!({
            "messageId": message["messageId"], "role": "ROLE_USER", "parts": parts.collect::<Vec<_>>(),
        });
        for name in ["metadata", "extensions", "referenceTaskIds"] {
            if !message[name].is_null() {
                read[name] = message[name].clone();
            }
        }
        read
    }

    /// Whether the answer waits for the task. In 1.0 it does unless told not to; in 0.3 it is the other way round by
    /// REST, where what is absent is false.
    pub(crate) fn waits(&self) -> bool {
        let configuration = &self.params["configuration"];
        match (self.protocol, self.binding) {
            (Protocol::V1, _) => configuration["returnImmediately"] != true,
            (Protocol::V03, AgentBinding::JsonRpc) => configuration["blocking"] != false,
            (Protocol::V03, AgentBinding::Rest) => configuration["blocking"] == true,
        }
    }
}

/// Names as JSON has them: those of protocol buffers, `like_this`, are as good.
fn camel(value: Value) -> Value {
    let rename = |name: &str| {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| {
            name + &word[..word.len().min(1)].to_ascii_uppercase() + &word[word.len().min(1)..]
        })
    };
    match value {
        Value::Object(members) => {
            let rest =
                |name: &str, value| if matches!(name, "metadata" | "data") { value } else { camel(value) };
            members.into_iter().map(|(name, value)| (rename(&name), rest(&name, value))).collect()
        }
        Value::Array(items) => items.into_iter().map(camel).collect(),
        other => other,
    }
}

/// A part, in the shape of 1.0.
fn part_of(part: &Value) -> Value {
    let file = &part["file"];
    if !file.is_object() {
        let data = if part["data"]["data"].is_null() { &part["data"] } else { &part["data"]["data"] };
        return match (part["text"].is_null(), data.is_null(), part["kind"].is_null()) {
            (false, ..) => json!({"text": part["text"]}),
            (_, false, _) => json!({"data": data}),
            _ => part.clone(),
        };
    }
    let first =
        |names: [&str; 2]| names.iter().map(|name| &file[*name]).find(|value| !value.is_null()).cloned();
    let (name, kind) = (file["name"].clone(), file["mimeType"].clone());
    match (first(["bytes", "fileWithBytes"]), first(["uri", "fileWithUri"])) {
        (Some(raw), _) => json!({"raw": raw, "filename": name, "mediaType": kind}),
        (None, url) => json!({"url": url, "filename": name, "mediaType": kind}),
    }
}

/// Destination of an answer.
#[derive(Clone)]
pub(crate) struct ReplyTarget {
    pub(crate) binding: AgentBinding,
    pub(crate) protocol: Protocol,
    pub(crate) id: Value,
}

/// An error, by its name in the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    TaskNotFound(String),
    NotCancelable,
    NoPush,
    Unsupported(String),
    NoExtendedCard,
    Version(String),
    InvalidParams(String),
    MethodNotFound,
    NotAllowed,
    Parse,
}
