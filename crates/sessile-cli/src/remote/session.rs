//! Sessions of a service, as commands show them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use sessile::context::approval::time;
use sessile::error::{RequestError, SessionError};
use sessile::session::life::Life;
use sessile::session::{Owner, SessionId};
use sessile::settings::{Layer, Origin};
use sessile::{Error, State};

use super::server::{Request, Server};
use super::trouble::Subject;
use crate::cli::Cx;
use crate::error::{Failure, Outcome};

/// The label that keeps what an agent calls itself, which a service has no place of its own for.
const AGENT: &str = "sessile.agent";

/// The sessions of a service, for one call.
pub(crate) struct Remote<'a> {
    pub(crate) server: Server,
    state: &'a State,
}

/// A session of a service.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RemoteSession {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) context: Option<String>,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, Value>,
    pub(crate) started_ms: i64,
    pub(super) used_ms: i64,
    expires_ms: i64,
    pub(crate) ended_ms: Option<i64>,
    end_reason: Option<String>,
    #[serde(default)]
    idle_ms: Option<i64>,
    #[serde(default)]
    max_ms: Option<i64>,
    #[serde(default)]
    pub(super) messages: i64,
}

/// What a session is started with.
pub(crate) struct New<'a> {
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
        Ok(Server::of(cx, &cx.state)?.map(|server| Remote { server, state: &cx.state }))
    }

    /// What named the session of this call, and whether that was a variable.
    fn named(&self) -> Option<(&str, bool)> {
        let text = self.state.args().session.as_deref()?;
        Some((text, self.state.session_origin().layer == Layer::Environment))
    }

    /// The session that a command is about: the one given, else the one this call works in, in which no other context can
    /// be asked for.
    pub(crate) fn meant(&self, given: Option<&str>, what: &str) -> Result<RemoteSession, Failure> {
        if let Some(text) = given {
            return self.find(text, false);
        }
        let (text, by_variable) = self.named().ok_or_else(|| SessionError::Required(what.to_owned()))?;
        let session = self.find(text, by_variable)?;
        self.state.contexts().require_pinned(session.label(), session.context.as_deref())?;
        Ok(session)
    }

    /// The same, for what only works in one that lives.
    pub(crate) fn require(&self, what: &str) -> Result<RemoteSession, Failure> {
        let session = self.meant(None, what)?;
        match session.life(self.state) {
            Life::Live => Ok(session),
            life => Err(session.is_over(life).into()),
        }
    }

    /// The session of this call, which is started if there is none of that name.
    pub(crate) fn require_or_start(
        &self,
        what: &str,
        start: impl FnOnce(&str) -> Result<RemoteSession, Failure>,
    ) -> Result<RemoteSession, Failure> {
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
    pub(crate) fn require_context_of(&self, session: &RemoteSession) -> Outcome {
        match &session.context {
            Some(name) => Ok(self.state.contexts().require_of_session(session.label(), name).map(drop)?),
            None => Ok(()),
        }
    }

    fn find(&self, session: &str, by_variable: bool) -> Result<RemoteSession, Failure> {
        let about = Subject { session, by_variable, ..Subject::default() };
        self.read(self.server.ask(&Request::get(&["v1", "sessions", session]), &about)?)
    }

    /// Starts a session.
    pub(crate) fn start(&self, new: New<'_>) -> Result<RemoteSession, Failure> {
        let mut labels = new.labels;
        labels.extend(new.agent.map(|agent| (AGENT.to_owned(), agent.to_owned())));
        let millis = |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let body = json!({
            "name": new.name,
            "context": new.context,
            "labels": labels,
            "idle_ms": millis(new.idle),
            "max_ms": millis(new.max),
        });
        let about = Subject { name: new.name.unwrap_or_default(), ..Subject::default() };
        self.read(self.server.ask(&Request::post(&["v1", "sessions"], body)?, &about)?)
    }

    /// Changes a session's name.
    pub(crate) fn rename(&self, session: &RemoteSession, name: &str) -> Result<(), Failure> {
        let about = Subject { session: session.label(), name, ..Subject::default() };
        let request = Request::patch(&["v1", "sessions", &session.id], json!({ "name": name }))?;
        self.server.ask(&request, &about).map(drop)
    }

    /// Ends a session.
    pub(crate) fn end(&self, session: &RemoteSession) -> Outcome {
        let about = Subject { session: session.label(), ..Subject::default() };
        let request = Request::delete(&["v1", "sessions", &session.id])?.with("reason", &"stopped");
        self.server.ask(&request, &about).map(drop)
    }

    /// Ends a session that was started for a message, if the service refused that and nothing else was said in it. Whoever
    /// gets no answer does not know what becomes of the message. If it cannot be ended now, it expires.
    pub(crate) fn end_unused(&self, session: &RemoteSession, failure: &Failure) {
        if matches!(
            failure,
            Failure::Library(
                Error::Request(RequestError::TimedOut { .. })
                    | Error::Request(RequestError::Unreachable { .. })
            )
        ) {
            return;
        }
        let request = Request::get(&["v1", "sessions", &session.id, "messages"]).with("limit", &1);
        let page = self.server.ask(&request, &Subject::default());
        if page.is_ok_and(|page| page["messages"].as_array().is_some_and(Vec::is_empty)) {
            let _ = self.end(session);
        }
    }

    /// Sessions, the newest first, from the one after this id.
    pub(crate) fn list(&self, after: Option<&str>, only_live: bool) -> Result<Vec<RemoteSession>, Failure> {
        let mut query = vec![("live", only_live.to_string()), ("limit", "1000".to_owned())];
        query.extend(after.map(|id| ("cursor", cursor(id))));
        let about = Subject::default();
        let found = self.server.pages(&["v1", "sessions"], &query, "sessions", usize::MAX, &about)?;
        found.into_iter().map(|one| self.read(one)).collect()
    }

    fn read(&self, answer: Value) -> Result<RemoteSession, Failure> {
        let odd = |error: serde_json::Error| {
            Error::Request(RequestError::Unreachable {
                what: self.server.url().to_owned(),
                reason: format!("its answer is no session ({error})"),
            })
        };
        Ok(serde_json::from_value(answer).map_err(odd)?)
    }

    /// Who has sessions there: the user of the token.
    pub(crate) fn owner(&self) -> Result<Owner, Failure> {
        let me = self.server.me()?;
        let host = self.server.url().split_once("://").map_or("", |(_, rest)| rest);
        Ok(Owner {
            user: me["user"].as_str().unwrap_or_default().to_owned(),
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
        session: &RemoteSession,
        json: Value,
        text: impl FnOnce() -> String,
    ) -> Outcome {
        let origin = session.context.as_ref().map(|_| Origin::named(Layer::Session, session.label()));
        let place = self.place(session);
        cx.changed_there(&session.id, session.context.as_deref(), origin.as_ref(), &place, json, text)
    }

    /// A session, and where it is.
    pub(crate) fn place(&self, session: &RemoteSession) -> String {
        format!("session {} at {}", session.id, self.server.url())
    }
}

impl RemoteSession {
    /// How people call it: its name, else its id.
    pub(crate) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }

    fn life(&self, state: &State) -> Life {
        match self.ended_ms {
            Some(_) => Life::Ended,
            None if self.expires_ms <= state.world().now().as_millisecond() => Life::Expired,
            None => Life::Live,
        }
    }

    fn is_over(&self, life: Life) -> Error {
        Error::Session(SessionError::Expired {
            session: self.label().to_owned(),
            ended: life == Life::Ended,
            name: self.name.clone(),
            context: self.context.clone(),
        })
    }

    /// It as JSON, as one of this machine is described; nothing of it runs here, and it has no room.
    pub(crate) fn describe(&self, state: &State, owner: &Owner) -> Value {
        let (life, now) = (self.life(state), state.world().now().as_millisecond());
        let mut labels = self.labels.clone();
        let owner = Owner { agent: labels.remove(AGENT), ..owner.clone() };
        json!({
            "id": self.id,
            "name": self.name,
            "state": life,
            "context": self.context,
            "owner": owner,
            "labels": labels,
            "started_at": time(self.started_ms),
            "idle_ms": now.saturating_sub(self.used_ms).max(0),
            "idle_limit_ms": self.idle_ms,
            "max_ms": self.max_ms,
            "expires_at": (life != Life::Ended).then(|| time(self.expires_ms)),
            "ended_at": self.ended_ms.map(time),
            "end_reason": self.end_reason,
            "running": [],
            "room": null,
        })
    }
}

impl Remote<'_> {
    /// What the user did there, the newest first, as operations of this machine are shown. With a session that this call
    /// names, only what was done in it.
    pub(crate) fn history(
        &self,
        since_ms: Option<i64>,
        limit: usize,
        after: Option<&str>,
    ) -> Result<Vec<Value>, Failure> {
        let session = match self.named() {
            Some((text, false)) => Some(self.find(text, false)?),
            _ => None,
        };
        let mut query = vec![("limit", limit.clamp(1, 1000).to_string())];
        query.extend(session.as_ref().map(|session| ("session", session.id.clone())));
        query.extend(since_ms.map(|since| ("since_ms", since.max(0).to_string())));
        query.extend(after.map(|id| ("cursor", cursor(id))));
        let user = self.server.me()?["user"].clone();
        let items = self.server.pages(&["v1", "history"], &query, "history", limit, &Subject::default())?;
        let shown = |item: Value| {
            let subject = item["subject"].as_str().or(item["session"].as_str()).unwrap_or_default();
            json!({
                "id": item["id"],
                "at": item["at_ms"].as_i64().map(time),
                "user": user,
                "session": item["session"],
                "terminal": null,
                "command": command(&item),
                "subject": subject,
                "state": item["outcome"],
                "undoes": null,
                "undone_by": null,
                "undoable": false,
                "effects": [],
            })
        };
        Ok(items.into_iter().map(shown).collect())
    }
}

/// The command that does what a record is about, as the history of this machine would call it; the service's own word for it
/// where there is none.
fn command(item: &Value) -> &str {
    let action = item["action"].as_str().unwrap_or_default();
    let is_lock = item["session"].is_null() && item["subject"].is_string();
    match action {
        "start_session" => "session start",
        "end_session" => "session stop",
        "set_entry" => "session state set",
        "append" | "commit_turn" => "message send",
        "ask" | "wait" if is_lock => "lock acquire",
        "renew" if is_lock => "lock renew",
        "release" if is_lock => "lock release",
        "user.add" => "user add",
        "user.disable" => "user disable",
        "user.enable" => "user disable --undo",
        "token.create" => "user token create",
        "token.revoke" => "user token revoke",
        "login.approve" => "user approve",
        other => other,
    }
}

/// Where a list goes on after a thing.
fn cursor(last: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(last)
}
