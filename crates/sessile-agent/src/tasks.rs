//! Tasks of an agent, in the shape of 1.0, and converted to the client's version in answers.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::push::Outbox;

/// Number of tasks that are kept.
const MAX_TASKS: usize = 10_000;

/// Tasks and contexts, and a way to wait for what becomes of them.
#[derive(Default)]
pub(crate) struct Tasks {
    state: Mutex<TaskTable>,
    changed: Condvar,
    outbox: Outbox,
}

#[derive(Default)]
pub(crate) struct TaskTable {
    pub(crate) tasks: HashMap<String, Task>,
    /// Ids, oldest first.
    pub(crate) order: Vec<String>,
    /// Number of messages per context.
    pub(crate) contexts: HashMap<String, u64>,
    /// Contexts that were known once.
    pub(crate) forgotten: HashSet<String>,
    released: bool,
    over: bool,
}

impl TaskTable {
    /// Forgets the oldest tasks that have ended, so that an agent that runs for weeks stays small.
    fn drop_oldest(&mut self) {
        while self.order.len() > MAX_TASKS {
            let has_ended = |id: &String| self.tasks.get(id).is_none_or(|task| is_terminal(task.state()));
            let Some(at) = self.order.iter().position(has_ended) else { return };
            let id = self.order.remove(at);
            self.tasks.remove(&id);
        }
    }
}

pub(crate) struct Task {
    pub(crate) value: Value,
    /// Events since its start.
    log: Vec<Value>,
    /// Push notifications.
    pub(crate) configs: Vec<Value>,
}

impl Task {
    pub(crate) fn state(&self) -> &str {
        self.value["status"]["state"].as_str().unwrap_or_default()
    }

    pub(crate) fn said(&self) -> usize {
        self.log.len()
    }

    /// A further message from the client.
    pub(crate) fn hear(&mut self, message: Value) {
        self.remember_question();
        if let Some(history) = self.value["history"].as_array_mut() {
            history.push(message);
        }
    }

    /// Moves the message of the status to the history when another message follows.
    fn remember_question(&mut self) {
        let said = self.value["status"].as_object_mut().and_then(|status| status.remove("message"));
        if let (Some(said), Some(history)) = (said, self.value["history"].as_array_mut()) {
            history.push(said);
        }
    }
}

impl Tasks {
    pub(crate) fn lock(&self) -> MutexGuard<'_, TaskTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task that this message begins.
    pub(crate) fn begin(&self, context: &str, message: &Value, push: &Value) -> Value {
        let id = new_id("task");
        let mut message = message.clone();
        (message["taskId"], message["contextId"]) = (json!(id), json!(context));
        let value = json!({
            "id": id, "contextId": context, "status": status("SUBMITTED", None), "history": [message],
        });
        let mut configs = Vec::new();
        if push["url"].is_string() {
            let mut config = push.clone();
            config["taskId"] = json!(id);
            if config["id"].as_str().is_none_or(str::is_empty) {
                config["id"] = json!(new_id("push"));
            }
            configs.push(config);
        }
        let mut state = self.lock();
        state.tasks.insert(id.clone(), Task { value: value.clone(), log: Vec::new(), configs });
        state.order.push(id);
        state.drop_oldest();
        value
    }

    /// A status; a task that has ended keeps its own.
    pub(crate) fn status(&self, task: &str, name: &str, text: Option<&str>) {
        let mut state = self.lock();
        let Some(task) = state.tasks.get_mut(task).filter(|task| !is_terminal(task.state())) else { return };
        let (id, context) = (task.value["id"].clone(), task.value["contextId"].clone());
        let message = text.map(|text| {
            json!({
                "messageId": new_id("message"), "contextId": context, "taskId": id, "role": "ROLE_AGENT",
                "parts": [{"text": text}],
            })
        });
        task.remember_question();
        task.value["status"] = status(name, message);
        let said =
            json!({"statusUpdate": {"taskId": id, "contextId": context, "status": task.value["status"]}});
        self.tell(task, said);
    }

    /// An artifact, or a further piece of one.
    pub(crate) fn artifact(&self, task: &str, artifact: &Value, append: bool, last: bool) {
        let mut state = self.lock();
        let Some(task) = state.tasks.get_mut(task).filter(|task| !is_terminal(task.state())) else { return };
        let (id, context) = (task.value["id"].clone(), task.value["contextId"].clone());
        if task.value["artifacts"].is_null() {
            task.value["artifacts"] = json!([]);
        }
        let Some(artifacts) = task.value["artifacts"].as_array_mut() else { return };
        let had = artifacts.iter_mut().find(|had| had["artifactId"] == artifact["artifactId"]);
        match had.filter(|_| append).and_then(|had| had["parts"].as_array_mut()) {
            Some(parts) => parts.extend(artifact["parts"].as_array().into_iter().flatten().cloned()),
            None => artifacts.push(artifact.clone()),
        }
        let said = json!({"artifactUpdate": {
            "taskId": id, "contextId": context, "artifact": artifact, "append": append, "lastChunk": last,
        }});
        self.tell(task, said);
    }

    /// Adds an event to the log of a task, and notifies its receivers.
    fn tell(&self, task: &mut Task, event: Value) {
        for config in &task.configs {
            self.outbox.send(config, &event);
        }
        task.log.push(event);
        self.changed.notify_all();
    }

    /// Waits for the event after `said`; `None` if the task was deleted or has no further events.
    pub(crate) fn next(&self, task: &str, said: usize) -> Option<Value> {
        let mut state = self.lock();
        loop {
            match state.tasks.get(task) {
                // Threads of connections must end with the agent, also those that wait for a task.
                Some(_) if state.over => return None,
                None => return None,
                Some(task) if task.log.len() > said => return Some(task.log[said].clone()),
                Some(_) => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Sleeps, and says whether to go on.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let state = self.lock();
        let waited = self.changed.wait_timeout_while(state, time, |state| !state.over);
        !waited.unwrap_or_else(PoisonError::into_inner).0.over
    }

    /// Waits for [`release`](Tasks::release), and says whether to go on.
    pub(crate) fn hold(&self) -> bool {
        let held = self.changed.wait_while(self.lock(), |state| !state.released && !state.over);
        !held.unwrap_or_else(PoisonError::into_inner).over
    }

    pub(crate) fn release(&self) {
        self.lock().released = true;
        self.changed.notify_all();
    }

    pub(crate) fn end(&self) {
        self.lock().over = true;
        self.changed.notify_all();
    }

    /// Forgets a context with its tasks.
    pub(crate) fn forget(&self, context: &str) {
        let mut state = self.lock();
        state.tasks.retain(|_, task| task.value["contextId"] != context);
        let TaskTable { tasks, order, .. } = &mut *state;
        order.retain(|id| tasks.contains_key(id));
        state.contexts.remove(context);
        state.forgotten.insert(context.to_owned());
        self.changed.notify_all();
    }
}

/// Whether nothing follows in a stream.
pub(crate) fn is_last(said: &Value) -> bool {
    let state = said["statusUpdate"]["status"]["state"].as_str().unwrap_or_default();
    is_terminal(state) || matches!(state, "TASK_STATE_INPUT_REQUIRED" | "TASK_STATE_AUTH_REQUIRED")
}

pub(crate) fn is_terminal(state: &str) -> bool {
    matches!(
        state,
        "TASK_STATE_COMPLETED" | "TASK_STATE_FAILED" | "TASK_STATE_CANCELED" | "TASK_STATE_REJECTED"
    )
}

fn status(name: &str, message: Option<Value>) -> Value {
    let mut status = json!({"state": format!("TASK_STATE_{name}"), "timestamp": now()});
    if let Some(message) = message {
        status["message"] = message;
    }
    status
}

/// An id that no other agent has given, in this process or another.
#[expect(clippy::disallowed_methods, reason = "any changing number will do")]
pub(crate) fn new_id(kind: &str) -> String {
    // Each `RandomState` has random keys, which saves a dependency for random numbers.
    let number = RandomState::new().hash_one(SystemTime::now());
    format!("{kind}-{number:016x}")
}

/// Now, in UTC.
#[expect(
    clippy::disallowed_methods,
    reason = "the agent runs longer than one call and needs the current time"
)]
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, millis) = (since.as_secs(), since.subsec_millis());
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    // Days since 1 March of the year 0, in which leap days are the last.
    let day = seconds / 86_400 + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * of_year + 2) / 153;
    let (day, month) =
        (of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}
