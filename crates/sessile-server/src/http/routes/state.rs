//! Values of a session, each with a revision.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use sessile_wire::service::limits::MAX_KEY;
use sessile_wire::service::{AnyValue, StateEntry, StatePage};

use super::super::app::AppState;
use super::super::caller::ApiCaller;
use super::super::input::{self, QueryParams, Segments, SessionSegment};
use super::super::json::AnyJson;
use super::super::pages::PagedList;
use super::super::parameters::{CURSOR, LIMIT};
use super::super::problem::ApiProblem;
use super::super::queue::unexpected;
use super::super::reply;
use super::super::route::{READ, ResponseBody, Route, WRITE};
use crate::change::{ChangeOutcome, StoreChange};
use crate::json_text::JsonText;
use crate::model::EntryRecord;
use crate::query::{Query, QueryAnswer};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/sessions/{session}/state", READ, list)
            .about("listState", "List values, by key")
            .params(&[&LIMIT, &CURSOR])
            .replies::<StatePage>(200)
            .refuses(&[404]),
        Route::get("/v1/sessions/{session}/state/{key}", READ, get)
            .about("getState", "Show a value; its ETag is its revision")
            .replies::<StateEntry>(200)
            .refuses(&[304, 404]),
        Route::put("/v1/sessions/{session}/state/{key}", WRITE, put)
            .about("putState", "Set a value; with If-Match or If-None-Match only if it is unchanged")
            .body::<AnyValue>()
            .replies::<StateEntry>(200)
            .refuses(&[404, 410, 412]),
        Route::delete("/v1/sessions/{session}/state/{key}", WRITE, delete)
            .about("deleteState", "Remove a value")
            .replies_with(204, ResponseBody::Empty)
            .refuses(&[404, 410, 412]),
    ]
}

fn check_key(key: &str) -> Result<(), ApiProblem> {
    input::text("a key", key, MAX_KEY)
}

async fn list(
    State(app): State<AppState>,
    caller: ApiCaller,
    mut params: QueryParams,
    SessionSegment(session): SessionSegment,
) -> Result<Response, ApiProblem> {
    let (limit, after) = (params.limit(&app)?, params.cursor()?);
    params.done()?;
    let bytes = i64::try_from(app.limits.page_bytes).unwrap_or(i64::MAX);
    let entries = PagedList {
        query: Box::new(move |after, limit| Query::Entries {
            session: session.clone(),
            key: None,
            after,
            limit,
            bytes,
        }),
        at_once: None,
        answered: |answer| match answer {
            QueryAnswer::Entries(entries) => Ok(entries),
            other => Err(unexpected(&other)),
        },
        cursor: |entry: &EntryRecord| &entry.key,
        response: StateEntry::from,
    };
    entries.page::<StatePage<_>>(&caller, &app.limits, limit, after).await
}

async fn get(
    caller: ApiCaller,
    Segments((session, key)): Segments<(String, String)>,
    params: QueryParams,
    headers: HeaderMap,
) -> Result<Response, ApiProblem> {
    params.done()?;
    let session = input::session(&session)?;
    check_key(&key)?;
    // One byte is enough: a page ends with the item that fills it, however large.
    match caller.ask(Query::Entries { session, key: Some(key), after: None, limit: 1, bytes: 1 }).await? {
        QueryAnswer::Entries(page) => match page.items.into_iter().next() {
            None => Err(ApiProblem::no_entry()),
            Some(entry) if input::has(&headers, entry.revision)? => Ok(reply::unchanged(entry.revision)),
            Some(entry) => entry_reply(entry),
        },
        other => Err(unexpected(&other)),
    }
}

/// Response with a value, whose ETag is its revision.
fn entry_reply(entry: EntryRecord) -> Result<Response, ApiProblem> {
    let revision = entry.revision;
    reply::tagged(StatusCode::OK, &StateEntry::from(entry), revision)
}

async fn put(
    State(app): State<AppState>,
    caller: ApiCaller,
    Segments((session, key)): Segments<(String, String)>,
    headers: HeaderMap,
    AnyJson(value): AnyJson,
) -> Result<Response, ApiProblem> {
    super::messages::check_size(&app, &value)?;
    match set(&caller, &session, key, Some(value), &headers).await? {
        ChangeOutcome::Entry(Some(entry)) => entry_reply(entry),
        other => Err(unexpected(&other)),
    }
}

async fn delete(
    caller: ApiCaller,
    Segments((session, key)): Segments<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiProblem> {
    set(&caller, &session, key, None, &headers).await.map(|_| reply::empty(StatusCode::NO_CONTENT))
}

async fn set(
    caller: &ApiCaller,
    session: &str,
    key: String,
    value: Option<JsonText>,
    headers: &HeaderMap,
) -> Result<ChangeOutcome, ApiProblem> {
    match value {
        Some(_) => input::name("key", &key, MAX_KEY)?,
        // A key that was set before deceptive names were refused can still be removed.
        None => check_key(&key)?,
    }
    let if_revision = input::expected_revision(headers)?;
    let change = StoreChange::SetEntry { session: input::session(session)?, key, value, if_revision };
    caller.change(change).await.map_err(|problem| problem.for_precondition(if_revision.is_some()))
}
