//! The service for agents, by the Model Context Protocol over streamable HTTP, at `/mcp`.
//!
//! A tool call is a request of the API, made in this process with the caller's own token and handled by the same
//! router. So users, scopes, limits, the audit log and errors are those of the API, and no second place can forget
//! one of them. This module has no access to the store. Input and output of a tool come from the route and the
//! OpenAPI document. The endpoint keeps no state between two requests: it is all in the store, so any process on the
//! same store can answer the next one.
//!
//! The transport is our own. The SDK's reads bodies without limits of depth and time, answers refusals in its own
//! words, has no batches and needs more packages. It would save most of `protocol`.
//!
//! Reading order: `tools` (the list), `tool` (schemas from the route and the OpenAPI document), `arguments` (typed
//! values of a call), `call` (request and result), `protocol`, `endpoint` and `origin` (the transport).

mod arguments;
mod call;
mod endpoint;
mod origin;
mod protocol;
mod reference;
mod tool;
mod tools;

pub(crate) use endpoint::router;
pub use reference::describe_tools;
