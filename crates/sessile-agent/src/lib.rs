//! The agent's side of A2A, on this machine: a small HTTP [listener](Listener) and a scripted [agent](DemoAgent).
//!
//! `sessile agent demo` starts the agent for people, the tests start it for themselves. Each connection has a thread: no
//! runtime and no TLS is needed for clients on loopback. Requests are bounded in size and number.
//!
//! The first word of a message selects what the agent does. Replies with a message:
//!
//! - `echo TEXT`: the text.
//! - `whoami`: JSON with the `account` of the credential, and which headers were `sent` of those that carry one.
//! - `context`: the context's id, and the number of its messages so far.
//! - `tenant`, `version`, `extensions`: the value in the request; `got`: JSON of its parameters.
//! - `forget`: forgets the context with its tasks. The tasks are unknown then, and the context has expired.
//!
//! Replies with a task:
//!
//! - `task TEXT`: completes with the text as an artifact; so does every text that begins with another word.
//! - `slow TIME TEXT`: the same, with up to ten updates in between. The time is in milliseconds, or in seconds as `3s`.
//! - `stream COUNT [TIME]`: completes with one artifact in so many chunks, with pauses.
//! - `ask`: asks for a name; the next message to the task completes it with `hello NAME`.
//! - `auth`, `fail`, `reject`: requires authentication, fails, is rejected.
//! - `files`: artifacts with a file, with data and with a link. `data`: one with data.
//!
//! For tests only: `file` (a file whose name leaves its directory), `late MILLIS TEXT` (an echo whose first byte is
//! late), `big BYTES`, `escapes` (a message) and `escaped` (a task) with [`DemoAgent::ESCAPES`]. `hold TEXT` (until
//! [`DemoAgent::release`]), `bare COUNT MILLIS` (a stream that begins with an update instead of the task). `cut
//! EVENTS COUNT MILLIS` cuts a stream after so many events, while the task continues; a reply that is not a stream is
//! cut before its first byte.
//!
//! Push notifications go to `http` addresses of this machine; configurations with other addresses are stored and unused.

mod answer;
mod authentication;
mod demo_agent;
mod http;
mod listing;
mod options;
mod push;
mod reply_format;
mod script;
mod tasks;
mod wire;

pub use demo_agent::{DemoAgent, RequestHook};
pub use http::{ChunkedReply, Listener, ListenerLimits, ReceivedRequest, reply};
pub use options::{AgentAuth, AgentBinding, AgentOptions, DemoSkill, Protocol};
