//! Who decides which credential goes where.

use sessile::vault::Secret;

/// Where in a request a credential stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credential {
    /// In a header of this name.
    Header(String, Secret),
    /// In the query, under this name.
    Query(String, Secret),
    /// In a cookie of this name.
    Cookie(String, Secret),
}

/// Knows the credentials. It is asked for every address that something is really sent to, so that a card or a redirect
/// that names another one gets nothing.
pub(crate) trait Authorize {
    /// What a request to this address gets; nothing, if no credential is meant for it.
    fn credentials_for(&self, url: &str) -> Result<Vec<Credential>, sessile::Error>;
}

/// Nobody gets anything.
#[cfg(test)]
pub(crate) struct Anonymous;

#[cfg(test)]
impl Authorize for Anonymous {
    fn credentials_for(&self, _url: &str) -> Result<Vec<Credential>, sessile::Error> {
        Ok(Vec::new())
    }
}
