//! Users, access tokens and device logins.

use serde::{Deserialize, Serialize};

use crate::change::Refusal;
use crate::ids::{SecretHash, TokenId, UserName};

pub use sessile_wire::service::TokenScope;

/// A user of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Name of the user.
    pub user: UserName,
    /// Time at which it was added.
    pub made_ms: i64,
    /// Time at which it was disabled.
    pub disabled_ms: Option<i64>,
}

/// Access token without its secret, which is printed once and not stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Id of the token.
    pub id: TokenId,
    /// Owner of the token.
    pub user: UserName,
    /// Scopes of the token.
    pub scopes: Vec<TokenScope>,
    /// Time at which it was created.
    pub made_ms: i64,
    /// Expiry.
    pub expires_ms: Option<i64>,
    /// Time at which it was revoked.
    pub revoked_ms: Option<i64>,
}

/// A device login to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLogin {
    /// Hash of the device code, by which the device collects its token.
    pub device_hash: SecretHash,
    /// Hash of the user code, by which it is approved.
    pub code_hash: SecretHash,
    /// Display name of the client.
    pub client: String,
    /// Address of the client.
    pub peer: Option<String>,
    /// Time in which it must be approved and collected, in milliseconds.
    pub lives_ms: i64,
}

/// A pending device login, as an administrator sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// Display name of the client.
    pub client: String,
    /// Address of the client.
    pub peer: Option<String>,
    /// Time of the request.
    pub asked_ms: i64,
    /// Expiry of the request.
    pub expires_ms: i64,
    /// Whether it is approved, and its token not yet collected.
    pub is_approved: bool,
}

/// Decision of an administrator about a device login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginDecision {
    /// The device gets a token.
    Approve {
        /// Owner of the token.
        user: UserName,
        /// Scopes of the token.
        scopes: Vec<TokenScope>,
        /// Expiry of the token.
        expires_ms: Option<i64>,
    },
    /// The device gets no token.
    Deny,
}

/// Id and hash of a token that is created when it is collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTokenHash {
    /// Id of the token.
    pub id: TokenId,
    /// Hash of its secret.
    pub hash: SecretHash,
}

/// Result of collecting the token of a device login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginCollection {
    /// New token; returned once.
    Token(Token),
    /// The login is not decided yet.
    Pending,
    /// The login was denied.
    Denied,
    /// No such login: it never existed, expired, or was collected.
    Nothing,
}

/// A change of users and tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountChange {
    /// Adds a user.
    AddUser(UserName),
    /// Disables or enables a user.
    Disable(UserName, bool),
    /// Adds a token with the hash of its secret.
    AddToken(Token, SecretHash),
    /// Revokes a token.
    Revoke(TokenId),
    /// Approves or denies a device login, by the hash of its user code.
    Decide(SecretHash, LoginDecision),
}

impl AccountChange {
    /// Refusal of a change that changed no row.
    pub(crate) fn refusal(&self) -> Refusal {
        match self {
            AccountChange::AddUser(_) => Refusal::AccountExists,
            _ => Refusal::NoAccount,
        }
    }
}
