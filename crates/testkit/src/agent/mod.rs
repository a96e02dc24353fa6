//! Agents on this machine that speak A2A: on the official SDK, and one of our own that can do what no SDK does.
//!
//! Both do what the first word of a message says. Answered by a message and no task:
//!
//! - `echo TEXT`: the text.
//! - `whoami`: JSON with the `account` of the credential, and which headers were `sent` of those that carry one.
//! - `context`: the context's id, and how many messages it has had, with this one.
//! - `tenant`, `version`, `extensions`: what the request named; `got`: JSON of what it had besides.
//! - `forget`: forgets the context with its tasks. A task of it is then unknown, and the context has expired.
//!
//! Answered by a task, and so is everything else, which is returned as an artifact:
//!
//! - `task TEXT`: completes with the text as an artifact.
//! - `slow MILLIS TEXT`: the same, with up to ten updates in between.
//! - `stream COUNT`: completes with one artifact in so many pieces.
//! - `ask`: asks for a name; the next message to the task is the name, and completes it with `hello NAME`.
//! - `auth`, `fail`, `reject`: waits for authentication, fails, is rejected.
//! - `file`, `data`: an artifact with bytes, whose name leaves its directory; one with data.
//!
//! Only by a [`ScriptedAgent`]: `late MILLIS TEXT` (an echo whose first byte is late), `big BYTES`, `escapes` (a message)
//! and `escaped` (a task) with [`ScriptedAgent::ESCAPES`], `stream COUNT MILLIS` (with pauses), `hold TEXT` (until
//! [`ScriptedAgent::release`]), `bare COUNT MILLIS` (a stream that begins with an update instead of the task), and
//! `cut EVENTS COUNT MILLIS` (a stream that is cut after so many events, while the task goes on; what is no stream is cut
//! before its first byte).

mod answer;
mod authentication;
mod base64;
mod hostile;
mod http;
mod listing;
mod options;
mod python;
mod reply_format;
mod script;
mod scripted;
mod tasks;
mod wire;

pub use hostile::{Misbehaviour, MisbehaviourPoint};
pub use http::ReceivedRequest;
pub use options::{AgentAuth, AgentBinding, AgentOptions, Protocol};
pub use python::PythonAgent;
pub use scripted::ScriptedAgent;

#[cfg(test)]
mod tests;
