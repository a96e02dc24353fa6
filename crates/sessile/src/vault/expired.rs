//! What is told about a credential whose time is up.

use crate::text::{quoted, shown};

/// A credential whose time is up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The credential.
    pub name: String,
    /// Its kind.
    pub kind: &'static str,
    /// What wants it.
    pub wanted_by: String,
    /// When it ended; none if it never had a token.
    pub expired_at: Option<String>,
    /// The login that would renew it.
    pub login: Option<String>,
    /// Why it was not renewed.
    pub reason: Option<String>,
    /// Whether the server was reached and said no.
    pub refused: bool,
    /// The variable that would stand for it.
    pub variable: String,
}

impl std::fmt::Display for Expired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "credential {} for {} ", quoted(&self.name), self.wanted_by)?;
        match &self.expired_at {
            Some(at) => write!(f, "expired at {at}")?,
            None => f.write_str("has no token yet")?,
        }
        match &self.reason {
            Some(reason) => write!(f, "; it could not be renewed: {}", shown(reason)),
            None => Ok(()),
        }
    }
}
