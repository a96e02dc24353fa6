//! Messages of a session.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::value::{RawValue, to_raw_value};
use sessile_wire::service::limits::DEFAULT_PAGE_ITEMS;
use sessile_wire::service::{
    AppendRequest, ForkRequest, MessagePage, ReplyResponse, RewindRequest, RewindResponse, ServiceMessage,
    ServiceSession,
};

use super::super::app::AppState;
use super::super::caller::{ApiCaller, UserStore};
use super::super::input::{self, QueryParams, Segments, SessionSegment};
use super::super::json::{Json, as_sent};
use super::super::parameters::{AFTER, BUSY, HISTORY, LAST, LIMIT, REPLY, WAIT_MS};
use super::super::problem::ApiProblem;
use super::super::queue::unexpected;
use super::super::reply;
use super::super::response::appended;
use super::super::route::{BOTH, READ, Route, WRITE};
use super::{replies, sessions};
use crate::change::{ChangeOutcome, StoreChange};
use crate::ids::SessionId;
use crate::json_text::JsonText;
use crate::model::MessageRecord;
use crate::query::{PageSize, Query, QueryAnswer};

/// Messages that are serialized before other tasks of this thread run.
const AT_ONCE: usize = 64;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/sessions/{session}/messages", WRITE, append)
            .about("appendMessages", "Append messages atomically, unless the turn is held. With `reply`, in a turn and with the upstream's reply")
            .params(&[&REPLY, &BUSY, &WAIT_MS, &HISTORY])
            .body::<AppendRequest>()
            .replies::<ReplyResponse>(201)
            .may_stream()
            .refuses(&[404, 409, 410, 502, 504]),
        Route::get("/v1/sessions/{session}/messages", READ, list)
            .about("listMessages", "List messages after a number, or the last ones, oldest first")
            .params(&[&AFTER, &LAST, &LIMIT])
            .replies::<MessagePage>(200)
            .refuses(&[404]),
        Route::post("/v1/sessions/{session}/rewind", WRITE, rewind)
            .about("rewindSession", "Remove all messages after one, unless the turn is held")
            .body::<RewindRequest>()
            .replies::<RewindResponse>(200)
            .refuses(&[404, 409, 410]),
        Route::post("/v1/sessions/{session}/fork", BOTH, fork)
            .about("forkSession", "Start a session with the messages of this one, up to one of them")
            .body::<ForkRequest>()
            .replies::<ServiceSession>(201)
            .refuses(&[404, 409]),
    ]
}

async fn append(
    State(app): State<AppState>,
    caller: ApiCaller,
    Segments(session): Segments<String>,
    mut params: QueryParams,
    headers: HeaderMap,
    Json(new): Json<AppendRequest>,
) -> Result<Response, ApiProblem> {
    let wanted = replies::wanted(&app, &mut params)?;
    params.done()?;
    if new.messages.is_empty() {
        return Err(ApiProblem::invalid("no messages to append"));
    }
    let messages = check_messages(&app, &new.messages)?;
    let if_last =
        new.if_last.map(|last| input::within("if_last", last, 0, input::MAX_INTEGER)).transpose()?;
    let session = input::session(&session)?;
    if let Some(wanted) = wanted {
        return replies::complete(app, caller, session, (messages, if_last), wanted, &headers).await;
    }
    let change = StoreChange::Append { session, bodies: messages, if_last };
    reply::json(StatusCode::CREATED, &appended(&caller.change(change).await?)?)
}

async fn list(
    State(app): State<AppState>,
    caller: ApiCaller,
    mut params: QueryParams,
    SessionSegment(session): SessionSegment,
) -> Result<Response, ApiProblem> {
    let after = params.number("after", 0, input::MAX_INTEGER)?;
    let limit = params.number("limit", 1, app.limits.page)?;
    let last = params.number("last", 1, app.limits.page)?;
    params.done()?;
    match (last, after.or(limit)) {
        (Some(_), Some(_)) => Err(ApiProblem::usage("`last` cannot be used with `after` or `limit`")),
        (Some(last), None) => {
            let query = Query::LastMessages { session, limit: last, bytes: page_bytes(&app) };
            let messages = written_from_end(&app, read(caller.ask(query).await?)?).await?;
            reply::json(StatusCode::OK, &MessagePage { messages, next: None })
        }
        (None, _) => {
            let limit = limit.unwrap_or(DEFAULT_PAGE_ITEMS.min(app.limits.page));
            page(&app, &caller, session, after.unwrap_or(0), limit).await
        }
    }
}

async fn page(
    app: &AppState,
    caller: &ApiCaller,
    session: SessionId,
    after: i64,
    limit: i64,
) -> Result<Response, ApiProblem> {
    let query = Query::Messages { session, after, limit, bytes: page_bytes(app) };
    let read = read(caller.ask(query).await?)?;
    let mut size = PageSize::new(page_bytes(app));
    read.iter().for_each(|message| size.add(&message.body));
    let numbers: Vec<i64> = read.iter().map(|message| message.number).collect();
    let is_end = !size.is_full() && i64::try_from(read.len()).is_ok_and(|read| read < limit);
    let messages = written(app, read.into_iter()).await?;
    // Bodies grow when they are serialized as messages, so fewer may fit than the store counted.
    let is_end = is_end && messages.len() == numbers.len();
    let last = messages.len().checked_sub(1).and_then(|last| numbers.get(last).copied());
    let next = (!is_end).then(|| last.unwrap_or(after));
    reply::json(StatusCode::OK, &MessagePage { messages, next })
}

async fn rewind(
    caller: ApiCaller,
    Segments(session): Segments<String>,
    Json(rewind): Json<RewindRequest>,
) -> Result<Response, ApiProblem> {
    let to = input::within("to", rewind.to, 0, input::MAX_INTEGER)?;
    match caller.change(StoreChange::Rewind { session: input::session(&session)?, to }).await? {
        ChangeOutcome::Rewound { removed } => reply::json(StatusCode::OK, &RewindResponse { removed }),
        other => Err(unexpected(&other)),
    }
}

async fn fork(
    caller: ApiCaller,
    Segments(session): Segments<String>,
    Json(fork): Json<ForkRequest>,
) -> Result<Response, ApiProblem> {
    sessions::check_name(fork.name.as_deref())?;
    let at = fork.at.map(|at| input::within("at", at, 0, input::MAX_INTEGER)).transpose()?;
    let session = input::session(&session)?;
    let change = StoreChange::Fork { session, at, id: input::new_session_id()?, name: fork.name };
    sessions::session_reply(StatusCode::CREATED, sessions::session(caller.change(change).await?)?)
}

/// Messages for the store, checked for number and size.
pub(super) fn check_messages(
    app: &AppState,
    messages: &[Box<RawValue>],
) -> Result<Vec<JsonText>, ApiProblem> {
    if messages.len() > app.limits.messages {
        return Err(ApiProblem::invalid(format!(
            "at most {} messages are allowed in a request",
            app.limits.messages
        )));
    }
    let messages = as_sent(messages)?;
    messages.iter().try_for_each(|message| check_size(app, message))?;
    Ok(messages)
}

/// Refuses a message or value that is too large.
pub(super) fn check_size(app: &AppState, value: &JsonText) -> Result<(), ApiProblem> {
    let most = app.limits.message_bytes;
    if value.get().len() > most {
        return Err(ApiProblem::too_large(format!(
            "messages and values must not be larger than {most} bytes"
        )));
    }
    Ok(())
}

/// Last messages, oldest first: as many as requested, or as fit into a page.
pub(crate) async fn last_messages(
    app: &AppState,
    bound: &UserStore,
    session: &SessionId,
    count: i64,
) -> Result<Vec<Box<RawValue>>, ApiProblem> {
    let query = Query::LastMessages { session: session.clone(), limit: count, bytes: page_bytes(app) };
    written_from_end(app, read(bound.peek(query).await?)?).await
}

/// Bodies of the last messages, oldest first: as many as requested, or as fit into a page.
pub(crate) async fn last_bodies(
    app: &AppState,
    bound: &UserStore,
    session: &SessionId,
    count: i64,
) -> Result<Vec<JsonText>, ApiProblem> {
    let query = Query::LastMessages { session: session.clone(), limit: count, bytes: page_bytes(app) };
    let (mut bytes, mut bodies) = (0, Vec::new());
    for message in read(bound.peek(query).await?)?.into_iter().rev() {
        bytes += message.body.get().len();
        if bytes > app.limits.page_bytes && !bodies.is_empty() {
            break;
        }
        bodies.push(message.body);
    }
    bodies.reverse();
    Ok(bodies)
}

fn page_bytes(app: &AppState) -> i64 {
    i64::try_from(app.limits.page_bytes).unwrap_or(i64::MAX)
}

fn read(answer: QueryAnswer) -> Result<Vec<MessageRecord>, ApiProblem> {
    match answer {
        QueryAnswer::Messages(messages) => Ok(messages),
        other => Err(unexpected(&other)),
    }
}

/// Messages as JSON: those that fit into a page, and the first one in any case.
async fn written(
    app: &AppState,
    messages: impl Iterator<Item = MessageRecord>,
) -> Result<Vec<Box<RawValue>>, ApiProblem> {
    let (mut bytes, mut written) = (0, Vec::new());
    for message in messages {
        let raw = to_raw_value(&ServiceMessage::from(message))
            .map_err(|error| ApiProblem::internal(error.to_string()))?;
        bytes += raw.get().len();
        // One message may be larger than a page.
        if bytes > app.limits.page_bytes && !written.is_empty() {
            break;
        }
        written.push(raw);
        // Serializing a full page would keep this thread from all other requests.
        if written.len() % AT_ONCE == 0 {
            tokio::task::yield_now().await;
        }
    }
    Ok(written)
}

/// The same from the end to the beginning, because the oldest are those that do not fit.
async fn written_from_end(
    app: &AppState,
    messages: Vec<MessageRecord>,
) -> Result<Vec<Box<RawValue>>, ApiProblem> {
    let mut written = written(app, messages.into_iter().rev()).await?;
    written.reverse();
    Ok(written)
}
