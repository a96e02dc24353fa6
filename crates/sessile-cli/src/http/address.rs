//! Addresses that a credential may be sent to.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use sessile::text;
use ureq::http::Uri;

use super::HttpError;

/// An address of `https`, or of `http` on this machine. Anything else cannot be one.
///
/// It is shown without its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    uri: Uri,
    loopback: bool,
}

impl Address {
    /// Takes an address apart, and refuses those that nothing may be sent to.
    pub(crate) fn parse(url: &str) -> Result<Self, HttpError> {
        // The text itself is not repeated: it may hold a password in a form that is not recognised as one.
        let odd = || HttpError::NotAllowed("this is not an address of the form https://HOST/PATH".to_owned());
        let uri: Uri = url.parse().map_err(|_| odd())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(odd()) };
        if authority.host().is_empty() || url.contains(char::is_whitespace) {
            return Err(odd());
        }
        let (scheme, user) = (scheme.to_owned(), authority.as_str().contains('@'));
        let address = Address { loopback: is_loopback(authority.host()), uri };
        let refuse = |why: &str| Err(HttpError::NotAllowed(format!("{address} is not asked: {why}")));
        match scheme.as_str() {
            _ if user => refuse("a user name or password has no place in an address"),
            "https" => Ok(address),
            "http" if address.loopback => Ok(address),
            "http" => refuse("without https, whoever is in between would see the credential"),
            _ => refuse("its scheme is not https"),
        }
    }

    /// Whether it is on this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.loopback
    }

    /// Whether TLS protects it.
    pub(crate) fn is_https(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// Its parts.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let host = authority.rsplit('@').next().unwrap_or_default();
        f.write_str(&text::shown(format_args!("{scheme}://{host}{}", self.uri.path())))
    }
}

fn is_loopback(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.parse().is_ok_and(|ip: Ipv6Addr| ip.is_loopback());
    }
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_and_this_machine_are_allowed() {
        for url in ["https://id.example/token?x=1", "https://127.0.0.1", "HTTPS://ID.EXAMPLE:8443/"] {
            assert!(Address::parse(url).unwrap().is_https(), "{url}");
        }
        for url in ["http://localhost:1/a", "http://LOCALHOST", "http://127.9.8.7:80/", "http://[::1]:9/"] {
            let address = Address::parse(url).unwrap();
            assert!(address.is_loopback() && !address.is_https(), "{url}");
        }
        assert!(!Address::parse("https://localhost.example/").unwrap().is_loopback());
    }

    #[test]
    fn anything_else_is_refused() {
        for url in [
            "http://id.example/token",
            "http://localhost.example/",
            "http://127.0.0.1.example/",
            "http://127.1/",
            "http://2130706433/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::2]/",
            "http://0.0.0.0/",
            "http://localhost@id.example/",
            "http://id.example#@localhost/",
            "http://id.example\\@localhost/",
            "https://ada:hunter2@id.example/token",
            "ftp://localhost/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://",
            "https:///token",
            "https://id.example/a b",
            "https://id.example/\n",
            "/token",
            "id.example",
            "",
        ] {
            assert!(matches!(Address::parse(url), Err(HttpError::NotAllowed(_))), "{url}");
        }
    }

    #[test]
    fn neither_password_nor_query_is_shown() {
        let address = Address::parse("https://id.example:8443/token?code=hunter2#hunter2").unwrap();
        assert_eq!(address.to_string(), "https://id.example:8443/token");
        for url in
            ["https://ada:hunter2@id.example/x?hunter2", "http://a@hunter2@b", "hunter2", "!://hunter2"]
        {
            let told = Address::parse(url).unwrap_err().to_string();
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
}
