//! Reasons why a server cannot be reached, and their hints.

use std::fmt;

use sessile::text::shell_quoted;

/// Reason why a server cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnreachableReason {
    /// Certificate of an issuer that is not trusted.
    UntrustedIssuer {
        /// File of CA certificates that the user chose by `SSL_CERT_FILE`.
        ca_file: Option<String>,
    },
    /// Certificate of an authority, used as that of a server.
    AuthorityCertificate,
    /// Refused connection, in the words of the system.
    Refused(String),
    /// Answer that is not HTTP.
    NotHttp,
    /// Answer that is not TLS.
    NotTls,
    /// Reason in the words of the system, of TLS or of the server.
    Other(String),
}

impl UnreachableReason {
    /// Next step, if the server responded but was not understood or not trusted.
    pub(crate) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::UntrustedIssuer { ca_file: Some(file) } => {
                return Some(format!(
                    "SSL_CERT_FILE={} does not contain the CA of this server; add the CA's certificate to it",
                    shell_quoted(file)
                ));
            }
            Self::UntrustedIssuer { ca_file: None } => {
                "for a CA of your own, set SSL_CERT_FILE=ca.pem; it replaces the system's CA certificates"
            }
            Self::AuthorityCertificate => {
                "create the server certificate again with `openssl req -addext basicConstraints=critical,CA:FALSE`; then set SSL_CERT_FILE=cert.pem"
            }
            Self::NotHttp => "the server may require TLS: use https:// instead of http://",
            Self::NotTls => "the server may not support TLS: use http:// on this machine",
            Self::Refused(_) => "start the server, or check the host and the port of its URL",
            Self::Other(_) => return None,
        };
        Some(hint.to_owned())
    }

    /// Whether the same request may succeed a little later. A server that is not trusted or not understood stays so.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Other(_))
    }
}

impl fmt::Display for UnreachableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UntrustedIssuer { .. } => "invalid peer certificate: not signed by a trusted CA",
            Self::AuthorityCertificate => {
                "invalid peer certificate: a CA certificate, not a server certificate"
            }
            Self::NotHttp => "the response is not HTTP",
            Self::NotTls => "the response is not TLS",
            Self::Refused(reason) | Self::Other(reason) => reason,
        })
    }
}

impl From<String> for UnreachableReason {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

impl From<&str> for UnreachableReason {
    fn from(reason: &str) -> Self {
        Self::Other(reason.to_owned())
    }
}
