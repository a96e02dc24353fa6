//! Scripted agent.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::Value;

use crate::answer::AgentShared;
use crate::http::{Listener, ListenerLimits, ReceivedRequest};
use crate::options::AgentOptions;

/// Function that sees each request first. If it answers the request itself, it returns whether the connection may be used
/// again.
pub type RequestHook =
    Box<dyn Fn(&ReceivedRequest, &mut TcpStream) -> Option<std::io::Result<bool>> + Send + Sync>;

/// Agent that does what the messages say: see the [crate](crate). It ends when it is dropped.
pub struct DemoAgent {
    listener: Listener,
    shared: Arc<AgentShared>,
}

impl DemoAgent {
    /// Text that no terminal should get: a title, a cleared screen, a colour, a change of direction, a line end, a zero.
    pub const ESCAPES: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\r\n\0\u{8}";

    /// Starts an agent on an address; port 0 is any free port.
    pub fn start(options: AgentOptions, address: SocketAddr) -> std::io::Result<Self> {
        DemoAgent::start_with_hook(options, address, None)
    }

    /// Starts an agent whose requests a function sees first.
    pub fn start_with_hook(
        options: AgentOptions,
        address: SocketAddr,
        hook: Option<RequestHook>,
    ) -> std::io::Result<Self> {
        let socket = TcpListener::bind(address)?;
        let base = format!("http://{}", socket.local_addr()?);
        let shared = Arc::new(AgentShared { options, base, tasks: Arc::default(), hook });
        let answerer = Arc::clone(&shared);
        let answer = move |seen: &ReceivedRequest, stream: &mut TcpStream| answerer.answer(seen, stream);
        let listener = Listener::start(socket, ListenerLimits::default(), answer)?;
        Ok(DemoAgent { listener, shared })
    }

    /// Address, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.shared.base
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.listener.connections()
    }

    /// Closes all connections; tasks continue.
    pub fn cut(&self) {
        self.listener.cut();
    }

    /// Lets tasks that `hold` continue, now and later.
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

    /// Number of messages per context id, without those that were forgotten.
    pub fn contexts(&self) -> HashMap<String, u64> {
        self.shared.tasks.lock().contexts.clone()
    }
}

impl Drop for DemoAgent {
    fn drop(&mut self) {
        // Before the listener goes: connections that wait for a task end now.
        self.shared.tasks.end();
    }
}
