//! Metadata of authorization servers (RFC 8414, and OpenID Connect Discovery).

use super::OAuthError;
use super::fields::{JsonFields, required};
use crate::http::{HttpAddress, HttpClient, HttpError};

/// Endpoints of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoints {
    /// Issuer.
    pub(crate) issuer: String,
    /// Token endpoint.
    pub(crate) token_url: String,
    /// Device authorization endpoint, if any.
    pub(crate) device_url: Option<String>,
    /// Revocation endpoint, if any.
    pub(crate) revocation_url: Option<String>,
    /// Introspection endpoint, if any.
    pub(crate) introspection_url: Option<String>,
}

/// Asks an issuer for its endpoints. Nothing that names another issuer is believed, nor an endpoint that is less
/// protected than the issuer.
pub(crate) fn discover(http: &HttpClient, issuer: &str) -> Result<Endpoints, OAuthError> {
    let address = HttpAddress::parse(issuer)?;
    // RFC 8414, 2: an issuer has no query and no fragment.
    if issuer.contains(['?', '#']) {
        let why = format!("invalid issuer {address}: an issuer has no query and no fragment");
        return Err(HttpError::NotAllowed(why).into());
    }
    let mut told = None;
    for url in places(issuer, &address) {
        let answer = http.get(&url, &[("accept", "application/json")])?;
        match answer.status {
            200 => {}
            429 => return Err(OAuthError::RateLimited { retry_after: answer.retry_after }),
            500.. => return Err(OAuthError::Server { status: answer.status }),
            _ => continue,
        }
        // Many servers have a page for every path: what is none of this is as good as not found.
        match JsonFields::read(&answer.body).and_then(|fields| read(&fields, issuer, &address)) {
            Ok(endpoints) => return Ok(endpoints),
            Err(error) => told = told.or(Some(error)),
        }
    }
    Err(told.unwrap_or_else(|| {
        OAuthError::Malformed(format!("no metadata found at {address} under /.well-known/"))
    }))
}

/// Well-known URLs of the metadata: one comes between host and path, the other after them.
fn places(issuer: &str, address: &HttpAddress) -> [String; 2] {
    let issuer = issuer.trim_end_matches('/');
    let path = address.uri().path().trim_end_matches('/');
    let host = issuer.strip_suffix(path).unwrap_or(issuer);
    [
        format!("{host}/.well-known/oauth-authorization-server{path}"),
        format!("{issuer}/.well-known/openid-configuration"),
    ]
}

fn read(fields: &JsonFields<'_>, issuer: &str, address: &HttpAddress) -> Result<Endpoints, OAuthError> {
    // RFC 8414, 3.3: otherwise one server could claim the clients of another.
    if required("issuer", fields.text("issuer")?)? != issuer {
        return Err(OAuthError::Malformed(
            "the issuer in the metadata differs from the requested one".to_owned(),
        ));
    }
    let endpoint = |name: &str| match fields.text(name)? {
        Some(url) if address.is_https() && !HttpAddress::parse(&url)?.is_https() => {
            Err(OAuthError::Malformed(format!("{name} is not an https URL")))
        }
        Some(url) => HttpAddress::parse(&url).map(|_| Some(url)).map_err(OAuthError::from),
        None => Ok(None),
    };
    Ok(Endpoints {
        issuer: issuer.to_owned(),
        token_url: required("token_endpoint", endpoint("token_endpoint")?)?,
        device_url: endpoint("device_authorization_endpoint")?,
        revocation_url: endpoint("revocation_endpoint")?,
        introspection_url: endpoint("introspection_endpoint")?,
    })
}

#[cfg(test)]
mod tests {
    use sessile::vault::Secret;

    use super::*;

    fn judged(issuer: &str, document: &str) -> Result<Endpoints, String> {
        let document = Secret::new(document);
        let address = HttpAddress::parse(issuer).unwrap();
        read(&JsonFields::read(&document).unwrap(), issuer, &address).map_err(|error| error.to_string())
    }

    #[test]
    fn well_known_locations_are_both_tried() {
        for (issuer, oauth, openid) in [
            (
                "https://id.example",
                "https://id.example/.well-known/oauth-authorization-server",
                "https://id.example/.well-known/openid-configuration",
            ),
            (
                "https://id.example:8443/realms/one/",
                "https://id.example:8443/.well-known/oauth-authorization-server/realms/one",
                "https://id.example:8443/realms/one/.well-known/openid-configuration",
            ),
        ] {
            assert_eq!(places(issuer, &HttpAddress::parse(issuer).unwrap()), [oauth, openid]);
        }
    }

    #[test]
    fn metadata_with_foreign_issuer_or_plain_http_is_refused() {
        let issuer = "https://id.example";
        let good = r#"{"issuer": "https://id.example", "token_endpoint": "https://id.example/t"}"#;
        assert_eq!(judged(issuer, good).unwrap().token_url, "https://id.example/t");
        for (document, told) in [
            (r#"{"token_endpoint": "https://id.example/t"}"#, "issuer is missing"),
            (
                &good.replace("id.example\",", "id.example/\","),
                "the issuer in the metadata differs from the requested one",
            ),
            (r#"{"issuer": "https://id.example"}"#, "token_endpoint is missing"),
            (
                &good.replace("https://id.example/t", "http://localhost/t"),
                "token_endpoint is not an https URL",
            ),
            (
                &good.replace("https://id.example/t", "http://id.example/t"),
                "credentials are sent over https only",
            ),
            (
                &good.replace('}', r#", "device_authorization_endpoint": "file:///x"}"#),
                "not a URL of the form https://HOST/PATH",
            ),
        ] {
            let found = judged(issuer, document).unwrap_err();
            assert!(found.ends_with(told), "{found}");
        }
        let local = r#"{"issuer": "http://localhost:1", "token_endpoint": "http://localhost:1/t"}"#;
        assert_eq!(judged("http://localhost:1", local).unwrap().token_url, "http://localhost:1/t");
    }
}
