//! What goes out.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::{Value, json};

use super::problem::Problem;

/// JSON.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Result<Response, Problem> {
    let text = serde_json::to_vec(body).map_err(|error| Problem::internal(error.to_string()))?;
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// JSON of which there are revisions.
pub(crate) fn tagged(status: StatusCode, body: &impl Serialize, revision: i64) -> Result<Response, Problem> {
    Ok(with_tag(json(status, body)?, revision))
}

/// That the caller has it already.
pub(crate) fn unchanged(revision: i64) -> Response {
    with_tag(empty(StatusCode::NOT_MODIFIED), revision)
}

pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn with_tag(mut response: Response, revision: i64) -> Response {
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{revision}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// A page of things, and where the next one begins.
pub(crate) fn page(name: &str, things: &impl Serialize, last: Option<&str>) -> Result<Response, Problem> {
    let next = last.map_or(Value::Null, |last| Value::String(URL_SAFE_NO_PAD.encode(last)));
    let things = serde_json::to_value(things).map_err(|error| Problem::internal(error.to_string()))?;
    json(StatusCode::OK, &json!({ name: things, "next": next }))
}

/// The same of things that are JSON already.
pub(crate) fn page_of(name: &str, things: &[String], last: Option<&str>) -> Response {
    let next = last.map_or(Value::Null, |last| Value::String(URL_SAFE_NO_PAD.encode(last)));
    let mut response =
        Response::new(Body::from(format!("{{\"{name}\":[{}],\"next\":{next}}}", things.join(","))));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The last thing of a page, from what was said of it.
pub(crate) fn after(cursor: &str) -> Result<String, Problem> {
    let wrong = || Problem::invalid("the cursor is not one that was given");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    if text.is_empty() || text.len() > 512 || text.chars().any(char::is_control) {
        return Err(wrong());
    }
    Ok(text)
}
