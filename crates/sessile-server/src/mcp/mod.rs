//! The service for agents, by the Model Context Protocol over streamable HTTP, at `/mcp`.
//!
//! A call of a tool is a request of the API, made in this process with the caller's own token and carried out by the same
//! router. So users, scopes, limits, the record and the errors are the API's, and there is no second way to the store. What
//! a tool takes and gives is read off the route and the OpenAPI document. Nothing is kept between two requests: whatever a
//! client refers to is in the store, and any process on the same store answers the next one.
//!
//! The transport is our own rather than the SDK's: bodies come in by the API's limits of size, depth and time, what is
//! refused is told as the API tells it, and batches are answered.
//!
//! Reading order: `tools` (what is offered), `tool`, `call`, `protocol`, `endpoint`.

mod call;
mod endpoint;
mod origin;
mod protocol;
mod reference;
mod tool;
mod tools;

pub(crate) use endpoint::router;
pub use reference::describe_tools;
