//! Reads everything that the panes show.

use std::collections::{HashMap, HashSet};

use sessile::context::{Guard, approval, request};
use sessile::session::Session;
use sessile::session::lifecycle::Lifecycle;

use super::call_source::CallSource;
use super::model::{AgentRow, ContextRow, HistoryRow, LockRow, RequestRow, SessionItem, Snapshot};
use crate::backend::SessionFilter;
use crate::cli::Cx;
use crate::error::Failure;
use crate::local::LocalBackend;
use crate::remote::{self, Remote, ServiceClient};
use crate::settings::app;

/// Operations that are listed.
const MOST_OPERATIONS: usize = 500;

/// Conversations that are listed.
const MOST_CONVERSATIONS: usize = 500;

/// Sessions of a service that are listed.
const MOST_SERVICE_SESSIONS: usize = 500;

/// Sessions that are read at a time.
const BATCH: usize = 1000;

/// Time before its end from which a credential is reported.
const CREDENTIAL_WARNING_MS: i64 = 30 * 60 * 1000;

/// Reads everything. A part that cannot be read is empty, and its error is one of the problems.
pub(super) fn load(cx: &Cx, now_ms: i64, look: impl FnOnce(Vec<Session>) -> Vec<SessionItem>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let mut problems = Vec::new();
    let local = LocalBackend { cx };
    let sessions = part(&mut problems, sessions(cx));
    snapshot.sessions = look(sessions);
    snapshot.contexts = part(&mut problems, contexts(cx, now_ms));
    let requests = request::pending(&cx.state).map_err(Failure::from);
    snapshot.requests = part(&mut problems, requests).into_iter().map(RequestRow::from).collect();
    snapshot.locks = part(&mut problems, local.locks()).iter().flat_map(LockRow::of).collect();
    let operations = part(&mut problems, local.history(None, MOST_OPERATIONS, None));
    snapshot.operations = operations.iter().map(HistoryRow::from).collect();
    let conversations = part(&mut problems, local.list_conversations(None, true, None, MOST_CONVERSATIONS));
    snapshot.agents = conversations.iter().map(AgentRow::from).collect();
    let agents = part(&mut problems, cx.state.agents().map_err(Failure::from));
    snapshot.agents.extend(agents.iter().map(AgentRow::from));
    snapshot.credentials = credentials(cx, now_ms);
    snapshot.server = server(cx);
    // A session that was deleted meanwhile is not marked, which is not an error.
    let current = cx.state.session().ok().flatten().map(|current| current.session.id.to_string());
    mark(&mut snapshot, current.as_deref());
    snapshot.problems = problems;
    snapshot
}

fn part<T: Default>(problems: &mut Vec<String>, part: Result<T, Failure>) -> T {
    part.unwrap_or_else(|failure| {
        let message = failure.report(&app()).map_or_else(String::new, |report| report.message);
        // One cause usually keeps several parts from being read.
        if !problems.contains(&message) {
            problems.push(message);
        }
        T::default()
    })
}

fn sessions(cx: &Cx) -> Result<Vec<Session>, Failure> {
    let Some(sessions) = cx.state.sessions_to_look_at()? else { return Ok(Vec::new()) };
    let (mut all, mut cursor): (Vec<Session>, Option<String>) = (Vec::new(), None);
    loop {
        let batch = sessions.list(cursor.as_deref(), true, BATCH)?;
        cursor = batch.last().map(|last| last.id.to_string());
        let is_last = batch.len() < BATCH;
        all.extend(batch);
        if is_last {
            return Ok(all);
        }
    }
}

fn contexts(cx: &Cx, now_ms: i64) -> Result<Vec<ContextRow>, Failure> {
    let approvals = approval::in_force(&cx.state)?;
    let selected = cx.state.selected().ok().flatten().map(|selected| selected.name.to_string());
    let rows = cx.state.contexts().list()?.into_iter().map(|(name, context)| {
        let name = name.to_string();
        let left = approvals.iter().filter(|one| one.context == name).map(|one| one.time_left).max();
        let until = left.map(|left| now_ms + i64::try_from(left.as_millis()).unwrap_or(i64::MAX / 2));
        let is_current = selected.as_ref() == Some(&name);
        let row = match context {
            Ok(context) => ContextRow::new(&context),
            Err(error) => ContextRow::broken(name, error.to_string()),
        };
        ContextRow { approved_until_ms: until, is_current, ..row }
    });
    Ok(rows.collect())
}

/// Credentials that end soon. A locked vault stays locked.
fn credentials(cx: &Cx, now_ms: i64) -> Vec<(String, i64)> {
    let expiring = cx.state.expiring_credentials(now_ms.saturating_add(CREDENTIAL_WARNING_MS));
    expiring.into_iter().map(|(name, end_ms)| (name.to_string(), end_ms)).collect()
}

fn server(cx: &Cx) -> Option<String> {
    let found = cx.state.settings().ok()?.get(remote::KEY).ok()??;
    remote::means_server(&found.value).then(|| found.value.to_string())
}

/// Adds to rows what other rows say.
fn mark(snapshot: &mut Snapshot, current: Option<&str>) {
    let guards: HashMap<&str, Guard> =
        snapshot.contexts.iter().map(|context| (context.name.as_str(), context.guard)).collect();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for row in &mut snapshot.sessions {
        row.is_current = Some(row.id.as_str()) == current;
        if let Some(context) = &row.context {
            row.guard = guards.get(context.as_str()).copied();
            if row.state == Lifecycle::Live {
                *counts.entry(context.clone()).or_default() += 1;
            }
        }
    }
    let live: HashSet<&str> = snapshot
        .sessions
        .iter()
        .filter(|row| row.state == Lifecycle::Live)
        .map(|row| row.id.as_str())
        .collect();
    for row in &mut snapshot.agents {
        row.session = row.session.take().filter(|session| live.contains(session.as_str()));
    }
    for context in &mut snapshot.contexts {
        context.sessions = counts.get(&context.name).copied().unwrap_or(0);
        context.requests = snapshot.requests.iter().filter(|one| one.context == context.name).count();
    }
}

/// Sessions of the selected service; none if no service is set.
pub(super) fn service_sessions(calls: &CallSource) -> Result<Option<Vec<SessionItem>>, Failure> {
    let cx = calls.call("session list")?;
    if server(&cx).is_none() {
        return Ok(None);
    }
    let Some(server) = ServiceClient::of(&cx, &cx.state)? else { return Ok(None) };
    let filter = SessionFilter {
        state: Some(Lifecycle::Live),
        context: None,
        labels: &[],
        older_than: None,
        newer_than: None,
        limit: MOST_SERVICE_SESSIONS,
        cursor: None,
    };
    let listing = Remote { server, cx: &cx }.list_sessions(&filter, false)?;
    let now_ms = calls.now_ms();
    Ok(Some(listing.sessions.iter().map(|view| SessionItem::new(view, now_ms)).collect()))
}
