//! Addresses that a credential may be sent to.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use sessile::text;
use ureq::http::Uri;
use ureq::http::uri::Authority;

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
        if authority.host().is_empty() || url.contains(char::is_whitespace) || !is_host_and_port(authority) {
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

    /// Whether both are of one scheme, host and port.
    pub(crate) fn is_same_origin(&self, other: &Address) -> bool {
        self.is_https() == other.is_https()
            && self.port() == other.port()
            && match (self.uri.host(), other.uri.host()) {
                (Some(one), Some(two)) => one.eq_ignore_ascii_case(two),
                _ => false,
            }
    }

    fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(if self.is_https() { 443 } else { 80 })
    }

    /// Where a `Location` of its answer points to.
    pub(crate) fn join(&self, location: &str) -> Result<Self, HttpError> {
        let location = location.split('#').next().unwrap_or_default();
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let path = self.uri.path();
        let is_absolute = location.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        });
        if is_absolute {
            Address::parse(location)
        } else if location.starts_with("//") {
            Address::parse(&format!("{scheme}:{location}"))
        } else if location.starts_with('/') {
            Address::parse(&format!("{scheme}://{authority}{location}"))
        } else if location.is_empty() || location.starts_with('?') {
            Address::parse(&format!("{scheme}://{authority}{path}{location}"))
        } else {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            Address::parse(&format!("{scheme}://{authority}{directory}/{location}"))
        }
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

/// Whether nothing stands beside the host, the port and a user name: the parser accepts `[::1]evil.example` as `[::1]`.
fn is_host_and_port(authority: &Authority) -> bool {
    let text = authority.as_str();
    let text = text.rsplit_once('@').map_or(text, |(_, rest)| rest);
    match text.strip_prefix(authority.host()) {
        Some("" | ":") => true,
        Some(port) => port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok()),
        None => false,
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
    fn an_origin_is_scheme_host_and_port() {
        let at = |url: &str| Address::parse(url).unwrap();
        for (one, two) in [
            ("https://a.example/x", "https://A.EXAMPLE:443/y?z"),
            ("http://localhost:80/", "http://localhost/"),
            ("http://[::1]:7/", "http://[::1]:7/a"),
        ] {
            assert!(at(one).is_same_origin(&at(two)), "{one} {two}");
        }
        for (one, two) in [
            ("https://a.example/", "https://b.example/"),
            ("https://a.example/", "https://a.example:8443/"),
            ("https://localhost:80/", "http://localhost:80/"),
            ("http://localhost/", "http://127.0.0.1/"),
        ] {
            assert!(!at(one).is_same_origin(&at(two)), "{one} {two}");
        }
    }

    #[test]
    fn a_location_is_taken_from_where_it_was_said() {
        let here = Address::parse("https://a.example:8443/one/two?q=1").unwrap();
        for (location, there) in [
            ("https://b.example/x", "https://b.example/x"),
            ("//b.example/x", "https://b.example/x"),
            ("/x?y=1", "https://a.example:8443/x?y=1"),
            ("x", "https://a.example:8443/one/x"),
            ("?q=2", "https://a.example:8443/one/two?q=2"),
            ("x?to=http://c.example", "https://a.example:8443/one/x?to=http://c.example"),
        ] {
            assert_eq!(here.join(location).unwrap().uri().to_string(), there, "{location}");
        }
        for location in ["http://b.example/", "file:///etc/passwd", "//ada:hunter2@b.example/", "/a b"] {
            assert!(matches!(here.join(location), Err(HttpError::NotAllowed(_))), "{location}");
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
