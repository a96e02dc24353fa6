//! Work of the jobs, on the thread of each job.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use sessile::State;
use sessile::error::ConversationError;
use sessile::names::SessionId;
use sessile::session::{Lifecycle, Session};
use sessile_wire::a2a::{AgentCard, AgentEvent, AgentReply, AgentTask, OutgoingMessage, Part};

use super::attachment;
use super::engine::{ChatChoice, ChatJob, ConversationScope, JobEvent, JobReporter};
use super::model::{ChatConversation, ConversationIds};
use super::opener;
use crate::agent_session::{
    AgentArgs, ConversationLog, ConversationSelector, WireSink, agent_error, resolve_agent, save_parts,
};
use crate::cli::Cx;
use crate::commands::message::{EventReceiver, Exchange, PartKind, deliver};
use crate::commands::task::cancel_task;
use crate::error::{Failure, Outcome};

/// Items of a conversation that are loaded at most.
const MOST_ITEMS: i64 = 1_000;

/// Conversations to choose from at most.
const MOST_CHOICES: usize = 200;

/// Session of a chat, once it has one.
type ChatSession = Mutex<Option<SessionId>>;

/// Runs a job.
pub(super) fn run(
    cx: Cx,
    reach: &AgentArgs,
    session: &ChatSession,
    job: &ChatJob,
    reporter: &JobReporter,
) -> Outcome {
    let cx = in_chat_session(cx, session);
    match job {
        ChatJob::Send { agent, selector, parts } => {
            let (cx, session) = with_session(cx, session)?;
            let request = MessageRequest { agent, selector, parts: parts.clone() };
            let mut relay = EventRelay::new(reporter);
            let wire = wire_sink(reporter);
            send(&cx, session, reach, request, Some(wire), &mut relay, &mut |ids| {
                reporter.report(JobEvent::Ids(ids));
            })
        }
        ChatJob::Watch { agent, selector, task } => {
            let mut relay = EventRelay::new(reporter);
            let wire = wire_sink(reporter);
            watch(&cx, reach, (agent, task), selector, Some(wire), &mut relay, &mut |ids| {
                reporter.report(JobEvent::Ids(ids));
            })
        }
        ChatJob::Cancel { agent, task } => {
            let canceled = cancel(&cx, reach, agent, task, Some(wire_sink(reporter)))?;
            reporter.report(JobEvent::Agent(Box::new(AgentEvent::Task(canceled))));
            Ok(())
        }
        ChatJob::Card { agent } => {
            let card = card(&cx, reach, agent, Some(wire_sink(reporter)))?;
            reporter.report(JobEvent::Card(Box::new(card)));
            Ok(())
        }
        ChatJob::Load { agent, selector } => {
            reporter.report(JobEvent::Loaded(Box::new(load(&cx, agent, selector)?)));
            Ok(())
        }
        ChatJob::Choices => {
            reporter.report(JobEvent::Choices(choices(&cx.state)?));
            Ok(())
        }
        ChatJob::Attach { kind, value } => {
            let part = match kind {
                PartKind::File => attachment::file(&cx, value)?,
                PartKind::Data | PartKind::Text => attachment::data(&cx, value)?,
            };
            reporter.report(JobEvent::Attached(Box::new(part)));
            Ok(())
        }
        ChatJob::Save { artifacts, dir } => {
            let dir = cx.state.absolute(dir);
            for artifact in artifacts {
                for path in save_parts(&dir, &artifact.name, artifact.parts.clone())? {
                    reporter.report(JobEvent::Saved(path));
                }
            }
            Ok(())
        }
        ChatJob::Open { artifact, dir } => {
            for path in opener::open(&cx, artifact, &cx.state.absolute(dir))? {
                reporter.report(JobEvent::Saved(path));
            }
            Ok(())
        }
        ChatJob::Forget { conversation } => {
            forget(&cx.state, conversation)?;
            reporter.report(JobEvent::Forgotten);
            Ok(())
        }
    }
}

/// The call in the session of the chat, if it has one.
fn in_chat_session(cx: Cx, session: &ChatSession) -> Cx {
    let known = session.lock().unwrap_or_else(PoisonError::into_inner);
    match &*known {
        Some(id) => Cx { state: cx.state.in_session(id), out: cx.out },
        None => cx,
    }
}

/// Session of the chat, started if necessary. Two first messages at the same time start one session.
fn with_session(cx: Cx, session: &ChatSession) -> Result<(Cx, Option<Rc<Session>>), Failure> {
    let mut known = session.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(id) = &*known {
        let cx = Cx { state: cx.state.in_session(id), out: cx.out };
        let session = cx.state.require_session("talking to an agent in it")?;
        return Ok((cx, Some(session)));
    }
    let found = crate::agent_session::session(&cx, "chat")?;
    *known = found.as_ref().map(|session| session.id.clone());
    Ok((cx, found))
}

/// Message of a chat.
pub(super) struct MessageRequest<'a> {
    /// Name or URL of the agent.
    pub(super) agent: &'a str,
    pub(super) selector: &'a ConversationSelector,
    pub(super) parts: Vec<Part>,
}

/// Sends a message and follows its task. `on_ids` gets the ids before the message is sent, and at the end.
pub(super) fn send(
    cx: &Cx,
    session: Option<Rc<Session>>,
    reach: &AgentArgs,
    request: MessageRequest<'_>,
    wire: Option<WireSink>,
    receiver: &mut dyn EventReceiver,
    on_ids: &mut dyn FnMut(ConversationIds),
) -> Outcome {
    let named = resolve_agent(cx, request.agent)?;
    let mut log = ConversationLog::open(&cx.state, session, &named.url, request.selector)?;
    let outgoing = OutgoingMessage {
        // It only has to be unique, as the ids of sessions are.
        message_id: SessionId::new(cx.state.world().now().as_millisecond())?.to_string(),
        parts: request.parts,
        is_blocking: true,
        extensions: reach.extensions().to_vec(),
        ..OutgoingMessage::default()
    };
    let connection = reach.logged_connection(cx, &named, wire)?;
    let agent = connection.agent(cx)?;
    let delivered =
        deliver(reach.delivery_limits(), &agent, &mut log, receiver, outgoing, |exchange, outgoing| {
            on_ids(ids_of(exchange.log()));
            exchange.send(outgoing)
        });
    on_ids(ids_of(&log));
    delivered.map_err(|failure| failure.into_failure(cx, &named.url))?;
    log.into_saved()
}

/// Follows a task of the conversation.
pub(super) fn watch(
    cx: &Cx,
    reach: &AgentArgs,
    (agent, task): (&str, &str),
    selector: &ConversationSelector,
    wire: Option<WireSink>,
    receiver: &mut dyn EventReceiver,
    on_ids: &mut dyn FnMut(ConversationIds),
) -> Outcome {
    let named = resolve_agent(cx, agent)?;
    let mut log = ConversationLog::open(&cx.state, current_session(&cx.state)?, &named.url, selector)?;
    log.forget_unless_known();
    let connection = reach.logged_connection(cx, &named, wire)?;
    let client = connection.agent(cx)?;
    let mut exchange = Exchange::new(&client, &mut log, receiver).with_limits(reach.delivery_limits());
    let followed = exchange.follow_task(task);
    on_ids(ids_of(&log));
    followed.map_err(|error| agent_error(&named.url, Some(task), error))?;
    log.into_saved()
}

/// Cancels a task at the agent.
pub(super) fn cancel(
    cx: &Cx,
    reach: &AgentArgs,
    agent: &str,
    task: &str,
    wire: Option<WireSink>,
) -> Result<AgentTask, Failure> {
    let named = resolve_agent(cx, agent)?;
    let connection = reach.logged_connection(cx, &named, wire)?;
    cancel_task(cx, &connection.agent(cx)?, &named.url, task)
}

/// Card of the agent.
pub(super) fn card(
    cx: &Cx,
    reach: &AgentArgs,
    agent: &str,
    wire: Option<WireSink>,
) -> Result<AgentCard, Failure> {
    let named = resolve_agent(cx, agent)?;
    reach.logged_connection(cx, &named, wire)?.card()
}

fn ids_of(log: &ConversationLog<'_>) -> ConversationIds {
    ConversationIds {
        conversation: log.conversation().map(|one| one.id.clone()),
        context_id: log.context_id.clone(),
        task_id: log.task_id.clone(),
    }
}

/// Session of the call, if it has one. Reading starts no session.
fn current_session(state: &State) -> Result<Option<Rc<Session>>, Failure> {
    Ok(match state.session()? {
        Some(_) => Some(state.require_session("talking to an agent in it")?),
        None => None,
    })
}

/// Conversation that a selector means, with its last messages; an empty one if it does not exist yet.
pub(super) fn load(
    cx: &Cx,
    agent: &str,
    selector: &ConversationSelector,
) -> Result<ChatConversation, Failure> {
    let named = resolve_agent(cx, agent)?;
    let session = current_session(&cx.state)?;
    let mut chat = ChatConversation::default();
    if session.is_none() && selector.continued.is_none() {
        return Ok(chat);
    }
    let log = ConversationLog::open(&cx.state, session, &named.url, selector)?;
    let (Some(found), Some(all)) = (log.conversation(), cx.state.conversations_to_look_at()?) else {
        return Ok(chat);
    };
    let from = (found.items - MOST_ITEMS + 1).max(1);
    for item in all.items(found, from, usize::try_from(MOST_ITEMS).unwrap_or(usize::MAX))? {
        chat.replay(&item);
    }
    chat.earlier = usize::try_from(from - 1).unwrap_or_default();
    chat.name.clone_from(&found.name);
    chat.task_state = found.task_state;
    chat.ids = ConversationIds {
        conversation: Some(found.id.clone()),
        context_id: found.context_id.clone(),
        task_id: found.task_id.clone(),
    };
    Ok(chat)
}

/// Conversations by their last use, then agents that have a name.
pub(super) fn choices(state: &State) -> Result<Vec<ChatChoice>, Failure> {
    let named = state.agents()?;
    let name_of = |url: &str| {
        let known = named.iter().find(|agent| agent.url == url).and_then(|agent| agent.name.clone());
        known.unwrap_or_else(|| url.to_owned())
    };
    let recent = match state.conversations_to_look_at()? {
        Some(all) => all.list(None, None)?,
        None => Vec::new(),
    };
    let sessions = state.sessions_to_look_at()?;
    let is_live = |id: &str| {
        let found = sessions.as_ref().and_then(|sessions| sessions.get(id).ok());
        found.is_some_and(|session| session.life(state.world()) == Lifecycle::Live)
    };
    let mut seen = BTreeSet::new();
    let mut all: Vec<ChatChoice> = Vec::new();
    for one in recent.iter().take(MOST_CHOICES) {
        seen.insert(one.agent_url.clone());
        let context = one.context.as_deref().unwrap_or("no context");
        let state = one.task_state.map_or_else(String::new, |state| format!(", {state}"));
        let name = one.name.as_deref().map_or_else(String::new, |name| format!("{name}, "));
        all.push(ChatChoice {
            agent: name_of(&one.agent_url),
            scope: ConversationScope::of_conversation(
                Some(one.session.as_str()).filter(|id| is_live(id)),
                one.context.as_deref(),
            ),
            conversation: Some(one.id.clone()),
            detail: format!("{name}{} items, {}, {context}{state}", one.items, one.used_at),
        });
    }
    let urls = named.iter().map(|agent| agent.url.clone()).chain(seen).collect::<BTreeSet<_>>();
    all.extend(urls.iter().map(|url| ChatChoice {
        agent: name_of(url),
        scope: ConversationScope::default(),
        conversation: None,
        detail: format!("new conversation, {url}"),
    }));
    Ok(all)
}

/// Deletes a conversation from the store. The agent keeps its copy.
pub(super) fn forget(state: &State, id: &str) -> Outcome {
    let mut all = state.conversations()?;
    let found = all.find_by_id(id)?;
    let found = found.ok_or_else(|| ConversationError::NotFound { name: id.to_owned(), near: None })?;
    let label = found.label().to_owned();
    all.forget(&[found])?;
    sessile::history::record(state, "conversation clear", &label, "the messages are deleted")?;
    Ok(())
}

fn wire_sink(reporter: &JobReporter) -> WireSink {
    let reporter = reporter.clone();
    Box::new(move |line| reporter.report(JobEvent::Wire(line)))
}

/// Passes the events of a reply on to the view.
struct EventRelay<'a> {
    reporter: &'a JobReporter,
    reply: AgentReply,
}

impl<'a> EventRelay<'a> {
    fn new(reporter: &'a JobReporter) -> Self {
        EventRelay { reporter, reply: AgentReply::default() }
    }
}

impl EventReceiver for EventRelay<'_> {
    fn take(&mut self, event: &AgentEvent) {
        self.reply.take(event);
        self.reporter.report(JobEvent::Agent(Box::new(event.clone())));
    }

    fn reply(&self) -> &AgentReply {
        &self.reply
    }

    fn has_left(&self) -> bool {
        self.reporter.has_left()
    }
}
