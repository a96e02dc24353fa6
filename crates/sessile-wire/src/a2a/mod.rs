//! Types of the A2A protocol, versions 1.0 and 0.3, over JSON-RPC and HTTP+JSON.
//!
//! Reading order: [`AgentCard`], [`AgentRequest`], [`AgentEvent`]. The agent's JSON stays available unchanged, in
//! `raw`; the fields beside it are those that clients act on. Nothing here trusts the agent, and nothing is
//! sanitized: names, messages and ids may hold any characters.

mod card;
mod dialect;
mod error;
mod event;
mod field;
mod interface;
mod outgoing;
mod part;
mod push;
mod reply;
mod request;
mod scheme;
mod task;
mod task_state;

pub use card::{AgentCard, AgentSkill};
pub use dialect::Dialect;
pub use error::{RpcError, RpcErrorKind};
pub use event::AgentEvent;
pub use interface::{AgentInterface, ProtocolBinding, ProtocolVersion};
pub use outgoing::OutgoingMessage;
pub use part::Part;
pub use push::{PushConfig, PushRegistration};
pub use reply::AgentReply;
pub use request::{AgentRequest, CallError, HttpCall, HttpMethod, TaskFilter};
pub use scheme::{OAuthFlow, SecurityScheme, SecuritySchemeKind};
pub use task::{AgentMessage, AgentTask, ArtifactUpdate, StatusUpdate};
pub use task_state::TaskState;
