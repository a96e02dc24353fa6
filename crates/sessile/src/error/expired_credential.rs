//! Facts about an expired credential, for its error.

use crate::error::CredentialConsumer;
use crate::text::{quoted, shown};

/// Expired credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiredCredential {
    /// Name of the credential.
    pub name: String,
    /// Kind of the credential.
    pub kind: &'static str,
    /// Part of the call that needs it.
    pub wanted_by: CredentialConsumer,
    /// Whether it is a token for this call only, which the vault does not have.
    pub is_for_this_call: bool,
    /// Time of expiry; none if it never had a token.
    pub expired_at: Option<String>,
    /// Name of the login that renews it.
    pub login: Option<String>,
    /// Reason why the renewal failed.
    pub reason: Option<String>,
    /// Whether the server refused the renewal.
    pub refused: bool,
    /// Variable that overrides it.
    pub variable: String,
}

impl std::fmt::Display for ExpiredCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "credential {} for {} ", quoted(&self.name), self.wanted_by)?;
        match &self.expired_at {
            Some(at) => write!(f, "expired at {at}")?,
            None => f.write_str("has no token yet")?,
        }
        match &self.reason {
            Some(reason) => write!(f, "; the renewal failed: {}", shown(reason)),
            None => Ok(()),
        }
    }
}
