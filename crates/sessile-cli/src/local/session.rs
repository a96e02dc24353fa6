//! Sessions of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sessile::Error;
use sessile::clock::Moment;
use sessile::confirm::can_ask;
use sessile::conversation::Conversation;
use sessile::error::SessionError;
use sessile::session::{EntryKind, Session, SessionName, StoppedSession};
use sessile::settings::Layer;
use sessile::text::quoted;
use sessile::tool::{drift, tool_states};

use super::{LocalBackend, conversation_views};
use crate::backend::{SessionFilter, SessionSpec};
use crate::error::{CommandError, Failure};
use crate::terminal_prompt;
use crate::view::{
    ChangeReport, ConversationSummary, LoggedCommand, SessionDetailView, SessionListing, SessionRenameView,
    SessionStartView, SessionStopView, SessionView,
};

/// Sessions read at a time while a list is filtered.
const BATCH: usize = 500;

impl LocalBackend<'_> {
    /// Session of a command: that of the argument, else that of the call.
    pub(crate) fn session(&self, given: Option<&str>, purpose: &str) -> Result<Session, Failure> {
        let state = &self.cx.state;
        match given {
            Some(text) => Ok(state.look_up_session(text)?.1),
            None => {
                let current = state.session()?.ok_or_else(|| SessionError::Required(purpose.to_owned()))?;
                Ok((*current.session).clone())
            }
        }
    }

    fn view(&self, session: &Session) -> SessionView {
        SessionView::from((session, session.look(self.cx.state.world())))
    }

    pub(crate) fn start_session(
        &self,
        spec: SessionSpec<'_>,
        replaced: Option<&str>,
    ) -> Result<ChangeReport<SessionStartView>, Failure> {
        let state = &self.cx.state;
        let SessionSpec { name, labels, agent, idle, max } = spec;
        let replaced = replaced.map(|text| state.sessions()?.get(text)).transpose()?;
        if let Some(replaced) = &replaced {
            // Checked before the stop: a start that must fail would leave the user without either session.
            state.check_start(name, replaced)?;
            state.stop_session("session start --replace", replaced)?;
        }
        let agent = agent.map(str::to_owned);
        let (session, selection) = state.start_session(name.cloned(), agent, labels, idle, max)?;
        let change = SessionStartView {
            session: self.view(&session),
            replaced: replaced.map(|replaced| replaced.id.to_string()),
            selected_for_terminal: selection.is_selected,
            left_running: selection.left,
            is_hooked: selection.is_hooked,
        };
        Ok(ChangeReport { change, place: self.cx.place(Some(&session)) })
    }

    pub(crate) fn list_sessions(
        &self,
        filter: &SessionFilter<'_>,
        with_conversations: bool,
    ) -> Result<SessionListing, Failure> {
        let state = &self.cx.state;
        let mut views: Vec<SessionView> = Vec::new();
        let mut cursor = filter.cursor.map(str::to_owned);
        if let Some(sessions) = state.sessions_to_look_at()? {
            // Filters apply here, so a page may need several batches.
            while views.len() < filter.limit {
                let batch = sessions.list(cursor.as_deref(), filter.excludes_ended(), BATCH)?;
                let matching = batch.iter().filter(|session| {
                    let age = Moment::now(state.world()).since(&session.started);
                    filter.matches(session.context.as_deref(), &session.labels, age)
                });
                let matching = matching.map(|session| self.view(session));
                let left = filter.limit - views.len();
                views.extend(matching.filter(|view| filter.matches_state(view.state)).take(left));
                match batch.last() {
                    Some(last) if batch.len() == BATCH => cursor = Some(last.id.to_string()),
                    _ => break,
                }
            }
        }
        if with_conversations {
            self.add_conversations(&mut views)?;
        }
        let current = state.session().ok().flatten().map(|current| current.session.id.to_string());
        Ok(SessionListing { sessions: views, current })
    }

    pub(crate) fn show_session(&self, given: Option<&str>) -> Result<SessionDetailView, Failure> {
        let session = self.session(given, "showing")?;
        let (sessions, session) = self.cx.state.look_up_session(session.id.as_str())?;
        let settings = sessions.entries(&session, EntryKind::Setting)?;
        let (tools, drift) = match &session.ended {
            None => (tool_states(&session)?, drift(&self.cx.state, &session)?),
            Some(_) => (Vec::new(), Vec::new()),
        };
        let copies = tools.iter().flat_map(|tool| &tool.copies).filter(|copy| copy.changed);
        let changed = copies.map(|copy| copy.copy.to_string_lossy().into_owned()).collect();
        let mut view = self.view(&session);
        self.add_conversations(std::slice::from_mut(&mut view))?;
        Ok(SessionDetailView {
            conversations: view.conversations.take().unwrap_or_default(),
            session: view,
            settings: settings.into_iter().map(|entry| (entry.key, entry.value)).collect(),
            tools,
            drift,
            changed,
            logs: session.room().logged_outputs().iter().map(LoggedCommand::from).collect(),
            state_values: sessions.entries(&session, EntryKind::State)?.len(),
        })
    }

    pub(crate) fn stop_session(&self, given: Option<&str>) -> Result<ChangeReport<SessionStopView>, Failure> {
        let state = &self.cx.state;
        if given.is_none()
            && let Some(current) = state.session()?.filter(|current| {
                current.origin.layer == Layer::Terminal
                    || (current.origin.layer == Layer::Environment && state.is_at_hooked_prompt())
            })
        {
            return Err(CommandError::SessionUnnamed(current.session.label().to_owned()).into());
        }
        let session = self.session(given, "stopping")?;
        let running = session.room().running();
        // A script that names the session has decided; only a person can be asked.
        if !running.is_empty() && can_ask(state) {
            let names: Vec<String> =
                running.iter().map(|one| format!("{} (pid {})", one.program, one.process.pid)).collect();
            let question = format!("stop session {} and {}", quoted(session.label()), names.join(", "));
            terminal_prompt::confirm(state, &question)?;
        }
        // Inside the session this process gets SIGTERM too, and must outlive it to finish the stop.
        let _registered =
            signal_hook::flag::register::<Arc<AtomicBool>>(signal_hook::consts::SIGTERM, Arc::default());
        let StoppedSession { processes, locks } = state.stop_session("session stop", &session)?;
        let change = SessionStopView {
            id: session.id.to_string(),
            name: session.name.clone(),
            was_over: session.ended.is_some(),
            ended_processes: processes,
            released_locks: locks,
        };
        Ok(ChangeReport { change, place: self.cx.place(None) })
    }

    pub(crate) fn rename_session(
        &self,
        given: &str,
        new: &SessionName,
    ) -> Result<ChangeReport<SessionRenameView>, Failure> {
        let session = self.cx.state.sessions()?.get_live(given)?;
        self.cx.state.rename_session(&session, new)?;
        let (id, new) = (session.id.to_string(), new.to_string());
        let change = SessionRenameView { id, old: session.name, new };
        Ok(ChangeReport { change, place: self.cx.place(None) })
    }

    /// Adds to sessions their conversations, the last used first. The store and the vault are read once.
    fn add_conversations(&self, views: &mut [SessionView]) -> Result<(), Error> {
        let sessions: BTreeSet<String> = views.iter().map(|one| one.id.clone()).collect();
        // One query for all sessions is cheaper than one for each, unless there is only one.
        let only = sessions.first().filter(|_| sessions.len() == 1);
        let mut all: Vec<Conversation> = match self.cx.state.conversations_to_look_at()? {
            Some(all) if !sessions.is_empty() => all.list(only.map(String::as_str), None)?,
            _ => Vec::new(),
        };
        all.retain(|one| sessions.contains(&one.session));
        let found = conversation_views(self.cx, all);
        let mut by_session: BTreeMap<String, Vec<ConversationSummary>> = BTreeMap::new();
        for one in found {
            by_session.entry(one.session.clone()).or_default().push(one.into());
        }
        for view in views {
            view.conversations = Some(by_session.remove(&view.id).unwrap_or_default());
        }
        Ok(())
    }
}
