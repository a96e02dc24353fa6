//! Sessions of a service, as commands show them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sessile::context::approval::time;
use sessile::error::SessionError;
use sessile::session::life::Life;
use sessile::session::{Owner, SessionId};
use sessile::settings::{Layer, Origin};
use sessile::{Error, State};
use sessile_wire::service::{
    CreateSessionRequest, EditSessionRequest, MessagePage, ServiceMessage, ServiceSession, SessionPage,
};

use super::client::{ServiceClient, ServiceRequest};
use super::error::Subject;
use crate::cli::Cx;
use crate::error::{Failure, Outcome, RequestError};

/// The label that keeps what an agent calls itself, which a service has no place of its own for.
const AGENT: &str = "sessile.agent";

/// The sessions of a service, for one call.
pub(crate) struct Remote<'a> {
    pub(crate) server: ServiceClient,
    state: &'a State,
}

/// A session to start.
pub(crate) struct SessionSpec<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) context: Option<&'a str>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) agent: Option<&'a str>,
    pub(crate) idle: std::time::Duration,
    pub(crate) max: std::time::Duration,
}

impl<'a> Remote<'a> {
    /// The sessions of the server that a call means; `None` if it means those of this machine.
    pub(crate) fn of(cx: &'a Cx) -> Result<Option<Self>, Failure> {
        Ok(ServiceClient::of(cx, &cx.state)?.map(|server| Remote { server, state: &cx.state }))
    }

    /// What named the session of this call, and whether that was a variable.
    pub(super) fn named(&self) -> Option<(&str, bool)> {
        let text = self.state.args().session.as_deref()?;
        Some((text, self.state.session_origin().layer == Layer::Environment))
    }

    /// The session that a command is about: the one given, else the one this call works in, in which no other context can
    /// be asked for.
    pub(crate) fn meant(&self, given: Option<&str>, what: &str) -> Result<ServiceSession, Failure> {
        if let Some(text) = given {
            return self.find(text, false);
        }
        let (text, by_variable) = self.named().ok_or_else(|| SessionError::Required(what.to_owned()))?;
        let session = self.find(text, by_variable)?;
        self.state.contexts().require_pinned(session.label(), session.context.as_deref())?;
        Ok(session)
    }

    /// The same, for what only works in one that lives.
    pub(crate) fn require(&self, what: &str) -> Result<ServiceSession, Failure> {
        let session = self.meant(None, what)?;
        match self.life(&session) {
            Life::Live => Ok(session),
            life => Err(expired(session, life).into()),
        }
    }

    /// The session of this call, which is started if there is none of that name.
    pub(crate) fn require_or_start(
        &self,
        what: &str,
        start: impl FnOnce(&str) -> Result<ServiceSession, Failure>,
    ) -> Result<ServiceSession, Failure> {
        let missing = |failure: &Failure| {
            matches!(failure, Failure::Library(Error::Session(SessionError::NotFound(_))))
        };
        match (self.require(what), self.named()) {
            (Err(failure), Some((name, false)))
                if missing(&failure) && name.parse::<SessionId>().is_err() =>
            {
                match start(name) {
                    // Another was quicker: then it is that one.
                    Err(Failure::Library(Error::Session(SessionError::Exists(_)))) => self.require(what),
                    started => started,
                }
            }
            (found, _) => found,
        }
    }

    /// Fails unless the context of a session is ready for use on this machine, whose contexts and guards it has.
    pub(crate) fn require_context_of(&self, session: &ServiceSession) -> Outcome {
        match &session.context {
            Some(name) => Ok(self.state.contexts().require_of_session(session.label(), name).map(drop)?),
            None => Ok(()),
        }
    }

    pub(super) fn find(&self, session: &str, by_variable: bool) -> Result<ServiceSession, Failure> {
        let about = Subject { session, by_variable, ..Subject::default() };
        self.server.ask(&ServiceRequest::get(&["v1", "sessions", session]), &about)
    }

    /// Starts a session.
    pub(crate) fn start(&self, new: SessionSpec<'_>) -> Result<ServiceSession, Failure> {
        let mut labels = new.labels;
        labels.extend(new.agent.map(|agent| (AGENT.to_owned(), agent.to_owned())));
        let millis = |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let body = CreateSessionRequest {
            name: new.name.map(str::to_owned),
            context: new.context.map(str::to_owned),
            labels,
            settings: BTreeMap::new(),
            idle_ms: Some(millis(new.idle)),
            max_ms: Some(millis(new.max)),
        };
        let about = Subject { name: new.name.unwrap_or_default(), ..Subject::default() };
        self.server.ask(&ServiceRequest::post(&["v1", "sessions"], &body)?, &about)
    }

    /// Changes a session's name.
    pub(crate) fn rename(&self, session: &ServiceSession, name: &str) -> Result<(), Failure> {
        let about = Subject { session: session.label(), name, ..Subject::default() };
        let body = EditSessionRequest { name: Some(name.to_owned()), ..EditSessionRequest::default() };
        let request = ServiceRequest::patch(&["v1", "sessions", &session.id], &body)?;
        self.server.tell(&request, &about)
    }

    /// Ends a session.
    pub(crate) fn end(&self, session: &ServiceSession) -> Outcome {
        let about = Subject { session: session.label(), ..Subject::default() };
        let request = ServiceRequest::delete(&["v1", "sessions", &session.id])?.with("reason", &"stopped");
        self.server.tell(&request, &about)
    }

    /// Ends a session that was started for a message, if the service refused that and nothing else was said in it. Whoever
    /// gets no answer does not know what becomes of the message. If it cannot be ended now, it expires.
    pub(crate) fn end_unused(&self, session: &ServiceSession, failure: &Failure) {
        if matches!(
            failure,
            Failure::Request(RequestError::TimedOut { .. } | RequestError::Unreachable { .. })
        ) {
            return;
        }
        let request = ServiceRequest::get(&["v1", "sessions", &session.id, "messages"]).with("limit", &1);
        let page: Result<MessagePage<ServiceMessage>, _> = self.server.ask(&request, &Subject::default());
        if page.is_ok_and(|page| page.messages.is_empty()) {
            let _ = self.end(session);
        }
    }

    /// Sessions, the newest first, from the one after this id.
    pub(crate) fn list(&self, after: Option<&str>, only_live: bool) -> Result<Vec<ServiceSession>, Failure> {
        let mut query = vec![("live", only_live.to_string()), ("limit", "1000".to_owned())];
        query.extend(after.map(|id| ("cursor", cursor(id))));
        let about = Subject::default();
        self.server.pages::<SessionPage>(&["v1", "sessions"], &query, usize::MAX, &about)
    }

    /// Who has sessions there: the user of the token.
    pub(crate) fn owner(&self) -> Result<Owner, Failure> {
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

    /// Prints what a change did, with the context and the session it was done in.
    pub(crate) fn changed(
        &self,
        cx: &Cx,
        session: &ServiceSession,
        json: Value,
        text: impl FnOnce() -> String,
    ) -> Outcome {
        let origin = session.context.as_ref().map(|_| Origin::named(Layer::Session, session.label()));
        let place = self.place(session);
        cx.changed_there(&session.id, session.context.as_deref(), origin.as_ref(), &place, json, text)
    }

    /// A session, and where it is.
    pub(crate) fn place(&self, session: &ServiceSession) -> String {
        format!("session {} at {}", session.id, self.server.url())
    }
}

impl Remote<'_> {
    fn life(&self, session: &ServiceSession) -> Life {
        match session.ended_ms {
            Some(_) => Life::Ended,
            None if session.expires_ms <= self.state.world().now().as_millisecond() => Life::Expired,
            None => Life::Live,
        }
    }

    /// Session as JSON, in the form of a local one; nothing of it runs here, and it has no room.
    pub(crate) fn describe(&self, session: &ServiceSession, owner: &Owner) -> Value {
        let (life, now) = (self.life(session), self.state.world().now().as_millisecond());
        let mut labels = session.labels.clone();
        let owner = Owner { agent: labels.remove(AGENT), ..owner.clone() };
        json!({
            "id": session.id,
            "name": session.name,
            "state": life,
            "context": session.context,
            "owner": owner,
            "labels": labels,
            "started_at": time(session.started_ms),
            "idle_ms": now.saturating_sub(session.used_ms).max(0),
            "idle_limit_ms": session.idle_ms,
            "max_ms": session.max_ms,
            "expires_at": (life != Life::Ended).then(|| time(session.expires_ms)),
            "ended_at": session.ended_ms.map(time),
            "end_reason": session.end_reason,
            "running": [],
            "room": null,
        })
    }
}

fn expired(session: ServiceSession, life: Life) -> Error {
    let label = session.label().to_owned();
    let ServiceSession { name, context, .. } = session;
    SessionError::Expired { session: label, ended: life == Life::Ended, name, context }.into()
}

/// Cursor of the page after an item.
pub(super) fn cursor(last: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(last)
}
