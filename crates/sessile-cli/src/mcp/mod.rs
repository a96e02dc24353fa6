//! Sessile as tools for agents, by the Model Context Protocol on standard input and output.
//!
//! The server keeps nothing: a call of a tool is a call of this program in a process of its own, with JSON as its output. So
//! a tool does what its command does, two servers and any number of commands can work on one state, a call that hangs or
//! dies takes nothing with it, calling one off is ending a process, and no handle is lost when a server is.
//!
//! Reading order: `tools` (what is offered), `tool`, `arguments`, `invocation`, `reply`, `server`.

mod approval;
mod arguments;
mod batches;
mod capture;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod invocation;
mod lines;
mod progress;
mod reference;
mod reply;
mod server;
mod state_access;
mod tool;
mod tools;
mod transport;

pub use reference::described;
pub(crate) use server::{Offer, serve};
