//! Requests of a client to its agent: messages, streams, tasks, push notifications.

use std::ops::ControlFlow;
use std::time::Instant;

use serde_json::Value;
use sessile_wire::a2a::{
    AgentCard, AgentEvent, AgentRequest, AgentTask, OutgoingMessage, ProtocolBinding, PushConfig,
    PushRegistration, RpcError, TaskFilter,
};
use sessile_wire::sse::SseReader;

use super::client::AgentClient;
use super::error::A2aError;
use super::json;

/// End of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// Closed by the agent, whether or not the task has ended.
    Closed,
    /// Stopped by the receiver.
    Stopped,
}

/// Most push notifications of one task.
const MAX_CONFIGS: usize = 1_000;

/// Page of an agent's tasks.
#[derive(Debug, Clone)]
pub(crate) struct TaskPage {
    /// Tasks.
    pub(crate) tasks: Vec<AgentTask>,
    /// Token of the next page, if any.
    pub(crate) next_page_token: Option<String>,
}

impl AgentClient<'_> {
    /// Sends a message and waits for the reply: a task or a message.
    pub(crate) fn send(&self, outgoing: &OutgoingMessage) -> Result<AgentEvent, A2aError> {
        match self.event(self.answer(&AgentRequest::Send(outgoing))?)? {
            event @ (AgentEvent::Task(_) | AgentEvent::Message(_)) => Ok(event),
            other => Err(malformed("the reply is neither a task nor a message", other.raw())),
        }
    }

    /// Sends a message and passes on the events of the reply as they arrive.
    pub(crate) fn stream(
        &self,
        outgoing: &OutgoingMessage,
        on_event: &mut dyn FnMut(AgentEvent) -> ControlFlow<()>,
    ) -> Result<StreamEnd, A2aError> {
        self.follow_stream(&AgentRequest::Stream(outgoing), on_event)
    }

    /// Passes on the events of a running task.
    pub(crate) fn resubscribe(
        &self,
        task_id: &str,
        on_event: &mut dyn FnMut(AgentEvent) -> ControlFlow<()>,
    ) -> Result<StreamEnd, A2aError> {
        self.follow_stream(&AgentRequest::Subscribe(task_id), on_event)
    }

    /// Gets a task.
    pub(crate) fn task(&self, id: &str, history_length: Option<u32>) -> Result<AgentTask, A2aError> {
        self.as_task(self.answer(&AgentRequest::Task { id, history_length })?)
    }

    /// Lists tasks.
    pub(crate) fn tasks(&self, filter: &TaskFilter) -> Result<TaskPage, A2aError> {
        let raw = self.answer(&AgentRequest::Tasks(filter))?;
        let Some(tasks) = raw.get("tasks").and_then(Value::as_array) else {
            return Err(malformed("the response is not a list of tasks", &raw));
        };
        let tasks = tasks.iter().map(|task| self.as_task(task.clone())).collect::<Result<_, _>>()?;
        let next_page_token =
            // The JSON of protocol buffers has an empty text for none.
            raw.get("nextPageToken").and_then(Value::as_str).filter(|token| !token.is_empty());
        let next_page_token = next_page_token.map(str::to_owned);
        Ok(TaskPage { tasks, next_page_token })
    }

    /// Cancels a task.
    pub(crate) fn cancel(&self, id: &str) -> Result<AgentTask, A2aError> {
        self.as_task(self.answer(&AgentRequest::Cancel(id))?)
    }

    /// Fails if the card does not offer push notifications.
    pub(crate) fn require_push(&self) -> Result<(), A2aError> {
        require(self.card.push, "push notifications")
    }

    /// Gets the card for authenticated callers.
    pub(crate) fn extended_card(&self) -> Result<AgentCard, A2aError> {
        require(self.card.extended, "extended cards")?;
        let raw = self.answer(&AgentRequest::ExtendedCard)?;
        // Made before the value is consumed.
        let excerpt = malformed("the response is not an agent card", &raw);
        AgentCard::read(raw).ok_or(excerpt)
    }

    /// Registers a push notification.
    pub(crate) fn push_config_set(
        &self,
        task: &str,
        config: &PushConfig,
    ) -> Result<PushRegistration, A2aError> {
        self.require_push()?;
        self.as_push(self.answer(&AgentRequest::PushSet { task, config })?)
    }

    /// Gets a push notification.
    pub(crate) fn push_config_get(&self, task: &str, config: &str) -> Result<PushRegistration, A2aError> {
        self.require_push()?;
        self.as_push(self.answer(&AgentRequest::PushGet { task, config })?)
    }

    /// Lists the push notifications of a task.
    pub(crate) fn push_config_list(&self, task: &str) -> Result<Vec<PushRegistration>, A2aError> {
        self.require_push()?;
        let (mut all, mut page) = (Vec::new(), None::<String>);
        loop {
            let request = AgentRequest::PushList { task, page_token: page.as_deref() };
            let raw = self.answer(&request)?;
            let configs = match &raw {
                Value::Array(configs) => Some(configs),
                Value::Object(fields) => fields.get("configs").and_then(Value::as_array),
                _ => None,
            };
            match configs {
                Some(configs) => {
                    for config in configs {
                        all.push(self.as_push(config.clone())?);
                    }
                }
                // Protocol buffers omit empty lists.
                None if raw.is_object() => return Ok(all),
                None => return Err(malformed("the response is not a list", &raw)),
            }
            let next = raw.get("nextPageToken").and_then(Value::as_str).filter(|token| !token.is_empty());
            match next {
                // A token that leads to itself would never end.
                Some(next) if page.as_deref() != Some(next) && all.len() < MAX_CONFIGS => {
                    page = Some(next.to_owned());
                }
                _ => return Ok(all),
            }
        }
    }

    /// Removes a push notification.
    pub(crate) fn push_config_remove(&self, task: &str, config: &str) -> Result<(), A2aError> {
        self.require_push()?;
        let mut coming = self.ask(&AgentRequest::PushRemove { task, config })?;
        // The body may be empty, but an error in it counts.
        let said = coming.read_all(self.options.limits.bytes)?;
        let removed = match json::parse(&said, self.options.limits.values) {
            Ok(raw) => error_of(&raw).map_or(Ok(()), Err),
            Err(_) if self.interface.binding == ProtocolBinding::Rest => Ok(()),
            Err(error) => Err(error),
        };
        removed.map_err(|error| error.redacted(&self.options.secrets))
    }

    fn follow_stream(
        &self,
        request: &AgentRequest<'_>,
        on_event: &mut dyn FnMut(AgentEvent) -> ControlFlow<()>,
    ) -> Result<StreamEnd, A2aError> {
        let limits = self.options.limits;
        let mut coming = self.ask(request)?;
        let kind = coming.header("content-type").unwrap_or_default().to_ascii_lowercase();
        if !kind.trim_start().starts_with("text/event-stream") {
            // An agent may respond at once, or with an error, without a stream.
            let said = coming.read_all(limits.bytes)?;
            let event = self.event(self.unwrapped(&said)?)?;
            return Ok(if on_event(event).is_break() { StreamEnd::Stopped } else { StreamEnd::Closed });
        }
        let url = coming.address().to_string();
        let too_large = || A2aError::TooLarge { url: url.clone() };
        let (mut reader, mut events) = (SseReader::new(limits.event), Vec::new());
        let (mut buffer, mut total) = (vec![0; 1 << 16], 0usize);
        let (mut lines, mut alive) = (0, Instant::now());
        loop {
            let read = coming.read(&mut buffer)?;
            if read == 0 {
                return Ok(StreamEnd::Closed);
            }
            total += read;
            let fits = reader.push(&buffer[..read], &mut events);
            // Complete events count even if the same read exceeded a limit.
            for event in events.drain(..) {
                let event = self.event(self.unwrapped(event.data.as_bytes())?)?;
                if on_event(event).is_break() {
                    return Ok(StreamEnd::Stopped);
                }
            }
            if fits.is_err() || total > limits.bytes {
                return Err(too_large());
            }
            // A byte is not a heartbeat, a complete line is.
            if reader.lines() > lines {
                (lines, alive) = (reader.lines(), Instant::now());
            } else if alive.elapsed() > limits.idle {
                return Err(A2aError::TimedOut { url });
            }
        }
    }

    /// Result of a response. JSON-RPC wraps it, and either binding may hold an error in its place.
    pub(super) fn unwrapped(&self, said: &[u8]) -> Result<Value, A2aError> {
        self.unwrapped_as_sent(said).map_err(|error| error.redacted(&self.options.secrets))
    }

    fn unwrapped_as_sent(&self, said: &[u8]) -> Result<Value, A2aError> {
        let mut raw = json::parse(said, self.options.limits.values)?;
        if let Some(error) = error_of(&raw) {
            return Err(error);
        }
        if self.interface.binding == ProtocolBinding::Rest {
            return Ok(raw);
        }
        let result = raw.as_object_mut().and_then(|answer| answer.remove("result"));
        result.ok_or_else(|| A2aError::malformed("the response is not valid JSON-RPC 2.0", said))
    }

    fn event(&self, raw: Value) -> Result<AgentEvent, A2aError> {
        let excerpt = malformed("the event is not a task, a message or an update", &raw);
        AgentEvent::read(raw, self.dialect).ok_or(excerpt)
    }

    fn as_task(&self, raw: Value) -> Result<AgentTask, A2aError> {
        let excerpt = malformed("the response is not a task", &raw);
        AgentTask::read(raw, self.dialect).ok_or(excerpt)
    }

    fn as_push(&self, raw: Value) -> Result<PushRegistration, A2aError> {
        let excerpt = malformed("the response has no push notification", &raw);
        PushRegistration::read(raw).ok_or(excerpt)
    }
}

/// Fails if the card does not offer an operation. A request would reach an agent that may not know it.
fn require(is_offered: bool, operation: &'static str) -> Result<(), A2aError> {
    if is_offered { Ok(()) } else { Err(A2aError::NotOffered { operation }) }
}

/// Error that a response holds in place of a result.
fn error_of(raw: &Value) -> Option<A2aError> {
    let error = raw.get("error").filter(|error| error.is_object())?;
    Some(A2aError::Rpc(RpcError::read(error)))
}

fn malformed(what: &str, raw: &Value) -> A2aError {
    let keys = raw.as_object().map(|fields| fields.keys().take(8).cloned().collect::<Vec<_>>().join(", "));
    A2aError::malformed(what, keys.unwrap_or_else(|| "not a JSON object".to_owned()).as_bytes())
}
