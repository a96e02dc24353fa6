//! Calls of tools: the API request of a call, and the tool result of its response.

use axum::body::Body;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderName, HeaderValue, Request, StatusCode, Uri, header};
use serde_json::{Map, Value, json};
use sessile::text::quoted;
use sessile_wire::percent;
use sessile_wire::service::ProblemDetails;

use super::arguments::{self, Argument, ArgumentTarget};
use super::tool::ServiceTool;
use crate::http::ApiProblem;

/// Headers of the client's request that are forwarded. Nothing else of it reaches the API.
const FORWARDED: &[HeaderName] = &[header::AUTHORIZATION];

/// API request of a call.
pub(super) fn request(
    tool: &ServiceTool,
    given: Map<String, Value>,
    headers: &axum::http::HeaderMap,
) -> Result<Request<Body>, ApiProblem> {
    let mut path = tool.path.to_owned();
    let mut query: Vec<String> =
        tool.always.iter().map(|(name, value)| format!("{name}={}", percent::encode(value))).collect();
    let mut members = Map::new();
    let mut body = None;
    let mut request = Request::new(Body::empty());
    for (argument, value) in arguments::parse(tool, given)? {
        let name = argument.name.as_str();
        match argument.target {
            ArgumentTarget::Path => {
                let text = value.into_text();
                // An empty segment would be another route.
                if text.is_empty() {
                    return Err(ApiProblem::invalid(format!("the argument {} is empty", quoted(name))));
                }
                path = path.replace(&format!("{{{name}}}"), &percent::encode(&text));
            }
            ArgumentTarget::Query => query.push(format!("{name}={}", percent::encode(&value.into_text()))),
            ArgumentTarget::Member => {
                members.insert(name.to_owned(), value.into());
            }
            ArgumentTarget::Body => body = Some(value.into()),
            ArgumentTarget::IdempotencyKey => {
                let key = header_value(argument, &value.into_text())?;
                request.headers_mut().insert("idempotency-key", key);
            }
            ArgumentTarget::Revision => {
                let (header, tag) = match value.into_text().as_str() {
                    "0" => (header::IF_NONE_MATCH, "*".to_owned()),
                    revision => (header::IF_MATCH, format!("\"{revision}\"")),
                };
                request.headers_mut().insert(header, header_value(argument, &tag)?);
            }
        }
    }
    if !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    // Arguments are percent-encoded, so only the length can be wrong.
    let target = PathAndQuery::try_from(path)
        .map_err(|_| ApiProblem::invalid("the arguments are too long for a request"))?;
    *request.uri_mut() = Uri::from(target);
    *request.method_mut() = tool.method.clone();
    for name in FORWARDED {
        // All of them: the API refuses two, and must not be shown only the first.
        for value in headers.get_all(name) {
            request.headers_mut().append(name, value.clone());
        }
    }
    // A route with a body gets one even if every member is omitted.
    let has_members = tool.arguments.iter().any(|argument| argument.target == ArgumentTarget::Member);
    if let Some(body) = body.or_else(|| has_members.then_some(Value::Object(members))) {
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.body_mut() = Body::from(body.to_string());
    }
    Ok(request)
}

fn header_value(argument: &Argument, text: &str) -> Result<HeaderValue, ApiProblem> {
    HeaderValue::from_str(text).map_err(|_| {
        ApiProblem::invalid(format!(
            "the argument {} has characters that it cannot have",
            quoted(&argument.name)
        ))
    })
}

/// Tool result of an API response.
pub(super) fn tool_result(status: StatusCode, body: &[u8]) -> Value {
    let text = String::from_utf8_lossy(body);
    if !status.is_success() {
        let problem = serde_json::from_str(&text).unwrap_or_else(|error| {
            // Every failure of the API has problem details for its body.
            ApiProblem::internal(error.to_string()).details()
        });
        return error_result(&problem);
    }
    if text.is_empty() {
        return json!({ "content": [{ "type": "text", "text": "done" }], "isError": false });
    }
    // Messages in the body are untrusted, although the body itself is ours.
    let content: Value = sessile::json::from_str(&text).unwrap_or_default();
    json!({ "content": [{ "type": "text", "text": text }], "structuredContent": content, "isError": false })
}

/// Tool result of a problem. Clients validate structured content against the output schema even if it is an error, so an
/// error is JSON in a text, as in the MCP server on standard input and output.
pub(super) fn error_result(problem: &ProblemDetails) -> Value {
    let error = json!({
        "code": problem.code,
        "message": problem.detail,
        "status": problem.status,
        "retryable": problem.retryable,
        "retry_after_ms": problem.retry_after_ms,
    });
    json!({ "content": [{ "type": "text", "text": json!({ "error": error }).to_string() }], "isError": true })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::super::tool;
    use super::*;

    fn made(name: &str, given: Value) -> Result<Request<Body>, String> {
        let tools = tool::all();
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer x"));
        headers.insert(header::COOKIE, HeaderValue::from_static("a=b"));
        let given: Map<String, Value> = serde_json::from_value(given).unwrap();
        request(tool, given, &headers).map_err(|problem| problem.details().detail)
    }

    #[test]
    fn tool_arguments_reach_path_query_headers_and_body() {
        let given = json!({ "session": "../locks?x=1#", "key": "a/b \u{e9}%", "value": null, "if_revision": 0,
                            "idempotency_key": "k1" });
        let request = made("set_state", given).unwrap();
        assert_eq!(request.method(), "PUT");
        assert_eq!(request.uri().to_string(), "/v1/sessions/..%2Flocks%3Fx%3D1%23/state/a%2Fb%20%C3%A9%25");
        let headers = request.headers();
        assert_eq!(
            (&headers["idempotency-key"], &headers["if-none-match"]),
            (&"k1".parse().unwrap(), &"*".parse().unwrap())
        );
        assert_eq!(headers["authorization"], "Bearer x");
        assert!(!headers.contains_key("cookie"));
        let given = json!({ "session": "s", "key": "k", "value": 1, "if_revision": 3 });
        let request = made("set_state", given).unwrap();
        assert_eq!(request.headers()["if-match"], "\"3\"");
        let request = made("release_lock", json!({ "name": "{token}", "token": 7 })).unwrap();
        assert_eq!(request.uri().to_string(), "/v1/locks/%7Btoken%7D?token=7");
        let request = made("send_message", json!({ "session": "s", "messages": [], "wait_ms": 5 })).unwrap();
        assert_eq!(request.uri().to_string(), "/v1/sessions/s/messages?reply=true&wait_ms=5");
    }

    #[test]
    fn invalid_tool_arguments_are_refused() {
        let refusal = |name: &str, given: Value| made(name, given).unwrap_err();
        assert_eq!(refusal("stop_session", json!({})), "stop_session requires the argument \"session\"");
        assert_eq!(refusal("stop_session", json!({ "session": null })), refusal("stop_session", json!({})));
        assert_eq!(
            refusal("set_state", json!({ "session": "s", "key": "k" })),
            "set_state requires the argument \"value\""
        );
        assert_eq!(
            refusal("stop_session", json!({ "session": 7 })),
            "the argument \"session\" must be text, not 7"
        );
        assert_eq!(
            refusal("list_locks", json!({ "limit": "7" })),
            "the argument \"limit\" must be integer, not \"7\""
        );
        assert_eq!(
            refusal("get_state", json!({ "session": "s", "key": "" })),
            "the argument \"key\" is empty"
        );
        assert!(refusal("stop_session", json!({ "sesion": "x" })).contains("did you mean \"session\"?"));
        assert!(refusal("send_message", json!({ "reply": "false" })).contains("takes no argument"));
        let long = "x".repeat(200_000);
        assert!(refusal("stop_session", json!({ "session": long })).contains("too long"));
        let key = json!({ "idempotency_key": "a\nb" });
        assert!(refusal("start_session", key).contains("characters"));
    }
}
