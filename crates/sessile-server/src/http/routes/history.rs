//! What a user has done.

use axum::extract::State;
use axum::response::Response;

use super::super::app::App;
use super::super::caller::Caller;
use super::super::input::{self, Params};
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
            .params(&["session", "since_ms", "limit", "cursor"])
            .replies(200, "History"),
    ]
}

async fn list(State(app): State<App>, caller: Caller, mut params: Params) -> Result<Response, Problem> {
    let limit = params.limit(&app)?;
    let since_ms = params.number("since_ms", 0, input::LARGEST)?;
    let session = params.text("session");
    if let Some(session) = &session {
        input::text("session", session, 128)?;
    }
    let query = Query::History { session, since_ms, reads: false, before: params.cursor()?, limit };
    params.done()?;
    match caller.ask(query).await? {
        Answer::History(page) => reply::page("history", &page.items, page.next.as_deref()),
        other => Err(unexpected(&other)),
    }
}
