//! HTTP transport of requests to agents: headers, credentials, redirects.

use std::cell::Cell;

use serde_json::Value;
use sessile::vault::Secret;
use ureq::http::Method;
use zeroize::Zeroizing;

use super::client::ClientOptions;
use super::credential_provider::{CredentialProvider, RequestCredential};
use super::error::A2aError;
use super::limits::ReplyLimits;
use super::sent_secrets::SentSecrets;
use crate::http::{HttpAddress, HttpClient, HttpRequest, HttpResponse, Timeouts, form};

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 5;

/// Transport of requests to one agent.
pub(super) struct Transport<'a> {
    pub(super) http: &'a HttpClient,
    pub(super) auth: &'a dyn CredentialProvider,
    /// Headers that the user asked for. They may be secret, and so go only to the origin that the user named.
    pub(super) extra: &'a [(String, Secret)],
    /// URL that the user named.
    pub(super) named: &'a HttpAddress,
    pub(super) limits: ReplyLimits,
    secrets: &'a SentSecrets,
    has_sent_credential: Cell<bool>,
}

/// HTTP request to an agent.
pub(super) struct TransportRequest<'a> {
    pub(super) method: Method,
    pub(super) address: HttpAddress,
    /// Headers without secrets.
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Option<&'a Value>,
    pub(super) patience: Timeouts,
    /// Whether a redirect may lead to another origin, without credentials: for cards.
    pub(super) may_leave_origin: bool,
}

impl<'a> Transport<'a> {
    pub(super) fn new(
        http: &'a HttpClient,
        auth: &'a dyn CredentialProvider,
        options: &'a ClientOptions,
        named: &'a HttpAddress,
    ) -> Self {
        let (extra, limits, secrets) = (&options.headers, options.limits, &*options.secrets);
        Transport { http, auth, extra, named, limits, secrets, has_sent_credential: Cell::new(false) }
    }

    /// Whether the last request carried a credential.
    pub(super) fn has_sent_credential(&self) -> bool {
        self.has_sent_credential.get()
    }

    /// Sends a request and follows redirects as far as that is safe. The response has any status but that of a redirect.
    pub(super) fn ask(&self, mut request: TransportRequest<'_>) -> Result<HttpResponse, A2aError> {
        // Serialized once, for all redirects; a push notification's token may be in it.
        let body = request.body.map(|body| Zeroizing::new(body.to_string()));
        if let Some(body) = request.body {
            self.secrets.add_fields(body);
        }
        let mut left = false;
        for _ in 0..=MAX_REDIRECTS {
            let coming = self.once(&request, body.as_deref().map(String::as_bytes), left)?;
            if !matches!(coming.status, 301 | 302 | 303 | 307 | 308) {
                return Ok(coming);
            }
            let refuse = |reason| A2aError::Redirected { url: request.address.to_string(), reason };
            let there = coming.header("location").ok_or_else(|| refuse("the Location header is missing"))?;
            // Parsed as every address is: a redirect to plain http on another machine is refused here.
            let there = request.address.join(&there)?;
            let keeps_method = matches!(coming.status, 307 | 308);
            // Clients turn a POST into a GET at 301, 302 and 303, and the message would be gone.
            if request.method != Method::GET && !keeps_method {
                return Err(refuse("a redirect with this status would drop the message"));
            }
            if !there.is_same_origin(&request.address) {
                if !request.may_leave_origin {
                    return Err(refuse("the target is another origin"));
                }
                // For good: a redirect back to the first origin was chosen by the other one.
                left = true;
            }
            request.address = there;
        }
        let reason = "too many redirects";
        Err(A2aError::Redirected { url: request.address.to_string(), reason })
    }

    fn once(
        &self,
        request: &TransportRequest<'_>,
        body: Option<&[u8]>,
        left: bool,
    ) -> Result<HttpResponse, A2aError> {
        let mut credentials = Vec::new();
        if !left {
            let url = request.address.uri().to_string();
            let had = self.auth.credentials_for(&url);
            credentials = had.map_err(|error| A2aError::Credential(Box::new(error)))?;
        }
        // A second lock besides the site rule of the vault.
        if !request.address.is_secure() {
            credentials.clear();
        }
        self.has_sent_credential.set(!credentials.is_empty());
        let mut headers: Vec<(&str, &str)> = Vec::new();
        headers.extend(request.headers.iter().map(|(name, value)| (*name, value.as_str())));
        if body.is_some() {
            headers.push(("content-type", "application/json"));
        }
        if !left && self.named.is_same_origin(&request.address) {
            headers.extend(self.extra.iter().map(|(name, value)| (name.as_str(), value.expose())));
        }
        // All cookies share one header (RFC 6265, 5.4).
        let mut cookies = Zeroizing::new(String::new());
        let mut address = None;
        for credential in &credentials {
            match credential {
                RequestCredential::Header(name, secret) => self.secrets.add_header(name, secret.expose()),
                RequestCredential::Query(_, secret) | RequestCredential::Cookie(_, secret) => {
                    self.secrets.add(secret.expose());
                }
            }
            match credential {
                RequestCredential::Header(name, secret) => headers.push((name, secret.expose())),
                RequestCredential::Query(name, secret) => {
                    address = Some(with_query(address.as_ref().unwrap_or(&request.address), name, secret)?);
                }
                RequestCredential::Cookie(name, secret) => {
                    let separator = if cookies.is_empty() { "" } else { "; " };
                    for piece in [separator, name, "=", secret.expose()] {
                        cookies.push_str(piece);
                    }
                }
            }
        }
        if !cookies.is_empty() {
            headers.push(("cookie", &cookies));
        }
        let address = address.as_ref().unwrap_or(&request.address);
        let sending = HttpRequest { method: request.method.clone(), address, headers: &headers, body };
        Ok(self.http.exchange(&sending, request.patience)?)
    }
}

/// URL with one more pair in its query.
fn with_query(address: &HttpAddress, name: &str, secret: &Secret) -> Result<HttpAddress, A2aError> {
    let pair = form(&[(name, secret.expose())]);
    let separator = if address.uri().query().is_some() { "&" } else { "?" };
    let url = Zeroizing::new(format!("{}{separator}{}", address.uri(), *pair));
    Ok(address.parse_beside(&url)?)
}
