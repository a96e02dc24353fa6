//! What a user has done.

use axum::extract::State;
use axum::response::Response;
use sessile_wire::service::limits::MAX_SESSION_QUERY;
use sessile_wire::service::{HistoryEntry, HistoryPage};

use super::super::app::App;
use super::super::caller::Caller;
use super::super::input::{self, Params};
use super::super::parameters::{CURSOR, LIMIT, SESSION, SINCE_MS};
use super::super::problem::Problem;
use super::super::queue::unexpected;
use super::super::reply;
use super::super::route::{READ, Route};
use crate::query::{Answer, Query};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/history", READ, list)
            .about(
                "getHistory",
                "What the user has changed or tried to, the newest first; reading is not in it",
            )
            .params(&[&SESSION, &SINCE_MS, &LIMIT, &CURSOR])
            .replies::<HistoryPage>(200),
    ]
}

async fn list(State(app): State<App>, caller: Caller, mut params: Params) -> Result<Response, Problem> {
    let limit = params.limit(&app)?;
    let since_ms = params.number("since_ms", 0, input::MAX_INTEGER)?;
    let session = params.text("session");
    if let Some(session) = &session {
        input::text("session", session, MAX_SESSION_QUERY)?;
    }
    let query = Query::History { session, since_ms, reads: false, before: params.cursor()?, limit };
    params.done()?;
    match caller.ask(query).await? {
        Answer::History(page) => {
            let history = page.items.into_iter().map(HistoryEntry::from).collect();
            reply::page::<HistoryPage>(history, page.next.as_deref())
        }
        other => Err(unexpected(&other)),
    }
}
