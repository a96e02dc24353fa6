//! Sessions.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::Value;
use sessile::Code;
use sessile::session::SessionName;
use sessile_wire::service::limits::{
    DEFAULT_IDLE_MS, DEFAULT_LIFETIME_MS, MAX_LABELS, MAX_LIFETIME_MS, MAX_REASON,
};
use sessile_wire::service::{
    CreateSessionRequest, EditSessionRequest, EndedSession, ServiceSession, SessionPage,
};

use super::super::app::AppState;
use super::super::caller::ApiCaller;
use super::super::input::{self, QueryParams, Segments};
use super::super::json::Json;
use super::super::pages::PagedList;
use super::super::parameters::{CURSOR, LABEL, LIMIT, LIVE, REASON};
use super::super::problem::ApiProblem;
use super::super::queue::unexpected;
use super::super::reply;
use super::super::route::{READ, Route, WRITE};
use crate::account::TokenScope;
use crate::change::{ChangeOutcome, MOST_SETTINGS, StoreChange};
use crate::ids::SessionId;
use crate::model::{Resource, SessionRecord};
use crate::query::{Query, QueryAnswer};

/// A setting is a choice, and not a document.
const SETTING_BYTES: usize = 16 << 10;

/// Sessions that are read at once: their settings may be large.
const AT_ONCE: i64 = 16;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/sessions", WRITE, create)
            .about("createSession", "Start a session")
            .body::<CreateSessionRequest>()
            .replies::<ServiceSession>(201)
            .refuses(&[409]),
        Route::get("/v1/sessions", READ, list)
            .about("listSessions", "List sessions, newest first")
            .params(&[&LIVE, &LABEL, &LIMIT, &CURSOR])
            .replies::<SessionPage>(200),
        Route::get("/v1/sessions/{session}", READ, get)
            .about("getSession", "Show a session, by id or by the name of a live session")
            .replies::<ServiceSession>(200)
            .refuses(&[304, 404]),
        Route::patch("/v1/sessions/{session}", WRITE, edit)
            .about("editSession", "Change a session's name, labels and settings")
            .body::<EditSessionRequest>()
            .replies::<ServiceSession>(200)
            .needs_read_for_body()
            .refuses(&[404, 409, 410, 412]),
        Route::delete("/v1/sessions/{session}", WRITE, end)
            .about("endSession", "End a session and release its locks; idempotent")
            .params(&[&REASON])
            .replies::<EndedSession>(200)
            .needs_read_for_body()
            .refuses(&[404]),
    ]
}

async fn create(caller: ApiCaller, Json(new): Json<CreateSessionRequest>) -> Result<Response, ApiProblem> {
    check_name(new.name.as_deref())?;
    if let Some(context) = &new.context {
        input::text("context", context, 128)?;
    }
    check_labels(&new.labels)?;
    check_settings(&new.settings)?;
    let change = StoreChange::StartSession {
        id: input::new_session_id()?,
        name: new.name,
        context: new.context,
        labels: new.labels,
        // In an edit null removes a setting, so in a new session it stands for none.
        settings: new.settings.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        idle_ms: input::within("idle_ms", new.idle_ms.unwrap_or(DEFAULT_IDLE_MS), 1, MAX_LIFETIME_MS)?,
        max_ms: input::within("max_ms", new.max_ms.unwrap_or(DEFAULT_LIFETIME_MS), 1, MAX_LIFETIME_MS)?,
    };
    session_reply(StatusCode::CREATED, session(caller.change(change).await?)?)
}

async fn list(
    State(app): State<AppState>,
    caller: ApiCaller,
    mut params: QueryParams,
) -> Result<Response, ApiProblem> {
    let limit = params.limit(&app)?;
    let label = match params.text("label") {
        None => None,
        Some(label) => match label.split_once('=') {
            Some((key, value)) => Some((key.to_owned(), value.to_owned())),
            None => return Err(ApiProblem::invalid("label is KEY=VALUE")),
        },
    };
    let live = params.flag("live")?.unwrap_or(true);
    let after = params.cursor()?;
    params.done()?;
    let sessions = PagedList {
        query: Box::new(move |after, limit| Query::Sessions { live, label: label.clone(), after, limit }),
        at_once: Some(AT_ONCE),
        answered: |answer| match answer {
            QueryAnswer::Sessions(sessions) => Ok(sessions),
            other => Err(unexpected(&other)),
        },
        cursor: |session: &SessionRecord| session.id.as_str(),
        response: ServiceSession::from,
    };
    sessions.page::<SessionPage<_>>(&caller, &app.limits, limit, after).await
}

async fn get(
    caller: ApiCaller,
    Segments(which): Segments<String>,
    params: QueryParams,
    headers: HeaderMap,
) -> Result<Response, ApiProblem> {
    params.done()?;
    // 404 and not 400: the answer must not depend on the form of what the caller guessed.
    let session = which.parse().map_err(|_| ApiProblem::no_session())?;
    match caller.ask(Query::Session { session }).await? {
        QueryAnswer::Session(session) if input::has(&headers, session.revision)? => {
            Ok(reply::unchanged(session.revision))
        }
        QueryAnswer::Session(session) => session_reply(StatusCode::OK, session),
        other => Err(unexpected(&other)),
    }
}

async fn edit(
    caller: ApiCaller,
    Segments(which): Segments<String>,
    headers: HeaderMap,
    Json(edit): Json<EditSessionRequest>,
) -> Result<Response, ApiProblem> {
    check_name(edit.name.as_deref())?;
    check_labels(edit.labels.as_ref().unwrap_or(&BTreeMap::new()))?;
    check_settings(&edit.settings)?;
    let if_revision = input::expected_revision(&headers)?;
    let change = StoreChange::EditSession {
        session: input::session(&which)?,
        if_revision,
        name: edit.name,
        labels: edit.labels,
        settings: edit.settings,
    };
    let done =
        caller.change(change).await.map_err(|problem| problem.for_precondition(if_revision.is_some()))?;
    changed_reply(&caller, session(done)?)
}

async fn end(
    caller: ApiCaller,
    Segments(which): Segments<String>,
    mut params: QueryParams,
) -> Result<Response, ApiProblem> {
    let reason = params.text("reason").unwrap_or_else(|| "ended".to_owned());
    params.done()?;
    input::text("reason", &reason, MAX_REASON)?;
    let id = input::session(&which)?;
    let change = StoreChange::EndSession { session: id.clone(), reason };
    let ended = session(caller.change(change).await?)?;
    // After the end, because an ended session can acquire no lock. A repeated request completes an interrupted one.
    let released_locks = release_locks(&caller, id).await?;
    let revision = ended.revision;
    if !caller.token().scopes.contains(&TokenScope::Read) {
        return Ok(reply::changed(revision));
    }
    let ended = EndedSession { session: ended.into(), released_locks };
    reply::tagged(StatusCode::OK, &ended, revision)
}

/// Releases the locks that belong to a session. Returns their names.
async fn release_locks(caller: &ApiCaller, session: SessionId) -> Result<Vec<String>, ApiProblem> {
    let held = match caller.ask(Query::SessionLocks { session }).await? {
        QueryAnswer::SessionLocks(held) => held,
        other => return Err(unexpected(&other)),
    };
    let mut released = Vec::new();
    for (name, token) in held {
        let change = StoreChange::Release { resource: Resource::Lock { name: name.clone() }, token };
        // Without the key of the request, which is the key of the end.
        match caller.bound().change(change, None).await {
            Ok(_) => released.push(name),
            // Released or taken over meanwhile.
            Err(problem) if problem.code() == Code::LockLost => {}
            Err(problem) => return Err(problem),
        }
    }
    released.dedup();
    Ok(released)
}

/// Response with a changed session, of which a token that may not read gets the revision only.
fn changed_reply(caller: &ApiCaller, session: SessionRecord) -> Result<Response, ApiProblem> {
    if caller.token().scopes.contains(&TokenScope::Read) {
        return session_reply(StatusCode::OK, session);
    }
    Ok(reply::changed(session.revision))
}

/// Response with a session, whose ETag is its revision.
pub(super) fn session_reply(status: StatusCode, session: SessionRecord) -> Result<Response, ApiProblem> {
    let revision = session.revision;
    reply::tagged(status, &ServiceSession::from(session), revision)
}

/// The session that a change was about.
pub(super) fn session(done: ChangeOutcome) -> Result<SessionRecord, ApiProblem> {
    match done {
        ChangeOutcome::Session(session) => Ok(session),
        other => Err(unexpected(&other)),
    }
}

/// Refuses an invalid session name.
pub(super) fn check_name(name: Option<&str>) -> Result<(), ApiProblem> {
    match name.map(str::parse::<SessionName>) {
        Some(Err(error)) => {
            Err(ApiProblem::new(StatusCode::BAD_REQUEST, Code::InvalidName, error.to_string()))
        }
        _ => Ok(()),
    }
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), ApiProblem> {
    if labels.len() > MAX_LABELS {
        return Err(ApiProblem::invalid(format!("a session has at most {MAX_LABELS} labels")));
    }
    for (key, value) in labels {
        input::name("label", key, 64)?;
        if !value.is_empty() {
            input::text("a label's value", value, 256)?;
        }
    }
    Ok(())
}

fn check_settings(settings: &BTreeMap<String, Value>) -> Result<(), ApiProblem> {
    if settings.len() > MOST_SETTINGS {
        return Err(ApiProblem::invalid(format!("at most {MOST_SETTINGS} settings can be changed at once")));
    }
    for (key, value) in settings {
        input::name("setting", key, 128)?;
        if serde_json::to_string(value).is_ok_and(|text| text.len() > SETTING_BYTES) {
            return Err(ApiProblem::too_large(format!("a setting has at most {SETTING_BYTES} bytes")));
        }
    }
    Ok(())
}
