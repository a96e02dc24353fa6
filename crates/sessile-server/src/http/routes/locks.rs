//! Locks of a user.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use sessile_wire::service::limits::MAX_KEY;
use sessile_wire::service::{LockPage, RenewLockRequest, ServiceLock, TakeLockRequest};

use super::super::app::AppState;
use super::super::caller::ApiCaller;
use super::super::input::{self, QueryParams, Segments};
use super::super::json::Json;
use super::super::parameters::{CURSOR, LIMIT, TOKEN};
use super::super::problem::ApiProblem;
use super::super::queue::{self, LeaseRequest, unexpected};
use super::super::reply;
use super::super::response::{held_lock, lease};
use super::super::route::{READ, ResponseBody, Route, WRITE};
use super::turns::{holder, ttl, wait};
use crate::change::StoreChange;
use crate::ids::FencingToken;
use crate::model::{Resource, Ticket};
use crate::query::{Query, QueryAnswer};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/locks", READ, list)
            .about("listLocks", "List the held locks, by name")
            .params(&[&LIMIT, &CURSOR])
            .replies::<LockPage>(200),
        Route::post("/v1/locks/{name}", WRITE, take)
            .about("takeLock", "Wait for a lock and acquire it")
            .body::<TakeLockRequest>()
            .replies::<ServiceLock>(201)
            .refuses(&[404, 408, 409, 410]),
        Route::post("/v1/locks/{name}/renew", WRITE, renew)
            .about("renewLock", "Extend a lock's lease")
            .body::<RenewLockRequest>()
            .replies::<ServiceLock>(200)
            .refuses(&[409]),
        Route::delete("/v1/locks/{name}", WRITE, release)
            .about("releaseLock", "Release a lock")
            .params(&[&TOKEN])
            .replies_with(204, ResponseBody::Empty)
            .refuses(&[409]),
    ]
}

fn resource(name: &str) -> Result<Resource, ApiProblem> {
    // No check for deceptive names: a lock from before that check must stay releasable.
    input::text("a lock's name", name, MAX_KEY)?;
    Ok(Resource::Lock { name: name.to_owned() })
}

/// Resource of a requested lock, which may be new.
fn new_resource(name: &str) -> Result<Resource, ApiProblem> {
    input::name("lock name", name, MAX_KEY)?;
    resource(name)
}

fn lock(name: String, ticket: Ticket) -> Result<ServiceLock, ApiProblem> {
    Ok(ServiceLock { name, mode: ticket.mode, session: ticket.session.clone(), ticket: lease(ticket)? })
}

async fn list(
    State(app): State<AppState>,
    caller: ApiCaller,
    mut params: QueryParams,
) -> Result<Response, ApiProblem> {
    let (limit, after) = (params.limit(&app)?, params.cursor()?);
    params.done()?;
    match caller.ask(Query::Locks { after, limit }).await? {
        QueryAnswer::Locks(page) => {
            let locks = page.items.into_iter().map(held_lock).collect::<Result<_, _>>()?;
            reply::page::<LockPage>(locks, page.next.as_deref())
        }
        other => Err(unexpected(&other)),
    }
}

async fn take(
    State(app): State<AppState>,
    caller: ApiCaller,
    Segments(name): Segments<String>,
    Json(new): Json<TakeLockRequest>,
) -> Result<Response, ApiProblem> {
    let wanted = LeaseRequest {
        resource: new_resource(&name)?,
        holder: holder(&caller, new.holder)?,
        busy: new.busy,
        mode: new.mode,
        ttl_ms: ttl(&app, new.ttl_ms)?,
        wait_ms: wait(&app, new.wait_ms)?,
        session: new.session.as_deref().map(input::session).transpose()?,
    };
    let _waits = caller.wait()?;
    let (ticket, given) = queue::take(&app, caller.bound(), caller.key(), wanted).await?;
    let response = reply::json(StatusCode::CREATED, &lock(name, ticket)?)?;
    // Only once the response is made: if that fails, the guard releases a lock that nobody knows of.
    given.keep();
    Ok(response)
}

async fn renew(
    State(app): State<AppState>,
    caller: ApiCaller,
    Segments(name): Segments<String>,
    Json(renewal): Json<RenewLockRequest>,
) -> Result<Response, ApiProblem> {
    let ttl_ms = ttl(&app, renewal.ttl_ms)?;
    let change =
        StoreChange::Renew { resource: resource(&name)?, token: FencingToken::new(renewal.token), ttl_ms };
    let ticket = queue::ticket(caller.change(change).await?)?;
    reply::json(StatusCode::OK, &lock(name, ticket)?)
}

async fn release(
    caller: ApiCaller,
    Segments(name): Segments<String>,
    mut params: QueryParams,
) -> Result<Response, ApiProblem> {
    let token = params.number("token", 0, input::MAX_INTEGER)?;
    params.done()?;
    let Some(token) = token else { return Err(ApiProblem::usage("`token` is required to release a lock")) };
    let token = FencingToken::new(token);
    caller.change(StoreChange::Release { resource: resource(&name)?, token }).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}
