//! Agents on this machine that speak A2A: on the official SDK, and the [demo agent](sessile_agent), which can do what no SDK
//! does.
//!
//! Both do what the first word of a message says, as the demo agent documents it.

mod hostile;
mod javascript;
mod python;
mod scripted;

pub use hostile::{Misbehaviour, MisbehaviourPoint};
pub use javascript::JavaScriptAgent;
pub use python::{AgentFramework, FrameworkAgent, PythonAgent};
pub use scripted::ScriptedAgent;
pub use sessile_agent::{AgentAuth, AgentBinding, AgentOptions, Protocol, ReceivedRequest};

#[cfg(test)]
mod tests;
