//! OAuth requests for the vault: token renewal, revocation, and checks of a credential.

use sessile::error::UsageError;
use sessile::vault::{
    Credential, CredentialKind, Grant, OAuth2, Secret, TokenRefresher, TokenRequest, TokenRequestError,
    TokenResponse,
};

use crate::error::{Failure, RequestError};
use crate::http::{HttpClient, HttpError, TrustRoots};
use crate::oauth::{OAuthClient, OAuthError, Tokens};

/// A client for the network. Nothing of it is set up before it is needed.
pub(crate) struct Renewer {
    http: HttpClient,
}

impl Renewer {
    pub(crate) fn new() -> Self {
        Renewer { http: HttpClient::new(TrustRoots::System) }
    }

    pub(crate) fn http(&self) -> &HttpClient {
        &self.http
    }

    /// Revokes the tokens of a credential at their server; returns the first failure, if any.
    pub(crate) fn give_back(&self, credential: &Credential, login: Option<&Credential>) -> Option<String> {
        // One that shares a login has its tokens from there.
        let source = login.unwrap_or(credential);
        let CredentialKind::OAuth2(oauth) = &source.about.kind else { return None };
        let url = oauth.revocation_url.as_deref()?;
        let client = client(oauth, source.client_secret());
        // Each token is tried: the one that fails says nothing about the others.
        let failed: Vec<OAuthError> =
            credential.handed_out().filter_map(|token| client.revoke(&self.http, url, token).err()).collect();
        failed.first().map(ToString::to_string)
    }

    /// The status with which a server answers to a credential.
    pub(crate) fn status_of(&self, url: &str, header: &str, value: &Secret) -> Result<u16, Failure> {
        match self.http.status(url, &[(header, value.expose())]) {
            Ok(status) => Ok(status),
            Err(HttpError::NotAllowed(reason)) => Err(UsageError::Arguments(reason).into()),
            Err(error) => Err(unreachable(url, &error).into()),
        }
    }
}

/// Error of a server that was not reached.
pub(crate) fn unreachable(url: &str, error: &HttpError) -> RequestError {
    let what =
        sessile::site::Site::of_url(url).map_or_else(|_| "the server".to_owned(), |site| site.to_string());
    let reason = match error {
        HttpError::Unreachable { reason, .. } => reason.clone(),
        HttpError::TimedOut { .. } => "timed out".into(),
        other => other.to_string().into(),
    };
    RequestError::Unreachable { what, reason }
}

impl TokenRefresher for Renewer {
    fn renew(&self, renewal: &TokenRequest<'_>) -> Result<TokenResponse, TokenRequestError> {
        let client = client(renewal.oauth, renewal.client_secret);
        let TokenRequest { scopes, audience, resource, .. } = *renewal;
        let answer = match renewal.refresh_token {
            Some(token) => client.refresh(&self.http, token, scopes, audience, resource),
            None if renewal.oauth.grant == Grant::ClientCredentials => {
                client.client_credentials(&self.http, scopes, audience, resource)
            }
            None => {
                return Err(TokenRequestError { reason: "no refresh token".into(), refused: true });
            }
        };
        answer.map(renewed).map_err(|error| {
            let refused =
                // Only the server's own refusal ends a login; otherwise the refresh token is still good.
                matches!(error, OAuthError::Refused { .. } | OAuthError::Denied | OAuthError::Expired);
            TokenRequestError { reason: error.to_string(), refused }
        })
    }
}

/// OAuth client of a credential.
pub(crate) fn client(oauth: &OAuth2, secret: Option<&Secret>) -> OAuthClient {
    OAuthClient {
        token_url: oauth.token_url.clone(),
        device_url: oauth.device_url.clone(),
        client_id: oauth.client_id.clone(),
        client_secret: secret.cloned(),
    }
}

/// Token response in the vault's type.
pub(crate) fn renewed(tokens: Tokens) -> TokenResponse {
    let Tokens { access, refresh, expires_in, scopes, account } = tokens;
    TokenResponse { access, refresh, expires_in, scopes, account }
}
