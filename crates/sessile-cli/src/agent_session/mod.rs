//! Access of a session to an agent, with the credential for that agent and the conversation so far.
//!
//! | module | |
//! |---|---|
//! | `connection` | the agent of a call, and the flags of its requests |
//! | `credentials` | credentials of the vault for requests to an agent |
//! | `conversation` | the conversation of a session with an agent, and its log |
//! | `continue_word` | the word behind a bare `--continue` |
//! | `error` | errors of an agent as errors of the program |
//! | `wire_log` | log of the requests to an agent and its replies |
//! | `card_cache` | cached cards of agents |
//! | `artifacts` | artifacts of an agent, saved as plain files |

mod artifacts;
mod card_cache;
mod connection;
mod continue_word;
mod conversation;
mod credentials;
mod error;
mod wire_log;

pub(crate) use artifacts::{check_dir, save_artifact, save_parts, save_reply};
pub(crate) use connection::{AgentArgs, check_client_cert, header, read_card_file, resolve_agent};
pub(crate) use continue_word::{ContinueWord, is_id};
pub(crate) use conversation::{Continuation, ConversationLog, ConversationSelector, session};
pub(crate) use credentials::AgentCredentials;
pub(crate) use error::agent_error;
pub(crate) use wire_log::WireSink;
