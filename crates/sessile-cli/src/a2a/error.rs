//! Failures of requests to an agent.

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use sessile::text;
use sessile_wire::a2a::{CallError, RpcError, RpcErrorKind, SecurityScheme};

use super::sent_secrets::SentSecrets;
use crate::http::{HttpError, HttpResponse};

/// Failure of a request to an agent. `Display` sanitizes the texts of the agent.
#[derive(Debug)]
pub(crate) enum A2aError {
    /// No card at this URL.
    NotAnAgent {
        /// URL that was requested.
        url: String,
    },
    /// Card without a supported interface.
    NoUsableInterface {
        /// Interfaces of the card.
        offered: Vec<String>,
    },
    /// URL of an interface in the card that requests cannot be sent to.
    InvalidInterface {
        /// URL in the card.
        url: String,
        /// Reason.
        reason: String,
    },
    /// Extensions that the agent requires and the call does not declare.
    ExtensionsRequired {
        /// URIs of the extensions.
        uris: Vec<String>,
    },
    /// Operation that the agent's card does not offer.
    NotOffered {
        /// Name of the operation.
        operation: &'static str,
    },
    /// Task in a state that no version of the protocol has.
    UndefinedState {
        /// Word of the agent.
        state: String,
    },
    /// Failure of the transport.
    Http(HttpError),
    /// Credential that is not available.
    Credential(Box<sessile::Error>),
    /// Request without a valid credential.
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// URL that was requested.
        url: String,
        /// Header `WWW-Authenticate`.
        challenge: Option<String>,
        /// Whether the request carried a credential.
        had_credential: bool,
        /// Authentication schemes of the card, if it is known.
        schemes: Vec<SecurityScheme>,
    },
    /// Error that the agent returned.
    Rpc(RpcError),
    /// Response that cannot be parsed.
    Malformed(String),
    /// Redirect that was not followed.
    Redirected {
        /// URL that was requested.
        url: String,
        /// Reason why it was not followed.
        reason: &'static str,
    },
    /// Response that exceeds the size limit.
    TooLarge {
        /// URL that was requested.
        url: String,
    },
    /// Request that timed out.
    TimedOut {
        /// URL that was requested.
        url: String,
    },
    /// Rate limit exceeded.
    RateLimited {
        /// Delay before a retry, if the agent names one.
        retry_after: Option<Duration>,
    },
    /// Failure of the server.
    Server {
        /// HTTP status.
        status: u16,
        /// URL that was requested.
        url: String,
        /// Begin of the body, on one line; empty if it is not text.
        body: String,
    },
}

impl A2aError {
    /// Kind of the error that the agent returned, if it is one.
    pub(crate) fn rpc_error_kind(&self) -> Option<RpcErrorKind> {
        match self {
            A2aError::Rpc(error) => Some(error.kind),
            _ => None,
        }
    }

    /// Error of a response with a status other than 2xx. The body is parsed, up to a limit.
    pub(super) fn of_response(mut coming: HttpResponse, had_credential: bool) -> Self {
        let (status, url) = (coming.status, coming.address().to_string());
        match status {
            401 | 403 => {
                let challenge = coming.header("www-authenticate");
                let schemes = Vec::new();
                return A2aError::Unauthorized { status, url, challenge, had_credential, schemes };
            }
            429 => return A2aError::RateLimited { retry_after: coming.retry_after() },
            _ => {}
        }
        // An error that cannot be read to its end is still an error with a status.
        let text = coming.read_all(1 << 20).unwrap_or_default();
        let body = sessile::json::from_slice::<Value>(&text).ok();
        match body.and_then(|body| RpcError::of_response(status, &body)) {
            Some(error) => A2aError::Rpc(error),
            None if status >= 500 => A2aError::Server { status, url, body: first_words(&text) },
            None => A2aError::Rpc(RpcError::of_status(status, format!("HTTP status {status}"))),
        }
    }

    /// The same error with no secret that the agent repeats.
    pub(super) fn redacted(mut self, secrets: &SentSecrets) -> Self {
        match &mut self {
            // These were cut, maybe in the middle of a secret.
            A2aError::Malformed(text) | A2aError::Server { body: text, .. } => {
                *text = secrets.redact_excerpt(text);
            }
            A2aError::Unauthorized { challenge: Some(text), .. }
            | A2aError::UndefinedState { state: text } => {
                *text = secrets.redact(text);
            }
            A2aError::Rpc(error) => {
                for text in std::iter::once(&mut error.message).chain(&mut error.reason) {
                    *text = secrets.redact(text);
                }
            }
            _ => {}
        }
        self
    }

    /// The same error with the authentication schemes of the card, where they explain it.
    pub(super) fn with_schemes(mut self, card: &[SecurityScheme]) -> Self {
        if let A2aError::Unauthorized { schemes, .. } = &mut self {
            *schemes = card.to_vec();
        }
        self
    }

    /// Error of input that cannot be parsed, with an excerpt of it.
    pub(crate) fn malformed(what: &str, said: &[u8]) -> Self {
        // Cut before it is decoded: the answer may have megabytes.
        let beginning = String::from_utf8_lossy(&said[..said.len().min(400)]);
        let excerpt = text::shown(text::shortened(beginning.trim(), 80));
        A2aError::Malformed(match excerpt.is_empty() {
            true => format!("{what}: empty"),
            false => format!("{what}: {excerpt}"),
        })
    }
}

impl From<CallError> for A2aError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::InvalidId(id) => A2aError::Malformed(format!("invalid id {}", text::quoted(id))),
            CallError::Unsupported => A2aError::Rpc(RpcError {
                kind: RpcErrorKind::UnsupportedOperation,
                code: None,
                message: CallError::Unsupported.to_string(),
                reason: None,
            }),
        }
    }
}

impl From<HttpError> for A2aError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::TimedOut { url } => A2aError::TimedOut { url },
            HttpError::TooLarge { url } => A2aError::TooLarge { url },
            other => A2aError::Http(other),
        }
    }
}

impl fmt::Display for A2aError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| text::shown(text::shortened(text, 400));
        match self {
            A2aError::NotAnAgent { url } => write!(f, "no agent card found at {}", shown(url)),
            A2aError::NoUsableInterface { offered } if offered.is_empty() => {
                f.write_str("the agent's card names no interface")
            }
            A2aError::NoUsableInterface { offered } => {
                write!(f, "none of the agent's interfaces is supported: {}", shown(&offered.join(", ")))
            }
            A2aError::InvalidInterface { url, reason } => {
                write!(
                    f,
                    "invalid interface URL {} in the agent's card: {}",
                    text::quoted(url),
                    shown(reason)
                )
            }
            A2aError::ExtensionsRequired { uris } => {
                write!(f, "the agent requires the extension {}", shown(&uris.join(", ")))
            }
            A2aError::NotOffered { operation } => {
                write!(f, "the agent does not support {operation}, as its card says")
            }
            A2aError::UndefinedState { state } => {
                write!(f, "the task is in an unknown state: {}", text::quoted(text::shortened(state, 80)))
            }
            A2aError::Http(error) => error.fmt(f),
            A2aError::Credential(error) => error.fmt(f),
            A2aError::Unauthorized { status: 403, url, .. } => {
                write!(f, "{} denied the request: the credential lacks the permission", shown(url))
            }
            A2aError::Unauthorized { url, .. } => write!(f, "{} requires a credential", shown(url)),
            A2aError::Rpc(error) => f.write_str(&rpc_error_text(error)),
            A2aError::Malformed(why) => f.write_str(&shown(why)),
            A2aError::Redirected { url, reason } => {
                write!(f, "refusing the redirect of {}: {reason}", shown(url))
            }
            A2aError::TooLarge { url } => write!(f, "the response of {} is too large", shown(url)),
            A2aError::TimedOut { url } => write!(f, "{} timed out", shown(url)),
            A2aError::RateLimited { retry_after: Some(wait) } => {
                write!(f, "the agent's rate limit is exceeded; retry in {} s", wait.as_secs())
            }
            A2aError::RateLimited { retry_after: None } => f.write_str("the agent's rate limit is exceeded"),
            A2aError::Server { status, url, body } if body.is_empty() => {
                write!(f, "{} failed with HTTP status {status}", shown(url))
            }
            A2aError::Server { status, url, body } => {
                write!(f, "{} failed with HTTP status {status}: {body}", shown(url))
            }
        }
    }
}

/// Begin of a body for an error message: words on one line, sanitized and shortened.
fn first_words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(2000)]);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text::shown(text::shortened(&words, 200))
}

/// Message of an agent's error. The text of the agent is sanitized and shortened.
fn rpc_error_text(error: &RpcError) -> String {
    let message = text::shown(text::shortened(&error.message, 400));
    match error.code {
        Some(code) if message.is_empty() => format!("the agent refused the request (code {code})"),
        Some(code) => format!("the agent refused the request: {message} (code {code})"),
        None if message.is_empty() => "the agent refused the request".to_owned(),
        None => format!("the agent refused the request: {message}"),
    }
}

impl std::error::Error for A2aError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn agent_message_is_sanitized_and_shortened() {
        let error = json!({"code": 1, "message": format!("\u{1b}[31m{}", "x".repeat(10_000))});
        let told = A2aError::Rpc(RpcError::read(&error)).to_string();
        assert!(told.len() < 500 && !told.contains('\u{1b}'), "{told}");
    }
}
