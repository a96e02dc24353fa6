//! All routes, and what happens around each request.

use std::net::SocketAddr;
use std::sync::PoisonError;
use std::time::Instant;

use axum::body::HttpBody as _;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use axum::{Extension, Router};
use sessile::Code;

use super::app::AppState;
use super::caller::{RequestIdentity, RequiredScopes};
use super::input;
use super::log::LogLine;
use super::metrics::Gauge;
use super::problem::{ApiProblem, ProblemCause, ProblemCode};
use super::request_head;
use super::route::ANY;
use super::routes;
use super::unread_body::UnreadBody;
use crate::clock::now_ms;

/// Address of the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) SocketAddr);

/// The id of a request, as the log has it.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) String);

impl RequestId {
    pub(crate) const HEADER: &str = "x-request-id";
}

/// Routes of the API for requests that are made in this process.
pub(crate) fn process_router(app: AppState) -> Router {
    with_middleware(api(), app, RequestSource::Process)
}

/// Routes of the API, and one more that any token may use, for requests from the network.
pub(crate) fn network_router(app: AppState, path: &str, handler: MethodRouter<AppState>) -> Router {
    let routes = api().route(path, handler.layer(Extension(RequiredScopes(ANY))));
    with_middleware(routes, app, RequestSource::Network)
}

fn api() -> Router<AppState> {
    routes::all().into_iter().fold(Router::new(), |router, route| router.route(route.path, route.handler))
}

/// Source of a router's requests. A request made in this process has no `Host`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestSource {
    Network,
    Process,
}

fn with_middleware(routes: Router<AppState>, app: AppState, from: RequestSource) -> Router {
    routes
        .fallback(|uri: Uri| async move {
            ApiProblem::new(StatusCode::NOT_FOUND, Code::Usage, not_found(uri.path()))
        })
        .method_not_allowed_fallback(|| async {
            ApiProblem::new(StatusCode::METHOD_NOT_ALLOWED, Code::Usage, "method not allowed")
        })
        .layer(from_fn_with_state((app.clone(), from), with_request_context))
        .with_state(app)
}

/// Detail of a request for an unknown path. Paths that other services have get the one of this service.
fn not_found(path: &str) -> &'static str {
    match path.trim_end_matches('/') {
        "" => "path not found; the API is at /v1, its description at /openapi.json",
        "/health" | "/live" | "/livez" | "/ping" | "/v1/health" => {
            "path not found; health is at /healthz, readiness at /readyz"
        }
        "/ready" | "/status" | "/v1/ready" | "/v1/status" => {
            "path not found; readiness is at /readyz, health at /healthz"
        }
        _ => "path not found",
    }
}

async fn with_request_context(
    State((app, from)): State<(AppState, RequestSource)>,
    mut request: Request,
    next: Next,
) -> Response {
    let (began, at_ms) = (Instant::now(), now_ms());
    let _in_flight = app.metrics.up(Gauge::InFlight);
    let request_id = match request_id(&request) {
        Ok(id) => id,
        Err(problem) => return problem.into_response(),
    };
    let who = RequestIdentity::default();
    request.extensions_mut().insert(who.clone());
    request.extensions_mut().insert(RequestId(request_id.clone()));
    let peer = request.extensions().get().map(|PeerAddress(peer)| peer.to_string());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let route = input::route(request.extensions()).map(str::to_owned);
    let (parts, body) = request.into_parts();
    let (body, rest) = UnreadBody::of(body);
    let checked = match from {
        RequestSource::Network => request_head::check(parts.version, &parts.uri, &parts.headers),
        // The request around it has been checked already.
        RequestSource::Process => Ok(()),
    };
    let mut response = match checked {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(problem) => problem.into_response(),
    };
    // A client that was too slow gets no more time.
    let is_slow = response.status() == StatusCode::REQUEST_TIMEOUT;
    if let Some(rest) = rest.filter(|rest| !rest.is_end_stream())
        && (is_slow || !rest.drain().await)
    {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&request_id) {
        headers.insert(RequestId::HEADER, id);
    }
    // Nothing here is for caches, and nothing is to be taken for a page.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let (status, took) = (response.status().as_u16(), began.elapsed());
    // Paths without a route share one label, so that strangers cannot create new ones.
    app.metrics.answered(route.as_deref().unwrap_or("none"), known(&method), status, took);
    let who = who.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (user, token) = who.unzip();
    app.logger.line(&LogLine {
        at_ms,
        request_id,
        peer,
        method: method.to_string(),
        path,
        route,
        user,
        token,
        status,
        ms: took.as_secs_f64() * 1000.0,
        code: response.extensions().get().map(|ProblemCode(code)| code.as_str()),
        cause: response.extensions().get().map(|ProblemCause(cause)| cause.clone()),
    });
    response
}

/// The caller's id of the request if it is a sensible one, else a new one.
fn request_id(request: &Request) -> Result<String, ApiProblem> {
    let given = request.headers().get(RequestId::HEADER).and_then(|id| id.to_str().ok());
    let fits = |id: &&str| {
        // The id is repeated in a header and in the log, where a quote or a space could forge a field.
        !id.is_empty() && id.len() <= 128 && id.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"')
    };
    given.filter(fits).map_or_else(input::new_id, |id| Ok(id.to_owned()))
}

/// A method as a label: anybody can invent others.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
