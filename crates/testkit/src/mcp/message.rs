//! One line of a server's output, which must be one message of JSON-RPC 2.0.

use serde_json::{Map, Value};

/// Kind of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum McpMessageKind {
    Request,
    Notification,
    Answer,
}

/// Message of a line and its kind, or the problem.
pub(super) fn parse(line: &[u8]) -> Result<(McpMessageKind, Value), String> {
    let value: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let Value::Object(members) = &value else {
        return Err("not an object; revisions since 2025-06-18 have no batches".to_owned());
    };
    let kind = kind(members)?;
    Ok((kind, value))
}

fn kind(members: &Map<String, Value>) -> Result<McpMessageKind, String> {
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err("jsonrpc is not \"2.0\"".to_owned());
    }
    let id = members.get("id");
    if id.is_some_and(|id| !(id.is_string() || id.is_i64() || id.is_u64() || id.is_null())) {
        return Err("the id is neither a string nor an integer".to_owned());
    }
    let (kind, known): (McpMessageKind, &[&str]) = if let Some(method) = members.get("method") {
        if !method.is_string() {
            return Err("the method is not a string".to_owned());
        }
        if members.get("params").is_some_and(|params| !params.is_object()) {
            return Err("params is not an object".to_owned());
        }
        match id {
            None => (McpMessageKind::Notification, &["jsonrpc", "method", "params"]),
            Some(Value::Null) => return Err("the id of a request is null".to_owned()),
            Some(_) => (McpMessageKind::Request, &["jsonrpc", "id", "method", "params"]),
        }
    } else if let Some(result) = members.get("result") {
        if !result.is_object() {
            return Err("the result is not an object".to_owned());
        }
        if id.is_none_or(Value::is_null) {
            return Err("a result without an id".to_owned());
        }
        (McpMessageKind::Answer, &["jsonrpc", "id", "result"])
    } else if let Some(error) = members.get("error") {
        if !(error["code"].is_i64() && error["message"].is_string()) {
            return Err("the error has no integer code or no message".to_owned());
        }
        // Without an id: what was received could not be read so far.
        (McpMessageKind::Answer, &["jsonrpc", "id", "error"])
    } else {
        return Err("neither method nor result nor error".to_owned());
    };
    // Clients that validate strictly refuse unknown members.
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("{name} does not belong there")),
        None => Ok(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::{McpMessageKind, parse};

    #[test]
    fn messages_are_classified() {
        for (line, kind) in [
            (r#"{"jsonrpc": "2.0", "id": "a", "method": "ping"}"#, McpMessageKind::Request),
            (
                r#"{"jsonrpc": "2.0", "method": "notifications/message", "params": {}}"#,
                McpMessageKind::Notification,
            ),
            (r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#, McpMessageKind::Answer),
            (
                r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": ""}}"#,
                McpMessageKind::Answer,
            ),
            (
                r#"{"jsonrpc": "2.0", "error": {"code": -32700, "message": "", "data": 1}}"#,
                McpMessageKind::Answer,
            ),
        ] {
            assert_eq!(parse(line.as_bytes()).expect("a message").0, kind, "{line}");
        }
    }

    #[test]
    fn invalid_message_is_refused() {
        for line in [
            "",
            "hello",
            "[]",
            r#"{"id": 1, "result": {}}"#,
            r#"{"jsonrpc": "2.0", "id": 1}"#,
            r#"{"jsonrpc": "2.0", "id": 1.5, "result": {}}"#,
            r#"{"jsonrpc": "2.0", "result": {}}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "result": 3}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": ""}}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "error": {"code": "1", "message": ""}}"#,
            r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#,
            r#"{"jsonrpc": "2.0", "method": "x", "params": []}"#,
            r#"{"jsonrpc": "2.0", "method": "x"} {"jsonrpc": "2.0", "method": "x"}"#,
        ] {
            assert!(parse(line.as_bytes()).is_err(), "{line}");
        }
        assert!(parse(b"{\"jsonrpc\": \"2.0\", \"method\": \"\xff\"}").is_err());
    }
}
