//! Credentials: named secrets that many processes share and nobody sees.
//!
//! A [`Vault`] keeps [`Credential`]s in the desktop's keychain, in a sealed file, with a helper program, or reads them
//! from variables. [`Vault::usable`] gives one out for use: not expired, renewed first if need be, by one process for
//! all. What it is used for decides what leaves: a command's variable, or a header for a site that it may be sent to.
//!
//! Not for talking to authorization servers or keychains: the application hands in a [`Renew`] and a
//! [`KeychainConnector`].

mod agents;
pub(crate) mod backend;
mod consumer;
pub(crate) mod credential;
pub(crate) mod desktop;
mod expired;
pub(crate) mod file;
pub(crate) mod helper_backend;
mod keychain;
pub(crate) mod keys;
mod known;
mod program;
mod renewal;
mod rooms;
pub mod sealed;
pub(crate) mod secret;
mod selected;
mod site;
mod usable;
pub(crate) mod variables;
#[expect(clippy::module_inception, reason = "a file is named after its main type")]
mod vault;

pub use agents::{agent_url, name_for_agent};
pub use backend::Backend;
pub use consumer::CredentialConsumer;
pub use credential::{About, Credential, Grant, Kind, OAuth2};
pub use expired::Expired;
pub use keychain::{ItemAttributes, Keychain, KeychainConnector, KeychainEndpoint, KeychainError};
pub use known::KnownCredentials;
pub use renewal::{Renew, Renewal, Renewed, Unrenewed, whole_seconds};
pub use rooms::Blotted;
pub use sealed::KeySource;
pub use secret::Secret;
pub use selected::{Selected, SelectedCredential};
pub use site::Site;
pub(crate) use site::without_user;
pub use usable::{Usable, jwt_expiry, time_of};
pub use variables::variable_of;
pub use vault::{Moved, Vault, VaultStatus, uses_login};
