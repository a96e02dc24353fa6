//! Client of A2A agents: versions 1.0 and 0.3, over JSON-RPC and HTTP+JSON. The wire types are those of
//! [`sessile_wire::a2a`].
//!
//! Reading order: [`AgentClient`], then its requests in `operations`. An agent is not trusted: a reply has limits, a
//! credential goes only where [`CredentialProvider`] allows it, and nothing is printed here. Replies of agents are never executed.
//! Commands sanitize it for terminals, mark it with `"source":"agent"` in JSON, and reduce its file names to one
//! component. Not for conversations and their history.

mod card_cache;
mod client;
mod credential_provider;
mod discovery;
mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod json;
mod limits;
mod operations;
mod sent_secrets;
pub(crate) mod signature;
#[cfg(test)]
mod tests;
mod transport;

pub(crate) use card_cache::{CachedCard, CardCache};
pub(crate) use client::{AgentClient, ClientOptions};
#[cfg(test)]
pub(crate) use credential_provider::AnonymousAccess;
pub(crate) use credential_provider::{CredentialProvider, RequestCredential};
pub(crate) use error::A2aError;
pub(crate) use limits::ReplyLimits;
pub(crate) use operations::StreamEnd;
pub(crate) use sent_secrets::{REDACTED, SentSecrets, is_secret_field};
