//! The desktop's keychain, by the Secret Service of the user's D-Bus session.
//!
//! | module | what it is |
//! |---|---|
//! | `service` | what the rest of the library uses: [`Keychain`] |
//! | `collection` | where items are kept, and whether that is open |
//! | `bus`, `address` | a connection, and where to |
//! | `message` | the head of a message |
//! | `wire`, `reader` | the layout of values |
//! | `macos` | the same for the keychain of macOS, with the feature `macos-keychain` |
//!
//! It is written by hand because the crates for it bring an async runtime or a C library, and six methods are needed.
//! Secrets pass the bus as they are ("plain"): it is a socket between processes of one user on one machine, and who
//! could listen there could ask the service as well.

mod address;
mod bus;
mod collection;
mod error;
#[cfg(test)]
mod hostile;
#[cfg(all(target_os = "macos", feature = "macos-keychain"))]
mod macos;
mod message;
mod reader;
#[cfg(test)]
mod scripted;
mod service;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use error::KeychainError;
#[cfg(all(target_os = "macos", feature = "macos-keychain"))]
pub(crate) use macos::Keychain;
#[cfg(not(all(target_os = "macos", feature = "macos-keychain")))]
pub(crate) use service::Keychain;
