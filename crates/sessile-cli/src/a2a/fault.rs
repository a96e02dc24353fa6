//! Reads refusals, as JSON-RPC and both versions of HTTP+JSON say them.

use serde_json::Value;

use super::error::{A2aError, Refusal, RefusalKind};
use super::part::text;
use crate::http::Coming;

/// The codes of JSON-RPC and the names of version 1.0.
const KINDS: [(i64, &str, RefusalKind); 14] = [
    (-32001, "TASK_NOT_FOUND", RefusalKind::TaskNotFound),
    (-32002, "TASK_NOT_CANCELABLE", RefusalKind::TaskNotCancelable),
    (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", RefusalKind::PushNotSupported),
    (-32004, "UNSUPPORTED_OPERATION", RefusalKind::UnsupportedOperation),
    (-32005, "CONTENT_TYPE_NOT_SUPPORTED", RefusalKind::ContentTypeNotSupported),
    (-32006, "INVALID_AGENT_RESPONSE", RefusalKind::InvalidAgentResponse),
    (-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", RefusalKind::NoExtendedCard),
    (-32008, "EXTENSION_SUPPORT_REQUIRED", RefusalKind::ExtensionRequired),
    (-32009, "VERSION_NOT_SUPPORTED", RefusalKind::VersionNotSupported),
    (-32602, "INVALID_PARAMS", RefusalKind::InvalidParams),
    (-32600, "INVALID_REQUEST", RefusalKind::InvalidRequest),
    (-32601, "METHOD_NOT_FOUND", RefusalKind::MethodNotFound),
    (-32603, "INTERNAL_ERROR", RefusalKind::Internal),
    (-32700, "JSON_PARSE_ERROR", RefusalKind::InvalidRequest),
];

impl Refusal {
    /// The `error` of a JSON-RPC answer, or that of an HTTP+JSON answer of version 1.0.
    pub(super) fn read(error: &Value) -> Self {
        let code = error.get("code").and_then(Value::as_i64);
        let details = error.get("data").or_else(|| error.get("details"));
        let reason = details
            .and_then(Value::as_array)
            .and_then(|details| details.iter().find_map(|detail| text(detail, &["reason"])));
        let by_name = KINDS.iter().find(|(_, name, _)| Some(*name) == reason.as_deref());
        let by_code = || KINDS.iter().find(|(number, ..)| Some(*number) == code);
        let kind = by_name.or_else(by_code).map_or(RefusalKind::Other, |(.., kind)| *kind);
        Refusal::new(kind, code, text(error, &["message"]).unwrap_or_default(), reason)
    }

    fn new(kind: RefusalKind, code: Option<i64>, message: String, reason: Option<String>) -> Self {
        // No version has a code for this, and servers say it under different ones.
        let may_be_terminal = matches!(
            kind,
            RefusalKind::InvalidParams
                | RefusalKind::InvalidRequest
                | RefusalKind::UnsupportedOperation
                | RefusalKind::Other
        );
        let lower = message.to_ascii_lowercase();
        let is_terminal = may_be_terminal && lower.contains("task") && lower.contains("terminal state");
        let kind = if is_terminal { RefusalKind::TaskTerminal } else { kind };
        Refusal { kind, code, message, reason }
    }

    /// What version 0.3 says by a status and a message.
    fn by_status(status: u16, message: String) -> Self {
        let kind = match status {
            404 if message.to_ascii_lowercase().contains("task") => RefusalKind::TaskNotFound,
            404 if message.to_ascii_lowercase().contains("card") => RefusalKind::NoExtendedCard,
            409 => RefusalKind::TaskNotCancelable,
            415 => RefusalKind::ContentTypeNotSupported,
            422 => RefusalKind::InvalidParams,
            501 if message.to_ascii_lowercase().contains("push") => RefusalKind::PushNotSupported,
            501 => RefusalKind::UnsupportedOperation,
            404 | 405 => RefusalKind::MethodNotFound,
            400 => RefusalKind::InvalidRequest,
            500.. => RefusalKind::Internal,
            _ => RefusalKind::Other,
        };
        Refusal::new(kind, None, message, None)
    }
}

/// What an answer with a status that is not 2xx means. Its body is read, as far as it makes sense.
pub(super) fn of_status(mut coming: Coming) -> A2aError {
    let (status, url) = (coming.status, coming.address().to_string());
    match status {
        401 | 403 => {
            let challenge = coming.header("www-authenticate");
            return A2aError::Unauthorized { status, url, challenge };
        }
        429 => return A2aError::RateLimited { retry_after: coming.retry_after() },
        _ => {}
    }
    let body = coming.read_all(1 << 20).ok().and_then(|body| sessile::json::from_slice::<Value>(&body).ok());
    let said = body.as_ref().and_then(|body| match body.get("error") {
        Some(error) if error.is_object() => Some(Refusal::read(error)),
        _ => Some(Refusal::by_status(status, text(body, &["message"])?)),
    });
    match said {
        Some(mut refusal) if refusal.kind == RefusalKind::Other => {
            refusal.kind = Refusal::by_status(status, refusal.message.clone()).kind;
            A2aError::Rpc(refusal)
        }
        Some(refusal) => A2aError::Rpc(refusal),
        None if status >= 500 => A2aError::Server { status, url },
        None => A2aError::Rpc(Refusal::by_status(status, format!("HTTP status {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_counts_before_a_number() {
        let details = json!([{"@type": "x"}, {"reason": "TASK_NOT_FOUND"}]);
        let error = json!({"code": 404, "message": "gone", "details": details});
        assert_eq!(Refusal::read(&error).kind, RefusalKind::TaskNotFound);
        let error = json!({"code": -32603, "message": "gone", "data": [{"reason": "TASK_NOT_FOUND"}]});
        assert_eq!(Refusal::read(&error).kind, RefusalKind::TaskNotFound);
        assert_eq!(Refusal::read(&json!({"code": -32009})).kind, RefusalKind::VersionNotSupported);
        assert_eq!(Refusal::read(&json!({"code": "x"})).kind, RefusalKind::Other);
    }

    #[test]
    fn an_ended_task_is_recognised_under_any_code() {
        for code in [-32600, -32602, -32004] {
            let error = json!({"code": code, "message": "Task 1 is in terminal state: completed"});
            assert_eq!(Refusal::read(&error).kind, RefusalKind::TaskTerminal);
        }
        let error = json!({"code": -32001, "message": "Task is in terminal state"});
        assert_eq!(Refusal::read(&error).kind, RefusalKind::TaskNotFound);
    }

    #[test]
    fn what_the_agent_says_is_cleaned_and_cut() {
        let error = json!({"code": 1, "message": format!("\u{1b}[31m{}", "x".repeat(10_000))});
        let told = A2aError::Rpc(Refusal::read(&error)).to_string();
        assert!(told.len() < 500 && !told.contains('\u{1b}'), "{told}");
    }
}
