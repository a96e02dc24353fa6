//! Sends requests to agents: headers, credentials, redirects.

use serde_json::Value;
use sessile::vault::Secret;
use ureq::http::Method;
use zeroize::Zeroizing;

use super::authorize::{Authorize, Credential};
use super::error::A2aError;
use super::limits::Limits;
use crate::http::{Address, Coming, Http, Patience, Sending, form};

/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// What every request of a conversation has in common.
pub(super) struct Wire<'a> {
    pub(super) http: &'a Http,
    pub(super) auth: &'a dyn Authorize,
    /// Headers that the user asked for. They may be secret, and so go only to the origin that the user named.
    pub(super) extra: &'a [(String, Secret)],
    /// The address that the user named.
    pub(super) named: &'a Address,
    pub(super) limits: Limits,
}

/// One request.
pub(super) struct Asking<'a> {
    pub(super) method: Method,
    pub(super) address: Address,
    /// Headers that say nothing secret.
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Option<&'a Value>,
    pub(super) patience: Patience,
    /// Whether it may be asked of another origin, without credentials: for cards.
    pub(super) may_leave: bool,
}

impl Wire<'_> {
    /// Asks, and follows redirects as far as that is safe. The answer has any status but that of a redirect.
    pub(super) fn ask(&self, mut asking: Asking<'_>) -> Result<Coming, A2aError> {
        let body = asking.body.map(|body| Zeroizing::new(body.to_string()));
        let mut left = false;
        for _ in 0..=REDIRECTS {
            let coming = self.once(&asking, body.as_deref().map(String::as_bytes), left)?;
            if !matches!(coming.status, 301 | 302 | 303 | 307 | 308) {
                return Ok(coming);
            }
            let refuse = |reason| A2aError::Redirected { url: asking.address.to_string(), reason };
            let there = coming.header("location").ok_or_else(|| refuse("it does not say where to"))?;
            let there = asking.address.join(&there)?;
            let keeps_method = matches!(coming.status, 307 | 308);
            if asking.method != Method::GET && !keeps_method {
                return Err(refuse("what was sent would be lost"));
            }
            if !there.is_same_origin(&asking.address) {
                if !asking.may_leave {
                    return Err(refuse("it is another origin"));
                }
                left = true;
            }
            asking.address = there;
        }
        let reason = "there are too many redirects";
        Err(A2aError::Redirected { url: asking.address.to_string(), reason })
    }

    fn once(&self, asking: &Asking<'_>, body: Option<&[u8]>, left: bool) -> Result<Coming, A2aError> {
        let mut credentials = Vec::new();
        if !left {
            let url = asking.address.uri().to_string();
            let had = self.auth.credentials_for(&url);
            credentials = had.map_err(|error| A2aError::Credential(Box::new(error)))?;
        }
        let mut headers: Vec<(&str, &str)> = Vec::new();
        headers.extend(asking.headers.iter().map(|(name, value)| (*name, value.as_str())));
        if body.is_some() {
            headers.push(("content-type", "application/json"));
        }
        if !left && self.named.is_same_origin(&asking.address) {
            headers.extend(self.extra.iter().map(|(name, value)| (name.as_str(), value.expose())));
        }
        let mut cookies = Zeroizing::new(String::new());
        let mut address = None;
        for credential in &credentials {
            match credential {
                Credential::Header(name, secret) => headers.push((name, secret.expose())),
                Credential::Query(name, secret) => {
                    address = Some(with_query(address.as_ref().unwrap_or(&asking.address), name, secret)?);
                }
                Credential::Cookie(name, secret) => {
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
        let address = address.as_ref().unwrap_or(&asking.address);
        let sending = Sending { method: asking.method.clone(), address, headers: &headers, body };
        Ok(self.http.exchange(&sending, asking.patience)?)
    }
}

/// The address with one more pair in its query.
fn with_query(address: &Address, name: &str, secret: &Secret) -> Result<Address, A2aError> {
    let pair = form(&[(name, secret.expose())]);
    let separator = if address.uri().query().is_some() { "&" } else { "?" };
    let url = Zeroizing::new(format!("{}{separator}{}", address.uri(), *pair));
    Ok(Address::parse(&url)?)
}
