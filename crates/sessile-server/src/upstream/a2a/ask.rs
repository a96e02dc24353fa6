//! What an agent is sent.

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::super::Fault;
use super::card::{Dialect, Interface};

/// A message to an agent.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) message_id: &'a str,
    pub(super) context_id: Option<&'a str>,
    pub(super) task_id: Option<&'a str>,
    pub(super) parts: &'a [String],
}

/// A request.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Option<Vec<u8>>,
}

impl Interface {
    /// Sends a message, and wants the reply as a stream or when it is complete.
    pub(super) fn message(&self, outgoing: &Outgoing<'_>, streams: bool) -> Result<Call, Fault> {
        let params = self.params(outgoing);
        if self.is_rest {
            let place = if streams { "message:stream" } else { "message:send" };
            let body = Some(Value::Object(params).to_string().into_bytes());
            return Ok(Call { method: Method::POST, path: self.below(place)?, body });
        }
        Ok(self.call(
            match (self.dialect, streams) {
                (Dialect::One, false) => "SendMessage",
                (Dialect::One, true) => "SendStreamingMessage",
                (_, false) => "message/send",
                (_, true) => "message/stream",
            },
            params,
        ))
    }

    /// Looks at a task.
    pub(super) fn look(&self, task: &str) -> Result<Call, Fault> {
        if self.is_rest {
            let path = self.below(&format!("tasks/{}", segment(task)?))?;
            return Ok(Call { method: Method::GET, path, body: None });
        }
        let method = if self.dialect == Dialect::One { "GetTask" } else { "tasks/get" };
        let params = [("id".to_owned(), task.into()), ("historyLength".to_owned(), 0.into())];
        Ok(self.call(method, Map::from_iter(params)))
    }

    fn call(&self, method: &str, mut params: Map<String, Value>) -> Call {
        if let Some(tenant) = &self.tenant {
            params.insert("tenant".to_owned(), tenant.as_str().into());
        }
        // There is one request on each connection.
        let body = json!({ "jsonrpc": "2.0", "id": "1", "method": method, "params": params });
        Call { method: Method::POST, path: self.path.clone(), body: Some(body.to_string().into_bytes()) }
    }

    fn params(&self, outgoing: &Outgoing<'_>) -> Map<String, Value> {
        let is_kinds = self.dialect == Dialect::Kinds;
        let part = |text: &String| match is_kinds {
            true => json!({ "kind": "text", "text": text }),
            false => json!({ "text": text }),
        };
        let parts: Vec<Value> = outgoing.parts.iter().map(part).collect();
        let mut message = json!({
            "messageId": outgoing.message_id,
            "role": if is_kinds { "user" } else { "ROLE_USER" },
        });
        if is_kinds {
            message["kind"] = "message".into();
        }
        for (key, id) in [("contextId", outgoing.context_id), ("taskId", outgoing.task_id)] {
            if let Some(id) = id {
                message[key] = id.into();
            }
        }
        let (content, within) =
            if self.dialect == Dialect::Buffers { ("content", "request") } else { ("parts", "message") };
        message[content] = parts.into();
        let wanted = match self.dialect {
            Dialect::One => json!({ "historyLength": 0, "returnImmediately": false }),
            _ => json!({ "historyLength": 0, "blocking": true }),
        };
        Map::from_iter([(within.to_owned(), message), ("configuration".to_owned(), wanted)])
    }

    fn below(&self, place: &str) -> Result<String, Fault> {
        let prefix = match (&self.tenant, self.dialect) {
            (Some(tenant), Dialect::One) => format!("/{}", segment(tenant)?),
            (None, Dialect::One) => String::new(),
            _ => "/v1".to_owned(),
        };
        Ok(format!("{}{prefix}/{place}", self.path.trim_end_matches('/')))
    }
}

/// An id as one piece of a path. It comes from an agent: it can neither leave the path nor end it.
fn segment(id: &str) -> Result<String, Fault> {
    let invalid = || Fault::Unusable("what it calls an id is none".to_owned());
    sessile_wire::percent::encode_segment(id).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(dialect: Dialect, is_rest: bool) -> Interface {
        Interface { dialect, is_rest, path: "/x/".to_owned(), tenant: None, streams: true }
    }

    fn body(call: &Call) -> Value {
        serde_json::from_slice(call.body.as_ref().unwrap()).unwrap()
    }

    #[test]
    fn a_message_is_written_as_each_dialect_wants_it() {
        let parts = ["hi".to_owned()];
        let outgoing = Outgoing { message_id: "m", context_id: Some("c"), task_id: Some("t"), parts: &parts };
        let call = interface(Dialect::Kinds, false).message(&outgoing, true).unwrap();
        let message = json!({
            "kind": "message", "messageId": "m", "contextId": "c", "taskId": "t", "role": "user",
            "parts": [{ "kind": "text", "text": "hi" }],
        });
        assert_eq!((call.path.as_str(), &body(&call)["method"]), ("/x/", &json!("message/stream")));
        assert_eq!(body(&call)["params"]["message"], message);
        let call = interface(Dialect::Buffers, true).message(&outgoing, false).unwrap();
        assert_eq!(call.path, "/x/v1/message:send");
        assert_eq!(body(&call)["request"]["content"], json!([{ "text": "hi" }]));
        let tenant = Some("a/b".to_owned());
        let one = Interface { tenant: tenant.clone(), ..interface(Dialect::One, true) };
        assert_eq!(one.message(&outgoing, true).unwrap().path, "/x/a%2Fb/message:stream");
        assert_eq!(one.look("../t?").unwrap().path, "/x/a%2Fb/tasks/..%2Ft%3F");
        let one = Interface { tenant, ..interface(Dialect::One, false) };
        assert_eq!(body(&one.look("t").unwrap())["params"]["tenant"], "a/b");
        assert!(one.look("..").is_ok() && interface(Dialect::One, true).look("..").is_err());
    }
}
