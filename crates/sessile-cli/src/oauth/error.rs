//! Errors of token requests.

use std::fmt;
use std::time::Duration;

use sessile::text;

use crate::http::HttpError;

/// Maximum length of a server's explanation in a message.
const EXPLANATION: usize = 300;

/// Failure of a token request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OAuthError {
    /// No response.
    Http(HttpError),
    /// The server said no, in the words of RFC 6749.
    Refused {
        /// Code: `invalid_grant`, `invalid_client`, `invalid_scope` and others.
        error: String,
        /// Explanation, unless it repeats a secret.
        description: Option<String>,
    },
    /// The device code was not used in time.
    Expired,
    /// The person said no.
    Denied,
    /// Response that violates the protocol, with the problem.
    Malformed(String),
    /// Too many requests.
    RateLimited {
        /// Wait that the server asks for.
        retry_after: Option<Duration>,
    },
    /// A status that this protocol gives no meaning, among them redirects, which are not followed.
    Server {
        /// The status.
        status: u16,
    },
}

impl OAuthError {
    /// Whether the same request may well succeed a little later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            OAuthError::Http(error) => error.is_transient(),
            OAuthError::RateLimited { .. } => true,
            OAuthError::Server { status } => *status >= 500,
            _ => false,
        }
    }
}

impl From<HttpError> for OAuthError {
    fn from(error: HttpError) -> Self {
        OAuthError::Http(error)
    }
}

impl fmt::Display for OAuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| text::shown(text::shortened(text, EXPLANATION));
        match self {
            OAuthError::Http(error) => error.fmt(f),
            OAuthError::Refused { error, description: None } => {
                write!(f, "the authorization server refused the request: {}", shown(error))
            }
            OAuthError::Refused { error, description: Some(description) } => {
                write!(
                    f,
                    "the authorization server refused the request: {} ({})",
                    shown(error),
                    shown(description)
                )
            }
            OAuthError::Expired => f.write_str("the device code expired"),
            OAuthError::Denied => f.write_str("access denied"),
            OAuthError::Malformed(what) => {
                write!(f, "invalid response from the authorization server: {}", shown(what))
            }
            OAuthError::RateLimited { retry_after: None } => {
                f.write_str("rate limit of the authorization server exceeded")
            }
            OAuthError::RateLimited { retry_after: Some(wait) } => {
                write!(f, "rate limit of the authorization server exceeded; retry in {} s", wait.as_secs())
            }
            OAuthError::Server { status } => {
                write!(f, "the authorization server returned status {status}")
            }
        }
    }
}

impl std::error::Error for OAuthError {}
