//! A message and its reply, up to a final event.
//!
//! A reply is streamed if the agent can: the first event names the task, so a process that is killed, interrupted or runs
//! out of time leaves a conversation that `task watch` continues. Other agents are asked to return at once, and polled. A
//! stream that ends early is resumed: the task is subscribed to, and fetched where that is not possible.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use sessile::Error;
use sessile::text::shell_quoted;
use sessile_wire::a2a::{AgentEvent, OutgoingMessage, RpcErrorKind, TaskState};
use sessile_wire::backoff::Backoff;

use super::compose::{ComposeArgs, stored_message};
use super::deliver::ReplyCollector;
use crate::a2a::{A2aError, AgentClient, ReplyLimits, StreamEnd};
use crate::agent_session::{ConversationLog, agent_error};
use crate::cli::Cx;
use crate::error::Failure;
use crate::http::HttpError;

/// Number of failed requests in a row after which a running task is given up.
const MAX_FAILURES: u32 = 5;

/// Shortest and longest pause between two requests for a running task.
const MIN_PAUSE: Duration = Duration::from_millis(20);
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Exchange with an agent. Every event is stored, then collected.
pub(crate) struct Exchange<'a, 'c, 'b> {
    pub(crate) agent: &'a AgentClient<'c>,
    pub(crate) log: &'a mut ConversationLog<'b>,
    pub(crate) collector: &'a mut ReplyCollector<'b>,
    /// End of the time that the user gave.
    pub(crate) deadline: Option<Instant>,
}

impl Exchange<'_, '_, '_> {
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
            Err(error) if self.task_id().is_none() || !is_transient(&error) => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.follow()
    }

    /// Sends a message and takes what the agent returns at once.
    pub(crate) fn send_and_return(&mut self, outgoing: &OutgoingMessage) -> Result<(), A2aError> {
        let outgoing = OutgoingMessage { is_blocking: false, ..outgoing.clone() };
        let event = self.agent.send(&outgoing)?;
        self.take(&event);
        Ok(())
    }

    /// Follows the task of the reply until it ends or waits for the user.
    pub(crate) fn follow(&mut self) -> Result<(), A2aError> {
        if self.collector.reply.is_final() {
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
            if can_subscribe {
                match self.listen(|on_event| agent.resubscribe(id, on_event)) {
                    Ok(()) if self.collector.reply.is_final() => return Ok(()),
                    Ok(()) => {}
                    // It has ended meanwhile, or cannot be subscribed to.
                    Err(error) if is_missing(&error) || is_over(&error) => can_subscribe = false,
                    Err(error) if !is_transient(&error) => return Err(error),
                    Err(_) => {}
                }
            }
            match agent.task(id, None) {
                Ok(task) => {
                    failures = 0;
                    let word = task.raw["status"]["state"].to_string();
                    self.take(&AgentEvent::Task(task));
                    match self.collector.reply.state() {
                        _ if self.collector.reply.is_final() => return Ok(()),
                        Some(TaskState::Unknown) | None => {
                            return Err(A2aError::malformed(
                                "the task is in an unknown state",
                                word.as_bytes(),
                            ));
                        }
                        Some(_) => {}
                    }
                }
                Err(error) if is_transient(&error) && failures < MAX_FAILURES => failures += 1,
                Err(error) => return Err(error),
            }
            let pause = backoff.next_delay();
            match self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(left) if left < pause => {
                    return Err(A2aError::TimedOut { url: agent.interface.url.clone() });
                }
                _ => std::thread::sleep(pause),
            }
        }
    }

    fn listen(
        &mut self,
        stream: impl FnOnce(&mut dyn FnMut(AgentEvent) -> ControlFlow<()>) -> Result<StreamEnd, A2aError>,
    ) -> Result<(), A2aError> {
        stream(&mut |event| {
            self.take(&event);
            if self.collector.reply.is_final() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .map(drop)
    }

    fn take(&mut self, event: &AgentEvent) {
        self.log.record(event);
        self.collector.take(event);
    }

    fn task_id(&self) -> Option<String> {
        self.collector.reply.task_id().map(str::to_owned)
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

/// Delivers a message and collects its reply, by the given kind of exchange.
pub(super) fn deliver<'b>(
    compose: &ComposeArgs,
    agent: &AgentClient<'_>,
    log: &mut ConversationLog<'b>,
    collector: &mut ReplyCollector<'b>,
    mut outgoing: OutgoingMessage,
    exchange: impl FnOnce(&mut Exchange<'_, '_, 'b>, &OutgoingMessage) -> Result<(), A2aError>,
) -> Result<(), DeliveryError> {
    let timeout = compose.reach.timeout();
    // A delivery lasts as long as the agent takes for its first event.
    let patience = timeout.unwrap_or(ReplyLimits::default().head);
    log.begin_delivery(&mut outgoing, stored_message, patience)?;
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let done = exchange(&mut Exchange { agent, log, collector, deadline }, &outgoing);
    done.map_err(|error| {
        let is_over =
            matches!(error.rpc_error_kind(), Some(RpcErrorKind::TaskNotFound | RpcErrorKind::TaskTerminal));
        if collector.reply.raw().is_none() {
            log.record_failure(&error.to_string());
        }
        // The next message begins another task, and the user knows.
        let closed = match &outgoing.task_id {
            Some(task) if is_over => log.close_task(task),
            _ => Ok(()),
        };
        match closed {
            Ok(()) => {
                let running = log.task_id.clone().filter(|_| !is_over && collector.reply.task_id().is_some());
                DeliveryError::Agent { error, task: outgoing.task_id, running }
            }
            Err(error) => error.into(),
        }
    })
}

/// Failure of a delivery.
pub(super) enum DeliveryError {
    /// The conversation could not be locked or stored.
    Log(Error),
    /// The agent failed.
    Agent {
        error: A2aError,
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
    pub(super) fn into_failure(self, cx: &Cx, url: &str) -> Failure {
        match self {
            DeliveryError::Log(error) => error.into(),
            DeliveryError::Agent { error, task, running } => {
                if let Some(running) = running {
                    let (task, url) = (shell_quoted(&running), shell_quoted(url));
                    cx.out.note(&format!("the task may still run: sessile task watch {task} --url {url}"));
                }
                agent_error(url, task.as_deref(), error)
            }
        }
    }
}
