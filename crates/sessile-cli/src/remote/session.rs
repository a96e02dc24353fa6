//! Sessions of a service, as views.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use sessile::error::{SessionError, UsageError};
use sessile::session::lifecycle::Lifecycle;
use sessile::session::{Owner, SessionId, SessionName};
use sessile::settings::{Layer, Origin};
use sessile::text::{quoted, shown};
use sessile::{Code, Error, Report, State};
use sessile_wire::service::{
    CreateSessionRequest, EditSessionRequest, MessagePage, ServiceMessage, ServiceSession, SessionPage,
};

use super::args::{KEY, text};
use super::client::{ServiceClient, ServiceRequest};
use super::error::Subject;
use crate::backend::{SessionFilter, SessionSpec};
use crate::cli::Cx;
use crate::error::{Failure, Outcome, RequestError};
use crate::view::{
    AGENT_LABEL, ChangePlace, ChangeReport, ServiceSessionSnapshot, SessionDetailView, SessionListing,
    SessionRenameView, SessionStartView, SessionStopView, SessionView,
};

/// Fails if this call would start a session on this machine and the configured server has one of the same name:
/// commands run on this machine only, and the caller may mean the other.
pub(crate) fn refuse_namesake(cx: &Cx) -> Outcome {
    let Some(pending) = cx.state.pending_session()? else { return Ok(()) };
    let configured = cx.state.settings()?.get(KEY)?;
    // `--server` of `run` names the service of its lock, not of its session.
    let is_of_lock = |origin: &Origin| origin.name.as_deref() == Some("--server");
    let Some(url) =
        configured.filter(|found| !is_of_lock(&found.origin)).and_then(|found| text(&found.value))
    else {
        return Ok(());
    };
    let name = pending.name.to_string();
    let here = "use a local session: --set server=";
    let found = match ServiceClient::of(cx, &cx.state)? {
        Some(server) => Remote { server, cx }.find(&name, false),
        None => return Ok(()),
    };
    let mut report = match found {
        Err(Failure::Library(Error::Session(SessionError::NotFound(_)))) => return Ok(()),
        Ok(_) => Report::new(
            Code::SessionExists,
            format!(
                "session {} exists on {}, but commands run in local sessions only",
                quoted(&name),
                shown(url)
            ),
        ),
        // A server that does not answer may have the session.
        Err(failure) => match failure.report(cx.state.app()) {
            Some(report) => report,
            None => return Err(failure),
        },
    };
    report.hint = Some(match report.hint.filter(|_| report.code != Code::SessionExists) {
        Some(hint) => format!("{hint}; or {here}"),
        None => format!("choose another name, or {here}"),
    });
    Err(Failure::Remote(Box::new(report)))
}

/// Response to the end of a session. A token without read access gets no more.
#[derive(Deserialize)]
struct EndReply {
    #[serde(default)]
    released_locks: Vec<String>,
}

/// Session service, for one call.
pub(crate) struct Remote<'a> {
    pub(crate) server: ServiceClient,
    pub(crate) cx: &'a Cx,
}

impl<'a> Remote<'a> {
    fn state(&self) -> &'a State {
        &self.cx.state
    }

    /// Name of this call's session, and whether a variable gave it.
    pub(super) fn named(&self) -> Option<(&str, bool)> {
        let text = self.state().args().session.as_deref()?;
        Some((text, self.state().session_origin().layer == Layer::Environment))
    }

    /// Session of a command: that of the argument, else that of the call. The call cannot select another context.
    pub(super) fn resolve_session(&self, given: Option<&str>, what: &str) -> Result<ServiceSession, Failure> {
        if let Some(text) = given {
            return self.find(text, false);
        }
        let (text, by_variable) = self.named().ok_or_else(|| SessionError::Required(what.to_owned()))?;
        let session = self.find(text, by_variable)?;
        self.state().contexts().require_pinned(session.label(), session.context.as_deref())?;
        Ok(session)
    }

    /// The same, for what only works in one that lives.
    pub(super) fn require(&self, what: &str) -> Result<ServiceSession, Failure> {
        let session = self.resolve_session(None, what)?;
        match ServiceSessionSnapshot::life_at(&session, self.now_ms()) {
            Lifecycle::Live => Ok(session),
            life => Err(expired(session, life).into()),
        }
    }

    /// Session of this call, started if missing; with whether it was started.
    pub(crate) fn require_or_start(
        &self,
        what: &str,
        lifetime: impl FnOnce() -> Result<(Duration, Duration), Error>,
    ) -> Result<(ServiceSession, bool), Failure> {
        let missing = |failure: &Failure| {
            matches!(failure, Failure::Library(Error::Session(SessionError::NotFound(_))))
        };
        match (self.require(what), self.named()) {
            (Err(failure), Some((name, false)))
                // An id that does not exist is a mistake, and not the name of a new session.
                if missing(&failure) && name.parse::<SessionId>().is_err() =>
            {
                let (idle, max) = lifetime()?;
                let body = CreateSessionRequest {
                    name: Some(name.to_owned()),
                    context: self.selected_context()?.map(|(name, _)| name),
                    idle_ms: Some(millis(idle)),
                    max_ms: Some(millis(max)),
                    ..CreateSessionRequest::default()
                };
                match self.create(&body) {
                    // Another was quicker: then it is that one.
                    Err(Failure::Library(Error::Session(SessionError::Exists(_)))) => {
                        Ok((self.require(what)?, false))
                    }
                    created => Ok((created?, true)),
                }
            }
            (found, _) => Ok((found?, false)),
        }
    }

    /// Fails unless the context of a session is ready for use on this machine, whose contexts and guards it has.
    pub(crate) fn require_context_of(&self, session: &ServiceSession) -> Outcome {
        match &session.context {
            Some(name) => Ok(self.state().contexts().require_of_session(session.label(), name).map(drop)?),
            None => Ok(()),
        }
    }

    pub(super) fn find(&self, session: &str, by_variable: bool) -> Result<ServiceSession, Failure> {
        let about = Subject { session, by_variable, ..Subject::default() };
        self.server.ask(&ServiceRequest::get(&["v1", "sessions", session]), &about)
    }

    /// Context that is selected on this machine, with its origin. Its guard is checked here.
    fn selected_context(&self) -> Result<Option<(String, Origin)>, Error> {
        let context = self.state().usable_context()?;
        let (Some(context), Some(selected)) = (context, self.state().selected()?) else { return Ok(None) };
        if context.name.is_anonymous() {
            let what = "--bind requires a session on this machine; create a context for one of a server";
            return Err(UsageError::Arguments(what.into()).into());
        }
        Ok(Some((context.name.to_string(), selected.origin.clone())))
    }

    fn create(&self, body: &CreateSessionRequest) -> Result<ServiceSession, Failure> {
        let about = Subject { name: body.name.as_deref().unwrap_or_default(), ..Subject::default() };
        self.server.ask(&ServiceRequest::post(&["v1", "sessions"], body)?, &about)
    }

    pub(crate) fn start_session(
        &self,
        spec: SessionSpec<'_>,
        replaced: Option<&str>,
    ) -> Result<ChangeReport<SessionStartView>, Failure> {
        let SessionSpec { name, mut labels, agent, idle, max } = spec;
        // Before the replaced session is ended: a guard that refuses leaves it alive.
        let (context, origin) = self.selected_context()?.unzip();
        let replaced = replaced.map(|text| self.resolve_session(Some(text), "replacing")).transpose()?;
        if let Some(replaced) = &replaced {
            self.end(replaced)?;
        }
        labels.extend(agent.map(|agent| (AGENT_LABEL.to_owned(), agent.to_owned())));
        let session = self.create(&CreateSessionRequest {
            name: name.map(SessionName::to_string),
            context,
            labels,
            settings: BTreeMap::new(),
            idle_ms: Some(millis(idle)),
            max_ms: Some(millis(max)),
        })?;
        let change = SessionStartView {
            session: self.view(&session, &self.owner()?),
            replaced: replaced.map(|replaced| replaced.id),
            selected_for_terminal: false,
            left_running: None,
            is_hooked: false,
        };
        Ok(ChangeReport { change, place: self.place_of(&session, origin) })
    }

    pub(crate) fn rename_session(
        &self,
        given: &str,
        new: &SessionName,
    ) -> Result<ChangeReport<SessionRenameView>, Failure> {
        let session = self.resolve_session(Some(given), "renaming")?;
        let about = Subject { session: session.label(), name: new.as_str(), ..Subject::default() };
        let body = EditSessionRequest { name: Some(new.to_string()), ..EditSessionRequest::default() };
        let request = ServiceRequest::patch(&["v1", "sessions", &session.id], &body)?;
        self.server.tell(&request, &about)?;
        let place = self.place(&session);
        let change = SessionRenameView { id: session.id, old: session.name, new: new.to_string() };
        Ok(ChangeReport { change, place })
    }

    fn end(&self, session: &ServiceSession) -> Result<EndReply, Failure> {
        let about = Subject { session: session.label(), ..Subject::default() };
        let request = ServiceRequest::delete(&["v1", "sessions", &session.id])?.with("reason", &"stopped");
        self.server.ask(&request, &about)
    }

    pub(crate) fn stop_session(&self, given: Option<&str>) -> Result<ChangeReport<SessionStopView>, Failure> {
        let session = self.resolve_session(given, "stopping")?;
        let was_over = session.ended_ms.is_some();
        let EndReply { released_locks } = self.end(&session)?;
        let place = self.place(&session);
        let (id, name) = (session.id, session.name);
        let change = SessionStopView { id, name, ended_processes: Vec::new(), released_locks, was_over };
        Ok(ChangeReport { change, place })
    }

    /// Ends a session that was started for a message that the service refused, if it has no other messages. Without a
    /// response the fate of the message is unknown, so the session stays. If it cannot be ended now, it expires.
    pub(crate) fn end_unused(&self, session: &ServiceSession, failure: &Failure) {
        if matches!(
            failure,
            Failure::Request(RequestError::TimedOut { .. } | RequestError::Unreachable { .. })
        ) {
            return;
        }
        let request = ServiceRequest::get(&["v1", "sessions", &session.id, "messages"]).with("limit", &1);
        let page: Result<MessagePage<ServiceMessage>, _> = self.server.ask(&request, &Subject::default());
        // Another process may have used the new session by its name.
        if page.is_ok_and(|page| page.messages.is_empty()) {
            let _ = self.end(session);
        }
    }

    /// A service knows of no conversations with agents.
    pub(crate) fn list_sessions(
        &self,
        filter: &SessionFilter<'_>,
        with_conversations: bool,
    ) -> Result<SessionListing, Failure> {
        let (owner, now) = (self.owner()?, self.now_ms());
        let only_live = filter.state == Some(Lifecycle::Live);
        let mut query = vec![("live", only_live.to_string()), ("limit", "1000".to_owned())];
        query.extend(filter.cursor.map(|id| ("cursor", cursor(id))));
        let about = Subject::default();
        let all = self.server.pages::<SessionPage>(&["v1", "sessions"], &query, usize::MAX, &about)?;
        // The service knows neither contexts nor ages as filters.
        let matching = all.iter().filter(|session| {
            let age = now.saturating_sub(session.started_ms);
            filter.matches(session.context.as_deref(), &session.labels, age)
        });
        let matching = matching.map(|session| self.view(session, &owner));
        let mut views: Vec<SessionView> =
            matching.filter(|view| filter.matches_state(view.state)).take(filter.limit).collect();
        if with_conversations {
            views.iter_mut().for_each(|view| view.conversations = Some(Vec::new()));
        }
        // As it was named, be it by its name.
        let named = self.state().args().session.as_deref();
        let is_named = |view: &&SessionView| {
            named.is_some() && [Some(view.id.as_str()), view.name.as_deref()].contains(&named)
        };
        let current = views.iter().find(is_named).map(|view| view.id.clone());
        Ok(SessionListing { sessions: views, current })
    }

    pub(crate) fn show_session(&self, given: Option<&str>) -> Result<SessionDetailView, Failure> {
        let session = self.resolve_session(given, "showing")?;
        Ok(SessionDetailView {
            session: self.view(&session, &self.owner()?),
            state_values: self.values_of(&session)?.len(),
            settings: session.settings,
            tools: Vec::new(),
            drift: Vec::new(),
            changed: Vec::new(),
            logs: Vec::new(),
            conversations: Vec::new(),
        })
    }

    /// Owner of the sessions: the user of the token.
    fn owner(&self) -> Result<Owner, Failure> {
        let me = self.server.me()?;
        let host = self.server.url().split_once("://").map_or("", |(_, rest)| rest);
        Ok(Owner {
            user: me.user,
            host: host.split('/').next().unwrap_or_default().to_owned(),
            terminal: None,
            process: None,
            agent: None,
        })
    }

    fn now_ms(&self) -> i64 {
        self.state().world().now().as_millisecond()
    }

    fn view(&self, session: &ServiceSession, owner: &Owner) -> SessionView {
        SessionView::from(ServiceSessionSnapshot { session, owner, now_ms: self.now_ms() })
    }

    /// Place of a change in a session.
    pub(crate) fn place(&self, session: &ServiceSession) -> ChangePlace {
        let origin = session.context.as_ref().map(|_| Origin::named(Layer::Session, session.label()));
        self.place_of(session, origin)
    }

    fn place_of(&self, session: &ServiceSession, origin: Option<Origin>) -> ChangePlace {
        let context = ChangePlace::context_words(session.context.as_deref(), origin.as_ref());
        ChangePlace {
            session: Some(session.id.clone()),
            context: session.context.clone(),
            context_origin: origin,
            words: format!("{context}, session {} at {}", session.id, self.server.url()),
            is_local: false,
        }
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn expired(session: ServiceSession, life: Lifecycle) -> Error {
    let label = session.label().to_owned();
    let ServiceSession { name, context, .. } = session;
    SessionError::Expired { session: label, ended: life == Lifecycle::Ended, name, context }.into()
}

/// Cursor of the page after an item.
pub(super) fn cursor(last: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(last)
}
