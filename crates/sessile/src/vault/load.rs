//! Loading of credentials for use: renewal, expiry, and the sites that one may be sent to.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use serde::Deserialize;

use crate::error::{
    CredentialConsumer, CredentialError, Error, ExpiredCredential, FileError, Result, SiteRefusal,
};
use crate::names::CredentialName;
use crate::site::Site;
use crate::vault::backend::CredentialBackend;
use crate::vault::program;
use crate::vault::token_refresh::Freshness;
use crate::vault::variables::Variables;
use crate::vault::vault::Vault;
use crate::vault::{Credential, CredentialKind, CredentialMetadata, Secret, TokenRefresher};

/// Timeout of a command that prints a secret, which a person may have to answer.
const COMMAND_LIMIT: Duration = Duration::from_secs(120);

/// A credential with its secret at hand.
#[derive(Clone, Debug)]
pub struct LoadedCredential {
    /// Metadata.
    pub about: CredentialMetadata,
    /// Whether the credential was passed for this call, which also decides its recipient.
    pub for_this_call: bool,
    secret: Secret,
}

impl LoadedCredential {
    pub(crate) fn new(about: CredentialMetadata, secret: Secret, for_this_call: bool) -> Self {
        LoadedCredential { about, for_this_call, secret }
    }

    /// The token, key or password itself, for a command's variable.
    pub fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The header that carries it in a request to a URL, if it may be sent there.
    pub fn header_for(&self, url: &str) -> Result<(String, Secret)> {
        let site = Site::of_url(url)?;
        let refused = |reason: SiteRefusal| {
            Error::Credential(CredentialError::SiteRefused {
                name: self.about.name.to_string(),
                site: site.to_string(),
                sites: self.about.sites.iter().map(ToString::to_string).collect(),
                reason,
            })
        };
        if !site.is_private() {
            return Err(refused(SiteRefusal::Plaintext));
        }
        if !self.for_this_call && !self.about.sites.contains(&site) {
            return Err(refused(SiteRefusal::NotAllowed));
        }
        let secret = self.secret.expose();
        let is_basic = matches!(self.about.kind, CredentialKind::Basic { .. });
        // A line break would begin another header. Basic encodes its pair, so any character passes.
        if !is_basic && secret.contains(|c: char| !c.is_ascii_graphic() && c != ' ') {
            return Err(CredentialError::Unusable {
                name: self.about.name.to_string(),
                reason:
                    "the secret contains a line break or another character that is not allowed in a header"
                        .into(),
            }
            .into());
        }
        Ok(match &self.about.kind {
            CredentialKind::ApiKey { header } => (header.clone(), self.secret.clone()),
            CredentialKind::Basic { username } => {
                let pair = zeroize::Zeroizing::new(format!("{username}:{secret}"));
                (
                    "Authorization".to_owned(),
                    Secret::new(format!("Basic {}", STANDARD.encode(pair.as_bytes()))),
                )
            }
            _ => ("Authorization".to_owned(), Secret::new(format!("Bearer {secret}"))),
        })
    }
}

impl Vault<'_> {
    /// Loads a credential for use. A variable named after it wins over the vault. An expired credential is renewed
    /// first if possible, and is an error otherwise.
    pub fn load_credential(
        &self,
        name: &CredentialName,
        wanted_by: impl Into<CredentialConsumer>,
        renew: &dyn TokenRefresher,
    ) -> Result<LoadedCredential> {
        let wanted_by = wanted_by.into();
        if let Some(said) = self.credential_from_variable(name)? {
            return self.checked(said, wanted_by, None);
        }
        let credential = self.require(name, wanted_by.clone())?;
        match &credential.about.kind {
            CredentialKind::Env { variable } => {
                let value = self.state.world().variable(variable).and_then(|value| value.to_str());
                let value = value.ok_or_else(|| CredentialError::Unusable {
                    name: name.to_string(),
                    reason: format!("variable {variable} is not set"),
                })?;
                let mut credential = credential.clone();
                // The token's own claim, unless the user has said when it ends.
                credential.about.expires_at = credential.about.expires_at.or_else(|| jwt_expiry(value));
                credential.secrets.main = Some(Secret::new(value));
                self.checked(credential, wanted_by, None)
            }
            CredentialKind::Command { cache_seconds: Some(_), .. } => {
                let cached = self.cached_answer(&credential)?;
                self.checked(cached, wanted_by, None)
            }
            CredentialKind::Command { command, .. } => {
                let answer = self.ask_command(name, command)?;
                let mut credential = credential.clone();
                credential.about.expires_at = answer.expires_at;
                credential.secrets.main = Some(answer.secret);
                self.checked(credential, wanted_by, None)
            }
            CredentialKind::OAuth2(oauth) => {
                let freshness = credential.freshness(self.state.world().now());
                if freshness == Freshness::Fresh {
                    return self.checked(credential, wanted_by, None);
                }
                match self.renewed(name, oauth, renew) {
                    Ok(renewed) => self.checked(renewed, wanted_by, None),
                    Err(Error::Credential(CredentialError::RenewalFailed {
                        login, reason, refused, ..
                    })) => {
                        if freshness == Freshness::Ending {
                            self.state.warn(
                                format!("credential {name} expires soon and could not be renewed: {reason}"),
                                None,
                            );
                        }
                        // The old token may still be valid, and then the failed renewal is only a warning.
                        self.checked(credential, wanted_by, Some((login, reason, refused)))
                    }
                    // The one that renews it takes long, and this one holds for a moment yet.
                    Err(Error::File(FileError::Locked { .. })) if freshness == Freshness::Ending => {
                        self.checked(credential, wanted_by, None)
                    }
                    Err(other) => Err(other),
                }
            }
            _ => self.checked(credential, wanted_by, None),
        }
    }

    /// Credential from a variable named after it, with the sites of the stored one.
    pub fn credential_from_variable(&self, name: &CredentialName) -> Result<Option<Credential>> {
        let Some(said) = Variables::new(self.state).get(name)? else { return Ok(None) };
        // A vault that cannot be opened must not keep a variable from being used.
        let about = match self.get(name).ok().flatten().map(|kept| kept.about) {
            Some(kept)
                // A variable holds the secret only; the header and the user name are in the vault.
                if matches!(kept.kind, CredentialKind::ApiKey { .. } | CredentialKind::Basic { .. }) =>
            {
                CredentialMetadata { expires_at: said.about.expires_at, ..kept }
            }
            Some(kept) => {
                CredentialMetadata { kind: said.about.kind, expires_at: said.about.expires_at, ..kept }
            }
            None => said.about,
        };
        Ok(Some(Credential { about, secrets: said.secrets }))
    }

    /// Fails if the time of a credential is up.
    fn checked(
        &self,
        credential: Credential,
        wanted_by: CredentialConsumer,
        unrenewed: Option<(String, String, bool)>,
    ) -> Result<LoadedCredential> {
        let name = &credential.about.name;
        if credential.freshness(self.state.world().now()) == Freshness::Over {
            let (login, reason, refused) = unrenewed
                .map_or((None, None, false), |(login, reason, refused)| (Some(login), Some(reason), refused));
            return Err(CredentialError::Expired(Box::new(ExpiredCredential {
                name: name.to_string(),
                kind: credential.about.kind.as_str(),
                wanted_by,
                is_for_this_call: false,
                expired_at: credential.about.expires_at.map(|end| end.to_string()),
                login,
                reason,
                refused,
                variable: self.state.app().credential_variable(name),
            }))
            .into());
        }
        let Some(secret) = credential.secrets.main.clone().filter(|secret| !secret.is_empty()) else {
            return Err(CredentialError::Unusable {
                name: name.to_string(),
                reason: "the secret is empty".into(),
            }
            .into());
        };
        Ok(LoadedCredential::new(credential.about, secret, false))
    }

    /// The answer of a command that is kept for a while: the first that finds it gone asks again, for all.
    fn cached_answer(&self, found: &Credential) -> Result<Credential> {
        let name = &found.about.name;
        let is_kept = |one: &Credential| {
            one.secrets.main.is_some() && one.freshness(self.state.world().now()) == Freshness::Fresh
        };
        if is_kept(found) {
            return Ok(found.clone());
        }
        let _alone = self.lock_for_renewal(name)?;
        // Read again under the lock: another process may have asked the command meanwhile.
        let found = self.require(name, "caching the answer of the command")?;
        let CredentialKind::Command { command, cache_seconds } = &found.about.kind else { return Ok(found) };
        if is_kept(&found) {
            return Ok(found);
        }
        self.keep_answer(&found, command, cache_seconds.unwrap_or_default())
    }

    /// Runs a command with a cached output again. If it fails, the cached output stays.
    pub fn rerun_command(&self, name: &CredentialName) -> Result<Credential> {
        let _alone = self.lock_for_renewal(name)?;
        let found = self.require(name, "asking again")?;
        let CredentialKind::Command { command, cache_seconds } = &found.about.kind else { return Ok(found) };
        self.keep_answer(&found, command, cache_seconds.unwrap_or_default())
    }

    /// Asks a command and keeps its answer for a time.
    fn keep_answer(&self, found: &Credential, command: &[String], seconds: u64) -> Result<Credential> {
        let name = &found.about.name;
        let answer = self.ask_command(name, command)?;
        let now = self.state.world().now();
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        // A time beyond the calendar means no end.
        let end = now.checked_add(jiff::SignedDuration::from_secs(seconds)).ok();
        // Its own end may come first.
        let end = [end, answer.expires_at].into_iter().flatten().min();
        let kept = self.change(name, |before| {
            Ok(before.map(|mut one| {
                // Another command may be meant by now.
                if one.about.kind == found.about.kind {
                    one.about.expires_at = end;
                    one.about.updated_at = now;
                    one.secrets.main = Some(answer.secret.clone());
                }
                one
            }))
        })?;
        kept.ok_or_else(|| {
            Error::Credential(CredentialError::Unusable {
                name: name.to_string(),
                reason: "deleted meanwhile".into(),
            })
        })
    }

    fn ask_command(&self, name: &CredentialName, command: &[String]) -> Result<CommandAnswer> {
        let failed = |reason: String| {
            Error::Credential(CredentialError::Unusable {
                name: name.to_string(),
                reason: format!(
                    "command {} failed: {reason}",
                    crate::text::quoted(command.first().map_or("", String::as_str))
                ),
            })
        };
        let answer = program::ask(self.state.world(), command, None, COMMAND_LIMIT).map_err(failed)?;
        if !answer.succeeded {
            return Err(failed(answer.status));
        }
        CommandAnswer::of_output(&answer.output).map_err(|reason| failed(reason.to_owned()))
    }
}

/// Output of a credential command: a line with the secret, or an object with the secret and its expiry.
struct CommandAnswer {
    secret: Secret,
    expires_at: Option<Timestamp>,
}

impl CommandAnswer {
    fn of_output(output: &[u8]) -> Result<Self, &'static str> {
        #[derive(Deserialize)]
        struct Object {
            token: Option<Secret>,
            expires_at: Option<Timestamp>,
            status: Option<Status>,
        }
        // What the plugins of Kubernetes clients print.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Status {
            token: Option<Secret>,
            expiration_timestamp: Option<Timestamp>,
        }
        let text = std::str::from_utf8(output).map_err(|_| "the output is not valid UTF-8")?.trim();
        // No token begins with a brace, so a JSON answer cannot be mistaken for one.
        if text.starts_with('{') {
            let object: Object = serde_json::from_str(text).map_err(|_| "the output is not valid JSON")?;
            let (token, end) = match object {
                Object { token: Some(token), expires_at, .. } => (token, expires_at),
                Object { status: Some(Status { token: Some(token), expiration_timestamp }), .. } => {
                    (token, expiration_timestamp)
                }
                _ => return Err("the output contains no token"),
            };
            let expires_at = end.or_else(|| jwt_expiry(token.expose()));
            return Ok(CommandAnswer { secret: token, expires_at });
        }
        match text {
            "" => Err("the output is empty"),
            // More lines are an error text or a menu, which must not be sent as a token.
            _ if text.contains('\n') => Err("the output has more than one line"),
            _ => Ok(CommandAnswer { secret: Secret::new(text), expires_at: jwt_expiry(text) }),
        }
    }
}

/// Time parsed from RFC 3339.
pub fn time_of(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

/// The claims that name an account, the most telling first.
const ACCOUNT: [&str; 3] = ["email", "preferred_username", "sub"];

/// The account of a token, if it is a JSON Web Token that names one. Nothing is verified: the account is displayed, and
/// decides nothing.
pub fn jwt_account(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    // Claims can name people and permissions.
    let claims = zeroize::Zeroizing::new(URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?);
    let claims: serde_json::Value = crate::json::from_slice(&claims).ok()?;
    ACCOUNT
        .iter()
        .find_map(|name| claims.get(name)?.as_str().filter(|text| !text.is_empty()))
        .map(str::to_owned)
}

/// When a token ends, if it is a JSON Web Token that says so.
pub fn jwt_expiry(token: &str) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Claims {
        // RFC 7519 allows a fraction of a second in a NumericDate.
        exp: f64,
    }
    let mut parts = token.split('.');
    let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
    let claims = zeroize::Zeroizing::new(URL_SAFE_NO_PAD.decode(claims.trim_end_matches('=')).ok()?);
    let Claims { exp } = serde_json::from_slice(&claims).ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "the code below refuses a time that is out of range")]
    Timestamp::from_second(exp as i64).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::credential::tests::bearer;

    fn usable(kind: CredentialKind, site: &str) -> LoadedCredential {
        let mut one = bearer("bot", "hunter2");
        one.about.kind = kind;
        one.about.sites = vec![Site::of_url(site).unwrap()];
        LoadedCredential::new(one.about, Secret::new("hunter2"), false)
    }

    #[test]
    fn a_credential_goes_to_its_sites_and_nowhere_else() {
        let one = usable(CredentialKind::Bearer, "https://api.example.com/v1");
        let (header, value) = one.header_for("https://API.example.com:443/v2?x").unwrap();
        assert_eq!((header.as_str(), value.expose()), ("Authorization", "Bearer hunter2"));
        for url in [
            "http://api.example.com/v1",
            "https://api.example.com:8443/v1",
            "https://api.example.com.evil.example/",
            "https://evil.example/?https://api.example.com",
            "https://user@api.example.com/",
            "https://api.example.com\\@evil.example/",
        ] {
            let error = one.header_for(url).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn each_kind_has_its_header() {
        let one = usable(CredentialKind::ApiKey { header: "X-API-Key".into() }, "http://localhost:8000");
        let (header, value) = one.header_for("http://localhost:8000/a").unwrap();
        assert_eq!((header.as_str(), value.expose()), ("X-API-Key", "hunter2"));
        let one = usable(CredentialKind::Basic { username: "me".into() }, "https://a.example");
        assert_eq!(one.header_for("https://a.example").unwrap().1.expose(), "Basic bWU6aHVudGVyMg==");
    }

    #[test]
    fn plain_http_is_for_this_machine_only() {
        let mut one = usable(CredentialKind::Bearer, "http://example.com");
        assert!(one.header_for("http://example.com/").is_err());
        one.for_this_call = true;
        assert!(one.header_for("http://example.com/").is_err());
        assert!(one.header_for("https://example.com/").is_ok());
        assert!(one.header_for("http://127.0.0.1:99/").is_ok());
    }

    #[test]
    fn output_of_a_command_is_parsed_or_refused() {
        let of = |text: &str| CommandAnswer::of_output(text.as_bytes());
        assert_eq!(of("hunter2\n").ok().unwrap().secret.expose(), "hunter2");
        let timed = of(r#"{"token":"hunter2","expires_at":"2030-01-01T00:00:00Z"}"#).ok().unwrap();
        assert_eq!(timed.expires_at.unwrap().to_string(), "2030-01-01T00:00:00Z");
        let plugin = r#"{"kind":"ExecCredential","status":{"token":"hunter2","expirationTimestamp":"2030-01-01T00:00:00Z"}}"#;
        assert!(of(plugin).ok().unwrap().expires_at.is_some());
        for wrong in ["", "  \n", "a\nb", "{", r#"{"a":1}"#, r#"{"token":1}"#] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_web_token_tells_its_end() {
        let token = format!("x.{}.y", URL_SAFE_NO_PAD.encode(r#"{"exp":1893456000}"#));
        assert_eq!(jwt_expiry(&token).unwrap().to_string(), "2030-01-01T00:00:00Z");
        for other in ["", "a.b", "a.b.c", "x.e30.y"] {
            assert!(jwt_expiry(other).is_none());
        }
    }
}
