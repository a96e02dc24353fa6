//! Errors that an agent returns, over JSON-RPC and both versions of HTTP+JSON.

use serde_json::Value;

use super::field::string;

/// Error that an agent returned in place of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// Meaning of the error.
    pub kind: RpcErrorKind,
    /// Numeric code, if the agent sent one.
    pub code: Option<i64>,
    /// Message of the agent.
    pub message: String,
    /// Name of the error, such as `TASK_NOT_FOUND`.
    pub reason: Option<String>,
}

/// Meaning of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpcErrorKind {
    /// Task not found.
    TaskNotFound,
    /// Task that cannot be canceled.
    TaskNotCancelable,
    /// Task that has ended and takes no further message.
    TaskTerminal,
    /// Agent without push notifications.
    PushNotSupported,
    /// Operation that the agent does not support.
    UnsupportedOperation,
    /// Media type that the agent neither accepts nor produces.
    ContentTypeNotSupported,
    /// Unusable response of the program behind the agent.
    InvalidAgentResponse,
    /// Agent without an extended card.
    NoExtendedCard,
    /// Extension that the agent requires.
    ExtensionRequired,
    /// Version of the protocol that the agent does not support.
    VersionNotSupported,
    /// Invalid parameters.
    InvalidParams,
    /// Invalid request.
    InvalidRequest,
    /// Unknown method.
    MethodNotFound,
    /// Internal error of the agent.
    Internal,
    /// Any other error.
    Other,
}

/// Codes of JSON-RPC and names of version 1.0.
const KINDS: [(i64, &str, RpcErrorKind); 14] = [
    (-32001, "TASK_NOT_FOUND", RpcErrorKind::TaskNotFound),
    (-32002, "TASK_NOT_CANCELABLE", RpcErrorKind::TaskNotCancelable),
    (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", RpcErrorKind::PushNotSupported),
    (-32004, "UNSUPPORTED_OPERATION", RpcErrorKind::UnsupportedOperation),
    (-32005, "CONTENT_TYPE_NOT_SUPPORTED", RpcErrorKind::ContentTypeNotSupported),
    (-32006, "INVALID_AGENT_RESPONSE", RpcErrorKind::InvalidAgentResponse),
    (-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", RpcErrorKind::NoExtendedCard),
    (-32008, "EXTENSION_SUPPORT_REQUIRED", RpcErrorKind::ExtensionRequired),
    (-32009, "VERSION_NOT_SUPPORTED", RpcErrorKind::VersionNotSupported),
    (-32602, "INVALID_PARAMS", RpcErrorKind::InvalidParams),
    (-32600, "INVALID_REQUEST", RpcErrorKind::InvalidRequest),
    (-32601, "METHOD_NOT_FOUND", RpcErrorKind::MethodNotFound),
    (-32603, "INTERNAL_ERROR", RpcErrorKind::Internal),
    (-32700, "JSON_PARSE_ERROR", RpcErrorKind::InvalidRequest),
];

impl RpcError {
    /// Parses the `error` object of a response, of JSON-RPC or of HTTP+JSON in version 1.0.
    pub fn read(error: &Value) -> Self {
        let code = error.get("code").and_then(Value::as_i64);
        // JSON-RPC has the details in `data`, HTTP+JSON in `details`.
        let details = error.get("data").or_else(|| error.get("details"));
        let details = details.and_then(Value::as_array).into_iter().flatten();
        let reason = details.into_iter().find_map(|detail| string(detail, &["reason"]));
        // The name first: over HTTP+JSON the code is only an HTTP status.
        let by_name = KINDS.iter().find(|(_, name, _)| Some(*name) == reason.as_deref());
        let by_code = || KINDS.iter().find(|(number, ..)| Some(*number) == code);
        let kind = by_name.or_else(by_code).map_or(RpcErrorKind::Other, |(.., kind)| *kind);
        RpcError::new(kind, code, string(error, &["message"]).unwrap_or_default(), reason)
    }

    fn new(kind: RpcErrorKind, code: Option<i64>, message: String, reason: Option<String>) -> Self {
        // No version has a code for this, and servers use different ones.
        let may_be_terminal = matches!(
            kind,
            RpcErrorKind::InvalidParams
                | RpcErrorKind::InvalidRequest
                | RpcErrorKind::UnsupportedOperation
                | RpcErrorKind::Other
        );
        let lower = message.to_ascii_lowercase();
        let is_terminal = may_be_terminal && lower.contains("task") && lower.contains("terminal state");
        let kind = if is_terminal { RpcErrorKind::TaskTerminal } else { kind };
        RpcError { kind, code, message, reason }
    }

    /// Error of version 0.3 over HTTP+JSON: an HTTP status and a message.
    pub fn of_status(status: u16, message: String) -> Self {
        let kind = match status {
            // Version 0.3 over HTTP+JSON has no codes, so the words of the message decide.
            404 if message.to_ascii_lowercase().contains("task") => RpcErrorKind::TaskNotFound,
            404 if message.to_ascii_lowercase().contains("card") => RpcErrorKind::NoExtendedCard,
            409 => RpcErrorKind::TaskNotCancelable,
            415 => RpcErrorKind::ContentTypeNotSupported,
            422 => RpcErrorKind::InvalidParams,
            501 if message.to_ascii_lowercase().contains("push") => RpcErrorKind::PushNotSupported,
            501 => RpcErrorKind::UnsupportedOperation,
            404 | 405 => RpcErrorKind::MethodNotFound,
            400 => RpcErrorKind::InvalidRequest,
            500.. => RpcErrorKind::Internal,
            _ => RpcErrorKind::Other,
        };
        RpcError::new(kind, None, message, None)
    }

    /// Parses the error of a response by its HTTP status and body. Returns `None` if the body holds none.
    pub fn of_response(status: u16, body: &Value) -> Option<Self> {
        let mut error = match body.get("error") {
            Some(error) if error.is_object() => RpcError::read(error),
            _ => RpcError::of_status(status, string(body, &["message"])?),
        };
        // An unknown code may still have a telling HTTP status.
        if error.kind == RpcErrorKind::Other {
            error.kind = RpcError::of_status(status, error.message.clone()).kind;
        }
        Some(error)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn name_takes_precedence_over_code() {
        let details = json!([{"@type": "x"}, {"reason": "TASK_NOT_FOUND"}]);
        let error = json!({"code": 404, "message": "gone", "details": details});
        assert_eq!(RpcError::read(&error).kind, RpcErrorKind::TaskNotFound);
        let error = json!({"code": -32603, "message": "gone", "data": [{"reason": "TASK_NOT_FOUND"}]});
        assert_eq!(RpcError::read(&error).kind, RpcErrorKind::TaskNotFound);
        assert_eq!(RpcError::read(&json!({"code": -32009})).kind, RpcErrorKind::VersionNotSupported);
        assert_eq!(RpcError::read(&json!({"code": "x"})).kind, RpcErrorKind::Other);
    }

    #[test]
    fn terminal_task_is_recognized_under_any_code() {
        for code in [-32600, -32602, -32004] {
            let error = json!({"code": code, "message": "Task 1 is in terminal state: completed"});
            assert_eq!(RpcError::read(&error).kind, RpcErrorKind::TaskTerminal);
        }
        let error = json!({"code": -32001, "message": "Task is in terminal state"});
        assert_eq!(RpcError::read(&error).kind, RpcErrorKind::TaskNotFound);
    }
}
