//! Session operations of a state: start, stop, import, rename and forget sessions of the user, with their history.

use std::rc::Rc;
use std::time::Duration;

use crate::call::ConfigSource;
use crate::context::{SwitchScope, SwitchTarget, switch};
use crate::error::{Result, SessionError, UsageError};
use crate::history::{Effect, perform, record, settle};
use crate::hook::{EnteredBy, EnteredSession};
use crate::names::ContextName;
use crate::session::entries::EntryUpdate;
use crate::session::resolve::{
    TerminalSelection, deselect_for_terminal, deselect_stopped, select_for_terminal,
};
use crate::session::spare_room::{self, RoomRecord};
use crate::session::transfer::SessionExport;
use crate::session::{EntryKind, Lifecycle, MaxAction, NewSession, Owner, Session, SessionName, Sessions};
use crate::settings::rules::check_imported;
use crate::settings::{Definition, Layer, Origin, SettingKind};
use crate::state::State;
use crate::store::{InitialContent, OperationRow};
use crate::text::shown;

/// Settings of sessions.
pub const SETTINGS: &[Definition] = &[
    Definition::new(
        "session.idle",
        SettingKind::Duration,
        "How long a session may be idle before it expires.",
    )
    .with_default("2h"),
    Definition::new("session.max", SettingKind::Duration, "Maximum lifetime of a session.")
        .with_default("8h"),
    Definition::new(
        "session.max-action",
        SettingKind::Choice(MaxAction::WORDS),
        "Action on running commands at the maximum lifetime of their session.",
    )
    .with_default("end"),
];

/// Processes and locks that ended with a stopped session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoppedSession {
    /// Pids of the processes that were ended.
    pub processes: Vec<i32>,
    /// Names of the locks that were released.
    pub locks: Vec<String>,
}

/// Session that was started for a command.
pub(crate) struct StartedSession {
    pub(crate) session: Session,
    /// The open store.
    pub(crate) sessions: Sessions,
    /// Record of the spare room, if the session took it over.
    pub(crate) record: Option<RoomRecord>,
}

/// History entry of a new session; it is written in the session's transaction.
fn started(state: &State, command: &str) -> OperationRow {
    let reason = "stop the started session by its id".to_owned();
    crate::history::row(state, command, "", &[Effect::Event { reason }], "done", None)
}

impl State {
    /// The user's sessions.
    pub fn sessions(&self) -> Result<Sessions> {
        if *self.source() == ConfigSource::Nothing {
            return Err(UsageError::Arguments("sessions cannot be used with --no-config".into()).into());
        }
        let store = self.store_for_writing()?;
        Ok(Sessions::of(store, self.dirs().state()?, &self.account(), self.world().clone(), self.locker()?))
    }

    /// The user's sessions for reading; `None` without a store.
    pub fn sessions_to_look_at(&self) -> Result<Option<Sessions>> {
        let Some(store) = self.fresh_store()? else { return Ok(None) };
        Ok(Some(Sessions::of(
            store,
            self.dirs().state()?,
            &self.account(),
            self.world().clone(),
            self.locker()?,
        )))
    }

    /// A session to be looked at, by its name, its id or the beginning of its id.
    pub fn look_up_session(&self, text: &str) -> Result<(Sessions, Session)> {
        let sessions = self.sessions_to_look_at()?;
        let sessions = sessions.ok_or_else(|| SessionError::NotFound(crate::text::shortened(text, 80)))?;
        let session = sessions.get(text)?;
        Ok((sessions, session))
    }

    /// Session of this call. Without one, or if it is unusable, the error names the flag.
    pub fn require_session(&self, what: &str) -> Result<Rc<Session>> {
        let current = self.session()?.ok_or_else(|| SessionError::Required(what.to_owned()))?;
        (*current.session).clone().require_live(self.world())?;
        Ok(Rc::clone(&current.session))
    }

    /// Fails if a session of this name could not be started now: the selected context is not there or its guard not
    /// satisfied, or another session than `replaced` has the name.
    pub fn check_start(&self, name: Option<&SessionName>, replaced: &Session) -> Result<()> {
        self.usable_context()?;
        let Some(name) = name else { return Ok(()) };
        // A prefix of an id can match too, so the name itself is compared below.
        match self.sessions()?.get(name.as_str()) {
            Ok(found)
                if found.name.as_deref() == Some(name.as_str())
                    && found.id != replaced.id
                    && found.life(self.world()) == Lifecycle::Live =>
            {
                Err(SessionError::Exists(name.to_string()).into())
            }
            _ => Ok(()),
        }
    }

    /// Starts a session in the selected context, whose guard must be satisfied. On a terminal it becomes that
    /// terminal's; nothing else is changed.
    pub fn start_session(
        &self,
        name: Option<SessionName>,
        agent: Option<String>,
        labels: std::collections::BTreeMap<String, String>,
        idle: Duration,
        max: Duration,
    ) -> Result<(Session, TerminalSelection)> {
        let new = self.new_session(name, agent, labels, idle, max)?;
        let contents =
            InitialContent { operation: Some(started(self, "session start")), ..InitialContent::default() };
        let session = self.sessions()?.start_with(new, &contents)?;
        let selected = select_for_terminal(self, &session)?;
        Ok((session, selected))
    }

    /// Makes a live session this terminal's.
    pub fn attach_session(&self, text: &str) -> Result<(Session, TerminalSelection)> {
        let what = "attaching to a session";
        if self.pinned_session().is_some() {
            let instead = "pass --session NAME to each command instead";
            return Err(SessionError::RefusedInside { what: what.into(), instead }.into());
        }
        self.require_selectable_terminal(what)?;
        let session = self.sessions()?.get_live(text)?;
        let selection = select_for_terminal(self, &session)?;
        Ok((session, selection))
    }

    /// Makes this terminal leave its session, which goes on. At the prompt of a hooked shell the terminal's context, for
    /// which the hook started the session, is deselected. Returns the label of what was left.
    pub fn detach_session(&self) -> Result<String> {
        let what = "detaching from a session";
        if self.pinned_session().is_some() {
            let instead = "detach it at the terminal";
            return Err(SessionError::RefusedInside { what: what.into(), instead }.into());
        }
        self.require_selectable_terminal(what)?;
        let entered = self.hooked_prompt().and_then(|shell| shell.entered.clone());
        let entered = entered.filter(|_| self.is_at_hooked_prompt());
        let by = entered.as_ref().map(|entered| entered.over.unwrap_or(entered.by));
        let left = match by {
            Some(EnteredBy::Terminal) => {
                let switched = switch(self, &SwitchTarget::Nothing, Some(SwitchScope::Terminal))?;
                switched.left_session.or(switched.old)
            }
            // The refused selection is the terminal's session, or else its context.
            Some(EnteredBy::Blocked) => match deselect_for_terminal(self)? {
                Some(left) => Some(left.label),
                None => switch(self, &SwitchTarget::Nothing, Some(SwitchScope::Terminal))?.old,
            },
            _ => deselect_for_terminal(self)?.map(|left| left.label),
        };
        // The session of a shell on another terminal has no selection here.
        let label = |entered: EnteredSession| entered.context.unwrap_or(entered.session);
        let is_of_place = matches!(by, Some(EnteredBy::Directory | EnteredBy::Blocked));
        let left = left.or_else(|| entered.filter(|_| !is_of_place).map(label));
        if let Some(shell) = self.hooked_prompt() {
            shell.request_change(self)?;
        }
        left.ok_or_else(|| SessionError::Required("detaching".to_owned()).into())
    }

    fn require_selectable_terminal(&self, what: &str) -> Result<()> {
        if self.call().selectable_terminal().is_some() {
            return Ok(());
        }
        let (what, instead) = (what.to_owned(), "pass --session NAME to each command".to_owned());
        Err(UsageError::TerminalRequired { what, instead }.into())
    }

    /// Starts a session for a command, without selecting it for the terminal. A session without a name is ephemeral
    /// and leaves nothing in the history.
    pub fn start_session_to_run(
        &self,
        command: &str,
        name: Option<SessionName>,
        agent: Option<String>,
        idle: Duration,
        max: Duration,
    ) -> Result<Session> {
        self.start_session_in(command, name, agent, (idle, max), None).map(|started| started.session)
    }

    /// The same. Takes the spare room over if it was prepared from the inputs with this fingerprint.
    pub(crate) fn start_session_in(
        &self,
        command: &str,
        name: Option<SessionName>,
        agent: Option<String>,
        (idle, max): (Duration, Duration),
        spare_key: Option<&str>,
    ) -> Result<StartedSession> {
        // An ephemeral session is removed with its command; an operation would outlive what it is about.
        let operation = name.as_ref().map(|_| started(self, command));
        let is_ephemeral = name.is_none();
        let new = self.new_session(name, agent, std::collections::BTreeMap::new(), idle, max)?;
        if is_ephemeral {
            // The start of an ephemeral session changes none of the answers read so far.
            self.save_answers();
        }
        let sessions = self.sessions()?;
        let mut sessions = if is_ephemeral { sessions.without_sync()? } else { sessions };
        let content = InitialContent { operation, ..InitialContent::default() };
        let (session, record) = sessions.start_in(new, &content, spare_key)?;
        Ok(StartedSession { session, sessions, record })
    }

    /// Ends and forgets a session that was for one command alone, unless something still runs in it.
    pub fn end_run(&self, session: &Session) -> Result<bool> {
        let sessions = self.sessions()?;
        let sessions = if session.name.is_none() { sessions.without_sync()? } else { sessions };
        self.end_run_in(session, sessions, None)
    }

    /// The same in an open store. With a record that the room still fits, the room becomes the spare one.
    pub(crate) fn end_run_in(
        &self,
        session: &Session,
        mut sessions: Sessions,
        record: Option<&RoomRecord>,
    ) -> Result<bool> {
        sessions.end_and_forget(&self.account(), session, record)
    }

    /// Idle limit and maximum life of a session that is started: as given, else as the settings say.
    pub fn session_lifetime(
        &self,
        idle: Option<Duration>,
        max: Option<Duration>,
    ) -> Result<(Duration, Duration)> {
        let time = |given: Option<Duration>, key: &str, usual: u64| -> Result<Duration> {
            Ok(given.or(self.duration(key)?).unwrap_or(Duration::from_secs(usual)))
        };
        let (idle, max) = (time(idle, "session.idle", 7200)?, time(max, "session.max", 28800)?);
        if idle.is_zero() || max.is_zero() {
            let what = "--idle and --max must be greater than 0";
            return Err(UsageError::Arguments(what.into()).into());
        }
        Ok((idle, max))
    }

    fn new_session(
        &self,
        name: Option<SessionName>,
        agent: Option<String>,
        labels: std::collections::BTreeMap<String, String>,
        idle: Duration,
        max: Duration,
    ) -> Result<NewSession> {
        // The guard is checked before the row exists, so a refused start leaves nothing.
        let context = self.usable_context()?;
        // Bindings are checked when a context is written; one without a file is written here.
        if let Some(context) = context.filter(|context| context.name.is_anonymous()) {
            self.contexts().check_bindings(context, &[])?;
        }
        let context: Option<ContextName> = context.map(|context| context.name.clone());
        Ok(NewSession { name, context, owner: Owner::of(self.world(), agent), labels, idle, max })
    }

    /// Stops a session with the locks that it holds, and records it.
    pub fn stop_session(&self, command: &str, session: &Session) -> Result<StoppedSession> {
        // Read before the room is removed: the plan that lists the copies is in it.
        let displaced = crate::tool::displaced_copies(session.room().dir());
        // Leases end with the row of the session, so they are listed before.
        let locks = self.locks()?.held_in(session.id.as_str())?;
        let processes = self.sessions()?.stop(session, "stopped")?;
        for path in displaced {
            self.warn(
                format!("did not remove {}: its working directory was replaced", shown(path.display())),
                Some("remove the directory yourself if it belongs to the session".to_owned()),
            );
        }
        // A person who stops the session of the own terminal or shell leaves it.
        deselect_stopped(self, session)?;
        let shell = self.hooked_prompt().filter(|shell| {
            shell.entered.as_ref().is_some_and(|entered| entered.session == session.id.as_str())
        });
        if let Some(shell) = shell {
            shell.request_change(self)?;
        }
        record(self, command, session.label(), "stopped commands cannot continue; start a new session")?;
        Ok(StoppedSession { processes, locks })
    }

    /// Forgets a session that has ended, and records it.
    pub fn forget_session(&self, session: &Session) -> Result<bool> {
        let forgotten = self.sessions()?.forget(session)?;
        if forgotten {
            record(self, "session clear", session.label(), "deleted sessions cannot be restored")?;
        }
        Ok(forgotten)
    }

    /// Starts a session with what an exported one had, and records it. Its context must be usable here.
    pub fn import_session(&self, exported: &SessionExport, name: Option<SessionName>) -> Result<Session> {
        if let Some(context) = &exported.context {
            let origin = Origin::named(Layer::Flag, "session import");
            let context = self.contexts().get(&ContextName::of_session(context)?)?;
            // An export names its context only; here that name may belong to an untrusted project.
            context.require_trust(self)?;
            context.check_guard(self, &origin)?;
        }
        check_imported(self.app(), &exported.settings)?;
        let operation = started(self, "session import");
        self.sessions()?.import(exported, name, self.world(), Some(operation))
    }

    /// Gives a session another name, and records it.
    pub fn rename_session(&self, session: &Session, name: &SessionName) -> Result<()> {
        let effect = Effect::SessionName {
            session: session.id.to_string(),
            before: session.name.clone(),
            after: Some(name.to_string()),
        };
        perform(self, "session rename", name.as_str(), &[effect]).map(drop)
    }

    /// Sets or removes a value of a session's state, and records it. With `expected` only if its revision is that.
    pub fn change_session_state(
        &self,
        session: &Session,
        key: &str,
        value: Option<&serde_json::Value>,
        expected: Option<i64>,
    ) -> Result<EntryUpdate> {
        let command = if value.is_some() { "session state set" } else { "session state unset" };
        let after = value.cloned();
        self.sessions()?.change_entry_recorded(session, EntryKind::State, key, value, expected, |old| {
            let before = old.map(|old| serde_json::from_str(&old.value).unwrap_or_default());
            let session = session.id.to_string();
            let effect =
                Effect::Entry { session, entry: EntryKind::State, key: key.to_owned(), before, after };
            Some(crate::history::row(self, command, key, &[effect], "done", None))
        })
    }

    /// Housekeeping of every writing call: withdraws the targets of lapsed approvals, ends a few expired sessions, and removes the
    /// spare room, whose copies may have targets that are protected from now on.
    pub fn tidy(&self) -> Result<()> {
        // Bounded, so that no command pays for a long absence; the next calls go on.
        const A_FEW: usize = 8;
        if *self.source() == ConfigSource::Nothing {
            return Ok(());
        }
        settle(self)?;
        if *self.source() == ConfigSource::Usual {
            spare_room::remove(self.dirs().state()?, self.world())?;
        }
        // Apart, so that no reader keeps the write-ahead log alive when the writer closes the store.
        State::from(self.call().clone()).withdraw_unapproved(None)?;
        // Looking at every conversation is not free, so only the end of a session is an occasion for it.
        if !self.sessions()?.gc(A_FEW)?.is_empty() {
            self.expire_conversations()?;
        }
        Ok(())
    }
}
