//! Session service: sessions, messages, turns, values and locks of many users, isolated from each other.
//!
//! Reading order: [`change`] and [`query`] (requests to a store as data), `rules` (decisions about changes, without
//! I/O), [`store`] (the stores that execute them). Then [`users`] (accounts), `http` (the API), `mcp` (the tools of
//! agents), [`serve`] (listening and shutdown).
//!
//! | module | content |
//! |---|---|
//! | [`model`], [`change`], [`query`], [`account`], `request`, `ids` | things, changes, queries and accounts as data; no SQL, no HTTP |
//! | `json_text` | JSON that is kept as it was sent |
//! | `rules` | `decide`: a snapshot and a change become an outcome and writes, for both stores |
//! | [`store`] | `StoreBackend` with SQLite and PostgreSQL; fair scheduling of users (`fair_queue`); filtered lists (`lists`) |
//! | [`users`], [`login`] | users and tokens, for administrators; device login |
//! | [`retention`], [`limits`] | retention of rows; limits of requests |
//! | [`serve`] | listening, TLS, connections, heartbeat, graceful shutdown |
//! | `client_tls` | TLS of connections to the database and the upstream |
//! | `http` | routes, callers, waiting, events, replies |
//! | `upstream` | writer of replies: a chat endpoint or an A2A agent |
//! | `mcp` | tools for agents over streamable HTTP |

pub mod account;
pub mod change;
mod client_tls;
mod clock;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod http;
pub mod ids;
pub mod json_text;
pub mod limits;
pub mod login;
mod mcp;
pub mod model;
pub mod query;
pub mod request;
pub mod resources;
pub mod retention;
mod rules;
pub mod serve;
pub mod store;
pub mod upstream;
pub mod users;

pub use http::openapi;
pub use mcp::describe_tools as mcp_tools;

/// Runs something of this crate to its end, for a caller that has no runtime.
pub fn block_on<F: Future>(what: F) -> std::io::Result<F::Output> {
    resources::require_descriptors()?;
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(what))
}
