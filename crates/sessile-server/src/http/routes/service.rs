//! About the service itself.

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use sessile_wire::service::{HealthStatus, WhoAmI};

use super::super::app::AppState;
use super::super::caller::ApiCaller;
use super::super::openapi::OpenApiDocument;
use super::super::problem::ApiProblem;
use super::super::reply;
use super::super::route::{ANY, ResponseBody, Route};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/me", ANY, me)
            .about("whoAmI", "Show the user and the token of the request")
            .replies::<WhoAmI>(200),
        Route::get("/healthz", ANY, healthy)
            .open()
            .about("isHealthy", "Liveness: the process answers")
            .replies::<HealthStatus>(200),
        Route::get("/readyz", ANY, ready)
            .open()
            .about("isReady", "Readiness: the store answers, and the service is not shutting down")
            .replies::<HealthStatus>(200)
            .refuses(&[503]),
        Route::get("/metrics", ANY, metrics)
            .open()
            .about("getMetrics", "Metrics in the Prometheus text format, without users and ids")
            .replies_with(200, ResponseBody::Text),
        Route::get("/openapi.json", ANY, openapi)
            .open()
            .about("getOpenApi", "This document")
            .replies::<OpenApiDocument>(200),
    ]
}

async fn me(caller: ApiCaller) -> Result<Response, ApiProblem> {
    let token = caller.token();
    let body = WhoAmI {
        user: token.user.to_string(),
        token: token.id.to_string(),
        scopes: token.scopes.clone(),
        expires_ms: token.expires_ms,
    };
    reply::json(StatusCode::OK, &body)
}

async fn healthy() -> Result<Response, ApiProblem> {
    reply::json(StatusCode::OK, &HealthStatus { status: "ok".to_owned() })
}

async fn ready(State(app): State<AppState>) -> Result<Response, ApiProblem> {
    // Load balancers stop sending requests while those in flight are still answered.
    if app.is_closing() {
        return Err(ApiProblem::closing_down());
    }
    app.gate.ready().await?;
    healthy().await
}

async fn metrics(State(app): State<AppState>) -> Response {
    let mut response = Response::new(app.metrics.text().into());
    // Prometheus picks its parser by this version.
    let media = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}

async fn openapi(State(app): State<AppState>) -> Response {
    let mut response = Response::new(app.openapi.clone().into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
