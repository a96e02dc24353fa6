//! What can be asked of an agent, and the request that asks it.

use serde_json::{Map, Value, json};
use sessile::conversation::TaskState;
use sessile_wire::percent;
use ureq::http::Method;

use super::dialect::Dialect;
use super::error::{A2aError, Refusal, RefusalKind};
use super::interface::{Binding, Interface};
use super::outgoing::{Outgoing, PushConfig, maybe};
use super::state::in_capitals;
use crate::http::form;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation<'a> {
    Send(&'a Outgoing),
    Stream(&'a Outgoing),
    Subscribe(&'a str),
    Task { id: &'a str, history_length: Option<u32> },
    Tasks(&'a TaskFilter),
    Cancel(&'a str),
    PushSet { task: &'a str, config: &'a PushConfig },
    PushGet { task: &'a str, config: &'a str },
    PushList { task: &'a str },
    PushRemove { task: &'a str, config: &'a str },
    ExtendedCard,
}

/// Which tasks are listed.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskFilter {
    /// Only those of this context.
    pub(crate) context_id: Option<String>,
    /// Only those in this state.
    pub(crate) state: Option<TaskState>,
    /// At most so many at a time.
    pub(crate) page_size: Option<u32>,
    /// Where the last page ended.
    pub(crate) page_token: Option<String>,
    /// How many messages of each.
    pub(crate) history_length: Option<u32>,
    /// With their results.
    pub(crate) include_artifacts: bool,
}

/// A request, apart from who sends it.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) body: Option<Value>,
}

/// The id of every request: there is one on each connection.
const ID: &str = "1";

impl Operation<'_> {
    /// Whether the reply is a stream.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self, Operation::Stream(_) | Operation::Subscribe(_))
    }

    /// The request for an interface that is supported.
    pub(super) fn call(&self, interface: &Interface, dialect: Dialect) -> Result<Call, A2aError> {
        match interface.binding {
            Binding::Rest => self.rest(interface, dialect),
            _ => {
                let method = self.method(dialect)?;
                let mut params = self.params(dialect);
                if let Some(tenant) = &interface.tenant {
                    params.insert("tenant".to_owned(), tenant.as_str().into());
                }
                let body = json!({"jsonrpc": "2.0", "id": ID, "method": method, "params": params});
                Ok(Call { method: Method::POST, url: interface.url.clone(), body: Some(body) })
            }
        }
    }

    fn method(&self, dialect: Dialect) -> Result<&'static str, A2aError> {
        let (one, old) = match self {
            Operation::Send(_) => ("SendMessage", "message/send"),
            Operation::Stream(_) => ("SendStreamingMessage", "message/stream"),
            Operation::Subscribe(_) => ("SubscribeToTask", "tasks/resubscribe"),
            Operation::Task { .. } => ("GetTask", "tasks/get"),
            Operation::Tasks(_) => ("ListTasks", ""),
            Operation::Cancel(_) => ("CancelTask", "tasks/cancel"),
            Operation::PushSet { .. } => {
                ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set")
            }
            Operation::PushGet { .. } => {
                ("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get")
            }
            Operation::PushList { .. } => {
                ("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list")
            }
            Operation::PushRemove { .. } => {
                ("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete")
            }
            Operation::ExtendedCard => ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"),
        };
        match (dialect, old) {
            (Dialect::One, _) => Ok(one),
            (_, "") => Err(absent()),
            (_, old) => Ok(old),
        }
    }

    fn params(&self, dialect: Dialect) -> Map<String, Value> {
        let is_one = dialect == Dialect::One;
        let params = match self {
            Operation::Send(outgoing) | Operation::Stream(outgoing) => outgoing.to_json(dialect),
            Operation::Subscribe(id) | Operation::Cancel(id) => json!({ "id": id }),
            Operation::Task { id, history_length } => {
                let mut params = Map::from_iter([("id".to_owned(), (*id).into())]);
                maybe(&mut params, "historyLength", *history_length);
                params.into()
            }
            Operation::Tasks(filter) => filter.to_json(),
            Operation::PushSet { task, config } if is_one => {
                let mut params = config.to_json(dialect);
                params["taskId"] = (*task).into();
                params
            }
            Operation::PushSet { task, config } => {
                json!({ "taskId": task, "pushNotificationConfig": config.to_json(dialect) })
            }
            Operation::PushGet { task, config } | Operation::PushRemove { task, config } if is_one => {
                json!({ "taskId": task, "id": config })
            }
            Operation::PushGet { task, config } | Operation::PushRemove { task, config } => {
                json!({ "id": task, "pushNotificationConfigId": config })
            }
            Operation::PushList { task } if is_one => json!({ "taskId": task }),
            Operation::PushList { task } => json!({ "id": task }),
            Operation::ExtendedCard => json!({}),
        };
        match params {
            Value::Object(params) => params,
            _ => Map::new(),
        }
    }

    fn rest(&self, interface: &Interface, dialect: Dialect) -> Result<Call, A2aError> {
        let is_one = dialect == Dialect::One;
        let mut query: Vec<(String, String)> = Vec::new();
        let configs =
            |task: &str| Ok::<_, A2aError>(format!("/tasks/{}/pushNotificationConfigs", segment(task)?));
        let config = |task: &str, id: &str| Ok::<_, A2aError>(format!("{}/{}", configs(task)?, segment(id)?));
        let (method, path, body) = match self {
            Operation::Send(_) => (Method::POST, "/message:send".to_owned(), Some(self.params(dialect))),
            Operation::Stream(_) => (Method::POST, "/message:stream".to_owned(), Some(self.params(dialect))),
            Operation::Subscribe(id) => {
                // Servers of version 1.0 take both; the specification has POST, version 0.3 only GET.
                let method = if is_one { Method::POST } else { Method::GET };
                let body = is_one.then(Map::new);
                (method, format!("/tasks/{}:subscribe", segment(id)?), body)
            }
            Operation::Task { id, history_length } => {
                query.extend(history_length.map(|length| ("historyLength".to_owned(), length.to_string())));
                (Method::GET, format!("/tasks/{}", segment(id)?), None)
            }
            Operation::Tasks(_) => {
                for (key, value) in self.params(dialect) {
                    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    query.push((key, value));
                }
                (Method::GET, "/tasks".to_owned(), None)
            }
            Operation::Cancel(id) => {
                let name = format!("tasks/{id}");
                let body =
                    if is_one { Map::new() } else { Map::from_iter([("name".to_owned(), name.into())]) };
                (Method::POST, format!("/tasks/{}:cancel", segment(id)?), Some(body))
            }
            Operation::PushSet { task, config } => {
                let body = if is_one { self.params(dialect) } else { old_push(task, config, dialect) };
                (Method::POST, configs(task)?, Some(body))
            }
            Operation::PushGet { task, config: id } => (Method::GET, config(task, id)?, None),
            Operation::PushList { task } => (Method::GET, configs(task)?, None),
            Operation::PushRemove { task, config: id } => (Method::DELETE, config(task, id)?, None),
            Operation::ExtendedCard if is_one => (Method::GET, "/extendedAgentCard".to_owned(), None),
            Operation::ExtendedCard => (Method::GET, "/card".to_owned(), None),
        };
        let prefix = match &interface.tenant {
            Some(tenant) if is_one => format!("/{}", segment(tenant)?),
            _ if is_one => String::new(),
            _ => "/v1".to_owned(),
        };
        let mut url = format!("{}{prefix}{path}", interface.url.trim_end_matches('/'));
        if !query.is_empty() {
            let pairs: Vec<_> = query.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            url = format!("{url}?{}", *form(&pairs));
        }
        Ok(Call { method, url, body: body.map(Value::Object) })
    }
}

impl TaskFilter {
    fn to_json(&self) -> Value {
        let mut params = Map::new();
        maybe(&mut params, "contextId", self.context_id.as_deref());
        maybe(&mut params, "status", self.state.map(in_capitals));
        maybe(&mut params, "pageSize", self.page_size);
        maybe(&mut params, "pageToken", self.page_token.as_deref());
        maybe(&mut params, "historyLength", self.history_length);
        maybe(&mut params, "includeArtifacts", self.include_artifacts.then_some(true));
        params.into()
    }
}

/// The names of version 0.3 are paths.
fn old_push(task: &str, config: &PushConfig, dialect: Dialect) -> Map<String, Value> {
    let id = config.id.as_deref().unwrap_or(task);
    let name = format!("tasks/{task}/pushNotificationConfigs/{id}");
    let inner = json!({ "name": name, "pushNotificationConfig": config.to_json(dialect) });
    let pairs = [("parent", format!("tasks/{task}").into()), ("configId", id.into()), ("config", inner)];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// What version 0.3 has no method for.
fn absent() -> A2aError {
    A2aError::Rpc(Refusal {
        kind: RefusalKind::UnsupportedOperation,
        code: None,
        message: "version 0.3 of the protocol has no such method".to_owned(),
        reason: None,
    })
}

/// An id as one piece of a path. It may come from an agent: it can neither leave the path nor end it.
fn segment(id: &str) -> Result<String, A2aError> {
    let invalid = || A2aError::Malformed(format!("{} is no id", sessile::text::quoted(id)));
    percent::encode_segment(id).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::a2a::ProtocolVersion;

    fn call(
        operation: &Operation<'_>,
        binding: Binding,
        version: ProtocolVersion,
    ) -> (String, Option<Value>) {
        let (url, tenant) = ("https://a.example/x/".to_owned(), Some("a/b".to_owned()));
        let interface = Interface { binding, url, version, tenant };
        let call = operation.call(&interface, interface.dialect().unwrap()).unwrap();
        (format!("{} {}", call.method, call.url), call.body)
    }

    #[test]
    fn a_tenant_stands_where_the_binding_wants_it() {
        let operation = Operation::Task { id: "t", history_length: Some(2) };
        let (line, body) = call(&operation, Binding::JsonRpc, ProtocolVersion::V1);
        let params = json!({"id": "t", "historyLength": 2, "tenant": "a/b"});
        let expected = json!({"jsonrpc": "2.0", "id": "1", "method": "GetTask", "params": params});
        assert_eq!((line.as_str(), body), ("POST https://a.example/x/", Some(expected)));
        let (line, body) = call(&operation, Binding::Rest, ProtocolVersion::V1);
        assert_eq!((line.as_str(), body), ("GET https://a.example/x/a%2Fb/tasks/t?historyLength=2", None));
        let (line, _) = call(&operation, Binding::Rest, ProtocolVersion::V03);
        assert_eq!(line, "GET https://a.example/x/v1/tasks/t?historyLength=2");
    }

    #[test]
    fn an_id_stays_within_its_place() {
        for (id, place) in
            [("../../admin", "..%2F..%2Fadmin"), ("a?b#c", "a%3Fb%23c"), ("\u{e9}\r\n", "%C3%A9%0D%0A")]
        {
            let (line, _) = call(&Operation::Cancel(id), Binding::Rest, ProtocolVersion::V1);
            assert_eq!(line, format!("POST https://a.example/x/a%2Fb/tasks/{place}:cancel"));
        }
        for id in ["", ".", ".."] {
            assert!(matches!(segment(id), Err(A2aError::Malformed(_))), "{id}");
        }
    }

    #[test]
    fn tasks_are_asked_for_by_what_is_known_of_them() {
        let filter = TaskFilter {
            context_id: Some("a b".to_owned()),
            state: Some(TaskState::InputRequired),
            page_size: Some(5),
            include_artifacts: true,
            ..TaskFilter::default()
        };
        let (line, _) = call(&Operation::Tasks(&filter), Binding::Rest, ProtocolVersion::V1);
        let query = "contextId=a+b&status=TASK_STATE_INPUT_REQUIRED&pageSize=5&includeArtifacts=true";
        assert_eq!(line, format!("GET https://a.example/x/a%2Fb/tasks?{query}"));
    }
}
