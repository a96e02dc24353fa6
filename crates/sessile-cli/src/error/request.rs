//! Errors of requests to servers.

use std::time::Duration;

use sessile::error::Diagnostic;
use sessile::text::{quoted, shell_quoted, shown};
use sessile::{App, Code};

use crate::http::UnreachableReason;

/// Errors of requests to servers.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Server that cannot be reached.
    #[error("cannot reach {}: {}", shown(what), shown(reason))]
    Unreachable {
        /// URL or name of the server.
        what: String,
        /// Reason, which also chooses the hint.
        reason: UnreachableReason,
    },
    /// Rate limit of a server.
    #[error("{}: rate limit exceeded", shown(what))]
    RateLimited {
        /// URL or name of the server.
        what: String,
        /// Time to wait before a retry.
        wait: Option<Duration>,
    },
    /// Timeout of a request or a login.
    #[error("{what} timed out")]
    TimedOut {
        /// Operation, as the subject of a sentence.
        what: String,
    },
    /// Credential that a server rejected.
    #[error("{site} rejected credential {} (status {status})", quoted(name))]
    CredentialRejected {
        /// Name of the credential.
        name: String,
        /// Origin of the server.
        site: String,
        /// HTTP status.
        status: u16,
        /// Kind of the credential.
        kind: &'static str,
        /// Whether the credential is a token for this call only, which the vault does not have.
        is_for_this_call: bool,
    },
    /// Login that a server refused.
    #[error("{}: {}", shown(site), shown(reason))]
    LoginRefused {
        /// URL or name of the server.
        site: String,
        /// Message of the server.
        reason: String,
    },
}

impl RequestError {
    /// Error for a server that cannot be reached.
    pub(crate) fn unreachable(what: impl Into<String>, reason: impl Into<UnreachableReason>) -> Self {
        RequestError::Unreachable { what: what.into(), reason: reason.into() }
    }
}

impl Diagnostic for RequestError {
    fn code(&self) -> Code {
        match self {
            Self::CredentialRejected { .. } => Code::CredentialRejected,
            Self::Unreachable { .. } => Code::Unreachable,
            Self::RateLimited { .. } => Code::RateLimited,
            Self::LoginRefused { .. } => Code::LoginRefused,
            Self::TimedOut { .. } => Code::TimedOut,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::CredentialRejected { name: credential, kind: "oauth2", .. } => {
                format!("log in again: {name} auth login {}", shell_quoted(credential))
            }
            Self::CredentialRejected { kind: "command" | "env", .. } => {
                "renew the credential at its source".to_owned()
            }
            Self::CredentialRejected { is_for_this_call: true, .. } => {
                "pass another token for this call".to_owned()
            }
            Self::CredentialRejected { name: credential, .. } => {
                format!("set a new secret: {name} auth set {}", shell_quoted(credential))
            }
            Self::Unreachable { reason, .. } => return reason.hint(),
            _ => return None,
        })
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { wait, .. } => *wait,
            _ => None,
        }
    }
}
