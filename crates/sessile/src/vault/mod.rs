//! Credentials: named secrets that many processes share and that are never printed.
//!
//! A [`Vault`] keeps [`Credential`]s in the desktop's keychain, in a sealed file, with a helper program, or reads them
//! from variables. [`Vault::load_credential`] returns one for use: not expired, or renewed first, by one process for all.
//!
//! | module | content |
//! |---|---|
//! | `secret`, `credential` | serialization of secrets; metadata of a credential, and its secrets |
//! | `backend`, `vault` | choice of the backend; lookup and changes under the lock on the vault's directory |
//! | `file`, `sealed`, `keys` | the sealed file, its seal, its key |
//! | `desktop`, `keychain` | vault in the desktop's keychain; the trait that `sessile-keychain` implements |
//! | `helper_backend`, `program`, `variables` | helper program; bounded calls of any program; variables named after credentials |
//! | `selection`, `agents`, `availability` | credential of a call; of an agent; whether an agent has one |
//! | `load`, `token_refresh` | loading a credential for use; refreshing OAuth tokens |
//! | `redaction` | redacting copies of a secret that tools put into rooms, for `auth logout` |
//!
//! The path of a secret from the vault to a command:
//!
//! 1. A context binds `API_TOKEN = { credential = "bot" }`. `Environment::resolve` keeps the binding apart from the
//!    changes.
//! 2. `PreparedRun::variables` calls [`Vault::load_credential`] for each binding. A variable named after the credential wins.
//!    Otherwise the backend is opened: one read and one unsealing of the file. A run without a bound or selected
//!    credential opens nothing here.
//! 3. A token that expires within 30 seconds, or within a quarter of its life if that is less, is renewed.
//!    `lock_for_renewal` takes the kernel lock of the credential, or of the login that it shares. The process that gets
//!    the lock looks again and calls [`TokenRefresher`] only if no other process has renewed.
//! 4. A shared login's new refresh token is written before the new access token, because the old one may be void
//!    already. Each write is a `Vault::change` under the lock on the directory, which is not held during the
//!    request to the server.
//! 5. The secret goes into the variables that `execve` gets, and nowhere else.
//!
//! Sessile's own requests carry a credential only after [`LoadedCredential::header_for`] has checked its sites; an agent's card
//! may then place an API key in the query or a cookie. Refresh tokens and client secrets go only to the endpoints of
//! their login's authorization server.
//!
//! - The vault is not in the store, because backups and exports of the store must hold no secret, and SQLite leaves old
//!   pages behind.
//! - `env` and the shell hook leave credentials out, because a shell's environment outlives each command and each
//!   renewal.
//! - A vault that cannot be opened is never overwritten, and no key is created for a vault that exists.
//!
//! Not for talking to authorization servers or keychains: the application passes in a [`TokenRefresher`] and a
//! [`KeychainConnector`].

mod agents;
mod availability;
pub(crate) mod backend;
pub(crate) mod credential;
pub(crate) mod desktop;
pub(crate) mod file;
pub(crate) mod helper_backend;
mod keychain;
pub(crate) mod keys;
mod load;
mod program;
mod redaction;
pub mod sealed;
pub(crate) mod secret;
mod selection;
mod token_refresh;
pub(crate) mod variables;
#[expect(clippy::module_inception, reason = "a file is named after its main type")]
mod vault;

pub use agents::name_for_agent;
pub(crate) use agents::name_of;
pub use availability::CredentialAvailability;
pub use backend::Backend;
pub use credential::{Credential, CredentialKind, CredentialMetadata, Grant, OAuth2};
pub use keychain::{ItemAttributes, Keychain, KeychainConnector, KeychainEndpoint, KeychainError};
pub use load::{LoadedCredential, jwt_account, jwt_expiry, time_of};
pub use redaction::RedactionReport;
pub use sealed::KeySource;
pub use secret::Secret;
pub use selection::{CredentialSource, SelectedCredential};
pub use token_refresh::{TokenRefresher, TokenRequest, TokenRequestError, TokenResponse, whole_seconds};
pub use vault::{CredentialMigration, Vault, VaultStatus, uses_login};
