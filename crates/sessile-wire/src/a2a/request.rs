//! Requests to an agent, and their mapping to HTTP.

use std::fmt;

use serde_json::{Map, Value, json};

use super::dialect::Dialect;
use super::field::insert_some;
use super::interface::{AgentInterface, ProtocolBinding};
use super::outgoing::OutgoingMessage;
use super::push::PushConfig;
use super::task_state::TaskState;
use crate::percent::{encode_pairs, encode_segment};

/// Request to an agent.
#[derive(Debug, Clone, Copy)]
pub enum AgentRequest<'a> {
    /// Sends a message and waits for the reply.
    Send(&'a OutgoingMessage),
    /// Sends a message and streams the reply.
    Stream(&'a OutgoingMessage),
    /// Streams the events of a task.
    Subscribe(&'a str),
    /// Gets a task.
    Task {
        /// Id of the task.
        id: &'a str,
        /// Maximum number of earlier messages.
        history_length: Option<u32>,
    },
    /// Lists tasks.
    Tasks(&'a TaskFilter),
    /// Cancels a task.
    Cancel(&'a str),
    /// Registers a push notification.
    PushSet {
        /// Id of the task.
        task: &'a str,
        /// Receiver.
        config: &'a PushConfig,
    },
    /// Gets a push notification.
    PushGet {
        /// Id of the task.
        task: &'a str,
        /// Id of the registration.
        config: &'a str,
    },
    /// Lists the push notifications of a task.
    PushList {
        /// Id of the task.
        task: &'a str,
        /// Token of the page.
        page_token: Option<&'a str>,
    },
    /// Removes a push notification.
    PushRemove {
        /// Id of the task.
        task: &'a str,
        /// Id of the registration.
        config: &'a str,
    },
    /// Gets the card for authenticated callers.
    ExtendedCard,
}

/// Filter and page of a list of tasks.
#[derive(Debug, Clone, Default)]
pub struct TaskFilter {
    /// Context of the tasks.
    pub context_id: Option<String>,
    /// State of the tasks.
    pub state: Option<TaskState>,
    /// Maximum number of tasks in a page.
    pub page_size: Option<u32>,
    /// Token of the page.
    pub page_token: Option<String>,
    /// Maximum number of earlier messages of each task.
    pub history_length: Option<u32>,
    /// Whether tasks come with their artifacts.
    pub include_artifacts: bool,
}

/// HTTP request, without the headers.
#[derive(Debug)]
pub struct HttpCall {
    /// Method.
    pub method: HttpMethod,
    /// URL; relative if that of the interface is.
    pub url: String,
    /// Body.
    pub body: Option<Value>,
}

/// HTTP method of a request to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// `GET`.
    Get,
    /// `POST`.
    Post,
    /// `DELETE`.
    Delete,
}

impl HttpMethod {
    /// Name of the method.
    pub fn as_str(self) -> &'static str {
        match self {
            HttpMethod::Get => "GET",
            HttpMethod::Post => "POST",
            HttpMethod::Delete => "DELETE",
        }
    }
}

/// Reason why a request cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// Id that cannot be a segment of a path.
    InvalidId(String),
    /// Request that version 0.3 does not have.
    Unsupported,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::InvalidId(id) => write!(f, "invalid id {id:?}"),
            CallError::Unsupported => f.write_str("version 0.3 of the protocol has no such method"),
        }
    }
}

impl std::error::Error for CallError {}

/// Id of every JSON-RPC request: each has a connection of its own.
const RPC_ID: &str = "1";

impl AgentRequest<'_> {
    /// Whether the reply is a stream.
    pub fn is_stream(&self) -> bool {
        matches!(self, AgentRequest::Stream(_) | AgentRequest::Subscribe(_))
    }

    /// HTTP request for a supported interface.
    pub fn call(&self, interface: &AgentInterface, dialect: Dialect) -> Result<HttpCall, CallError> {
        match interface.binding {
            ProtocolBinding::Rest => self.rest(interface, dialect),
            _ => {
                let method = self.method(dialect)?;
                let mut params = self.params(dialect);
                if let Some(tenant) = &interface.tenant {
                    params.insert("tenant".to_owned(), tenant.as_str().into());
                }
                let body = json!({"jsonrpc": "2.0", "id": RPC_ID, "method": method, "params": params});
                Ok(HttpCall { method: HttpMethod::Post, url: interface.url.clone(), body: Some(body) })
            }
        }
    }

    fn method(&self, dialect: Dialect) -> Result<&'static str, CallError> {
        let (one, old) = match self {
            AgentRequest::Send(_) => ("SendMessage", "message/send"),
            AgentRequest::Stream(_) => ("SendStreamingMessage", "message/stream"),
            AgentRequest::Subscribe(_) => ("SubscribeToTask", "tasks/resubscribe"),
            AgentRequest::Task { .. } => ("GetTask", "tasks/get"),
            // Version 0.3 has no list of tasks over JSON-RPC.
            AgentRequest::Tasks(_) => ("ListTasks", ""),
            AgentRequest::Cancel(_) => ("CancelTask", "tasks/cancel"),
            AgentRequest::PushSet { .. } => {
                ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set")
            }
            AgentRequest::PushGet { .. } => {
                ("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get")
            }
            AgentRequest::PushList { .. } => {
                ("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list")
            }
            AgentRequest::PushRemove { .. } => {
                ("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete")
            }
            AgentRequest::ExtendedCard => ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"),
        };
        match (dialect, old) {
            (Dialect::V1, _) => Ok(one),
            (_, "") => Err(CallError::Unsupported),
            (_, old) => Ok(old),
        }
    }

    fn params(&self, dialect: Dialect) -> Map<String, Value> {
        let is_one = dialect == Dialect::V1;
        let params = match self {
            AgentRequest::Send(outgoing) | AgentRequest::Stream(outgoing) => outgoing.to_json(dialect),
            AgentRequest::Subscribe(id) | AgentRequest::Cancel(id) => json!({ "id": id }),
            AgentRequest::Task { id, history_length } => {
                let mut params = Map::from_iter([("id".to_owned(), (*id).into())]);
                insert_some(&mut params, "historyLength", *history_length);
                params.into()
            }
            AgentRequest::Tasks(filter) => filter.to_json(),
            AgentRequest::PushSet { task, config } if is_one => {
                let mut params = config.to_json(dialect);
                params["taskId"] = (*task).into();
                params
            }
            AgentRequest::PushSet { task, config } => {
                json!({ "taskId": task, "pushNotificationConfig": config.to_json(dialect) })
            }
            AgentRequest::PushGet { task, config } | AgentRequest::PushRemove { task, config } if is_one => {
                json!({ "taskId": task, "id": config })
            }
            AgentRequest::PushGet { task, config } | AgentRequest::PushRemove { task, config } => {
                json!({ "id": task, "pushNotificationConfigId": config })
            }
            AgentRequest::PushList { task, page_token } if is_one => {
                let mut params = Map::from_iter([("taskId".to_owned(), (*task).into())]);
                insert_some(&mut params, "pageToken", *page_token);
                params.into()
            }
            AgentRequest::PushList { task, .. } => json!({ "id": task }),
            AgentRequest::ExtendedCard => json!({}),
        };
        match params {
            Value::Object(params) => params,
            _ => Map::new(),
        }
    }

    fn rest(&self, interface: &AgentInterface, dialect: Dialect) -> Result<HttpCall, CallError> {
        let is_one = dialect == Dialect::V1;
        let mut query: Vec<(String, String)> = Vec::new();
        let configs =
            |task: &str| Ok::<_, CallError>(format!("/tasks/{}/pushNotificationConfigs", segment(task)?));
        let config =
            |task: &str, id: &str| Ok::<_, CallError>(format!("{}/{}", configs(task)?, segment(id)?));
        let (method, path, body) = match self {
            AgentRequest::Send(_) => {
                (HttpMethod::Post, "/message:send".to_owned(), Some(self.params(dialect)))
            }
            AgentRequest::Stream(_) => {
                (HttpMethod::Post, "/message:stream".to_owned(), Some(self.params(dialect)))
            }
            AgentRequest::Subscribe(id) => {
                // Servers of version 1.0 accept both; the specification has POST, version 0.3 only GET.
                let method = if is_one { HttpMethod::Post } else { HttpMethod::Get };
                let body = is_one.then(Map::new);
                (method, format!("/tasks/{}:subscribe", segment(id)?), body)
            }
            AgentRequest::Task { id, history_length } => {
                query.extend(history_length.map(|length| ("historyLength".to_owned(), length.to_string())));
                (HttpMethod::Get, format!("/tasks/{}", segment(id)?), None)
            }
            AgentRequest::Tasks(_) => {
                for (key, value) in self.params(dialect) {
                    // Strings without their JSON quotes.
                    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    query.push((key, value));
                }
                (HttpMethod::Get, "/tasks".to_owned(), None)
            }
            AgentRequest::Cancel(id) => {
                let name = format!("tasks/{id}");
                let body =
                    if is_one { Map::new() } else { Map::from_iter([("name".to_owned(), name.into())]) };
                (HttpMethod::Post, format!("/tasks/{}:cancel", segment(id)?), Some(body))
            }
            AgentRequest::PushSet { task, config } => {
                let body = if is_one { self.params(dialect) } else { old_push(task, config, dialect) };
                (HttpMethod::Post, configs(task)?, Some(body))
            }
            AgentRequest::PushGet { task, config: id } => (HttpMethod::Get, config(task, id)?, None),
            AgentRequest::PushList { task, page_token } => {
                query.extend(page_token.map(|token| ("pageToken".to_owned(), token.to_owned())));
                (HttpMethod::Get, configs(task)?, None)
            }
            AgentRequest::PushRemove { task, config: id } => (HttpMethod::Delete, config(task, id)?, None),
            AgentRequest::ExtendedCard if is_one => (HttpMethod::Get, "/extendedAgentCard".to_owned(), None),
            AgentRequest::ExtendedCard => (HttpMethod::Get, "/card".to_owned(), None),
        };
        let prefix = match &interface.tenant {
            Some(tenant) if is_one => format!("/{}", segment(tenant)?),
            _ if is_one => String::new(),
            // Paths of version 0.3 begin with `/v1`, those of version 1.0 do not.
            _ => "/v1".to_owned(),
        };
        // Cards write the URL with and without a slash at its end.
        let mut url = format!("{}{prefix}{path}", interface.url.trim_end_matches('/'));
        if !query.is_empty() {
            let pairs: Vec<_> = query.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            url = format!("{url}?{}", encode_pairs(&pairs));
        }
        Ok(HttpCall { method, url, body: body.map(Value::Object) })
    }
}

impl TaskFilter {
    fn to_json(&self) -> Value {
        let mut params = Map::new();
        insert_some(&mut params, "contextId", self.context_id.as_deref());
        insert_some(&mut params, "status", self.state.map(TaskState::to_v1));
        insert_some(&mut params, "pageSize", self.page_size);
        insert_some(&mut params, "pageToken", self.page_token.as_deref());
        insert_some(&mut params, "historyLength", self.history_length);
        insert_some(&mut params, "includeArtifacts", self.include_artifacts.then_some(true));
        params.into()
    }
}

/// Registration in version 0.3, whose names are paths.
fn old_push(task: &str, config: &PushConfig, dialect: Dialect) -> Map<String, Value> {
    // Version 0.3 requires an id here.
    let id = config.id.as_deref().unwrap_or(task);
    let name = format!("tasks/{task}/pushNotificationConfigs/{id}");
    let inner = json!({ "name": name, "pushNotificationConfig": config.to_json(dialect) });
    let pairs = [("parent", format!("tasks/{task}").into()), ("configId", id.into()), ("config", inner)];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Id as one segment of a path. It may come from an agent.
fn segment(id: &str) -> Result<String, CallError> {
    encode_segment(id).ok_or_else(|| CallError::InvalidId(id.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::a2a::ProtocolVersion;

    fn call(
        operation: &AgentRequest<'_>,
        binding: ProtocolBinding,
        version: ProtocolVersion,
    ) -> (String, Option<Value>) {
        let (url, tenant) = ("https://a.example/x/".to_owned(), Some("a/b".to_owned()));
        let interface = AgentInterface { binding, url, version, tenant };
        let call = operation.call(&interface, interface.dialect().unwrap()).unwrap();
        (format!("{} {}", call.method.as_str(), call.url), call.body)
    }

    #[test]
    fn tenant_position_depends_on_the_binding() {
        let operation = AgentRequest::Task { id: "t", history_length: Some(2) };
        let (line, body) = call(&operation, ProtocolBinding::JsonRpc, ProtocolVersion::V1);
        let params = json!({"id": "t", "historyLength": 2, "tenant": "a/b"});
        let expected = json!({"jsonrpc": "2.0", "id": "1", "method": "GetTask", "params": params});
        assert_eq!((line.as_str(), body), ("POST https://a.example/x/", Some(expected)));
        let (line, body) = call(&operation, ProtocolBinding::Rest, ProtocolVersion::V1);
        assert_eq!((line.as_str(), body), ("GET https://a.example/x/a%2Fb/tasks/t?historyLength=2", None));
        let (line, _) = call(&operation, ProtocolBinding::Rest, ProtocolVersion::V03);
        assert_eq!(line, "GET https://a.example/x/v1/tasks/t?historyLength=2");
    }

    #[test]
    fn id_cannot_leave_its_path_segment() {
        for (id, place) in
            [("../../admin", "..%2F..%2Fadmin"), ("a?b#c", "a%3Fb%23c"), ("\u{e9}\r\n", "%C3%A9%0D%0A")]
        {
            let (line, _) = call(&AgentRequest::Cancel(id), ProtocolBinding::Rest, ProtocolVersion::V1);
            assert_eq!(line, format!("POST https://a.example/x/a%2Fb/tasks/{place}:cancel"));
        }
        for id in ["", ".", ".."] {
            assert!(matches!(segment(id), Err(CallError::InvalidId(_))), "{id}");
        }
    }

    #[test]
    fn task_filter_becomes_a_query() {
        let filter = TaskFilter {
            context_id: Some("a b".to_owned()),
            state: Some(TaskState::InputRequired),
            page_size: Some(5),
            include_artifacts: true,
            ..TaskFilter::default()
        };
        let (line, _) = call(&AgentRequest::Tasks(&filter), ProtocolBinding::Rest, ProtocolVersion::V1);
        let query = "contextId=a+b&status=TASK_STATE_INPUT_REQUIRED&pageSize=5&includeArtifacts=true";
        assert_eq!(line, format!("GET https://a.example/x/a%2Fb/tasks?{query}"));
    }
}
