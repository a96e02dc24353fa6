//! Sessions of commands: found, or started and ended with the command.

use std::cell::RefCell;
use std::ffi::OsString;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::context::request as context_request;
use crate::error::{Error, GuardError, Result, RunError, SessionError, UsageError};
use crate::hook::{EnteredBy, outside};
use crate::run::spare::{SpareUse, spare_key};
use crate::run::{IsolationArgs, NewSessionArgs, RunSessionArgs};
use crate::session::lifecycle::Lifecycle;
use crate::session::{MaxAction, Session, SessionName, Sessions};
use crate::settings::Layer;
use crate::state::State;

/// Idle limit of an ephemeral session. A background process of the command keeps the session, and no later command
/// joins it.
const EPHEMERAL_IDLE: Duration = Duration::from_secs(60);

/// Time for which the store of a start is used for the end too.
const REUSE: Duration = Duration::from_secs(2);

/// Request to run a command in a session.
#[derive(Clone, Copy, Debug)]
pub struct RunRequest<'a> {
    /// Name of the operation in the history, such as `run`.
    pub operation: &'a str,
    /// Command and its arguments.
    pub words: &'a [OsString],
    /// Choice of the session.
    pub session: &'a RunSessionArgs,
    /// Isolation and variables.
    pub isolation: &'a IsolationArgs,
}

/// Session that a command is about to run in.
pub struct RunSession<'a> {
    state: SessionState<'a>,
    session: Rc<Session>,
    is_ephemeral: bool,
    is_started: bool,
    /// Store in which it was started, and when.
    started: RefCell<Option<(Sessions, Instant)>>,
    pub(super) spare: SpareUse,
}

/// State resolved in the session.
enum SessionState<'a> {
    /// Of a session that was started for the command.
    Own(Box<State>),
    /// Of the call itself.
    Call(&'a State),
}

impl<'a> RunSession<'a> {
    /// Finds the session of a command, or starts it. Fails before that if another context is in use than expected.
    pub fn open(state: &'a State, request: &RunRequest<'_>) -> Result<Self> {
        Self::find_or_start(state, request).inspect_err(|error| leave_request(state, request, None, error))
    }

    fn find_or_start(state: &'a State, request: &RunRequest<'_>) -> Result<Self> {
        let args = request.session;
        check_expected(state, request.isolation.expect.as_deref())?;
        if args.new && state.args().session.is_none() {
            return Err(UsageError::Arguments("--new needs --session NAME".into()).into());
        }
        if state.session()?.is_some() {
            let session = state.require_session("running in it")?;
            refuse_other_directory(state, &session)?;
            if args.new {
                return Err(SessionError::Exists(session.label().to_owned()).into());
            }
            let state = SessionState::Call(state);
            let (started, spare) = (RefCell::default(), SpareUse::default());
            return Ok(RunSession { state, session, is_ephemeral: false, is_started: false, started, spare });
        }
        let name = state.pending_session()?.map(|pending| &pending.name);
        if args.existing {
            return Err(match name {
                Some(name) => SessionError::NotFound(name.to_string()),
                None => SessionError::Required("running something with --existing".to_owned()),
            }
            .into());
        }
        let key = if name.is_none() { spare_key(state, request.isolation)? } else { None };
        Self::start(state, name, request.operation, &args.start, args.new, key)
    }

    /// Starts a session for one command alone, also where the call has a session. It does not take over the spare room.
    pub fn open_ephemeral(state: &'a State, request: &RunRequest<'_>) -> Result<Self> {
        check_expected(state, request.isolation.expect.as_deref())?;
        Self::start(state, None, request.operation, &NewSessionArgs::default(), false, None)
    }

    fn start(
        state: &State,
        name: Option<&SessionName>,
        operation: &str,
        args: &NewSessionArgs,
        must_be_new: bool,
        spare_key: Option<String>,
    ) -> Result<Self> {
        let usual = name.is_none().then_some(EPHEMERAL_IDLE);
        let (idle, max) = state.session_lifetime(args.idle.or(usual), args.max)?;
        let (mut started, mut is_started) = (None, false);
        let mut spare = SpareUse::of(spare_key);
        let (agent, life) = (args.agent.clone(), (idle, max));
        let new = state.start_session_in(operation, name.cloned(), agent, life, spare.key.as_deref());
        let session = match new {
            // Another call was quicker: its session is as good, unless a new one was asked for.
            Err(Error::Session(SessionError::Exists(_))) if !must_be_new => {
                let session = state.sessions()?.get(name.map_or("", |name| name.as_str()))?;
                match session.life(state.world()) {
                    Lifecycle::Live => session,
                    _ => return Err(SessionError::Exists(session.label().to_owned()).into()),
                }
            }
            Err(error) => return Err(error),
            Ok(new) => {
                started = name.is_none().then(|| (new.sessions, Instant::now()));
                spare.taken = RefCell::new(new.record);
                is_started = true;
                new.session
            }
        };
        let session = Rc::new(session);
        // The context is pinned by the session now, so everything is resolved again in it.
        let own = match is_started {
            true => state.in_started_session(Rc::clone(&session)),
            false => state.in_session(&session.id),
        };
        Ok(RunSession {
            state: SessionState::Own(Box::new(own)),
            session,
            is_ephemeral: name.is_none(),
            is_started,
            started: RefCell::new(started),
            spare,
        })
    }

    /// State resolved in the session.
    pub fn state(&self) -> &State {
        match &self.state {
            SessionState::Own(state) => state,
            SessionState::Call(state) => state,
        }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Action when the session reaches its longest life while the command runs.
    pub fn max_action(&self, args: &RunSessionArgs) -> Result<MaxAction> {
        match &args.max_action {
            Some(word) => Ok(MaxAction::named(word)),
            None => MaxAction::of(self.state()),
        }
    }

    /// Whether the session is for this command alone.
    pub fn is_ephemeral(&self) -> bool {
        self.is_ephemeral
    }

    /// Ends a session that was for one command alone, or that was started for a command that then did not start.
    /// Returns `false` if something that the command left still runs in it.
    pub fn close(&self, has_run: bool) -> Result<bool> {
        if self.is_ephemeral || (self.is_started && !has_run) {
            return match self.started.take() {
                // After a longer time the database may be another one, recovered or restored.
                Some((sessions, since)) if since.elapsed() < REUSE => {
                    let record = self.spare.take_record();
                    self.state().end_run_in(&self.session, sessions, record.as_ref())
                }
                _ => self.state().end_run(&self.session),
            };
        }
        Ok(true)
    }

    /// Notes that no process of the command is left, not even one that has closed the room's lock. If nothing in the room of an
    /// ephemeral session was changed either, [`RunSession::close`] keeps the room for the next one.
    pub fn note_deserted(&self) {
        self.spare.note_deserted();
    }

    /// Whether no process of the command is left, and nothing in the room was changed since the command started.
    pub fn is_unchanged(&self) -> bool {
        self.spare.is_unchanged(self.session.room().dir())
    }

    /// Whether the session was started for this command.
    pub(super) fn is_started(&self) -> bool {
        self.is_started
    }
}

/// Fails if the directory selects another context than the session that the shell hook entered for the directory before:
/// the shell may not have noticed yet.
fn refuse_other_directory(state: &State, session: &Session) -> Result<()> {
    let is_of_hook = state.session_origin().layer == Layer::Environment
        && state.entered_by() == Some(EnteredBy::Directory);
    if !is_of_hook {
        return Ok(());
    }
    let outside = outside(state)?;
    let selected = outside.usable_context()?.map(|context| context.name.as_str());
    match selected.filter(|selected| session.context.as_deref() != Some(selected)) {
        Some(asked) => Err(SessionError::ContextFixed {
            session: session.label().to_owned(),
            pinned: session.context.clone(),
            asked: asked.to_owned(),
        }
        .into()),
        None => Ok(()),
    }
}

/// Records an approval request for a command that was refused because it lacks an approval. `env` records none,
/// because the shell hook calls it at every prompt.
pub(super) fn leave_request(
    state: &State,
    request: &RunRequest<'_>,
    session: Option<&Session>,
    error: &Error,
) {
    let Error::Guard(GuardError::ApprovalRequired(context)) = error else { return };
    if request.words.is_empty() {
        return;
    }
    let pending = state.pending_session().ok().flatten().map(|pending| pending.name.to_string());
    let session = session.map(|session| session.label().to_owned()).or(pending);
    if let Err(error) = context_request::leave(state, context, request.words, session.as_deref()) {
        // The refusal is the error to report; a missing request only costs convenience.
        tracing::info!(%error, "no approval request was left");
    }
}

/// Fails if another context is in use than the caller expects.
fn check_expected(state: &State, expected: Option<&str>) -> Result<()> {
    let selected = state.selected()?;
    match expected {
        Some(expected) if selected.is_none_or(|selected| selected.name.as_str() != expected) => {
            let is_pinned = selected.is_some_and(|found| found.origin.layer == Layer::Session);
            let found = selected.map(|found| format!("{:?} ({})", found.name.as_str(), found.origin));
            Err(RunError::UnexpectedContext { expected: expected.to_owned(), found, is_pinned }.into())
        }
        _ => Ok(()),
    }
}
