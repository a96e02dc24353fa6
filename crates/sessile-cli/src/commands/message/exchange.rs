//! A message and its reply, up to a final event.
//!
//! A reply is streamed if the agent supports it: the first event names the task, so a process that is killed,
//! interrupted or runs out of time leaves a conversation that `task watch` continues. Other agents get a request to
//! return at once, and are polled. A stream that ends early is resumed by subscribing to the task, or by fetching it.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use sessile::text::shell_quoted;
use sessile::{App, Error, Report};
use sessile_wire::a2a::{AgentEvent, AgentReply, OutgoingMessage, RpcErrorKind, TaskState};
use sessile_wire::backoff::Backoff;

use super::compose::stored_message;
use crate::a2a::{A2aError, AgentClient, ReplyLimits, StreamEnd};
use crate::agent_session::{ConversationLog, agent_error};
use crate::cli::Cx;
use crate::error::Failure;
use crate::http::HttpError;

/// Number of failed requests in a row after which the call abandons a running task.
const MAX_FAILURES: u32 = 5;

/// Shortest and longest pause between two requests for a running task.
const MIN_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Receiver of the events of a reply.
pub(crate) trait EventReceiver {
    /// Takes an event, which is stored already.
    fn take(&mut self, event: &AgentEvent);

    /// Reply so far.
    fn reply(&self) -> &AgentReply;

    /// Whether the chat stopped following the reply. The task continues at the agent.
    fn has_left(&self) -> bool {
        false
    }
}

/// Exchange with an agent. Every event is stored, then passed on.
pub(crate) struct Exchange<'a, 'c, 'b> {
    agent: &'a AgentClient<'c>,
    log: &'a mut ConversationLog<'b>,
    receiver: &'a mut dyn EventReceiver,
    /// End of the time that the user gave.
    deadline: Option<Instant>,
    /// Pause between two requests for a running task, if the user gave one.
    poll_interval: Option<Duration>,
    /// Whether a silent stream is resumed, because the user gave no timeout.
    resumes_silence: bool,
    /// State that the protocol does not have, until it is reported.
    undefined_state: Option<String>,
}

impl<'a, 'c, 'b> Exchange<'a, 'c, 'b> {
    /// The same with the limits of a delivery that begins now.
    pub(crate) fn with_limits(self, limits: DeliveryLimits) -> Self {
        let DeliveryLimits { timeout, poll_interval, resumes_silence } = limits;
        Exchange {
            deadline: timeout.map(|timeout| Instant::now() + timeout),
            poll_interval,
            resumes_silence,
            ..self
        }
    }

    /// Exchange without a deadline.
    pub(crate) fn new(
        agent: &'a AgentClient<'c>,
        log: &'a mut ConversationLog<'b>,
        receiver: &'a mut dyn EventReceiver,
    ) -> Self {
        Exchange {
            agent,
            log,
            receiver,
            deadline: None,
            poll_interval: None,
            resumes_silence: false,
            undefined_state: None,
        }
    }

    /// Log of the conversation.
    pub(crate) fn log(&self) -> &ConversationLog<'b> {
        self.log
    }

    /// Sends a message and follows its task until it ends or waits for the user.
    pub(crate) fn send(&mut self, outgoing: &OutgoingMessage) -> Result<(), A2aError> {
        if !self.agent.card.streaming {
            self.send_and_return(outgoing)?;
            return self.follow();
        }
        let agent = self.agent;
        match self.listen(|on_event| agent.stream(outgoing, on_event)) {
            // Some cards promise streams that the agent does not have.
            Err(error) if is_missing(&error) && self.task_id().is_none() => {
                self.send_and_return(outgoing)?;
            }
            Err(error) if self.task_id().is_none() || !self.is_resumed(&error) => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.follow()
    }

    /// Sends a message and takes what the agent returns at once.
    pub(crate) fn send_and_return(&mut self, outgoing: &OutgoingMessage) -> Result<(), A2aError> {
        let outgoing = OutgoingMessage { is_blocking: false, ..outgoing.clone() };
        let event = self.agent.send(&outgoing)?;
        self.take(&event);
        self.check_state()
    }

    /// Follows the task of the reply until it ends or waits for the user.
    pub(crate) fn follow(&mut self) -> Result<(), A2aError> {
        if self.receiver.reply().is_final() {
            self.fetch_missing_result();
            return Ok(());
        }
        match self.task_id() {
            Some(id) => self.follow_task(&id),
            None => Err(A2aError::malformed("the reply ended without a message or a task", b"")),
        }
    }

    /// Follows a task until it ends or waits for the user.
    pub(crate) fn follow_task(&mut self, id: &str) -> Result<(), A2aError> {
        let agent = self.agent;
        let (mut can_subscribe, mut failures) = (agent.card.streaming, 0);
        let mut backoff = Backoff::new(MIN_PAUSE, MAX_PAUSE);
        loop {
            if self.receiver.has_left() {
                return Ok(());
            }
            if can_subscribe {
                match self.listen(|on_event| agent.resubscribe(id, on_event)) {
                    Ok(()) if self.receiver.reply().is_final() => {
                        self.fetch_missing_result();
                        return Ok(());
                    }
                    Ok(()) => {}
                    // It has ended meanwhile, or cannot be subscribed to.
                    Err(error) if is_missing(&error) || is_over(&error) => can_subscribe = false,
                    Err(error) if !self.is_resumed(&error) => return Err(error),
                    Err(_) => {}
                }
            }
            match agent.task(id, None) {
                Ok(task) => {
                    failures = 0;
                    self.take(&AgentEvent::Task(task));
                    self.check_state()?;
                    if self.receiver.reply().is_final() {
                        return Ok(());
                    }
                }
                Err(error) if is_transient(&error) && failures < MAX_FAILURES => failures += 1,
                Err(error) => return Err(error),
            }
            let pause = self.poll_interval.unwrap_or_else(|| backoff.next_delay());
            match self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(left) if left < pause => {
                    return Err(A2aError::TimedOut { url: agent.interface.url.clone() });
                }
                _ => std::thread::sleep(pause),
            }
        }
    }

    /// Fetches a completed task whose stream had no result. Some servers stream states alone.
    fn fetch_missing_result(&mut self) {
        let reply = self.receiver.reply();
        let is_empty = reply.message().is_none() && reply.parts().is_empty();
        if let (Some(TaskState::Completed), true, Some(id)) = (reply.state(), is_empty, self.task_id())
            // The reply is complete without it, as far as the agent said.
            && let Ok(task) = self.agent.task(&id, None)
        {
            self.take(&AgentEvent::Task(task));
        }
    }

    fn listen(
        &mut self,
        stream: impl FnOnce(&mut dyn FnMut(AgentEvent) -> ControlFlow<()>) -> Result<StreamEnd, A2aError>,
    ) -> Result<(), A2aError> {
        stream(&mut |event| {
            self.take(&event);
            let is_over = self.receiver.reply().is_final()
                || self.undefined_state.is_some()
                || self.receiver.has_left();
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        self.check_state()
    }

    fn take(&mut self, event: &AgentEvent) {
        self.undefined_state = self.undefined_state.take().or(event.undefined_state().map(str::to_owned));
        self.log.record(event);
        self.receiver.take(event);
    }

    /// Fails if the task is in a state that the protocol does not define, because such a task may or may not have ended.
    fn check_state(&mut self) -> Result<(), A2aError> {
        match self.undefined_state.take() {
            Some(state) => Err(A2aError::UndefinedState { state }),
            None => Ok(()),
        }
    }

    /// Whether the task of a stream with this failure is followed further.
    fn is_resumed(&self, error: &A2aError) -> bool {
        // Some agents send nothing for as long as their model thinks.
        is_transient(error) || (self.resumes_silence && matches!(error, A2aError::TimedOut { .. }))
    }

    fn task_id(&self) -> Option<String> {
        self.receiver.reply().task_id().map(str::to_owned)
    }
}

/// Whether the agent does not have the operation.
fn is_missing(error: &A2aError) -> bool {
    matches!(error.rpc_error_kind(), Some(RpcErrorKind::UnsupportedOperation | RpcErrorKind::MethodNotFound))
}

/// Whether the task has ended. Version 0.3 calls its id an invalid parameter then.
fn is_over(error: &A2aError) -> bool {
    matches!(error.rpc_error_kind(), Some(RpcErrorKind::TaskTerminal | RpcErrorKind::InvalidParams))
}

/// Whether another try may succeed, because the connection was lost or the server failed.
fn is_transient(error: &A2aError) -> bool {
    matches!(error, A2aError::Http(HttpError::Unreachable { .. }) | A2aError::Server { .. })
}

/// Limits of a delivery.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeliveryLimits {
    /// Time that the user gave for the whole of it.
    pub(crate) timeout: Option<Duration>,
    /// Pause between two requests for a running task, if the user gave one.
    pub(crate) poll_interval: Option<Duration>,
    /// Whether a silent stream is resumed, because the user gave no timeout.
    pub(crate) resumes_silence: bool,
}

/// Fails if a message asks for what the agent's card does not offer. Nothing is stored or sent then.
pub(super) fn require_features(
    agent: &AgentClient<'_>,
    url: &str,
    outgoing: &OutgoingMessage,
) -> Result<(), Failure> {
    match &outgoing.push {
        Some(_) => agent.require_push().map_err(|error| agent_error(url, None, error)),
        None => Ok(()),
    }
}

/// Delivers a message and collects its reply, by the given kind of exchange.
pub(crate) fn deliver<'b>(
    limits: DeliveryLimits,
    agent: &AgentClient<'_>,
    log: &mut ConversationLog<'b>,
    receiver: &mut dyn EventReceiver,
    mut outgoing: OutgoingMessage,
    exchange: impl FnOnce(&mut Exchange<'_, '_, 'b>, &OutgoingMessage) -> Result<(), A2aError>,
) -> Result<(), DeliveryError> {
    // A delivery lasts as long as the agent takes for its first event.
    let patience = limits.timeout.unwrap_or(ReplyLimits::default().head);
    log.begin_delivery(&mut outgoing, stored_message, patience)?;
    let mut exchanged = Exchange::new(agent, log, receiver).with_limits(limits);
    let done = exchange(&mut exchanged, &outgoing);
    done.map_err(|error| {
        let is_over =
            matches!(error.rpc_error_kind(), Some(RpcErrorKind::TaskNotFound | RpcErrorKind::TaskTerminal));
        if receiver.reply().raw().is_none() {
            log.record_failure(&error.to_string());
        }
        // The next message begins another task, and the user knows.
        let closed = match &outgoing.task_id {
            Some(task) if is_over => log.close_task(task),
            _ => Ok(()),
        };
        match closed {
            Ok(()) => {
                let running =
                    log.task_id.clone().filter(|_| !is_over && receiver.reply().task_id().is_some());
                DeliveryError::Agent { error: Box::new(error), task: outgoing.task_id, running }
            }
            Err(error) => error.into(),
        }
    })
}

/// Failure of a delivery.
pub(crate) enum DeliveryError {
    /// The conversation could not be locked or stored.
    Log(Error),
    /// The agent failed.
    Agent {
        error: Box<A2aError>,
        /// Task that the message was for.
        task: Option<String>,
        /// Task that may still run.
        running: Option<String>,
    },
}

impl From<Error> for DeliveryError {
    fn from(error: Error) -> Self {
        DeliveryError::Log(error)
    }
}

impl DeliveryError {
    /// Failure of the command. Names the command that follows a task that still runs.
    pub(crate) fn into_failure(self, cx: &Cx, url: &str) -> Failure {
        match self {
            DeliveryError::Log(error) => error.into(),
            DeliveryError::Agent { error, task, running } => {
                let failure = agent_error(url, task.as_deref(), *error);
                match running {
                    Some(running) => with_command_to_watch(failure, cx.state.app(), &running, url),
                    None => failure,
                }
            }
        }
    }
}

/// The failure with the command that follows the task, which may still run.
fn with_command_to_watch(failure: Failure, app: &App, task: &str, url: &str) -> Failure {
    let Some(report) = failure.report(app) else { return failure };
    let command = format!("{} task watch {} --url {}", app.name(), shell_quoted(task), shell_quoted(url));
    let follow = format!("the task may still run; follow it: {command}");
    let hint = report.hint.as_ref().map_or_else(|| follow.clone(), |hint| format!("{hint}; {follow}"));
    // Another try would send the message twice.
    Failure::Remote(Box::new(Report {
        hint: Some(hint),
        fix_command: Some(command),
        retryable: false,
        retry_after: None,
        ..report
    }))
}

#[cfg(test)]
mod tests {
    use sessile::{State, StateArgs, World};
    use sessile_wire::a2a::Part;
    use testkit::{AgentOptions, Protocol, ScriptedAgent};

    use super::*;
    use crate::a2a::{AnonymousAccess, ClientOptions};
    use crate::agent_session::ConversationSelector;
    use crate::http::{HttpClient, TrustRoots};

    #[derive(Default)]
    struct CollectedReply(AgentReply);

    impl EventReceiver for CollectedReply {
        fn take(&mut self, event: &AgentEvent) {
            self.0.take(event);
        }

        fn reply(&self) -> &AgentReply {
            &self.0
        }
    }

    /// Sends a message to an agent whose streams may be silent for 200 ms.
    fn send(agent: &ScriptedAgent, limits: DeliveryLimits) -> (Result<(), A2aError>, AgentReply) {
        let dir = tempfile::tempdir().unwrap();
        let world = World::empty().with_home(dir.path());
        let state = State::open(&App::new("sessile"), world, StateArgs::default()).unwrap();
        let mut log =
            ConversationLog::open(&state, None, agent.url(), &ConversationSelector::default()).unwrap();
        let idle = ReplyLimits { idle: Duration::from_millis(200), ..ReplyLimits::default() };
        let options = ClientOptions { limits: idle, ..ClientOptions::default() };
        let http = HttpClient::new(TrustRoots::System);
        let client = AgentClient::open(&http, agent.url(), &AnonymousAccess, options).unwrap();
        let message = OutgoingMessage {
            message_id: "m".to_owned(),
            parts: vec![Part::Text("hold the end".to_owned())],
            is_blocking: true,
            ..OutgoingMessage::default()
        };
        let mut receiver = CollectedReply::default();
        let mut exchange = Exchange::new(&client, &mut log, &mut receiver).with_limits(limits);
        let sent = exchange.send(&message);
        (sent, receiver.0)
    }

    #[test]
    fn silent_stream_is_resumed_unless_the_user_gave_a_timeout() {
        let agent = ScriptedAgent::start(AgentOptions::of(Protocol::V1));
        let (sent, _) = send(&agent, DeliveryLimits::default());
        assert!(matches!(sent, Err(A2aError::TimedOut { .. })), "{sent:?}");
        std::thread::scope(|scope| {
            let limits = DeliveryLimits { resumes_silence: true, ..DeliveryLimits::default() };
            let held = &agent;
            let sending = scope.spawn(move || send(held, limits));
            // Each silence leads to another subscription.
            while agent.count("SubscribeToTask") < 2 {
                assert!(!sending.is_finished(), "the silence ended the call");
                std::thread::sleep(Duration::from_millis(10));
            }
            agent.release();
            let (sent, reply) = sending.join().unwrap();
            sent.unwrap();
            assert_eq!(reply.text(), "the end");
        });
    }
}
