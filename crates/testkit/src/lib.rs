//! What the tests stand on: a throwaway home, processes that run in it, terminals, servers on this machine, clients of an
//! MCP server.
//!
//! The kit is independent of the program's behaviour; tests state it.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test support fails by panicking and reads files directly"
)]

pub mod agent;
mod call;
pub mod fuzz;
mod home;
mod json;
mod keyring;
pub mod linearizability;
mod loopback;
mod mcp;
mod model;
mod node;
mod oauth;
mod postgres;
mod quickest;
mod tls;
mod tools;
mod tty;

pub use agent::{
    AgentAuth, AgentBinding, AgentFramework, AgentOptions, FrameworkAgent, JavaScriptAgent, Misbehaviour,
    MisbehaviourPoint, Protocol, PythonAgent, ReceivedRequest, ScriptedAgent,
};
pub use call::{Call, CallResult};
pub use home::Home;
pub use json::{RESERVED_KEY, embedded_documents};
pub use keyring::Keyring;
pub use loopback::Loopback;
pub use mcp::{Inspector, McpClient, McpServer, McpUrl, PythonMcpClient, Revision};
pub use model::ScriptedModel;
pub use oauth::{OidcCounts, OidcOptions, OidcServer};
pub use postgres::{Database, Postgres};
pub use quickest::quickest_within;
pub use tls::TlsServer;
pub use tools::{find_tool, require_tool, tool_path};
pub use tty::Tty;
