//! Agents on this machine that speak A2A: on the official SDK, and one of our own that can do what no SDK does.

mod options;
mod python;

pub use options::{AgentAuth, AgentOptions, Binding, Protocol};
pub use python::PythonAgent;

#[cfg(test)]
mod tests;
