//! OAuth 2: getting tokens and new ones in their place, for `sessile auth`. Storing them is the vault's.
//!
//! Text of authorization servers is untrusted: it is stored unchanged and sanitized for display.
//! No error holds a token, and no answer is repeated in one.

mod client;
mod device;
mod discovery;
mod error;
mod fields;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
mod tokens;

pub(crate) use client::OAuthClient;
pub(crate) use device::DeviceCode;
pub(crate) use discovery::discover;
pub(crate) use error::OAuthError;
pub(crate) use tokens::Tokens;
