//! Who may use the service, and with what.

use serde::{Deserialize, Serialize};

use crate::ids::{SecretHash, TokenId, UserName};

pub use sessile_wire::service::TokenScope;

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its name.
    pub user: UserName,
    /// When it was added.
    pub made_ms: i64,
    /// When it was shut out.
    pub disabled_ms: Option<i64>,
}

/// A token, as far as it may be known: it itself is shown once and kept nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// Whose it is.
    pub user: UserName,
    /// What it allows.
    pub scopes: Vec<TokenScope>,
    /// When it was made.
    pub made_ms: i64,
    /// When its time is over.
    pub expires_ms: Option<i64>,
    /// When it was taken back.
    pub revoked_ms: Option<i64>,
}

/// A machine that asks to be let in, as it is put down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What the secret hashes to that it collects its token with.
    pub device_hash: SecretHash,
    /// What the code hashes to that it is approved by.
    pub code_hash: SecretHash,
    /// What it calls itself.
    pub client: String,
    /// The address that it asked from.
    pub peer: Option<String>,
    /// How long there is to approve it and to collect the token.
    pub lives_ms: i64,
}

/// A machine that asks to be let in, as who decides sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// What it calls itself.
    pub client: String,
    /// The address that it asked from.
    pub peer: Option<String>,
    /// When it asked.
    pub asked_ms: i64,
    /// When it has to ask anew.
    pub expires_ms: i64,
    /// Whether somebody approved it, and it has not collected its token yet.
    pub is_approved: bool,
}

/// What is decided about a machine that asks to be let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It gets a token.
    Approve {
        /// Of this user.
        user: UserName,
        /// For this.
        scopes: Vec<TokenScope>,
        /// Until then.
        expires_ms: Option<i64>,
    },
    /// It gets none.
    Deny,
}

/// What a token that is about to be collected is to be kept as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minted {
    /// Its id.
    pub id: TokenId,
    /// What it hashes to.
    pub hash: SecretHash,
}

/// What came of asking for the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collected {
    /// It is this one; nobody gets it again.
    Token(Token),
    /// Nobody has decided yet.
    Pending,
    /// It was refused.
    Denied,
    /// There is nothing to collect: there never was, its time is over, or it was collected.
    Nothing,
}

/// A change of who there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Administer {
    /// Adds a user.
    AddUser(UserName),
    /// Shuts a user out, or lets them in again.
    Disable(UserName, bool),
    /// Gives a user a token, by its hash.
    AddToken(Token, SecretHash),
    /// Takes a token back, by its id.
    Revoke(TokenId),
    /// Decides about a machine that asks to be let in, by what its code hashes to.
    Decide(SecretHash, Decision),
}
