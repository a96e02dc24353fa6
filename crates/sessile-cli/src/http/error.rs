//! Errors of requests without a response.

use std::fmt;
use std::io;

use sessile::error::io_reason;
use sessile::text;

use super::{HttpAddress, UnreachableReason};

/// Failure without a response. Addresses are without user and query; request and body are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HttpError {
    /// Request that was not sent, with the reason.
    NotAllowed(String),
    /// No connection, or one that broke or could not be trusted.
    Unreachable {
        /// Requested action.
        url: String,
        /// Reason.
        reason: UnreachableReason,
    },
    /// Timed out.
    TimedOut {
        /// Requested action.
        url: String,
    },
    /// The answer is longer than any that makes sense.
    TooLarge {
        /// Requested action.
        url: String,
    },
}

impl HttpError {
    /// Error of a client failure.
    pub(super) fn new(address: &HttpAddress, error: ureq::Error) -> Self {
        let url = address.to_string();
        match error {
            ureq::Error::Timeout(_) => HttpError::TimedOut { url },
            ureq::Error::Io(error) if is_late(&error) => HttpError::TimedOut { url },
            ureq::Error::BodyExceedsLimit(_) | ureq::Error::LargeResponseHeader(..) => {
                HttpError::TooLarge { url }
            }
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                HttpError::Unreachable { url, reason: UnreachableReason::Refused(io_reason(&error)) }
            }
            ureq::Error::Io(error) => {
                let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
                HttpError::Unreachable {
                    url,
                    reason: tls.map_or_else(|| io_reason(&error).into(), untrusted),
                }
            }
            ureq::Error::Rustls(error) => HttpError::Unreachable { url, reason: untrusted(&error) },
            ureq::Error::Protocol(error) if !address.is_https() && is_no_http(&error.to_string()) => {
                HttpError::Unreachable { url, reason: UnreachableReason::NotHttp }
            }
            // These repeat the address.
            ureq::Error::BadUri(_) | ureq::Error::RequireHttpsOnly(_) => {
                HttpError::Unreachable { url, reason: "invalid address".into() }
            }
            // A header is what may be odd in a request, and it may be a credential.
            ureq::Error::Http(_) => {
                HttpError::NotAllowed(format!("{url} refused: a header contains an invalid character"))
            }
            other => HttpError::Unreachable { url, reason: other.to_string().into() },
        }
    }

    /// Whether the same request may well succeed a little later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            HttpError::Unreachable { reason, .. } => reason.is_transient(),
            HttpError::TimedOut { .. } => true,
            HttpError::NotAllowed(_) | HttpError::TooLarge { .. } => false,
        }
    }
}

/// Reason of a failed TLS handshake. Rustls words some of these cases for programmers.
fn untrusted(error: &rustls::Error) -> UnreachableReason {
    use rustls::{CertificateError, Error};
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            UnreachableReason::UntrustedIssuer { ca_file: ca_file() }
        }
        Error::InvalidCertificate(CertificateError::Other(other))
            // rustls passes this case of webpki on as an opaque error.
            if format!("{other:?}").contains("CaUsedAsEndEntity") =>
        {
            UnreachableReason::AuthorityCertificate
        }
        Error::InvalidMessage(_) => UnreachableReason::NotTls,
        other => other.to_string().into(),
    }
}

/// File of CA certificates that the user chose.
#[expect(
    clippy::disallowed_methods,
    reason = "the crate that loads CA certificates reads the process's variable too"
)]
fn ca_file() -> Option<String> {
    let file = std::env::var_os("SSL_CERT_FILE").filter(|file| !file.is_empty())?;
    Some(file.to_string_lossy().into_owned())
}

/// Whether an answer does not even begin as one of HTTP.
fn is_no_http(why: &str) -> bool {
    why.starts_with("http parse fail")
}

fn is_late(error: &io::Error) -> bool {
    // A socket whose read timeout has passed reports EAGAIN on Linux.
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpError::NotAllowed(why) => f.write_str(&text::shown(why)),
            HttpError::Unreachable { url, reason } => {
                write!(f, "cannot reach {}: {}", text::shown(url), text::shown(reason))
            }
            HttpError::TimedOut { url } => write!(f, "{} timed out", text::shown(url)),
            HttpError::TooLarge { url } => write!(f, "the response of {} is too large", text::shown(url)),
        }
    }
}

impl std::error::Error for HttpError {}
