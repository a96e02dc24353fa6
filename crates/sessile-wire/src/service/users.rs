//! Users and their tokens.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::plain_enum;

/// Prefix of access tokens, so that scanners recognize a leaked one.
pub const TOKEN_PREFIX: &str = "sst_";

/// Permission of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline, transform = plain_enum)]
pub enum TokenScope {
    /// Read sessions, messages, state and locks.
    Read,
    /// Change them.
    Write,
    /// Administer users.
    Admin,
}

impl TokenScope {
    /// Name of the scope.
    pub fn as_str(self) -> &'static str {
        match self {
            TokenScope::Read => "read",
            TokenScope::Write => "write",
            TokenScope::Admin => "admin",
        }
    }
}

/// User and token of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhoAmI {
    /// Name of the user.
    pub user: String,
    /// Id of the token.
    pub token: String,
    /// Scopes of the token.
    pub scopes: Vec<TokenScope>,
    /// Expiry of the token, in milliseconds since 1970; null if it does not expire.
    pub expires_ms: Option<i64>,
}
