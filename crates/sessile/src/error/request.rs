//! Errors of requests to servers.

use std::time::Duration;

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::{quoted, shell_quoted, shown};

/// Errors of requests to servers.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// A server that cannot be reached.
    #[error("{} cannot be reached: {}", shown(what), shown(reason))]
    Unreachable {
        /// The server.
        what: String,
        /// Why.
        reason: String,
    },
    /// A server that wants to be left alone for a while.
    #[error("{} has had enough requests for now", shown(what))]
    RateLimited {
        /// The server.
        what: String,
        /// How long.
        wait: Option<Duration>,
    },
    /// Something that took longer than it was given.
    #[error("{what} was not finished in time")]
    TimedOut {
        /// What.
        what: String,
    },
    /// A server that said no to a credential.
    #[error("{site} does not accept credential {} (status {status})", quoted(name))]
    CredentialRejected {
        /// The credential.
        name: String,
        /// The server.
        site: String,
        /// The HTTP status.
        status: u16,
        /// Its kind.
        kind: &'static str,
    },
    /// A login that gave nothing.
    #[error("{}: {}", shown(site), shown(reason))]
    LoginRefused {
        /// The server.
        site: String,
        /// Why.
        reason: String,
    },
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
                "renew it where it is from".to_owned()
            }
            Self::CredentialRejected { name: credential, .. } if credential == "this-call" => {
                "give another token for this call".to_owned()
            }
            Self::CredentialRejected { name: credential, .. } => {
                format!("put a new one in: {name} auth set {}", shell_quoted(credential))
            }
            Self::Unreachable { reason, .. } => return unreachable(reason).map(str::to_owned),
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

/// What may help where a server is there and is not understood or not believed, by the words of the client.
fn unreachable(reason: &str) -> Option<&'static str> {
    const REMEDIES: &[(&str, &str)] = &[
        (
            "no authority that is trusted here has signed it",
            "if the authority is your own, name its certificate: SSL_CERT_FILE=ca.pem; then those in the file count and no others",
        ),
        (
            "it is one for an authority and not for a server",
            "one that signs itself must say basicConstraints CA:FALSE; name it then: SSL_CERT_FILE=cert.pem",
        ),
        ("it does not answer as HTTP does", "it may speak TLS: say https:// instead of http://"),
        (
            "it does not answer as TLS does",
            "it may speak no TLS: say http:// instead of https://, on this machine",
        ),
    ];
    REMEDIES.iter().find(|(said, _)| reason.contains(said)).map(|(_, remedy)| *remedy)
}
