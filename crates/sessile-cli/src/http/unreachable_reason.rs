//! Reasons why a server cannot be reached, and their hints.

use std::fmt;

/// Reason why a server cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnreachableReason {
    /// Certificate of an issuer that is not trusted.
    UntrustedIssuer,
    /// Certificate of an authority, used as that of a server.
    AuthorityCertificate,
    /// Answer that is not HTTP.
    NotHttp,
    /// Answer that is not TLS.
    NotTls,
    /// Reason in the words of the system, of TLS or of the server.
    Other(String),
}

impl UnreachableReason {
    /// Next step, if the server responded but was not understood or not trusted.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::UntrustedIssuer => Some(
                "if the authority is your own, name its certificate: SSL_CERT_FILE=ca.pem; then those in the file count and \
                 no others",
            ),
            Self::AuthorityCertificate => Some(
                "one that signs itself must say basicConstraints CA:FALSE; name it then: SSL_CERT_FILE=cert.pem",
            ),
            Self::NotHttp => Some("it may speak TLS: say https:// instead of http://"),
            Self::NotTls => Some("it may speak no TLS: say http:// instead of https://, on this machine"),
            Self::Other(_) => None,
        }
    }
}

impl fmt::Display for UnreachableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UntrustedIssuer => {
                "invalid peer certificate: no authority that is trusted here has signed it"
            }
            Self::AuthorityCertificate => {
                "invalid peer certificate: it is one for an authority and not for a server"
            }
            Self::NotHttp => "it does not answer as HTTP does",
            Self::NotTls => "it does not answer as TLS does",
            Self::Other(reason) => reason,
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
