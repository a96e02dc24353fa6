//! Credentials: named secrets that many processes share and nobody sees.

pub(crate) mod keychain;
mod secret;

pub use secret::Secret;
