//! Device codes (RFC 8628): a person says yes in any browser, and the program asks until then.

use std::fmt;
use std::time::Duration;

use sessile::text;
use sessile::vault::Secret;
use sessile_wire::backoff::Backoff;

use super::client::wanted;
use super::fields::{JsonFields, required};
use super::{OAuthClient, OAuthError, Tokens};
use crate::http::{HttpAddress, HttpClient};

/// The time between two questions if the server does not say, and what `slow_down` adds to it.
const INTERVAL: Duration = Duration::from_secs(5);

/// The time between two questions at least, however hurried the server is.
const SHORTEST: Duration = Duration::from_secs(1);

/// The time until the next question at most, however long the network is away.
const LONGEST: Duration = Duration::from_secs(60);

/// A code that waits for a person. All texts are from outside; displaying it makes them harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceCode {
    /// Device code.
    pub(crate) device_code: Secret,
    /// User code.
    pub(crate) user_code: String,
    /// Verification URL: HTTPS or loopback, so that a browser can open it.
    pub(crate) verification_uri: String,
    /// The same with the code in it.
    pub(crate) verification_uri_complete: Option<String>,
    /// Lifetime of the code.
    pub(crate) expires_in: Duration,
    /// The time between two questions.
    pub(crate) interval: Duration,
}

impl fmt::Display for DeviceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (uri, code) = (text::shown(&self.verification_uri), text::shown(&self.user_code));
        write!(f, "open {uri} and enter the code {code}")
    }
}

impl OAuthClient {
    /// Asks for a code.
    pub(crate) fn start_device(
        &self,
        http: &HttpClient,
        scopes: &[String],
        audience: Option<&str>,
        resource: Option<&str>,
    ) -> Result<DeviceCode, OAuthError> {
        let url = self
            .device_url
            .as_deref()
            .ok_or_else(|| OAuthError::Malformed("no device authorization endpoint".to_owned()))?;
        let scope = scopes.join(" ");
        self.ask(http, url, wanted(&scope, audience, resource), None, DeviceCode::read)
    }

    /// Polls for tokens until the person has decided or the code expires. `elapsed` is the age of the code. Network
    /// and server failures are retried.
    pub(crate) fn poll_device(
        &self,
        http: &HttpClient,
        code: &DeviceCode,
        elapsed: impl Fn() -> Duration,
        sleep: impl Fn(Duration),
    ) -> Result<Tokens, OAuthError> {
        let mut interval = code.interval;
        let mut wait = interval;
        // RFC 8628, 3.5: exponential backoff from the interval, which must not be undercut.
        let from = |interval: Duration| {
            let first = interval.saturating_mul(2).min(LONGEST).max(interval);
            Backoff::new(first, LONGEST.max(interval)).without_jitter()
        };
        let mut backoff = from(interval);
        loop {
            let left = code.expires_in.saturating_sub(elapsed());
            // First a pause: nobody has confirmed a code that was just shown.
            sleep(wait.min(left));
            if elapsed() >= code.expires_in {
                return Err(OAuthError::Expired);
            }
            wait = match self.ask_device(http, code) {
                Ok(tokens) => return Ok(tokens),
                Err(OAuthError::Refused { error, .. }) if error == "authorization_pending" => {
                    // The server answers again, so the backoff of an outage is over.
                    backoff.reset();
                    interval
                }
                Err(OAuthError::Refused { error, .. }) if error == "slow_down" => {
                    interval = interval.saturating_add(INTERVAL);
                    backoff = from(interval);
                    interval
                }
                Err(OAuthError::Refused { error, .. }) if error == "access_denied" => {
                    return Err(OAuthError::Denied);
                }
                Err(OAuthError::Refused { error, .. }) if error == "expired_token" => {
                    return Err(OAuthError::Expired);
                }
                // Never shorter than the interval that the server set before.
                Err(OAuthError::RateLimited { retry_after: Some(rest) }) => rest.max(interval),
                Err(error) if error.is_transient() => backoff.next_delay(),
                Err(error) => return Err(error),
            };
        }
    }

    fn ask_device(&self, http: &HttpClient, code: &DeviceCode) -> Result<Tokens, OAuthError> {
        let form = vec![
            ("grant_type", "urn:ietf:params:oauth:grant-type:device_code"),
            ("device_code", code.device_code.expose()),
        ];
        self.ask(http, &self.token_url, form, Some(&code.device_code), Tokens::read)
    }
}

impl DeviceCode {
    fn read(fields: &JsonFields<'_>) -> Result<Self, OAuthError> {
        // An address that is opened in a browser: one of a file or of a script would be carried out there.
        let checked = |name: &str, uri: Option<String>| match uri {
            Some(uri) if HttpAddress::parse(&uri).is_err() => {
                Err(OAuthError::Malformed(format!("{name} is not an https URL")))
            }
            uri => Ok(uri),
        };
        // The second name is that of drafts, which some servers still use.
        let uri = match fields.text("verification_uri")? {
            None => fields.text("verification_url")?,
            uri => uri,
        };
        let complete = "verification_uri_complete";
        Ok(DeviceCode {
            device_code: required("device_code", fields.secret("device_code")?)?,
            user_code: required("user_code", fields.text("user_code")?)?,
            verification_uri: required("verification_uri", checked("verification_uri", uri)?)?,
            verification_uri_complete: checked(complete, fields.text(complete)?)?,
            expires_in: Duration::from_secs(required("expires_in", fields.seconds("expires_in")?)?),
            // 5 seconds if the server does not say (RFC 8628, 3.2).
            interval: fields.seconds("interval")?.map_or(INTERVAL, Duration::from_secs).max(SHORTEST),
        })
    }
}
