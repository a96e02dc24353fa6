//! Turns of a session: one at a time, and each whole or absent.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::app::App;
use super::super::caller::Caller;
use super::super::input::{self, Segments};
use super::super::json::Json;
use super::super::problem::Problem;
use super::super::queue::{self, Wanted};
use super::super::reply;
use super::super::route::{BOTH, Route, WRITE};
use super::messages::{appended, check_messages, last_messages};
use crate::change::{Busy, Change};
use crate::model::{Resource, Ticket};

/// How long a turn is held if nothing is said.
pub(super) const TTL_MS: i64 = 60_000;

/// How long it is waited for if nothing is said.
pub(super) const WAIT_MS: i64 = 30_000;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/sessions/{session}/turns", BOTH, begin)
            .about("beginTurn", "Wait for the turn and take it; the last messages come with it")
            .body("NewTurn")
            .replies(201, "Turn")
            .refuses(&[404, 408, 409, 410]),
        Route::post("/v1/sessions/{session}/turns/{token}/commit", WRITE, commit)
            .about("commitTurn", "End a turn: append all its messages, or do nothing")
            .body("TurnMessages")
            .replies(200, "Appended")
            .refuses(&[404, 409, 410]),
        Route::post("/v1/sessions/{session}/turns/{token}/renew", WRITE, renew)
            .about("renewTurn", "Begin the time of a turn anew")
            .body("Renewal")
            .replies(200, "Ticket")
            .refuses(&[404, 409, 410]),
        Route::delete("/v1/sessions/{session}/turns/{token}", WRITE, abandon)
            .about("abandonTurn", "End a turn without a message")
            .replies_empty(204)
            .refuses(&[404, 409]),
    ]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    ttl_ms: Option<i64>,
    wait_ms: Option<i64>,
    #[serde(default)]
    busy: Busy,
    history: Option<i64>,
    holder: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Messages {
    messages: Vec<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Renewal {
    ttl_ms: Option<i64>,
}

/// A turn that has begun.
#[derive(Debug, Serialize)]
struct BegunTurn {
    session: String,
    token: Option<i64>,
    place: i64,
    holder: String,
    asked_ms: i64,
    expires_ms: i64,
    history: Vec<Box<RawValue>>,
}

async fn begin(
    State(app): State<App>,
    caller: Caller,
    Segments(session): Segments<String>,
    Json(new): Json<New>,
) -> Result<Response, Problem> {
    let session = input::session(&session)?;
    let history = input::within("history", new.history.unwrap_or(100), 0, app.limits.page)?;
    let wanted = Wanted {
        resource: Resource::Turn { session: session.clone() },
        holder: holder(&caller, new.holder)?,
        busy: new.busy,
        ttl_ms: ttl(&app, new.ttl_ms)?,
        wait_ms: wait(&app, new.wait_ms)?,
    };
    // Until it is known what to answer, it can still be given back.
    let _waits = caller.wait()?;
    let (ticket, given) = queue::take(&app, caller.bound(), caller.key(), wanted).await?;
    let history = last_messages(&app, &caller.bound(), &session, history).await?;
    let Ticket { place, token, holder, asked_ms, expires_ms } = ticket;
    let begun = BegunTurn { session, token, place, holder, asked_ms, expires_ms, history };
    let response = reply::json(StatusCode::CREATED, &begun)?;
    given.keep();
    Ok(response)
}

async fn commit(
    State(app): State<App>,
    caller: Caller,
    Segments((session, token)): Segments<(String, i64)>,
    Json(turn): Json<Messages>,
) -> Result<Response, Problem> {
    let bodies = check_messages(&app, &turn.messages)?;
    let session = input::session(&session)?;
    appended(
        StatusCode::OK,
        caller.change(Change::CommitTurn { session, token, bodies, conversation: None }).await?,
    )
}

async fn renew(
    State(app): State<App>,
    caller: Caller,
    Segments((session, token)): Segments<(String, i64)>,
    Json(renewal): Json<Renewal>,
) -> Result<Response, Problem> {
    let resource = Resource::Turn { session: input::session(&session)? };
    let change = Change::Renew { resource, token, ttl_ms: ttl(&app, renewal.ttl_ms)? };
    reply::json(StatusCode::OK, &queue::ticket(caller.change(change).await?)?)
}

async fn abandon(
    caller: Caller,
    Segments((session, token)): Segments<(String, i64)>,
) -> Result<Response, Problem> {
    let resource = Resource::Turn { session: input::session(&session)? };
    caller.change(Change::Release { resource, token }).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

/// How long something is held.
pub(super) fn ttl(app: &App, ttl_ms: Option<i64>) -> Result<i64, Problem> {
    input::within("ttl_ms", ttl_ms.unwrap_or(TTL_MS.min(app.limits.ttl_ms)), 1, app.limits.ttl_ms)
}

/// How long something is waited for.
pub(super) fn wait(app: &App, wait_ms: Option<i64>) -> Result<i64, Problem> {
    input::within("wait_ms", wait_ms.unwrap_or(WAIT_MS.min(app.limits.wait_ms)), 0, app.limits.wait_ms)
}

/// What the holder calls itself; by itself it is the user.
pub(super) fn holder(caller: &Caller, holder: Option<String>) -> Result<String, Problem> {
    let holder = holder.unwrap_or_else(|| caller.token().user.0.clone());
    input::text("holder", &holder, 128)?;
    Ok(holder)
}
