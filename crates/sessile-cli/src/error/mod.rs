//! Failures of commands: the library's errors, and those that only the command line makes, one file per area.
//!
//! Codes are the library's ([`sessile::Code`]): one list for the command line, HTTP and MCP.

mod agent;
mod command;
mod failure;
mod remedy;
mod request;
mod service;

pub(crate) use agent::AgentError;
pub(crate) use command::CommandError;
pub(crate) use failure::{CommandHint, Failure, Outcome, arguments};
pub(crate) use remedy::remedy_of;
pub(crate) use request::RequestError;
pub(crate) use service::ServiceError;
