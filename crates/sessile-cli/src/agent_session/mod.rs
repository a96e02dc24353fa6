//! Access of a session to an agent, with the credential for that agent and the conversation so far.
//!
//! | module | |
//! |---|---|
//! | `connection` | the agent of a call, and the flags of its requests |
//! | `credentials` | credentials of the vault for requests to an agent |
//! | `conversation` | the conversation of a session with an agent, and its log |
//! | `error` | errors of an agent as errors of the program |
//! | `artifacts` | artifacts of an agent, saved as plain files |

mod artifacts;
mod connection;
mod conversation;
mod credentials;
mod error;

pub(crate) use artifacts::{save_artifact, save_parts};
pub(crate) use connection::{AgentArgs, header};
pub(crate) use conversation::{ConversationLog, ConversationSelector, session};
pub(crate) use credentials::AgentCredentials;
pub(crate) use error::agent_error;
