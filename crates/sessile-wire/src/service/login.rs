//! Device login: a client shows a code, an administrator approves the code, and the client collects its token.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::MAX_LOGIN_FIELD;
use super::users::TokenScope;

/// A login to begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginLoginRequest {
    /// Name of the client's machine, which the administrator sees.
    #[schemars(length(min = 1, max = MAX_LOGIN_FIELD))]
    pub client: String,
}

/// A login that waits for approval.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BeginLoginResponse {
    /// Secret that the client collects its token with.
    pub device_code: String,
    /// Code to approve with `sessile user approve`.
    #[schemars(regex(pattern = "^[B-Z]{4}-[B-Z]{4}$"))]
    pub user_code: String,
    /// Seconds until the login expires.
    pub expires_in_s: i64,
    /// Seconds to wait between two attempts to collect the token.
    pub interval_s: i64,
}

/// An attempt to collect the token of a login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectLoginRequest {
    /// Secret of the login.
    #[schemars(length(min = 1, max = MAX_LOGIN_FIELD))]
    pub device_code: String,
}

/// The token of an approved login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CollectLoginResponse {
    /// Secret token, `sst_...`. It is sent this once.
    pub token: String,
    /// Name of the user.
    pub user: String,
    /// Scopes of the token.
    pub scopes: Vec<TokenScope>,
    /// Expiry of the token, in milliseconds since 1970; null if it does not expire.
    pub expires_ms: Option<i64>,
}

impl fmt::Debug for BeginLoginResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the device code, which is enough to collect the token.
        f.debug_struct("BeginLoginResponse").field("user_code", &self.user_code).finish_non_exhaustive()
    }
}

impl fmt::Debug for CollectLoginRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The device code is all that it has, and is a secret.
        f.debug_struct("CollectLoginRequest").finish_non_exhaustive()
    }
}

impl fmt::Debug for CollectLoginResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the token, which `{:?}` would otherwise put into a log.
        f.debug_struct("CollectLoginResponse").field("user", &self.user).finish_non_exhaustive()
    }
}
