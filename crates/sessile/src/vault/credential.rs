//! A credential: public metadata, and secrets.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::names::CredentialName;
use crate::site::Site;
use crate::vault::Secret;
use crate::vault::jwt_account;
use crate::vault::secret::exposed;

/// Kind of a credential, with the public fields of the kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "snake_case", deny_unknown_fields)]
pub enum CredentialKind {
    /// A token that is sent as `Authorization: Bearer`.
    Bearer,
    /// API key in its own header.
    ApiKey {
        /// The header.
        header: String,
    },
    /// A user name and a password.
    Basic {
        /// The user name.
        username: String,
    },
    /// Tokens that an authorization server hands out and renews.
    #[serde(rename = "oauth2")]
    OAuth2(OAuth2),
    /// Secret that a command prints.
    Command {
        /// The command and its arguments.
        command: Vec<String>,
        /// For how many seconds its answer is kept; never, if not told.
        cache_seconds: Option<u64>,
    },
    /// Secret in an environment variable.
    Env {
        /// The variable.
        variable: String,
    },
}

/// OAuth 2 client configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth2 {
    /// Grant type of the first token.
    pub grant: Grant,
    /// Token endpoint.
    pub token_url: String,
    /// Device authorization endpoint.
    pub device_url: Option<String>,
    /// Revocation endpoint.
    pub revocation_url: Option<String>,
    /// Introspection endpoint (RFC 7662), for the account of tokens that do not name it.
    // Absent where it is not set, so that earlier versions can read the credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introspection_url: Option<String>,
    /// As whom.
    pub client_id: String,
    /// Audience of the tokens.
    pub audience: Option<String>,
    /// Resource indicator (RFC 8707).
    pub resource: Option<String>,
    /// Credential whose login this one shares.
    pub login: Option<CredentialName>,
}

/// OAuth 2 grant type of the first token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// The client itself is trusted.
    ClientCredentials,
    /// A person logs in on another device.
    DeviceCode,
    /// The credential has a refresh token.
    RefreshToken,
}

impl CredentialKind {
    /// Name.
    pub fn as_str(&self) -> &'static str {
        match self {
            CredentialKind::Bearer => "bearer",
            CredentialKind::ApiKey { .. } => "api-key",
            CredentialKind::Basic { .. } => "basic",
            CredentialKind::OAuth2(_) => "oauth2",
            CredentialKind::Command { .. } => "command",
            CredentialKind::Env { .. } => "env",
        }
    }
}

/// Metadata of a credential, without its secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialMetadata {
    /// Name.
    pub name: CredentialName,
    /// Kind.
    #[serde(flatten)]
    pub kind: CredentialKind,
    /// Account that the credential belongs to.
    pub account: Option<String>,
    /// Scopes.
    pub scopes: Vec<String>,
    /// Expiry, if known.
    pub expires_at: Option<Timestamp>,
    /// Sites that it may be sent to.
    pub sites: Vec<Site>,
    /// The agents that get it, by URL.
    pub agents: Vec<String>,
    /// Time of the last change or renewal.
    pub updated_at: Timestamp,
}

impl CredentialMetadata {
    /// A credential of which nothing more is known.
    pub fn new(name: CredentialName, kind: CredentialKind, now: Timestamp) -> Self {
        CredentialMetadata {
            name,
            kind,
            account: None,
            scopes: Vec::new(),
            expires_at: None,
            sites: Vec::new(),
            agents: Vec::new(),
            updated_at: now,
        }
    }

    /// Fills missing fields from an older version. The expiry is not inherited, because it belongs to the secret. The
    /// agents stay bound and allowed.
    pub fn take_over(&mut self, older: &CredentialMetadata) {
        if self.account.is_none() {
            self.account.clone_from(&older.account);
        }
        if self.scopes.is_empty() {
            self.scopes.clone_from(&older.scopes);
        }
        if self.sites.is_empty() {
            self.sites.clone_from(&older.sites);
        }
        let agents = older.agents.iter().filter(|agent| !self.agents.contains(agent)).cloned();
        let agents: Vec<String> = agents.collect();
        self.agents.extend(agents);
    }

    /// Adds the sites of its agents to the allowed sites.
    pub fn allow_agents(&mut self) {
        self.sites.extend(self.agents.iter().filter_map(|agent| Site::of_url(agent).ok()));
        self.sites.sort();
        self.sites.dedup();
    }

    /// Whether it can be used, or be renewed first, as far as its time goes.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        let renews = matches!(&self.kind, CredentialKind::OAuth2(_) | CredentialKind::Command { .. });
        renews || self.expires_at.is_none_or(|end| end > now)
    }
}

/// Secrets of a credential.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Secrets {
    /// The token, key or password; a command's answer while it is kept.
    #[serde(serialize_with = "exposed::maybe")]
    pub(crate) main: Option<Secret>,
    /// Refresh token.
    #[serde(serialize_with = "exposed::maybe")]
    pub(crate) refresh: Option<Secret>,
    /// The client's own.
    #[serde(serialize_with = "exposed::maybe")]
    pub(crate) client: Option<Secret>,
}

/// A credential. It has no way to be printed with its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Metadata.
    pub about: CredentialMetadata,
    pub(crate) secrets: Secrets,
}

impl Credential {
    /// New credential, with its main secret.
    pub fn new(about: CredentialMetadata, secret: Option<Secret>) -> Self {
        Credential { about, secrets: Secrets { main: secret, ..Secrets::default() } }
    }

    /// Account: the one given, else the one that its kind or its token names.
    pub fn account(&self) -> Option<String> {
        let named = match &self.about.kind {
            CredentialKind::Basic { username } => Some(username.clone()),
            _ => self.secrets.main.as_ref().and_then(|token| jwt_account(token.expose())),
        };
        self.about.account.clone().or(named)
    }

    /// The same with a secret of the client that renews it.
    #[must_use]
    pub fn with_client_secret(mut self, secret: Option<Secret>) -> Self {
        self.secrets.client = secret;
        self
    }

    /// The same with a refresh token.
    #[must_use]
    pub fn with_refresh_token(mut self, secret: Option<Secret>) -> Self {
        self.secrets.refresh = secret;
        self
    }

    /// Same credential with other metadata; omitted fields keep their value.
    #[must_use]
    pub fn with_about(mut self, mut about: CredentialMetadata) -> Self {
        // A change of metadata keeps the kind: the secrets belong to it.
        about.kind = self.about.kind.clone();
        about.take_over(&self.about);
        about.expires_at = about.expires_at.or(self.about.expires_at);
        if matches!(about.kind, CredentialKind::OAuth2(_)) && about.scopes != self.about.scopes {
            // A token is good for what it was asked for: the next use asks anew.
            self.secrets.main = None;
            about.expires_at = None;
        }
        self.about = about;
        self
    }

    /// Refresh token, for requests to the authorization server.
    pub fn refresh_token(&self) -> Option<&Secret> {
        self.secrets.refresh.as_ref()
    }

    /// Tokens to revoke, in this order: those that can renew others come first.
    pub fn handed_out(&self) -> impl Iterator<Item = &Secret> {
        let is_handed_out = matches!(self.about.kind, CredentialKind::OAuth2(_));
        // The refresh token first: while it is valid, a revoked access token can be replaced.
        self.secrets.refresh.iter().chain(&self.secrets.main).filter(move |_| is_handed_out)
    }

    /// Client secret, for requests to the authorization server.
    pub fn client_secret(&self) -> Option<&Secret> {
        self.secrets.client.as_ref()
    }

    /// All secrets of the credential.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let Secrets { main, refresh, client } = &self.secrets;
        [main, refresh, client].into_iter().flatten().filter(|secret| !secret.is_empty())
    }

    /// The text that is handed to a keychain or a helper: secrets and all.
    // The text holds the secrets, so its memory is cleared when it is dropped.
    pub(crate) fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(serde_json::to_string(&WholeRef::of(self)).unwrap_or_default())
    }

    /// Credential parsed from text; the error never repeats the text.
    pub(crate) fn of_text(text: &str) -> Result<Self, String> {
        let whole: CredentialParts = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
        Ok(whole.into())
    }
}

/// Many as one text, which is sealed.
pub(crate) fn list_to_text(all: &[Credential]) -> Zeroizing<String> {
    let all: Vec<WholeRef<'_>> = all.iter().map(WholeRef::of).collect();
    Zeroizing::new(serde_json::to_string(&all).unwrap_or_default())
}

/// The credentials of such a text.
pub(crate) fn list_of_text(text: &str) -> Result<Vec<Credential>, String> {
    let all: Vec<CredentialParts> = serde_json::from_str(text).map_err(|error| unreadable(&error))?;
    Ok(all.into_iter().map(Credential::from).collect())
}

#[derive(Serialize)]
struct WholeRef<'a> {
    about: &'a CredentialMetadata,
    secrets: &'a Secrets,
}

impl<'a> WholeRef<'a> {
    fn of(credential: &'a Credential) -> Self {
        WholeRef { about: &credential.about, secrets: &credential.secrets }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialParts {
    about: CredentialMetadata,
    secrets: Secrets,
}

impl From<CredentialParts> for Credential {
    fn from(whole: CredentialParts) -> Self {
        Credential { about: whole.about, secrets: whole.secrets }
    }
}

/// Problem of a JSON text, without quoting it.
pub(crate) fn unreadable(error: &serde_json::Error) -> String {
    // Serde's message quotes what it found, which may be the secret.
    let what = match error.classify() {
        serde_json::error::Category::Data => "unexpected field or value",
        serde_json::error::Category::Eof => "unexpected end",
        _ => "not JSON",
    };
    format!("{what} (line {}, column {})", error.line(), error.column())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn bearer(name: &str, token: &str) -> Credential {
        let about =
            CredentialMetadata::new(name.parse().unwrap(), CredentialKind::Bearer, Timestamp::UNIX_EPOCH);
        Credential::new(about, Some(Secret::new(token)))
    }

    #[test]
    fn credential_round_trips_and_does_not_print() {
        let mut one = bearer("bot", "hunter2").with_refresh_token(Some(Secret::new("again")));
        for kind in [
            CredentialKind::Bearer,
            CredentialKind::ApiKey { header: "X-Key".into() },
            CredentialKind::Basic { username: "me".into() },
            CredentialKind::OAuth2(OAuth2 {
                grant: Grant::DeviceCode,
                token_url: "https://a.example/token".into(),
                device_url: None,
                revocation_url: None,
                introspection_url: Some("https://a.example/introspect".into()),
                client_id: "cli".into(),
                audience: None,
                resource: None,
                login: Some("corp".parse().unwrap()),
            }),
            CredentialKind::Command { command: vec!["pass".into(), "bot".into()], cache_seconds: Some(60) },
            CredentialKind::Env { variable: "TOKEN".into() },
        ] {
            one.about.kind = kind;
            assert_eq!(Credential::of_text(&one.to_text()).unwrap(), one);
            let shown = format!("{one:?} {}", serde_json::to_string(&one.about).unwrap());
            assert!(!shown.contains("hunter2") && !shown.contains("again"), "{shown}");
        }
    }

    #[test]
    fn an_unreadable_text_is_not_repeated() {
        let text = bearer("bot", "hunter2").to_text().replace("\"about\"", "\"hunter2\"");
        let error = Credential::of_text(&text).unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
