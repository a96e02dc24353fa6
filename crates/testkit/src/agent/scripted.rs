//! Scripted agent of the tests.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use sessile_agent::{AgentOptions, DemoAgent, ReceivedRequest};

use super::hostile::{Misbehaviour, MisbehaviourPoint};

/// The [demo agent](DemoAgent) on a port of its own, with a record of its requests. It can be made to misbehave.
pub struct ScriptedAgent {
    agent: DemoAgent,
    observer: Arc<RequestObserver>,
}

/// Requests so far, and how they are to be misanswered.
#[derive(Default)]
struct RequestObserver {
    seen: Mutex<Vec<ReceivedRequest>>,
    bad: Mutex<HashMap<MisbehaviourPoint, Misbehaviour>>,
}

impl ScriptedAgent {
    /// Text that no terminal should get.
    pub const ESCAPES: &str = DemoAgent::ESCAPES;

    /// Starts one.
    #[track_caller]
    pub fn start(options: AgentOptions) -> Self {
        let observer = Arc::new(RequestObserver::default());
        let hook = Arc::clone(&observer);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let agent = DemoAgent::start_with_hook(
            options,
            address,
            Some(Box::new(move |seen, stream| {
                // First, so that a test sees requests that are refused or misanswered too.
                hook.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen.clone());
                let is_card = seen.path.starts_with("/.well-known/");
                let place = if is_card { MisbehaviourPoint::Card } else { MisbehaviourPoint::Calls };
                let bad = hook.bad.lock().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
                bad.and_then(|bad| bad.act(seen, stream))
            })),
        );
        ScriptedAgent { agent: agent.expect("a port"), observer }
    }

    /// All requests so far, in order; also refused ones.
    pub fn seen(&self) -> Vec<ReceivedRequest> {
        self.observer.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last request for a path.
    pub fn last(&self, path: &str) -> Option<ReceivedRequest> {
        self.seen().into_iter().rev().find(|seen| seen.path == path)
    }

    /// Number of requests for a method of JSON-RPC or a path.
    pub fn count(&self, name: &str) -> usize {
        let asks = |seen: &&ReceivedRequest| {
            let body = || serde_json::from_str::<Value>(&seen.body).unwrap_or_default();
            seen.path == name || seen.path == "/rpc" && body()["method"] == name
        };
        self.seen().iter().filter(asks).count()
    }

    /// Whether this text was anywhere in a request: a secret, for example.
    pub fn heard(&self, text: &str) -> bool {
        self.seen().iter().any(|seen| seen.holds(text))
    }

    /// Misbehaves from now on, or no longer.
    pub fn misbehave(&self, place: MisbehaviourPoint, how: Option<Misbehaviour>) {
        let mut bad = self.observer.bad.lock().unwrap_or_else(PoisonError::into_inner);
        match how {
            Some(how) => bad.insert(place, how),
            None => bad.remove(&place),
        };
    }
}

impl Deref for ScriptedAgent {
    type Target = DemoAgent;

    fn deref(&self) -> &DemoAgent {
        &self.agent
    }
}
