//! Letting a machine in by a code, for those who have no token yet.

use axum::extract::State;
use axum::http::{Extensions, StatusCode};
use axum::response::Response;
use sessile::Code;
use sessile_wire::service::limits::MAX_LOGIN_FIELD;
use sessile_wire::service::{
    BeginLoginRequest, BeginLoginResponse, CollectLoginRequest, CollectLoginResponse,
};

use super::super::app::AppState;
use super::super::input;
use super::super::json::Json;
use super::super::problem::ApiProblem;
use super::super::reply;
use super::super::route::{ANY, Route};
use super::super::router::PeerAddress;
use crate::login::{INTERVAL_MS, LIFE_MS, LoginOutcome};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/login", ANY, begin)
            .open()
            .about("beginLogin", "Start a device login; an administrator approves `user_code`")
            .body::<BeginLoginRequest>()
            .replies::<BeginLoginResponse>(201)
            .refuses(&[400, 429, 503]),
        Route::post("/v1/login/token", ANY, collect)
            .open()
            .about("collectLogin", "Collect the token once after approval; 409 LOGIN_PENDING until then")
            .body::<CollectLoginRequest>()
            .replies::<CollectLoginResponse>(200)
            .refuses(&[400, 403, 404, 409, 429, 503]),
    ]
}

async fn begin(
    State(app): State<AppState>,
    extensions: Extensions,
    Json(new): Json<BeginLoginRequest>,
) -> Result<Response, ApiProblem> {
    input::text("client", &new.client, MAX_LOGIN_FIELD)?;
    app.anonymous_limits
        .logins
        .take(&extensions)
        .map_err(|after_ms| ApiProblem::rate_limited("too many pending logins", after_ms))?;
    let peer = extensions.get().map(|PeerAddress(peer)| peer.ip().to_canonical().to_string());
    // Charged before the store is asked, because anybody can send this.
    let begun = app.gate.begin_login(&new.client, peer, app.limits.logins).await?;
    let body = BeginLoginResponse {
        device_code: begun.device_code.expose().to_owned(),
        user_code: begun.user_code,
        expires_in_s: LIFE_MS / 1000,
        interval_s: INTERVAL_MS / 1000,
    };
    reply::json(StatusCode::CREATED, &body)
}

async fn collect(
    State(app): State<AppState>,
    extensions: Extensions,
    Json(poll): Json<CollectLoginRequest>,
) -> Result<Response, ApiProblem> {
    input::text("device_code", &poll.device_code, MAX_LOGIN_FIELD)?;
    app.anonymous_limits
        .polls
        .take(&extensions)
        .map_err(|after_ms| ApiProblem::rate_limited("too many requests for a token", after_ms))?;
    let (token, secret) = match app.gate.collect_login(&poll.device_code).await? {
        LoginOutcome::Token(token, secret) => (token, secret),
        LoginOutcome::Pending => {
            let detail = "the code is not approved yet";
            return Err(
                ApiProblem::new(StatusCode::CONFLICT, Code::LoginPending, detail).retry_after(INTERVAL_MS)
            );
        }
        LoginOutcome::Denied => {
            return Err(ApiProblem::new(StatusCode::FORBIDDEN, Code::LoginRefused, "the login was denied"));
        }
        // Which of them it is would tell a stranger something.
        LoginOutcome::Nothing => {
            let detail = "no pending login: the code is invalid or expired, or its token was collected";
            return Err(ApiProblem::new(StatusCode::NOT_FOUND, Code::LoginNotFound, detail));
        }
    };
    let body = CollectLoginResponse {
        token: secret.expose().to_owned(),
        user: token.user.into(),
        scopes: token.scopes,
        expires_ms: token.expires_ms,
    };
    reply::json(StatusCode::OK, &body)
}
