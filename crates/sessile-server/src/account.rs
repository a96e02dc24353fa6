//! Who may use the service, and with what.

use serde::{Deserialize, Serialize};

use crate::model::UserId;

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its name.
    pub user: UserId,
    /// When it was added.
    pub made_ms: i64,
    /// When it was shut out.
    pub disabled_ms: Option<i64>,
}

/// What a token allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// To read.
    Read,
    /// To change.
    Write,
    /// To administer users.
    Admin,
}

/// A token, as far as it may be known: it itself is shown once and kept nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its id.
    pub id: String,
    /// Whose it is.
    pub user: UserId,
    /// What it allows.
    pub scopes: Vec<Scope>,
    /// When it was made.
    pub made_ms: i64,
    /// When its time is over.
    pub expires_ms: Option<i64>,
    /// When it was taken back.
    pub revoked_ms: Option<i64>,
}

/// A change of who there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Administer {
    /// Adds a user.
    AddUser(UserId),
    /// Shuts a user out, or lets them in again.
    Disable(UserId, bool),
    /// Gives a user a token, by its hash.
    AddToken(Token, String),
    /// Takes a token back, by its id.
    Revoke(String),
}
