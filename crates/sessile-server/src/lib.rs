//! The session service: sessions, messages, turns, values and locks of many users, who never see each other's.
//!
//! Reading order: [`change`] and [`query`] (what can be asked of a store, as data), `rules` (what a change comes to, without
//! I/O), [`store`] (the stores that carry it out), [`users`] (who may), `http` (how it is asked over the network), `mcp` (the
//! same for agents), [`serve`] (listening, and ending well).

pub mod account;
pub mod change;
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
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(what))
}
