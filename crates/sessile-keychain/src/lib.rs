//! Keychain backends of the vault: the Secret Service of Linux desktops, and Keychain of macOS.
//!
//! An application hands [`connect`] to its [`App`](sessile::App); the library calls it when it needs the keychain, and
//! never before.
//!
//! ```
//! let app = sessile::App::new("deployer").with_keychain(sessile_keychain::connect);
//! assert!(app.keychain().is_some());
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `secret_service` | items: [`SecretService`] |
//! | `collection` | collections: choosing, unlocking |
//! | `bus`, `address` | connection to the session bus, with a deadline; its address |
//! | `message`, `encode`, `decode` | D-Bus messages and values |
//! | `macos` | Keychain of macOS, which takes the place of the Secret Service there |
//!
//! Secrets cross the bus unencrypted (algorithm `plain`): it is a socket between processes of one user, and a process
//! that could listen there could query the service as well.
//!
//! # Why not zbus or secret-service
//!
//! `zbus` 6.2 costs little: 11 packages, 2 ms and 3 MB for a lookup on Tokio's current-thread runtime. Security rules
//! decide against it, each measured against its release build:
//!
//! - A copy of the secret stays in freed memory: its message buffers are not overwritten, and an application cannot
//!   replace them. Here every buffer that may hold a secret is.
//! - A peer that answers the handshake with a bare line feed makes it panic, and a 16-byte header makes it allocate
//!   128 MiB. Here a malformed peer is an error, and a message has at most 16 MiB.
//! - The deadline must cover the connection and all calls of an operation together; its timeout is one per call.
//!
//! `secret-service` 5.2 adds 34 packages, and shows a prompt, without a time limit, wherever a collection is locked.
//! Here a locked keychain is an error: an agent's command must not wait for an unseen dialog.

mod address;
mod bus;
mod collection;
mod decode;
mod encode;
#[cfg(target_os = "macos")]
mod macos;
mod message;
mod secret_service;
#[cfg(test)]
mod tests;

pub use secret_service::SecretService;

use sessile::vault::{Keychain, KeychainEndpoint, KeychainError};

/// Connects to the keychain of this platform.
#[cfg(not(target_os = "macos"))]
pub fn connect(endpoint: &KeychainEndpoint<'_>) -> Result<Box<dyn Keychain>, KeychainError> {
    let Some(bus) = endpoint.bus else {
        return Err(KeychainError::Unreachable("no D-Bus session found".to_owned()));
    };
    Ok(Box::new(SecretService::connect(bus, endpoint.uid, endpoint.timeout)?))
}

/// Connects to the keychain of this platform.
#[cfg(target_os = "macos")]
pub fn connect(_endpoint: &KeychainEndpoint<'_>) -> Result<Box<dyn Keychain>, KeychainError> {
    // No connection is needed: the framework finds the user's default keychain by itself.
    Ok(Box::new(macos::MacosKeychain))
}
