//! Renewing a credential: by one process, for all that wait for it.
//!
//! The lock of a renewal is the only one that is held across the network. It protects no file: its holder takes the
//! vault's own lock for each change.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{CredentialConsumer, CredentialError, Error, Result};
use crate::names::CredentialName;
use crate::vault::vault::Vault;
use crate::vault::{Credential, CredentialKind, Grant, OAuth2, Secret};

/// A token that ends this soon is as good as over: it has to reach its server first. For one that lives shortly it is a
/// quarter of its life.
const MARGIN: Duration = Duration::from_secs(30);

/// Request to an authorization server.
#[derive(Clone, Debug)]
pub struct TokenRequest<'a> {
    /// Endpoints and client.
    pub oauth: &'a OAuth2,
    /// The client's secret.
    pub client_secret: Option<&'a Secret>,
    /// Refresh token of the login; `None` for the client's own grant.
    pub refresh_token: Option<&'a Secret>,
    /// Requested scopes; empty for the previous ones.
    pub scopes: &'a [String],
    /// Audience.
    pub audience: Option<&'a str>,
    /// Resource indicator (RFC 8707).
    pub resource: Option<&'a str>,
}

/// Token response of an authorization server.
#[derive(Clone, Debug)]
pub struct TokenResponse {
    /// The token.
    pub access: Secret,
    /// New refresh token, if the server has issued one.
    pub refresh: Option<Secret>,
    /// Lifetime of the token, in seconds.
    pub expires_in: Option<u64>,
    /// Granted scopes, if the server returned them.
    pub scopes: Option<Vec<String>>,
    /// Account, if the server returned one.
    pub account: Option<String>,
}

/// Failed token request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRequestError {
    /// Failure, without a secret.
    pub reason: String,
    /// Whether the server was reached and said no: then only a new login helps.
    pub refused: bool,
}

/// Client of authorization servers. The library has no network, so its caller provides one.
pub trait TokenRefresher {
    /// Requests a token.
    fn renew(&self, renewal: &TokenRequest<'_>) -> std::result::Result<TokenResponse, TokenRequestError>;
}

/// Implementation without a network.
impl TokenRefresher for () {
    fn renew(&self, _renewal: &TokenRequest<'_>) -> std::result::Result<TokenResponse, TokenRequestError> {
        Err(TokenRequestError {
            reason: "token renewal is not supported by this program".into(),
            refused: false,
        })
    }
}

impl TokenResponse {
    /// Stores the response in a credential.
    pub fn into_credential(self, credential: &mut Credential, now: Timestamp) {
        let TokenResponse { access, refresh, expires_in, scopes, account } = self;
        let seconds = expires_in.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX));
        let end = seconds.and_then(|seconds| now.checked_add(jiff::SignedDuration::from_secs(seconds)).ok());
        let about = &mut credential.about;
        // Some servers leave `expires_in` out, and the token itself tells.
        about.expires_at = end.map(whole_seconds).or_else(|| crate::vault::jwt_expiry(access.expose()));
        about.updated_at = now;
        // RFC 6749 (5.1): without `scope` the granted scopes are the requested ones.
        about.scopes = scopes.unwrap_or_else(|| std::mem::take(&mut about.scopes));
        about.account = account.or_else(|| about.account.take());
        credential.secrets.main = Some(access);
        // RFC 6749 (6): without a new refresh token the old one stays valid.
        if refresh.is_some() {
            credential.secrets.refresh = refresh;
        }
    }
}

/// Time without fractions of a second.
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// A renewal that failed, in the file of its lock, for those who waited.
#[derive(Serialize, Deserialize)]
struct Failure {
    /// On the clock that cannot be set back.
    at: Duration,
    login: String,
    reason: String,
    refused: bool,
}

impl Failure {
    fn of(error: &Error, at: Duration) -> Option<Self> {
        let Error::Credential(CredentialError::RenewalFailed { login, reason, refused, .. }) = error else {
            return None;
        };
        Some(Failure { at, login: login.clone(), reason: reason.clone(), refused: *refused })
    }

    fn read(file: &mut File) -> Option<Self> {
        let mut text = String::new();
        file.seek(SeekFrom::Start(0)).ok()?;
        file.take(4096).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// If it cannot be written, the others ask by themselves.
    fn write(&self, file: &mut File) {
        let text = serde_json::to_string(self).unwrap_or_default();
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(text.as_bytes()));
    }

    fn into_error(self, name: &CredentialName) -> Error {
        let Failure { login, reason, refused, .. } = self;
        Error::Credential(CredentialError::RenewalFailed { name: name.to_string(), login, reason, refused })
    }
}

/// Freshness of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    Fresh,
    /// Valid, and expires soon.
    Ending,
    Over,
}

impl Credential {
    pub(crate) fn freshness(&self, now: Timestamp) -> Freshness {
        let is_missing = matches!(self.about.kind, CredentialKind::OAuth2(_)) && self.secrets.main.is_none();
        match self.about.expires_at {
            // A login without an access token has to be renewed before its first use.
            _ if is_missing => Freshness::Over,
            None => Freshness::Fresh,
            Some(end) if end <= now => Freshness::Over,
            // Beyond the last date that can be written everything is over.
            Some(end) if !now.checked_add(self.margin(end)).is_ok_and(|soon| soon < end) => Freshness::Ending,
            Some(_) => Freshness::Fresh,
        }
    }

    /// A fixed margin would make a short-lived token stale from the start, and every process would renew it.
    fn margin(&self, end: Timestamp) -> Duration {
        let whole = Duration::try_from(end.duration_since(self.about.updated_at)).unwrap_or_default();
        MARGIN.min(whole / 4)
    }
}

impl Vault<'_> {
    /// New token for an expired credential. Of many concurrent callers one asks the server, and the others get its
    /// result. If the server refuses, the credential stays unchanged.
    pub(crate) fn renewed(
        &self,
        name: &CredentialName,
        oauth: &OAuth2,
        renew: &dyn TokenRefresher,
    ) -> Result<Credential> {
        // Before the wait: a failure that is older says nothing about now.
        let begun = self.state.world().since_boot();
        // Those that share a login share its refresh token, which may be good for one use only.
        let mut alone = self.lock_for_renewal(oauth.login.as_ref().unwrap_or(name))?;
        let now = self.state.world().now();
        let credential = self.require(name, "renewing it")?;
        // Another process renewed it while this one waited for the lock.
        if credential.freshness(now) == Freshness::Fresh {
            return Ok(credential);
        }
        // What another was told while this one waited for it, this one need not ask again.
        if let Some(failure) = Failure::read(&mut alone).filter(|failure| failure.at >= begun) {
            return Err(failure.into_error(name));
        }
        let renewed = self.renew_now(&credential, renew);
        let failure =
            renewed.as_ref().err().and_then(|error| Failure::of(error, self.state.world().since_boot()));
        if let Some(failure) = failure {
            failure.write(&mut alone);
        }
        renewed
    }

    /// Renews a credential even if it has not expired. One call at a time.
    pub fn renew(&self, name: &CredentialName, renew: &dyn TokenRefresher) -> Result<Credential> {
        let found = self.require(name, "renewing it")?;
        let CredentialKind::OAuth2(oauth) = &found.about.kind else {
            return Err(CredentialError::Unusable {
                name: name.to_string(),
                reason: format!("credentials of kind {} cannot be renewed", found.about.kind.as_str()),
            }
            .into());
        };
        let _alone = self.lock_for_renewal(oauth.login.as_ref().unwrap_or(name))?;
        let current = self.require(name, "renewing it")?;
        // Another did it while this one waited.
        if current.about.updated_at != found.about.updated_at
            && current.freshness(self.state.world().now()) == Freshness::Fresh
        {
            return Ok(current);
        }
        self.renew_now(&current, renew)
    }

    /// Asks the server. The caller has the lock.
    fn renew_now(&self, credential: &Credential, renew: &dyn TokenRefresher) -> Result<Credential> {
        let CredentialKind::OAuth2(oauth) = &credential.about.kind else { return Ok(credential.clone()) };
        let name = &credential.about.name;
        let login = match &oauth.login {
            Some(login) => Some(self.require(login, CredentialConsumer::Login(name.to_string()))?),
            None => None,
        };
        let source = login.as_ref().unwrap_or(credential);
        let CredentialKind::OAuth2(server) = &source.about.kind else {
            return Err(CredentialError::Unusable {
                name: source.about.name.to_string(),
                reason: format!("credential {name} uses it as a login, but it is not a login"),
            }
            .into());
        };
        let failed = |reason: String, refused: bool| {
            Error::Credential(CredentialError::RenewalFailed {
                name: name.to_string(),
                login: source.about.name.to_string(),
                reason,
                refused,
            })
        };
        // Only the client's own grant needs no refresh token (RFC 6749, 4.4.3).
        if server.grant != Grant::ClientCredentials && source.refresh_token().is_none() {
            return Err(failed("no refresh token".into(), true));
        }
        let renewal = TokenRequest {
            oauth: server,
            client_secret: source.client_secret(),
            refresh_token: source.refresh_token(),
            // A login is renewed as it was; what shares it asks for its own part.
            scopes: if login.is_some() || server.grant == Grant::ClientCredentials {
                &credential.about.scopes
            } else {
                &[]
            },
            audience: oauth.audience.as_deref(),
            resource: oauth.resource.as_deref(),
        };
        let mut renewed =
            renew.renew(&renewal).map_err(|TokenRequestError { reason, refused }| failed(reason, refused))?;
        let now = self.state.world().now();
        if let Some(login) = &login
            // Taken out, because it belongs to the login and not to the credential that shares it.
            && let Some(refresh) = renewed.refresh.take()
        {
            // First of all: the old one may be worth nothing by now.
            self.change(&login.about.name, |before| {
                // One that was logged out of or in to anew meanwhile has nothing to do with this token.
                let is_same = |before: &Credential| before.secrets.refresh == login.secrets.refresh;
                Ok(before.map(|before| {
                    if is_same(&before) { before.with_refresh_token(Some(refresh)) } else { before }
                }))
            })?;
        }
        let changed = self.change(name, |before| {
            // What was taken out meanwhile stays out, and what was put in its place stays as it is.
            let Some(before) = before else { return Ok(None) };
            if before.about.kind != credential.about.kind
                || before.secrets.refresh != credential.secrets.refresh
            {
                // A person has changed it since: the new token is dropped rather than mixed with other data.
                return Ok(Some(before));
            }
            let mut after = before;
            renewed.into_credential(&mut after, now);
            Ok(Some(after))
        })?;
        changed.ok_or_else(|| failed("the credential was deleted meanwhile".into(), false))
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::vault::credential::tests::bearer;

    #[test]
    fn short_lived_token_is_fresh_for_most_of_its_life() {
        let given = Timestamp::UNIX_EPOCH;
        let at = |seconds: i64| given + SignedDuration::from_secs(seconds);
        for (whole, fresh, ending) in [(3600, 3569, 3571), (120, 89, 91), (20, 14, 16), (4, 2, 3)] {
            let mut one = bearer("bot", "hunter2");
            one.about.expires_at = Some(at(whole));
            assert_eq!(one.freshness(at(0)), Freshness::Fresh, "{whole}");
            assert_eq!(one.freshness(at(fresh)), Freshness::Fresh, "{whole}");
            assert_eq!(one.freshness(at(ending)), Freshness::Ending, "{whole}");
            assert_eq!(one.freshness(at(whole)), Freshness::Over, "{whole}");
            // Its end may have been before it was set.
            assert_eq!(one.freshness(at(2 * whole)), Freshness::Over, "{whole}");
        }
    }
}
