//! Client of an A2A agent, versions 1.0 and 0.3, over JSON-RPC and HTTP+JSON: only what a reply needs. The agent is not trusted:
//! its replies have limits, and requests go only to the origin that was configured.

mod agent;
mod assembly;
mod delivered_prefix;
mod event;
mod exchange;
mod interface;
mod prompt;

pub(super) use agent::UpstreamAgent;
pub(super) use exchange::AgentExchange;
