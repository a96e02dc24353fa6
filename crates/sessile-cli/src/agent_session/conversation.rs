//! Conversation of a session with an agent, and its log.
//!
//! An event is stored before it is displayed, and a task at its first event. A failed save is a failure of the call: a
//! reply that is displayed and not stored would be missing from the next message. The sent message is stored with the
//! first event, which brings the ids of conversation and task. Without a session no conversation is stored or continued:
//! the second run of a script must not continue the conversation of the first.

use std::rc::Rc;

use serde_json::Value;
use sessile::call::ConfigSource;
use sessile::conversation::{Conversation, ConversationUpdate, TaskState};
use sessile::error::{ConversationError, SessionError};
use sessile::session::Session;
use sessile::{Error, State};
use sessile_wire::a2a::AgentEvent;

use crate::cli::Cx;
use crate::error::Failure;
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
}

/// Log of a conversation. Without a session nothing is stored.
pub(crate) struct ConversationLog<'a> {
    state: &'a State,
    agent: String,
    session: Option<Rc<Session>>,
    conversation: Option<Conversation>,
    name: Option<String>,
    /// Last event: an agent that is polled repeats it.
    last: Option<Value>,
    /// Message that was sent; it is stored with the first event of the reply.
    sent: Option<Value>,
    pub(crate) context_id: Option<String>,
    pub(crate) task_id: Option<String>,
}

/// Session that a conversation belongs to: the session of the call, one that is started under the given name, or on a terminal
/// one that is started for it.
pub(crate) fn session(cx: &Cx, command: &str) -> Result<Option<Rc<Session>>, Failure> {
    let state = &cx.state;
    if state.session()?.is_some() {
        return Ok(Some(state.require_session("talking to an agent in it")?));
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
    cx.out.note(&format!("session {} was started for this terminal", session.id));
    Ok(Some(Rc::new(session)))
}

impl<'a> ConversationLog<'a> {
    /// Opens the log of the selected conversation.
    pub(crate) fn open(
        state: &'a State,
        session: Option<Rc<Session>>,
        agent: &str,
        wanted: &ConversationSelector,
    ) -> Result<Self, Error> {
        let mut memory = ConversationLog {
            state,
            agent: agent.to_owned(),
            session,
            conversation: None,
            name: None,
            sent: None,
            last: None,
            context_id: wanted.context_id.clone(),
            task_id: wanted.task_id.clone(),
        };
        let Some(session) = memory.session.clone() else { return Ok(memory) };
        let all = state.conversations()?;
        memory.conversation = match wanted {
            // A name that cannot be used is an error before anything is sent.
            ConversationSelector { name: Some(name), .. } => {
                let found = all.named(&session, agent, name)?;
                if wanted.new && found.is_some() {
                    return Err(ConversationError::Exists(name.clone()).into());
                }
                memory.name = Some(name.clone());
                found
            }
            ConversationSelector { context_id: Some(context), .. } => {
                all.of_context(&session, agent, context)?
            }
            ConversationSelector { task_id: Some(task), .. } => all.of_task(&session, agent, task)?,
            ConversationSelector { new: true, .. } => None,
            _ => all.newest(&session, agent)?,
        };
        if let Some(conversation) = &memory.conversation {
            memory.context_id = memory.context_id.or_else(|| conversation.context_id.clone());
            // A named context or task is meant as it is, without the task that the conversation left open.
            if wanted.task_id.is_none() && wanted.context_id.is_none() {
                memory.task_id = conversation.open_task().map(str::to_owned);
            }
        }
        Ok(memory)
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

    /// Sets the message that is about to be sent.
    pub(crate) fn will_send(&mut self, message: Value) {
        self.sent = Some(message);
    }

    /// Stores an event before it is displayed, with the ids that it carries.
    pub(crate) fn record(&mut self, event: &AgentEvent) -> Result<(), Error> {
        let kind = event_kind(event);
        // A repeated event after a new message is the answer to that message.
        if self.sent.is_none() && self.last.as_ref() == Some(event.raw()) {
            return Ok(());
        }
        self.last = Some(event.raw().clone());
        let mut items: Vec<(&'static str, Value)> =
            self.sent.take().map(|sent| ("sent", sent)).into_iter().collect();
        items.push((kind, event.raw().clone()));
        self.context_id = event.context_id().map(str::to_owned).or_else(|| self.context_id.take());
        if let Some(task) = event.task_id() {
            self.task_id = Some(task.to_owned());
        }
        self.remember(&ConversationUpdate {
            context_id: event.context_id().map(str::to_owned),
            task_id: event.task_id().map(str::to_owned),
            task_state: event.state(),
            items,
        })
    }

    /// Stores that a task has ended, so that the next message starts another one.
    pub(crate) fn close_task(&mut self, task: &str) -> Result<(), Error> {
        let is_meant = self.conversation.as_ref().is_some_and(|one| one.task_id.as_deref() == Some(task));
        if is_meant {
            let heard =
                // `Unknown` counts as ended, without a claim about how the task has ended.
                ConversationUpdate { task_state: Some(TaskState::Unknown), ..ConversationUpdate::default() };
            self.remember(&heard)?;
        }
        Ok(())
    }

    fn remember(&mut self, heard: &ConversationUpdate) -> Result<(), Error> {
        let Some(session) = &self.session else { return Ok(()) };
        let mut all = self.state.conversations()?;
        self.conversation = Some(match self.conversation.take() {
            Some(known) => all.remember(&known, heard)?,
            None => all.begin(session, &self.agent, self.name.as_deref(), heard)?,
        });
        Ok(())
    }
}
