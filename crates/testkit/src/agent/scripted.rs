//! Scripted agent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::answer::AgentShared;
use super::hostile::{Misbehaviour, MisbehaviourPoint};
use super::http::{Listener, ReceivedRequest};
use super::options::AgentOptions;

/// An agent on a port of its own, which ends when this is dropped: what it was asked can be looked at, and it can be made
/// to misbehave. The text of a message says what it does: see the [module](crate::agent).
pub struct ScriptedAgent {
    listener: Listener,
    shared: Arc<AgentShared>,
}

impl ScriptedAgent {
    /// What no terminal should be given: a title, a cleared screen, a colour, a change of direction, a line's end, a zero.
    pub const ESCAPES: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\r\n\0\u{8}";

    /// Starts one.
    pub fn start(options: AgentOptions) -> Self {
        let (listener, address) = Listener::bind();
        let shared = Arc::new(AgentShared {
            options,
            base: format!("http://{address}"),
            tasks: Arc::default(),
            seen: Mutex::default(),
            bad: Mutex::default(),
        });
        let answerer = Arc::clone(&shared);
        let listener = Listener::start(listener, move |seen, stream| answerer.answer(seen, stream));
        ScriptedAgent { listener, shared }
    }

    /// Address, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.shared.base
    }

    /// All that it was asked so far, in order; also what it refused.
    pub fn seen(&self) -> Vec<ReceivedRequest> {
        self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last request for a path.
    pub fn last(&self, path: &str) -> Option<ReceivedRequest> {
        self.seen().into_iter().rev().find(|seen| seen.path == path)
    }

    /// How many requests were for what is called so: the method of JSON-RPC, or the path.
    pub fn count(&self, name: &str) -> usize {
        let asks = |seen: &&ReceivedRequest| {
            let body = || serde_json::from_str::<Value>(&seen.body).unwrap_or_default();
            seen.path == name || seen.path == "/rpc" && body()["method"] == name
        };
        self.seen().iter().filter(asks).count()
    }

    /// Whether this text was anywhere in what it was asked: a secret, for example.
    pub fn heard(&self, text: &str) -> bool {
        self.seen().iter().any(|seen| seen.holds(text))
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.listener.connections()
    }

    /// Cuts all connections; tasks go on.
    pub fn cut(&self) {
        self.listener.cut();
    }

    /// Misbehaves from now on, or no longer.
    pub fn misbehave(&self, place: MisbehaviourPoint, how: Option<Misbehaviour>) {
        let mut bad = self.shared.bad.lock().unwrap_or_else(PoisonError::into_inner);
        match how {
            Some(how) => bad.insert(place, how),
            None => bad.remove(&place),
        };
    }

    /// Lets tasks that `hold` go on, now and later.
    pub fn release(&self) {
        self.shared.tasks.release();
    }

    /// Forgets a context and its tasks, as if it had expired.
    pub fn forget(&self, context: &str) {
        self.shared.tasks.forget(context);
    }

    /// A task, in the shape of 1.0.
    pub fn task(&self, id: &str) -> Option<Value> {
        self.shared.tasks.lock().tasks.get(id).map(|task| task.value.clone())
    }

    /// How many messages each context has had, by its id; those that were forgotten are gone.
    pub fn contexts(&self) -> HashMap<String, u64> {
        self.shared.tasks.lock().contexts.clone()
    }
}

impl Drop for ScriptedAgent {
    fn drop(&mut self) {
        // Before the listener goes: connections that wait for a task end now.
        self.shared.tasks.end();
    }
}
