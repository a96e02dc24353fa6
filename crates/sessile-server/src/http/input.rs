//! Input of requests: bodies, parameters, headers. All are bounded, and a problem names the invalid part.

use std::pin::Pin;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, MatchedPath, Path};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use sessile::Code;
use sessile::text::shortened;
use sessile_wire::service::limits::DEFAULT_PAGE_ITEMS;

pub(crate) use sessile_wire::service::limits::MAX_INTEGER;

use super::app::AppState;
use super::problem::ApiProblem;
use crate::clock;
use crate::ids::{self, SessionId};

/// The pattern that a request's path fits.
pub(crate) fn route(extensions: &Extensions) -> Option<&str> {
    extensions.get::<MatchedPath>().map(MatchedPath::as_str)
}

/// Header that may occur at most once.
pub(crate) fn header<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, ApiProblem> {
    let mut given = headers.get_all(name).iter();
    let Some(value) = given.next() else { return Ok(None) };
    if given.next().is_some() {
        return Err(ApiProblem::usage(format!("duplicate header {name}")));
    }
    let text = value.to_str().map_err(|_| ApiProblem::usage(format!("header {name} is not plain text")))?;
    Ok(Some(text))
}

/// A new unique id.
pub(crate) fn new_id() -> Result<String, ApiProblem> {
    clock::new_id().map_err(|error| ApiProblem::internal(error.to_string()))
}

/// Id of a new session.
pub(crate) fn new_session_id() -> Result<SessionId, ApiProblem> {
    ids::new_session_id().map_err(|error| ApiProblem::internal(error.to_string()))
}

/// Id of a session in a path. An invalid id is a session that does not exist.
pub(crate) fn session(text: &str) -> Result<SessionId, ApiProblem> {
    text.parse().map_err(|_| ApiProblem::no_session())
}

/// Refuses a text that is empty, too long or has control characters.
pub(crate) fn text(what: &str, text: &str, longest: usize) -> Result<(), ApiProblem> {
    if text.is_empty() || text.len() > longest || text.chars().any(char::is_control) {
        return Err(ApiProblem::invalid(format!(
            "invalid {what}: 1 to {longest} bytes without control characters required"
        )));
    }
    Ok(())
}

/// Checks a new name or key. A name that looks like another is refused; existing ones are checked by [`text`] alone.
pub(crate) fn name(what: &str, name: &str, longest: usize) -> Result<(), ApiProblem> {
    text(what, name, longest)?;
    // serde_json would parse an object with a reserved key as an embedded document.
    let reserved = sessile::json::is_reserved(name).then_some("the name is reserved");
    match reserved.or_else(|| sessile::names::deceptive(name)) {
        None => Ok(()),
        Some(reason) => {
            let detail = format!("invalid {what} {}: {reason}", sessile::text::quoted(shortened(name, 80)));
            Err(ApiProblem::new(StatusCode::BAD_REQUEST, Code::InvalidName, detail))
        }
    }
}

/// Refuses a number out of range.
pub(crate) fn within(what: &str, number: i64, least: i64, most: i64) -> Result<i64, ApiProblem> {
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(ApiProblem::invalid(format!("{what} must be from {least} to {most}")))
}

/// Variable segments of a path.
pub(crate) struct Segments<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<AppState> for Segments<T> {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiProblem> {
        let path: Result<Path<T>, PathRejection> = Path::from_request_parts(parts, app).await;
        path.map(|Path(segments)| Segments(segments))
            .map_err(|_| ApiProblem::invalid("invalid path: not valid UTF-8, or not a number"))
    }
}

/// Id of the session in a path. It is extracted last, so that errors of the other parts of a request are reported
/// first.
pub(crate) struct SessionSegment(pub(crate) SessionId);

impl FromRequestParts<AppState> for SessionSegment {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, app: &AppState) -> Result<Self, ApiProblem> {
        let Segments(id) = Segments::<String>::from_request_parts(parts, app).await?;
        session(&id).map(SessionSegment)
    }
}

/// A body that says it is JSON, is not too large, too late or nested too deep, and has no reserved key.
pub(crate) async fn taken(headers: &HeaderMap, body: Body, app: &AppState) -> Result<Vec<u8>, ApiProblem> {
    let media = header(headers, header::CONTENT_TYPE.as_str())?.unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case("application/json") {
        return Err(unsupported("the body must be JSON: `Content-Type: application/json`"));
    }
    let encoding = header(headers, header::CONTENT_ENCODING.as_str())?.unwrap_or("identity");
    // A small compressed body could expand beyond the limit in bytes.
    if !encoding.trim().eq_ignore_ascii_case("identity") {
        return Err(unsupported(
            "compressed bodies are not supported: send the body without Content-Encoding",
        ));
    }
    let bytes = tokio::time::timeout(app.limits.body, read(body, app.limits.body_bytes))
        .await
        .map_err(|_| ApiProblem::timed_out("reading the body timed out"))??;
    // Before any parser sees it: nesting costs stack.
    check_depth(&bytes, app.limits.depth)?;
    sessile::json::check(&bytes).map_err(|error| ApiProblem::invalid(error.to_string()))?;
    Ok(bytes)
}

fn unsupported(detail: &str) -> ApiProblem {
    ApiProblem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::Usage, detail)
}

/// Reads a body up to a size, and never buffers more.
pub(crate) async fn read(mut body: Body, most: usize) -> Result<Vec<u8>, ApiProblem> {
    let too_large = || ApiProblem::too_large(format!("the body is larger than {most} bytes"));
    // Refused by its Content-Length, before a byte is read.
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|_| ApiProblem::usage("the body is incomplete or invalid"))?;
        let data: Bytes = frame.into_data().unwrap_or_default();
        if bytes.len() + data.len() > most {
            return Err(too_large());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// Refuses JSON that is nested too deeply, before anything is parsed.
fn check_depth(bytes: &[u8], most: usize) -> Result<(), ApiProblem> {
    // serde_json has a limit of its own, which cannot be changed.
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > most {
            return Err(ApiProblem::invalid(format!("JSON is nested deeper than {most} levels")));
        }
    }
    Ok(())
}

/// Query parameters. A handler takes each by name; parameters that are left over are refused.
#[derive(Debug)]
pub(crate) struct QueryParams(Vec<(String, String)>);

impl FromRequestParts<AppState> for QueryParams {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, _: &AppState) -> Result<Self, ApiProblem> {
        let query = parts.uri.query().unwrap_or_default();
        let mut params: Vec<(String, String)> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (decoded(name)?, decoded(value)?);
            // PostgreSQL stores no text with NUL.
            if name.contains('\0') || value.contains('\0') {
                return Err(ApiProblem::invalid("query parameters must not contain NUL"));
            }
            // Parsers disagree on whether the first or the last one counts.
            if params.iter().any(|(other, _)| *other == name) {
                return Err(ApiProblem::usage("duplicate query parameter"));
            }
            params.push((name, value));
        }
        Ok(QueryParams(params))
    }
}

impl QueryParams {
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(other, _)| other == name)?;
        Some(self.0.swap_remove(at).1)
    }

    pub(crate) fn number(&mut self, name: &str, least: i64, most: i64) -> Result<Option<i64>, ApiProblem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse().map_err(|_| ApiProblem::invalid(format!("{name} must be a number")))?;
        within(name, number, least, most).map(Some)
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, ApiProblem> {
        match self.text(name).as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(ApiProblem::invalid(format!("{name} must be true or false"))),
        }
    }

    /// Number of items of a page, at most.
    pub(crate) fn limit(&mut self, app: &AppState) -> Result<i64, ApiProblem> {
        Ok(self.number("limit", 1, app.limits.page)?.unwrap_or(DEFAULT_PAGE_ITEMS.min(app.limits.page)))
    }

    /// Cursor of the page.
    pub(crate) fn cursor(&mut self) -> Result<Option<String>, ApiProblem> {
        self.text("cursor").map(|cursor| super::reply::after(&cursor)).transpose()
    }

    /// Refuses parameters that the handler did not take.
    pub(crate) fn done(self) -> Result<(), ApiProblem> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => {
                Err(ApiProblem::usage(format!("unknown query parameter {:?}", shortened(name, 40))))
            }
        }
    }
}

fn decoded(text: &str) -> Result<String, ApiProblem> {
    let invalid = || ApiProblem::usage("invalid percent-encoding in the query");
    // Replaced before decoding, so that `%2B` stays a plus sign.
    let bytes = sessile_wire::percent::decode(&text.replace('+', " ")).ok_or_else(invalid)?;
    String::from_utf8(bytes).map_err(|_| ApiProblem::usage("the query is not valid UTF-8"))
}

/// The revision that a change is only to be made at: `If-Match: "3"`, or `If-None-Match: *` for 0.
pub(crate) fn expected_revision(headers: &HeaderMap) -> Result<Option<i64>, ApiProblem> {
    let none = header(headers, header::IF_NONE_MATCH.as_str())?;
    let revision = match (header(headers, header::IF_MATCH.as_str())?, none) {
        (None, None) => return Ok(None),
        // Revisions begin at 1, so 0 stands for a resource that must not exist.
        (None, Some(none)) if none.trim() == "*" => return Ok(Some(0)),
        (Some(tag), None) => {
            let inner = tag.trim().strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
            inner.and_then(|tag| tag.parse().ok()).filter(|revision| *revision > 0)
        }
        _ => None,
    };
    match revision {
        Some(revision) => Ok(Some(revision)),
        None => Err(ApiProblem::usage("If-Match must be an ETag, or If-None-Match must be `*`")),
    }
}

/// Whether the caller has this revision already.
pub(crate) fn has(headers: &HeaderMap, revision: i64) -> Result<bool, ApiProblem> {
    let Some(tags) = header(headers, header::IF_NONE_MATCH.as_str())? else { return Ok(false) };
    let own = format!("\"{revision}\"");
    Ok(tags.split(',').any(|tag| {
        // If-None-Match uses the weak comparison (RFC 9110, 13.1.2).
        matches!(tag.trim().trim_start_matches("W/"), "*") || tag.trim().trim_start_matches("W/") == own
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_are_not_depth() {
        assert!(check_depth(br#"{"a":"[[[[\"[[["}"#, 1).is_ok());
        assert!(check_depth(b"[[]]", 1).is_err());
        assert!(check_depth(b"[[],[],[]]", 2).is_ok());
    }

    #[test]
    fn query_string_is_decoded_strictly() {
        assert_eq!(decoded("a%20b+c%C3%A9").unwrap(), "a b c\u{e9}");
        assert!(decoded("%ff").is_err());
        assert!(decoded("%2").is_err());
    }
}
