//! Credentials of requests to agents.

use sessile::vault::Secret;

/// Credential in its place in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestCredential {
    /// Header.
    Header(String, Secret),
    /// Parameter of the query.
    Query(String, Secret),
    /// Cookie.
    Cookie(String, Secret),
}

/// Source of credentials. It is consulted for every URL that a request really goes to, so that neither a card nor a redirect
/// can send a credential elsewhere.
pub(crate) trait CredentialProvider {
    /// Credentials for a request to this URL.
    fn credentials_for(&self, url: &str) -> Result<Vec<RequestCredential>, sessile::Error>;
}

/// Source without credentials.
#[cfg(test)]
pub(crate) struct AnonymousAccess;

#[cfg(test)]
impl CredentialProvider for AnonymousAccess {
    fn credentials_for(&self, _url: &str) -> Result<Vec<RequestCredential>, sessile::Error> {
        Ok(Vec::new())
    }
}
