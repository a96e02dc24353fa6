//! What an agent can be asked: messages, streams, tasks, notifications.

use std::ops::ControlFlow;
use std::time::Instant;

use serde_json::Value;
use sessile_wire::sse::SseReader;

use super::agent::Agent;
use super::card::Card;
use super::error::{A2aError, Refusal};
use super::event::TaskView;
use super::interface::Binding;
use super::json;
use super::operation::{Operation, TaskFilter};
use super::outgoing::{Outgoing, PushConfig};
use super::part::text;
use super::push::PushView;
use super::reply::{Event, Reply};

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The agent closed it, whether or not the task has ended.
    Closed,
    /// Who listened has heard enough.
    Stopped,
}

/// Some of an agent's tasks.
#[derive(Debug, Clone)]
pub(crate) struct TaskPage {
    /// The tasks.
    pub(crate) tasks: Vec<TaskView>,
    /// Where the next page begins, if there is one.
    pub(crate) next_page_token: Option<String>,
}

impl Agent<'_> {
    /// Sends a message, and waits for the reply.
    pub(crate) fn send(&self, outgoing: &Outgoing) -> Result<Reply, A2aError> {
        match self.event(self.answer(&Operation::Send(outgoing))?)? {
            Event::Task(task) => Ok(Reply::Task(task)),
            Event::Message(message) => Ok(Reply::Message(message)),
            other => Err(malformed("the reply is neither a task nor a message", other.raw())),
        }
    }

    /// Sends a message, and hands on what the agent says as it comes.
    pub(crate) fn stream(
        &self,
        outgoing: &Outgoing,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Ended, A2aError> {
        self.listen(&Operation::Stream(outgoing), on_event)
    }

    /// Listens to a task that goes on.
    pub(crate) fn resubscribe(
        &self,
        task_id: &str,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Ended, A2aError> {
        self.listen(&Operation::Subscribe(task_id), on_event)
    }

    /// A task as it is now.
    pub(crate) fn task(&self, id: &str, history_length: Option<u32>) -> Result<TaskView, A2aError> {
        self.as_task(self.answer(&Operation::Task { id, history_length })?)
    }

    /// The tasks that the agent knows of.
    pub(crate) fn tasks(&self, filter: &TaskFilter) -> Result<TaskPage, A2aError> {
        let raw = self.answer(&Operation::Tasks(filter))?;
        let Some(tasks) = raw.get("tasks").and_then(Value::as_array) else {
            return Err(malformed("the answer is not a list of tasks", &raw));
        };
        let tasks = tasks.iter().map(|task| self.as_task(task.clone())).collect::<Result<_, _>>()?;
        let next_page_token = text(&raw, &["nextPageToken"]).filter(|token| !token.is_empty());
        Ok(TaskPage { tasks, next_page_token })
    }

    /// Calls a task off.
    pub(crate) fn cancel(&self, id: &str) -> Result<TaskView, A2aError> {
        self.as_task(self.answer(&Operation::Cancel(id))?)
    }

    /// What the card says to those whom the agent knows.
    pub(crate) fn extended_card(&self) -> Result<Card, A2aError> {
        let raw = self.answer(&Operation::ExtendedCard)?;
        let excerpt = malformed("the answer is not a card", &raw);
        Card::read(raw).ok_or(excerpt)
    }

    /// Has someone told of a task's changes.
    pub(crate) fn push_config_set(&self, task: &str, config: &PushConfig) -> Result<PushView, A2aError> {
        self.as_push(self.answer(&Operation::PushSet { task, config })?)
    }

    /// Who is told, by the id of that.
    pub(crate) fn push_config_get(&self, task: &str, config: &str) -> Result<PushView, A2aError> {
        self.as_push(self.answer(&Operation::PushGet { task, config })?)
    }

    /// All who are told.
    pub(crate) fn push_config_list(&self, task: &str) -> Result<Vec<PushView>, A2aError> {
        let raw = self.answer(&Operation::PushList { task })?;
        let configs = match &raw {
            Value::Array(configs) => Some(configs),
            Value::Object(fields) => fields.get("configs").and_then(Value::as_array),
            _ => None,
        };
        match configs {
            Some(configs) => configs.iter().map(|config| self.as_push(config.clone())).collect(),
            // Protocol buffers leave empty lists away.
            None if raw.is_object() => Ok(Vec::new()),
            None => Err(malformed("the answer is not a list", &raw)),
        }
    }

    /// Tells them no more.
    pub(crate) fn push_config_remove(&self, task: &str, config: &str) -> Result<(), A2aError> {
        let mut coming = self.ask(&Operation::PushRemove { task, config })?;
        // There may be nothing in the answer, but if there is an error it is one.
        let said = coming.read_all(self.options.limits.bytes)?;
        match json::read(&said, self.options.limits.values) {
            Ok(raw) => refused(&raw).map_or(Ok(()), Err),
            Err(_) if self.interface.binding == Binding::Rest => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn listen(
        &self,
        operation: &Operation<'_>,
        on_event: &mut dyn FnMut(Event) -> ControlFlow<()>,
    ) -> Result<Ended, A2aError> {
        let limits = self.options.limits;
        let mut coming = self.ask(operation)?;
        let kind = coming.header("content-type").unwrap_or_default().to_ascii_lowercase();
        if !kind.trim_start().starts_with("text/event-stream") {
            // An agent may answer at once, or refuse, without a stream.
            let said = coming.read_all(limits.bytes)?;
            let event = self.event(self.unwrapped(&said)?)?;
            return Ok(if on_event(event).is_break() { Ended::Stopped } else { Ended::Closed });
        }
        let url = coming.address().to_string();
        let too_large = || A2aError::TooLarge { url: url.clone() };
        let (mut reader, mut events) = (SseReader::new(limits.event), Vec::new());
        let (mut buffer, mut total) = (vec![0; 1 << 16], 0usize);
        let (mut lines, mut alive) = (0, Instant::now());
        loop {
            let read = coming.read(&mut buffer)?;
            if read == 0 {
                return Ok(Ended::Closed);
            }
            total += read;
            let fits = reader.push(&buffer[..read], &mut events);
            for event in events.drain(..) {
                let event = self.event(self.unwrapped(event.data.as_bytes())?)?;
                if on_event(event).is_break() {
                    return Ok(Ended::Stopped);
                }
            }
            if fits.is_err() || total > limits.bytes {
                return Err(too_large());
            }
            // Single bytes are no sign of life.
            if reader.lines() > lines {
                (lines, alive) = (reader.lines(), Instant::now());
            } else if alive.elapsed() > limits.idle {
                return Err(A2aError::TimedOut { url });
            }
        }
    }

    /// What is in an answer: JSON-RPC wraps it, and either binding may say an error in its place.
    pub(super) fn unwrapped(&self, said: &[u8]) -> Result<Value, A2aError> {
        let mut raw = json::read(said, self.options.limits.values)?;
        if let Some(error) = refused(&raw) {
            return Err(error);
        }
        if self.interface.binding == Binding::Rest {
            return Ok(raw);
        }
        let result = raw.as_object_mut().and_then(|answer| answer.remove("result"));
        result.ok_or_else(|| A2aError::malformed("the answer is not one of JSON-RPC", said))
    }

    fn event(&self, raw: Value) -> Result<Event, A2aError> {
        let excerpt = malformed("the agent said neither a task nor a message nor a change", &raw);
        Event::read(raw, self.dialect).ok_or(excerpt)
    }

    fn as_task(&self, raw: Value) -> Result<TaskView, A2aError> {
        let excerpt = malformed("the answer is not a task", &raw);
        TaskView::read(raw, self.dialect).ok_or(excerpt)
    }

    fn as_push(&self, raw: Value) -> Result<PushView, A2aError> {
        let excerpt = malformed("the answer says nothing of notifications", &raw);
        PushView::read(raw).ok_or(excerpt)
    }
}

/// The error that an answer holds in the place of a result.
fn refused(raw: &Value) -> Option<A2aError> {
    let error = raw.get("error").filter(|error| error.is_object())?;
    Some(A2aError::Rpc(Refusal::read(error)))
}

fn malformed(what: &str, raw: &Value) -> A2aError {
    let keys = raw.as_object().map(|fields| fields.keys().take(8).cloned().collect::<Vec<_>>().join(", "));
    A2aError::malformed(what, keys.unwrap_or_else(|| "no object".to_owned()).as_bytes())
}
