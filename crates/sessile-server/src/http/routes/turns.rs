//! Turns of a session: one at a time, and each whole or absent.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use sessile_wire::service::limits::{DEFAULT_TTL_MS, DEFAULT_TURN_HISTORY, DEFAULT_WAIT_MS, MAX_HOLDER};
use sessile_wire::service::{
    AppendResponse, BeginTurnRequest, BeginTurnResponse, CommitTurnRequest, LeaseTicket, RenewTurnRequest,
};

use super::super::app::AppState;
use super::super::caller::ApiCaller;
use super::super::input::{self, Segments};
use super::super::json::Json;
use super::super::problem::ApiProblem;
use super::super::queue::{self, LeaseRequest};
use super::super::reply;
use super::super::response::{appended, lease};
use super::super::route::{BOTH, ResponseBody, Route, WRITE};
use super::messages::{check_messages, last_messages};
use crate::change::{LockMode, StoreChange};
use crate::ids::FencingToken;
use crate::model::Resource;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/sessions/{session}/turns", BOTH, begin)
            .about("beginTurn", "Wait for the turn and acquire it; returns the last messages")
            .body::<BeginTurnRequest>()
            .replies::<BeginTurnResponse>(201)
            .refuses(&[404, 408, 409, 410]),
        Route::post("/v1/sessions/{session}/turns/{token}/commit", WRITE, commit)
            .about("commitTurn", "End a turn and append its messages atomically")
            .body::<CommitTurnRequest>()
            .replies::<AppendResponse>(200)
            .refuses(&[404, 409, 410]),
        Route::post("/v1/sessions/{session}/turns/{token}/renew", WRITE, renew)
            .about("renewTurn", "Extend a turn's lease")
            .body::<RenewTurnRequest>()
            .replies::<LeaseTicket>(200)
            .refuses(&[404, 409, 410]),
        Route::delete("/v1/sessions/{session}/turns/{token}", WRITE, abandon)
            .about("abandonTurn", "End a turn without messages")
            .replies_with(204, ResponseBody::Empty)
            .refuses(&[404, 409]),
    ]
}

async fn begin(
    State(app): State<AppState>,
    caller: ApiCaller,
    Segments(session): Segments<String>,
    Json(new): Json<BeginTurnRequest>,
) -> Result<Response, ApiProblem> {
    let session = input::session(&session)?;
    let history = input::within("history", new.history.unwrap_or(DEFAULT_TURN_HISTORY), 0, app.limits.page)?;
    let wanted = LeaseRequest {
        resource: Resource::Turn { session: session.clone() },
        holder: holder(&caller, new.holder)?,
        busy: new.busy,
        mode: LockMode::Exclusive,
        session: None,
        ttl_ms: ttl(&app, new.ttl_ms)?,
        wait_ms: wait(&app, new.wait_ms)?,
    };
    // Until it is known what to answer, it can still be given back.
    let _waits = caller.wait()?;
    let (ticket, given) = queue::take(&app, caller.bound(), caller.key(), wanted).await?;
    let history = last_messages(&app, &caller.bound(), &session, history).await?;
    let begun = BeginTurnResponse { session: session.into(), ticket: lease(ticket)?, history };
    let response = reply::json(StatusCode::CREATED, &begun)?;
    given.keep();
    Ok(response)
}

async fn commit(
    State(app): State<AppState>,
    caller: ApiCaller,
    Segments((session, token)): Segments<(String, FencingToken)>,
    Json(turn): Json<CommitTurnRequest>,
) -> Result<Response, ApiProblem> {
    let bodies = check_messages(&app, &turn.messages)?;
    let session = input::session(&session)?;
    // A client cannot name a context of the agent: it could continue in that of another user.
    let change = StoreChange::CommitTurn { session, token, bodies, conversation: None };
    reply::json(StatusCode::OK, &appended(&caller.change(change).await?)?)
}

async fn renew(
    State(app): State<AppState>,
    caller: ApiCaller,
    Segments((session, token)): Segments<(String, FencingToken)>,
    Json(renewal): Json<RenewTurnRequest>,
) -> Result<Response, ApiProblem> {
    let resource = Resource::Turn { session: input::session(&session)? };
    let change = StoreChange::Renew { resource, token, ttl_ms: ttl(&app, renewal.ttl_ms)? };
    reply::json(StatusCode::OK, &lease(queue::ticket(caller.change(change).await?)?)?)
}

async fn abandon(
    caller: ApiCaller,
    Segments((session, token)): Segments<(String, FencingToken)>,
) -> Result<Response, ApiProblem> {
    let resource = Resource::Turn { session: input::session(&session)? };
    caller.change(StoreChange::Release { resource, token }).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

/// Lease of a request, within the limits.
pub(super) fn ttl(app: &AppState, ttl_ms: Option<i64>) -> Result<i64, ApiProblem> {
    input::within("ttl_ms", ttl_ms.unwrap_or(DEFAULT_TTL_MS.min(app.limits.ttl_ms)), 1, app.limits.ttl_ms)
}

/// Wait of a request, within the limits.
pub(super) fn wait(app: &AppState, wait_ms: Option<i64>) -> Result<i64, ApiProblem> {
    input::within(
        "wait_ms",
        wait_ms.unwrap_or(DEFAULT_WAIT_MS.min(app.limits.wait_ms)),
        0,
        app.limits.wait_ms,
    )
}

/// Name of the holder; by default that of the user.
pub(super) fn holder(caller: &ApiCaller, holder: Option<String>) -> Result<String, ApiProblem> {
    let holder = holder.unwrap_or_else(|| caller.token().user.to_string());
    input::text("holder", &holder, MAX_HOLDER)?;
    Ok(holder)
}
