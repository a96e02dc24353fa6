//! Requests of a chat: each runs on a thread of its own with a state of its own, and reports by events.
//!
//! So a view never waits for the network or the store. A thread works as a process of `message send` would: credentials and
//! guards are checked again for every message, and a kill loses no acknowledged event.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use sessile::call::StateCall;
use sessile::names::SessionId;
use sessile::{State, StateArgs};
use sessile_wire::a2a::{AgentCard, AgentEvent, Part};

use super::jobs;
use super::model::{ChatArtifact, ChatConversation, ConversationIds};
use crate::agent_session::{AgentArgs, ConversationSelector};
use crate::cli::Cx;
use crate::commands::message::PartKind;
use crate::error::Failure;
use crate::output::{Output, OutputBuffers};

/// Receiver of a chat's events.
pub(crate) type EventSink = Arc<dyn Fn(ChatEvent) + Send + Sync>;

/// Number of a conversation among the open ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TabId(pub(crate) u64);

/// Number of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct JobId(u64);

/// Event of a job.
#[derive(Debug)]
pub(crate) struct ChatEvent {
    /// Conversation that the job belongs to.
    pub(crate) tab: TabId,
    /// Job.
    pub(crate) job: JobId,
    /// Kind of the event.
    pub(crate) kind: JobEvent,
}

/// Kind of an event.
#[derive(Debug)]
pub(crate) enum JobEvent {
    /// The message is stored and about to be sent, or the ids changed.
    Ids(ConversationIds),
    /// The agent sent an event, which is stored already.
    Agent(Box<AgentEvent>),
    /// Line of the wire log, redacted and safe for terminals.
    Wire(String),
    /// Note for the user.
    Note(String),
    /// Card of the agent.
    Card(Box<AgentCard>),
    /// Conversation of the store.
    Loaded(Box<ChatConversation>),
    /// Agents and conversations to choose from.
    Choices(Vec<ChatChoice>),
    /// The conversation was deleted from the store.
    Forgotten,
    /// Part for the next message.
    Attached(Box<Part>),
    /// Path of a saved file.
    Saved(PathBuf),
    /// The job ended. No event follows.
    Ended(Option<ChatFailure>),
}

/// Failure of a job, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChatFailure {
    /// Problem.
    pub(crate) message: String,
    /// Next step.
    pub(crate) hint: Option<String>,
}

impl ChatFailure {
    /// Failure of a call; `None` if nothing is left to report.
    pub(super) fn of(failure: &Failure) -> Option<Self> {
        let report = failure.report(&crate::settings::app())?;
        Some(ChatFailure { message: report.message, hint: report.hint })
    }
}

impl std::fmt::Display for ChatFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "error: {}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

/// Session or context that the jobs of a conversation work in; neither for those of the chat's call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ConversationScope {
    /// Id of the session.
    pub(crate) session: Option<String>,
    /// Context, where no session is left.
    pub(crate) context: Option<String>,
}

impl ConversationScope {
    /// Scope of a stored conversation. It continues in its context only, which its session has if that is live.
    pub(crate) fn of_conversation(live_session: Option<&str>, context: Option<&str>) -> Self {
        match live_session {
            Some(session) => ConversationScope { session: Some(session.to_owned()), context: None },
            None => ConversationScope { session: None, context: context.map(str::to_owned) },
        }
    }

    /// A call with the session or context of the scope.
    fn call(&self, call: &StateCall) -> Result<StateCall, Failure> {
        // A progress line would be written over the screen.
        let call = call.clone().on_wait(|_| ());
        if *self == ConversationScope::default() {
            return Ok(call);
        }
        let (session, context) = (self.session.clone(), self.context.clone());
        let args = StateArgs { session, context, ..call.args().clone() };
        Ok(StateCall::new(call.app(), call.world().clone(), args)?.with_mode(call.mode()))
    }
}

/// Agent or conversation that a person can choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChatChoice {
    /// Name or URL of the agent.
    pub(crate) agent: String,
    /// Session or context of the conversation.
    pub(crate) scope: ConversationScope,
    /// Conversation to continue; `None` starts one.
    pub(crate) conversation: Option<String>,
    /// Text beside the agent.
    pub(crate) detail: String,
}

/// Work of a job.
#[derive(Clone, Debug)]
pub(crate) enum ChatJob {
    /// Send a message and follow its task.
    Send {
        /// Name or URL of the agent.
        agent: String,
        /// Conversation.
        selector: ConversationSelector,
        /// Message.
        parts: Vec<Part>,
    },
    /// Follow a task.
    Watch {
        /// Name or URL of the agent.
        agent: String,
        /// Conversation.
        selector: ConversationSelector,
        /// Task.
        task: String,
    },
    /// Cancel a task.
    Cancel {
        /// Name or URL of the agent.
        agent: String,
        /// Task.
        task: String,
    },
    /// Fetch the agent's card.
    Card {
        /// Name or URL of the agent.
        agent: String,
    },
    /// Load the selected conversation.
    Load {
        /// Name or URL of the agent.
        agent: String,
        /// Conversation.
        selector: ConversationSelector,
    },
    /// List agents and conversations.
    Choices,
    /// Read a file, a link or JSON for the next message.
    Attach {
        /// File or data.
        kind: PartKind,
        /// Path, URL or JSON.
        value: String,
    },
    /// Save artifacts as files. The directory is never left, and existing files stay.
    Save {
        /// Artifacts.
        artifacts: Vec<ChatArtifact>,
        /// Directory.
        dir: PathBuf,
    },
    /// Open an artifact with the program of the desktop.
    Open {
        /// Artifact.
        artifact: ChatArtifact,
        /// Directory that it is saved to.
        dir: PathBuf,
    },
    /// Delete a conversation from the store.
    Forget {
        /// Id of the conversation.
        conversation: String,
    },
}

/// Handle of a running job.
#[derive(Debug)]
pub(crate) struct JobHandle {
    /// Job.
    pub(crate) id: JobId,
    has_left: Arc<AtomicBool>,
}

impl JobHandle {
    /// Handle of a job that never runs.
    #[cfg(test)]
    pub(crate) fn idle(id: u64) -> Self {
        JobHandle { id: JobId(id), has_left: Arc::default() }
    }

    /// Stops following. The task goes on at the agent, and the thread still stores its events.
    pub(crate) fn leave(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }
}

/// Starts jobs.
pub(crate) trait JobStarter {
    /// Starts a job for a conversation.
    fn start(&mut self, tab: TabId, scope: &ConversationScope, job: ChatJob) -> JobHandle;
}

/// Starts the jobs of a chat.
pub(crate) struct ChatEngine {
    call: StateCall,
    out: Output,
    reach: AgentArgs,
    sink: EventSink,
    /// Session of each scope, once it has one: its conversations stay in it.
    sessions: HashMap<ConversationScope, Arc<Mutex<Option<SessionId>>>>,
    last_job: u64,
}

impl ChatEngine {
    /// Engine with the call and the flags of a chat.
    pub(crate) fn new(call: StateCall, out: Output, reach: AgentArgs, sink: EventSink) -> Self {
        ChatEngine { call, out, reach, sink, sessions: HashMap::new(), last_job: 0 }
    }
}

impl JobStarter for ChatEngine {
    fn start(&mut self, tab: TabId, scope: &ConversationScope, job: ChatJob) -> JobHandle {
        self.last_job += 1;
        let (id, has_left) = (JobId(self.last_job), Arc::new(AtomicBool::new(false)));
        let reporter = JobReporter { tab, id, sink: Arc::clone(&self.sink), has_left: Arc::clone(&has_left) };
        let (out, reach, failed) = (self.out.clone(), self.reach.clone(), reporter.clone());
        let call = match scope.call(&self.call) {
            Ok(call) => call,
            Err(failure) => {
                reporter.report(JobEvent::Ended(ChatFailure::of(&failure)));
                return JobHandle { id, has_left };
            }
        };
        let session = Arc::clone(self.sessions.entry(scope.clone()).or_default());
        let started = std::thread::Builder::new().name("chat".to_owned()).spawn(move || {
            let buffers = Arc::new(OutputBuffers::default());
            let cx = Cx { state: State::from(call), out: out.into_buffers(Some(Arc::clone(&buffers))) };
            let outcome = jobs::run(cx, &reach, &session, &job, &reporter);
            let (_, notes) = buffers.take();
            for note in notes.lines() {
                reporter.report(JobEvent::Note(note.to_owned()));
            }
            reporter.report(JobEvent::Ended(outcome.err().as_ref().and_then(ChatFailure::of)));
        });
        if let Err(error) = started {
            let message = format!("cannot start a thread: {error}");
            failed.report(JobEvent::Ended(Some(ChatFailure { message, hint: None })));
        }
        JobHandle { id, has_left }
    }
}

/// Reports the events of a job.
#[derive(Clone)]
pub(super) struct JobReporter {
    tab: TabId,
    id: JobId,
    sink: EventSink,
    has_left: Arc<AtomicBool>,
}

impl JobReporter {
    pub(super) fn report(&self, kind: JobEvent) {
        (self.sink)(ChatEvent { tab: self.tab, job: self.id, kind });
    }

    pub(super) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }
}
