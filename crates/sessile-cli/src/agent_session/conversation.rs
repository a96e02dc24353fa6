//! Conversation with an agent, and its log.
//!
//! A message is stored before it is sent, and an event before it is displayed, so that the conversation is complete
//! after a kill at any time. An event that cannot be stored is displayed anyway, because the agent will not send it
//! again; the call then fails at its end. Without a session a conversation is stored or continued only by its id: the
//! second run of a script must not continue the conversation of the first. A session continues its own last
//! conversation. With `--continue` it adopts the last one of its context, unless the session that has it is alive.

use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use sessile::call::ConfigSource;
use sessile::conversation::{Conversation, ConversationUpdate, DeliveryLock, TaskState};
use sessile::error::{ConversationError, SessionError};
use sessile::session::{Lifecycle, Session};
use sessile::site::agent_url;
use sessile::{App, Error, Report, State};
use sessile_wire::a2a::{AgentEvent, OutgoingMessage};

use crate::cli::Cx;
use crate::error::{AgentError, Failure};
use crate::view::event_kind;

/// Selection of a conversation by the flags of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConversationSelector {
    /// Whether a new one is started.
    pub(crate) new: bool,
    /// Name; a conversation of this name is started if none exists.
    pub(crate) name: Option<String>,
    /// Id of the agent for the conversation.
    pub(crate) context_id: Option<String>,
    /// Task that a message belongs to.
    pub(crate) task_id: Option<String>,
    /// Conversation to continue.
    pub(crate) continued: Option<Continuation>,
}

/// Conversation that a call continues.
#[derive(Clone, Debug)]
pub(crate) enum Continuation {
    /// The last one of the session, else of the context.
    Last,
    /// The one of this id or name.
    Id(String),
}

/// Log of a conversation. Without a session nothing is stored.
pub(crate) struct ConversationLog<'a> {
    state: &'a State,
    agent: String,
    session: Option<Rc<Session>>,
    wanted: ConversationSelector,
    conversation: Option<Conversation>,
    /// Last event: an agent that is polled repeats it.
    last: Option<Value>,
    /// Message that was sent, until the first event of its reply.
    sent: Option<Value>,
    /// Locks of the delivery, until the first event.
    delivery: Vec<DeliveryLock>,
    /// First failure to store an event.
    unsaved: Option<Error>,
    pub(crate) context_id: Option<String>,
    pub(crate) task_id: Option<String>,
}

/// Session that a conversation belongs to: the session of the call, one that is started under the given name, or on a terminal
/// one that is started for it.
pub(crate) fn session(cx: &Cx, command: &str) -> Result<Option<Rc<Session>>, Failure> {
    let state = &cx.state;
    if state.session()?.is_some() {
        let session = state.require_session("talking to an agent in it");
        return session.map(Some).map_err(|error| without_flag_of_run(error, state.app()));
    }
    let (idle, max) = state.session_lifetime(None, None)?;
    if let Some(pending) = state.pending_session()? {
        let started = state.start_session_to_run(command, Some(pending.name.clone()), None, idle, max);
        return match started {
            // Another process started it first.
            Err(Error::Session(SessionError::Exists(_))) => {
                Ok(Some(Rc::new(state.sessions()?.get_live(pending.name.as_str())?)))
            }
            started => Ok(Some(Rc::new(started?))),
        };
    }
    // Scripts and agents that share a terminal must not end up in one conversation.
    if state.call().selectable_terminal().is_none() || *state.source() == ConfigSource::Nothing {
        return Ok(None);
    }
    let (session, _) = state.start_session(None, None, std::collections::BTreeMap::new(), idle, max)?;
    cx.out.note(&format!("started session {} for this terminal", session.id));
    Ok(Some(Rc::new(session)))
}

/// The failure without the hint for `run`: `--new` of a message starts a conversation, not a session.
fn without_flag_of_run(error: Error, app: &App) -> Failure {
    if !matches!(error, Error::Session(SessionError::Expired { .. })) {
        return error.into();
    }
    let report = Report::of(error.diagnostic(), app);
    let hint = report.fix_command.as_ref().map(|command| format!("start a new session: {command}"));
    Failure::Remote(Box::new(Report { hint, ..report }))
}

impl<'a> ConversationLog<'a> {
    /// Opens the log of the selected conversation.
    pub(crate) fn open(
        state: &'a State,
        session: Option<Rc<Session>>,
        agent: &str,
        wanted: &ConversationSelector,
    ) -> Result<Self, Error> {
        let mut log = ConversationLog {
            state,
            agent: agent.to_owned(),
            session,
            wanted: wanted.clone(),
            conversation: None,
            last: None,
            sent: None,
            delivery: Vec::new(),
            unsaved: None,
            context_id: None,
            task_id: None,
        };
        log.resolve()?;
        Ok(log)
    }

    /// Finds the selected conversation and the ids of the agent, as they are now.
    fn resolve(&mut self) -> Result<(), Error> {
        let (agent, wanted) = (self.agent.as_str(), &self.wanted);
        (self.context_id, self.task_id) = (wanted.context_id.clone(), wanted.task_id.clone());
        let all = match (&self.session, &wanted.continued) {
            (None, None) => return Ok(()),
            (None, Some(Continuation::Last)) => return Err(ConversationError::NoneToContinue.into()),
            _ => self.state.conversations()?,
        };
        let context = self.context()?;
        self.conversation = match (wanted, &self.session) {
            (ConversationSelector { continued: Some(Continuation::Id(id)), .. }, _) => {
                let found = all.find(id, None)?;
                all.require_binding(&found, context.as_deref())?;
                if found.agent_url != agent_url(agent)? {
                    return Err(ConversationError::NotFound { name: id.clone(), near: None }.into());
                }
                Some(found)
            }
            (_, None) => None,
            // A name that cannot be used is an error before anything is sent.
            (ConversationSelector { name: Some(name), .. }, Some(session)) => {
                let found = all.named(session, agent, name)?;
                if wanted.new && found.is_some() {
                    return Err(ConversationError::Exists(name.clone()).into());
                }
                found
            }
            (ConversationSelector { context_id: Some(id), .. }, Some(session)) => {
                all.of_context(session, agent, id)?
            }
            (ConversationSelector { task_id: Some(task), .. }, Some(session)) => {
                all.of_task(session, agent, task)?
            }
            (ConversationSelector { new: true, .. }, Some(_)) => None,
            (ConversationSelector { continued: Some(Continuation::Last), .. }, Some(session)) => {
                match all.newest(session, agent)? {
                    Some(found) => Some(found),
                    None => all.last_of_context(context.as_deref(), agent)?,
                }
            }
            (_, Some(session)) => all.newest(session, agent)?,
        };
        if let Some(conversation) = &self.conversation {
            self.context_id = self.context_id.take().or_else(|| conversation.context_id.clone());
            // Ids given by flags are sent unchanged, without the task of the conversation.
            if wanted.task_id.is_none() && wanted.context_id.is_none() {
                self.task_id = conversation.waiting_task().map(str::to_owned);
            }
        }
        Ok(())
    }

    /// Context of the call.
    fn context(&self) -> Result<Option<String>, Error> {
        match &self.session {
            Some(session) => Ok(session.context.clone()),
            None => Ok(self.state.selected()?.map(|selected| selected.name.to_string())),
        }
    }

    /// Makes the conversation one of this session, unless the session that had it lives.
    fn adopt(&mut self) -> Result<(), Error> {
        let (Some(session), Some(conversation)) = (&self.session, &self.conversation) else { return Ok(()) };
        if conversation.session == session.id.as_str() {
            return Ok(());
        }
        let owner = self.state.sessions()?.get(&conversation.session);
        if !owner.is_ok_and(|owner| owner.life(self.state.world()) == Lifecycle::Live) {
            self.conversation = Some(self.state.conversations()?.adopt(conversation, session)?);
        }
        Ok(())
    }

    /// Begins the delivery of a message: waits for those of other processes in the conversation, sets the ids of the agent
    /// in the message, and stores it. `stored` is the form in which it is stored.
    pub(crate) fn begin_delivery(
        &mut self,
        outgoing: &mut OutgoingMessage,
        stored: impl FnOnce(&OutgoingMessage) -> Value,
        timeout: Duration,
    ) -> Result<(), Error> {
        if self.is_stored() {
            // The conversation may be started, or another one become the last, while this process waits for it.
            loop {
                let key = self.delivery_key();
                let lock = key.as_ref().map(|key| self.state.lock_delivery(key, timeout)).transpose()?;
                self.resolve()?;
                if self.delivery_key() == key {
                    self.delivery.extend(lock);
                    break;
                }
            }
            self.adopt()?;
        }
        (outgoing.context_id, outgoing.task_id) = (self.context_id.clone(), self.task_id.clone());
        let message = stored(outgoing);
        let items = vec![("sent", message.clone())];
        self.store(&ConversationUpdate { items, ..ConversationUpdate::default() })?;
        self.sent = Some(message);
        Ok(())
    }

    /// Key of the delivery lock: the id of the conversation; before it has one, its name, its id at the agent, or the agent.
    /// `None` for a new conversation without a name, which no other process can find.
    fn delivery_key(&self) -> Option<String> {
        let ConversationSelector { new, name, context_id, task_id, .. } = &self.wanted;
        let known = self.conversation.as_ref().map(|one| one.id.clone());
        let session = self.session.as_ref().map_or_else(String::new, |session| session.id.to_string());
        known.or_else(|| match (name, context_id.as_ref().or(task_id.as_ref())) {
            (Some(name), _) => Some(format!("{session} name {name}")),
            (None, Some(id)) => Some(format!("{session} agent {} id {id}", self.agent)),
            (None, None) => (!new).then(|| format!("{session} agent {}", self.agent)),
        })
    }

    /// Whether messages of this call are stored.
    pub(crate) fn is_stored(&self) -> bool {
        self.session.is_some() || self.conversation.is_some()
    }

    /// Whether the next call finds the conversation only by its id: no session continues it by itself.
    pub(crate) fn needs_id(&self) -> bool {
        let session = self.session.as_ref().map(|session| session.id.as_str());
        let is_elsewhere =
            self.conversation.as_ref().is_some_and(|one| Some(one.session.as_str()) != session);
        is_elsewhere || self.state.is_hook_worker()
    }

    /// Session, if any.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_deref()
    }

    /// Stores nothing from now on unless the conversation exists.
    pub(crate) fn forget_unless_known(&mut self) {
        if self.conversation.is_none() {
            self.session = None;
        }
    }

    /// Conversation, if it exists.
    pub(crate) fn conversation(&self) -> Option<&Conversation> {
        self.conversation.as_ref()
    }

    /// Stores an event before it is displayed, with the ids that it carries. A failure is kept for the end of the call.
    pub(crate) fn record(&mut self, event: &AgentEvent) {
        let sent = self.sent.take();
        if sent.is_none() && self.last.as_ref() == Some(event.raw()) {
            return;
        }
        self.last = Some(event.raw().clone());
        self.context_id = event.context_id().map(str::to_owned).or_else(|| self.context_id.take());
        self.task_id = event.task_id().map(str::to_owned).or_else(|| self.task_id.take());
        let stored = self.store(&ConversationUpdate {
            context_id: event.context_id().map(str::to_owned),
            task_id: event.task_id().map(str::to_owned),
            task_state: event.state(),
            items: vec![(event_kind(event), event.raw().clone())],
            sent,
        });
        if let Err(error) = stored {
            self.unsaved.get_or_insert(error);
        }
        // The agent has the message, and the next one finds the ids of the conversation.
        self.delivery.clear();
    }

    /// Fails if an event could not be stored.
    pub(crate) fn into_saved(self) -> Result<(), Failure> {
        match self.unsaved {
            None => Ok(()),
            Some(error) => {
                let reason = error.to_string();
                Err(AgentError::NotSaved { reason, context_id: self.context_id }.into())
            }
        }
    }

    /// Stores that a message got no reply. Whether the agent has it may be unknown.
    pub(crate) fn record_failure(&mut self, reason: &str) {
        self.sent = None;
        let items = vec![("failed", serde_json::json!({ "text": format!("no reply: {reason}") }))];
        // The call fails anyway, with an error that matters more.
        let _ = self.store(&ConversationUpdate { items, ..ConversationUpdate::default() });
    }

    /// Stores that a task has ended, so that the next message starts another one.
    pub(crate) fn close_task(&mut self, task: &str) -> Result<(), Error> {
        let is_meant = self.conversation.as_ref().is_some_and(|one| one.task_id.as_deref() == Some(task));
        if is_meant {
            let heard =
                // `Unknown` counts as ended, without a claim about how the task has ended.
                ConversationUpdate { task_state: Some(TaskState::Unknown), ..ConversationUpdate::default() };
            self.store(&heard)?;
        }
        Ok(())
    }

    fn store(&mut self, update: &ConversationUpdate) -> Result<(), Error> {
        if !self.is_stored() {
            return Ok(());
        }
        let mut all = self.state.conversations()?;
        self.conversation = Some(match (&self.conversation, &self.session) {
            (Some(known), _) => all.remember(known, update)?,
            (None, None) => return Ok(()),
            (None, Some(session)) => {
                let id = all.new_id()?;
                // Before anybody can find it: its first message is not delivered yet.
                self.delivery.push(self.state.lock_delivery(&id, Duration::ZERO)?);
                all.begin(session, &self.agent, (id, self.wanted.name.as_deref()), update)?
            }
        });
        Ok(())
    }
}
