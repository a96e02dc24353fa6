//! HTTP responses of the API.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::body::Frame;
use serde::Serialize;
use sessile_wire::service::CursorPage;
use tokio::sync::mpsc;

use super::problem::ApiProblem;

/// Response with a JSON body.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Result<Response, ApiProblem> {
    let text = serde_json::to_vec(body).map_err(|error| ApiProblem::internal(error.to_string()))?;
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Response with server-sent events, which the sender of this channel writes.
pub(crate) fn events(pieces: mpsc::Receiver<Bytes>) -> Response {
    let mut response = Response::new(Body::new(ChunkedBody(pieces)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies would gather them.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Body of the chunks that a stream sends.
struct ChunkedBody(mpsc::Receiver<Bytes>);

impl axum::body::HttpBody for ChunkedBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Response with a JSON body whose ETag is its revision.
pub(crate) fn tagged(
    status: StatusCode,
    body: &impl Serialize,
    revision: i64,
) -> Result<Response, ApiProblem> {
    Ok(with_tag(json(status, body)?, revision))
}

/// Response to a client that has this revision.
pub(crate) fn unchanged(revision: i64) -> Response {
    with_tag(empty(StatusCode::NOT_MODIFIED), revision)
}

/// Response to a change of something that the client may not read.
pub(crate) fn changed(revision: i64) -> Response {
    with_tag(empty(StatusCode::NO_CONTENT), revision)
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

/// A page of a list. The cursor of the next page names the last item of this one.
pub(crate) fn page<P: CursorPage + Serialize>(
    items: Vec<P::Item>,
    last: Option<&str>,
) -> Result<Response, ApiProblem> {
    // Encoded, so that clients treat a cursor as opaque, and names need no escaping in a query.
    json(StatusCode::OK, &P::new(items, last.map(|last| URL_SAFE_NO_PAD.encode(last))))
}

/// Last item of the page before, from a cursor.
pub(crate) fn after(cursor: &str) -> Result<String, ApiProblem> {
    let wrong = || ApiProblem::invalid("invalid cursor");
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
    let text = String::from_utf8(bytes).map_err(|_| wrong())?;
    // A cursor comes from the client and goes into a query, so it is checked like any other input.
    if text.is_empty() || text.len() > 512 || text.chars().any(char::is_control) {
        return Err(wrong());
    }
    Ok(text)
}
