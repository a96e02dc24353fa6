//! Locks of a user.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::app::App;
use super::super::caller::Caller;
use super::super::input::{self, Params, Segments};
use super::super::json::Json;
use super::super::problem::Problem;
use super::super::queue::{self, Wanted, unexpected};
use super::super::reply;
use super::super::route::{READ, Route, WRITE};
use super::turns::{holder, ttl, wait};
use crate::change::{Busy, Change};
use crate::model::{Resource, Ticket};
use crate::query::{Answer, Locked, Query};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/locks", READ, list)
            .about("listLocks", "Locks that are held, in the order of their names")
            .params(&["limit", "cursor"])
            .replies(200, "Locks"),
        Route::post("/v1/locks/{name}", WRITE, take)
            .about("takeLock", "Wait for a lock and take it")
            .body("NewLock")
            .replies(201, "Lock")
            .refuses(&[408, 409]),
        Route::post("/v1/locks/{name}/renew", WRITE, renew)
            .about("renewLock", "Begin the time of a lock anew")
            .body("LockRenewal")
            .replies(200, "Lock")
            .refuses(&[409]),
        Route::delete("/v1/locks/{name}", WRITE, release)
            .about("releaseLock", "Give a lock back")
            .params(&["token"])
            .replies_empty(204)
            .refuses(&[409]),
    ]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct New {
    ttl_ms: Option<i64>,
    wait_ms: Option<i64>,
    #[serde(default)]
    busy: Busy,
    holder: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Renewal {
    token: i64,
    ttl_ms: Option<i64>,
}

fn resource(name: &str) -> Result<Resource, Problem> {
    input::text("a lock's name", name, 256)?;
    Ok(Resource::Lock { name: name.to_owned() })
}

/// A lock that is asked for, and may be new.
fn new_resource(name: &str) -> Result<Resource, Problem> {
    input::name("lock name", name, 256)?;
    resource(name)
}

fn shown(name: &str, ticket: &Ticket) -> Value {
    let Ticket { place, token, holder, asked_ms, expires_ms } = ticket;
    json!({
        "name": name,
        "token": token,
        "place": place,
        "holder": holder,
        "asked_ms": asked_ms,
        "expires_ms": expires_ms,
    })
}

fn listed(lock: &Locked) -> Value {
    let mut shown = shown(&lock.name, &lock.ticket);
    shown["waiting"] = json!(lock.waiting);
    shown
}

async fn list(State(app): State<App>, caller: Caller, mut params: Params) -> Result<Response, Problem> {
    let (limit, after) = (params.limit(&app)?, params.cursor()?);
    params.done()?;
    match caller.ask(Query::Locks { after, limit }).await? {
        Answer::Locks(page) => {
            let shown: Vec<Value> = page.items.iter().map(listed).collect();
            reply::page("locks", &shown, page.next.as_deref())
        }
        other => Err(unexpected(&other)),
    }
}

async fn take(
    State(app): State<App>,
    caller: Caller,
    Segments(name): Segments<String>,
    Json(new): Json<New>,
) -> Result<Response, Problem> {
    let wanted = Wanted {
        resource: new_resource(&name)?,
        holder: holder(&caller, new.holder)?,
        busy: new.busy,
        ttl_ms: ttl(&app, new.ttl_ms)?,
        wait_ms: wait(&app, new.wait_ms)?,
    };
    let _waits = caller.wait()?;
    let (ticket, given) = queue::take(&app, caller.bound(), caller.key(), wanted).await?;
    let response = reply::json(StatusCode::CREATED, &shown(&name, &ticket))?;
    given.keep();
    Ok(response)
}

async fn renew(
    State(app): State<App>,
    caller: Caller,
    Segments(name): Segments<String>,
    Json(renewal): Json<Renewal>,
) -> Result<Response, Problem> {
    let ttl_ms = ttl(&app, renewal.ttl_ms)?;
    let change = Change::Renew { resource: resource(&name)?, token: renewal.token, ttl_ms };
    let ticket = queue::ticket(caller.change(change).await?)?;
    reply::json(StatusCode::OK, &shown(&name, &ticket))
}

async fn release(
    caller: Caller,
    Segments(name): Segments<String>,
    mut params: Params,
) -> Result<Response, Problem> {
    let token = params.number("token", 0, input::LARGEST)?;
    params.done()?;
    let Some(token) = token else { return Err(Problem::usage("a lock is given back with its `token`")) };
    caller.change(Change::Release { resource: resource(&name)?, token }).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}
