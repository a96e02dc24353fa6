//! Audit log of a user.

use axum::extract::State;
use axum::response::Response;
use sessile_wire::service::HistoryPage;
use sessile_wire::service::limits::MAX_SESSION_QUERY;

use super::super::app::AppState;
use super::super::caller::ApiCaller;
use super::super::input::{self, QueryParams};
use super::super::parameters::{CURSOR, LIMIT, SESSION, SINCE_MS};
use super::super::problem::ApiProblem;
use super::super::queue::unexpected;
use super::super::reply;
use super::super::route::{READ, Route};
use crate::query::{Query, QueryAnswer};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/history", READ, list)
            .about("getHistory", "List the user's changes and refused changes, newest first, without reads")
            .params(&[&SESSION, &SINCE_MS, &LIMIT, &CURSOR])
            .replies::<HistoryPage>(200),
    ]
}

async fn list(
    State(app): State<AppState>,
    caller: ApiCaller,
    mut params: QueryParams,
) -> Result<Response, ApiProblem> {
    let limit = params.limit(&app)?;
    let since_ms = params.number("since_ms", 0, input::MAX_INTEGER)?;
    let session = params.text("session");
    if let Some(session) = &session {
        input::text("session", session, MAX_SESSION_QUERY)?;
    }
    let query = Query::History { session, since_ms, reads: false, before: params.cursor()?, limit };
    params.done()?;
    match caller.ask(query).await? {
        QueryAnswer::History(page) => reply::page::<HistoryPage>(page.items, page.next.as_deref()),
        other => Err(unexpected(&other)),
    }
}
