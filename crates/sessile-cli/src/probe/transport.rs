//! Requests of a probe, with the headers and the credential of the call, and a timeout.

use std::time::Duration;

use sessile::Error;
use sessile::site::Site;
use sessile::text::shortened;
use sessile::vault::Secret;
use ureq::http::Method;

use super::capture::capturing_client;
use super::service::{FailureKind, ProbeFailure, User};
use super::template::{Escape, Template};
use crate::a2a::{CredentialProvider, RequestCredential};
use crate::http::{HttpAddress, HttpClient, HttpError, HttpRequest, Timeouts};

/// The largest answer.
const LARGEST: usize = 4 << 20;

/// Headers of every request, for each user.
#[derive(Debug, Default)]
pub(crate) struct HeaderTemplates {
    /// Headers that name the user, and are not secret.
    pub(crate) named: Vec<(String, Template)>,
    /// Headers that are the same for all users.
    pub(crate) fixed: Vec<(String, Secret)>,
    /// Each user's own token, in their order.
    pub(crate) tokens: Vec<Secret>,
}

impl HeaderTemplates {
    /// All of them for one user.
    pub(crate) fn of(&self, user: &User, message: &str) -> Vec<(String, Secret)> {
        let named = self.named.iter().map(|(name, value)| {
            let value = value.filled(user, message, Escape::Nothing);
            (name.clone(), Secret::new(value))
        });
        let token = self
            .token(user)
            .map(|token| ("authorization".to_owned(), Secret::new(format!("Bearer {}", token.expose()))));
        named.chain(self.fixed.iter().cloned()).chain(token).collect()
    }

    /// Secret headers of a user.
    fn secrets(&self, user: &User) -> Vec<Secret> {
        self.fixed.iter().map(|(_, value)| value).chain(self.token(user)).cloned().collect()
    }

    fn token(&self, user: &User) -> Option<&Secret> {
        let at = usize::try_from(user.number).unwrap_or_default().checked_sub(1)?;
        // Users of different rounds share tokens, users of one round do not.
        self.tokens.get(at.checked_rem(self.tokens.len())?)
    }

    /// Whether they name the user.
    pub(crate) fn names_user(&self) -> bool {
        self.named.iter().any(|(_, value)| value.names_user())
    }

    /// Whether a header of this name exists.
    fn has(&self, name: &str) -> bool {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        self.named.iter().any(|(known, _)| is(known)) || self.fixed.iter().any(|(known, _)| is(known))
    }

    /// The value of one that is the same for all.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let found = self.fixed.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.expose())
    }
}

/// Credentials for the service, loaded from the vault before threads start.
#[derive(Debug, Default)]
pub(crate) struct FixedCredentials {
    pub(crate) site: Option<Site>,
    pub(crate) credentials: Vec<RequestCredential>,
}

impl CredentialProvider for FixedCredentials {
    fn credentials_for(&self, url: &str) -> Result<Vec<RequestCredential>, Error> {
        let is_there = self.site.is_some() && self.site == Some(Site::of_url(url)?);
        Ok(if is_there { self.credentials.clone() } else { Vec::new() })
    }
}

/// Asks, for protocols that are plain HTTP.
pub(crate) struct ProbeTransport {
    pub(crate) http: HttpClient,
    /// Base URL.
    pub(crate) base: String,
    pub(crate) headers: HeaderTemplates,
    pub(crate) auth: FixedCredentials,
    pub(crate) timeout: Duration,
}

impl ProbeTransport {
    pub(crate) fn new(
        base: &str,
        headers: HeaderTemplates,
        auth: FixedCredentials,
        timeout: Duration,
    ) -> Self {
        let base = base.trim_end_matches('/').to_owned();
        ProbeTransport { http: capturing_client(), base, headers, auth, timeout }
    }

    /// Sends, and gives back the body of an answer with a status of success.
    pub(crate) fn ask(
        &self,
        who: (&User, &str),
        what: (&Method, &str),
        body: Option<&str>,
    ) -> Result<String, ProbeFailure> {
        self.ask_within(self.timeout, who, what, body)
    }

    /// Request with its own timeout.
    pub(crate) fn ask_within(
        &self,
        timeout: Duration,
        (user, message): (&User, &str),
        (method, path): (&Method, &str),
        body: Option<&str>,
    ) -> Result<String, ProbeFailure> {
        let url = format!("{}{path}", self.base);
        let address = HttpAddress::parse(&url).map_err(trouble)?;
        let mut headers = self.headers.of(user, message);
        if body.is_some() && !self.headers.has("content-type") {
            headers.push(("content-type".to_owned(), Secret::new("application/json")));
        }
        let mut secrets: Vec<Secret> = self.headers.secrets(user);
        let credentials = self.auth.credentials_for(&url);
        for credential in credentials.map_err(|error| ProbeFailure::unusable(&error.to_string(), ""))? {
            // Plain HTTP services have no card that would ask for a query or a cookie.
            if let RequestCredential::Header(name, value) = credential {
                secrets.push(value.clone());
                headers.push((name, value));
            }
        }
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
        let patience = Timeouts { write: None, head: timeout, silence: timeout, total: Some(timeout) };
        let sending = HttpRequest {
            method: method.clone(),
            address: &address,
            headers: &headers,
            body: body.map(str::as_bytes),
        };
        let mut coming = self.http.exchange(&sending, patience).map_err(trouble)?;
        let said = coming.read_all(LARGEST).map_err(trouble)?;
        let whole = String::from_utf8_lossy(&said).into_owned();
        match coming.status {
            200..=299 => Ok(whole),
            status => {
                let secrets = secrets.iter().map(Secret::expose);
                Err(ProbeFailure {
                    told: excerpt(&whole, secrets),
                    whole,
                    ..ProbeFailure::new(FailureKind::Status(status))
                })
            }
        }
    }
}

/// The beginning of an answer on one line, unless it repeats a secret that it was sent.
fn excerpt<'a>(whole: &str, mut secrets: impl Iterator<Item = &'a str>) -> Option<String> {
    /// Shortest text that is searched for; shorter ones occur by chance.
    const SHORTEST: usize = 4;
    const LONGEST: usize = 200;
    // Of a header it is the last word: `Bearer SECRET`.
    let repeats = |secret: &str| {
        let word = secret.split_whitespace().last().unwrap_or_default();
        word.len() >= SHORTEST && whole.contains(word)
    };
    let line = || whole.split_whitespace().collect::<Vec<_>>().join(" ");
    (!secrets.any(repeats)).then(line).filter(|line| !line.is_empty()).map(|line| shortened(&line, LONGEST))
}

/// Probe failure of a client error.
pub(crate) fn trouble(error: HttpError) -> ProbeFailure {
    ProbeFailure::new(match error {
        HttpError::TimedOut { .. } => FailureKind::TimedOut,
        HttpError::Unreachable { reason, .. } => FailureKind::Unreachable(reason),
        HttpError::TooLarge { .. } => FailureKind::Unusable("the response is too large".to_owned()),
        HttpError::NotAllowed(why) => FailureKind::Unusable(why),
    })
}
