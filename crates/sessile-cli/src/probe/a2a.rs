//! Agents that speak A2A: one conversation for each user, and nothing of it is remembered here.

use std::time::{Duration, Instant};

use sessile::conversation::TaskState;
use sessile::session::SessionId;
use sessile_wire::a2a::{AgentCard, AgentEvent, AgentTask, OutgoingMessage, Part};

use super::service::{FailureKind, ProbeFailure, ProbeReply, Service, StoredHistory, User};
use super::transport::{FixedCredentials, HeaderTemplates, trouble};
use crate::a2a::{A2aError, AgentClient, ClientOptions, ReplyLimits};
use crate::http::HttpClient;

/// Poll interval of a task that an agent did not finish in a blocking call.
const PAUSE: Duration = Duration::from_millis(100);

/// An agent.
pub(crate) struct A2aService {
    pub(crate) http: HttpClient,
    pub(crate) url: String,
    pub(crate) card: AgentCard,
    pub(crate) headers: HeaderTemplates,
    pub(crate) auth: FixedCredentials,
    pub(crate) timeout: Duration,
    /// Start time, for the ids of messages.
    pub(crate) now: i64,
}

/// Limits of an agent's replies.
pub(crate) fn limits(timeout: Duration) -> ReplyLimits {
    ReplyLimits { head: timeout, total: timeout, bytes: 4 << 20, ..ReplyLimits::default() }
}

impl A2aService {
    fn agent(&self, user: &User, message: &str) -> Result<AgentClient<'_>, ProbeFailure> {
        let options = ClientOptions {
            headers: self.headers.of(user, message),
            limits: limits(self.timeout),
            ..ClientOptions::default()
        };
        AgentClient::from_card(&self.http, &self.url, &self.auth, options, self.card.clone()).map_err(failed)
    }

    /// Waits until a task is final or needs input, because some agents return before that.
    fn rested(
        &self,
        agent: &AgentClient<'_>,
        mut task: AgentTask,
        begun: Instant,
    ) -> Result<AgentTask, ProbeFailure> {
        while !(task.state.is_terminal() || task.state.waits() || task.state == TaskState::Unknown) {
            if begun.elapsed() >= self.timeout {
                return Err(ProbeFailure {
                    whole: task.raw.to_string(),
                    ..ProbeFailure::new(FailureKind::TimedOut)
                });
            }
            std::thread::sleep(PAUSE);
            task = agent.task(&task.id, None).map_err(failed)?;
        }
        Ok(task)
    }
}

impl Service for A2aService {
    fn say(&self, user: &mut User, message: &str) -> Result<ProbeReply, ProbeFailure> {
        let begun = Instant::now();
        let agent = self.agent(user, message)?;
        let id = SessionId::new(self.now).map_err(|error| ProbeFailure::unusable(&error.to_string(), ""))?;
        let outgoing = OutgoingMessage {
            message_id: id.to_string(),
            context_id: user.context_id.clone(),
            task_id: user.task_id.clone(),
            parts: vec![Part::Text(message.to_owned())],
            is_blocking: true,
            ..OutgoingMessage::default()
        };
        let mut event = agent.send(&outgoing).map_err(failed)?;
        if let AgentEvent::Task(task) = event {
            // A task that waits for the next message comes again.
            if !user.tasks.contains(&task.id) {
                user.tasks.push(task.id.clone());
            }
            event = AgentEvent::Task(self.rested(&agent, task, begun)?);
        }
        // Only the first one counts: a later one may belong to another user, which is what is tested.
        if user.context_id.is_none() {
            user.context_id = event.context_id().map(str::to_owned);
        }
        let waits = event.state().is_some_and(TaskState::waits);
        user.task_id = event.task_id().filter(|_| waits).map(str::to_owned);
        let (text, whole) = (event.text(), event.raw().to_string());
        match event.state() {
            Some(state @ (TaskState::Failed | TaskState::Rejected | TaskState::Canceled)) => {
                Err(ProbeFailure::unusable(&format!("the task is {state}"), &whole))
            }
            _ => Ok(ProbeReply { text, whole }),
        }
    }

    /// Texts of its tasks. Their order and number are the agent's affair and are not judged.
    fn history(&self, user: &User) -> Option<Result<StoredHistory, ProbeFailure>> {
        if user.tasks.is_empty() {
            return None;
        }
        let read = || {
            let agent = self.agent(user, "")?;
            let mut whole = String::new();
            for id in &user.tasks {
                whole.push_str(&agent.task(id, None).map_err(failed)?.raw.to_string());
                whole.push('\n');
            }
            Ok(StoredHistory { whole, ..StoredHistory::default() })
        };
        Some(read())
    }
}

fn failed(error: A2aError) -> ProbeFailure {
    match error {
        A2aError::TimedOut { .. } => ProbeFailure::new(FailureKind::TimedOut),
        A2aError::Http(error) => trouble(error),
        A2aError::Unauthorized { status, .. } | A2aError::Server { status, .. } => {
            ProbeFailure::new(FailureKind::Status(status))
        }
        A2aError::RateLimited { .. } => ProbeFailure::new(FailureKind::Status(429)),
        // What the agent says differs from one time to the next: only the kind of it is counted.
        A2aError::Rpc(error) => ProbeFailure::unusable(
            &match error.code {
                Some(code) => format!("the agent refused the request (code {code})"),
                None => "the agent refused the request".to_owned(),
            },
            &error.message,
        ),
        other => {
            let told = other.to_string();
            ProbeFailure::unusable(&sessile::text::shortened(&told, 80), &told)
        }
    }
}
