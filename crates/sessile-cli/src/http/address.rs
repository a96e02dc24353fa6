//! Addresses that a credential may be sent to.

use std::fmt;

use sessile::text;
use sessile_wire::address::{AddressError, HttpOrigin};
use ureq::http::Uri;

use super::HttpError;

/// URL of `https`, or of `http` on this machine or where the user allows it. It is displayed without its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpAddress {
    uri: Uri,
    origin: HttpOrigin,
}

impl HttpAddress {
    /// Parses a URL, and refuses those that nothing may be sent to.
    pub(crate) fn parse(url: &str) -> Result<Self, HttpError> {
        HttpAddress::parse_within(url, None)
    }

    /// Parses a URL of plain `http`, also to another machine. No credential may be sent there.
    pub(crate) fn parse_plain(url: &str) -> Result<Self, HttpError> {
        let origin = HttpOrigin::of_url(url).ok();
        HttpAddress::parse_within(url, origin.as_ref())
    }

    /// Parses a URL that this address leads to: its own origin may be one of plain `http`, if this one is.
    pub(crate) fn parse_beside(&self, url: &str) -> Result<Self, HttpError> {
        HttpAddress::parse_within(url, Some(&self.origin))
    }

    /// Parses a URL of a secure origin, or of this one.
    fn parse_within(url: &str, plain: Option<&HttpOrigin>) -> Result<Self, HttpError> {
        // The text itself is not repeated: it may hold a password in a form that is not recognised as one.
        let malformed = || HttpError::NotAllowed("not a URL of the form https://HOST/PATH".to_owned());
        let uri: Uri = url.parse().map_err(|_| malformed())?;
        // Parsers disagree about white space, and the one that sends must not see another host.
        if uri.authority().is_none() || url.contains(char::is_whitespace) {
            return Err(malformed());
        }
        let refuse = |why: &str| HttpError::NotAllowed(format!("{} refused: {why}", without_query(&uri)));
        match HttpOrigin::of_url(url) {
            Ok(origin) if origin.is_secure() || Some(&origin) == plain => Ok(HttpAddress { uri, origin }),
            Ok(_) | Err(AddressError::Insecure) => Err(refuse("credentials are sent over https only")),
            Err(AddressError::UserInfo) => Err(refuse("user names and passwords are not allowed in URLs")),
            Err(AddressError::Scheme) => Err(refuse("the scheme is not https")),
            Err(AddressError::Malformed | AddressError::Host | AddressError::Port) => Err(malformed()),
        }
    }

    /// Whether the host is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.origin.is_loopback()
    }

    /// Whether requests are protected by TLS.
    pub(crate) fn is_https(&self) -> bool {
        self.origin.is_https()
    }

    /// Whether the request is encrypted, or stays on this machine.
    pub(crate) fn is_secure(&self) -> bool {
        self.origin.is_secure()
    }

    /// Whether both have the same scheme, host and port.
    pub(crate) fn is_same_origin(&self, other: &HttpAddress) -> bool {
        self.origin == other.origin
    }

    /// Target of a redirect whose `Location` is this.
    pub(crate) fn join(&self, location: &str) -> Result<Self, HttpError> {
        // A fragment is not sent to a server.
        let location = location.split('#').next().unwrap_or_default();
        let scheme = self.uri.scheme_str().unwrap_or_default();
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let path = self.uri.path();
        // A relative location may hold `://` in its query.
        let is_absolute = location.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        });
        if is_absolute {
            self.parse_beside(location)
        } else if location.starts_with("//") {
            self.parse_beside(&format!("{scheme}:{location}"))
        } else if location.starts_with('/') {
            self.parse_beside(&format!("{scheme}://{authority}{location}"))
        } else if location.is_empty() || location.starts_with('?') {
            self.parse_beside(&format!("{scheme}://{authority}{path}{location}"))
        } else {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            self.parse_beside(&format!("{scheme}://{authority}{directory}/{location}"))
        }
    }

    /// Components of the URL.
    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }
}

impl fmt::Display for HttpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_query(&self.uri))
    }
}

/// URL without user name, password and query, which may be secret.
fn without_query(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    // From the right: a password may hold an `@`.
    let host = authority.rsplit('@').next().unwrap_or_default();
    text::shown(format_args!("{scheme}://{host}{}", uri.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_and_this_machine_are_allowed() {
        for url in ["https://id.example/token?x=1", "https://127.0.0.1", "HTTPS://ID.EXAMPLE:8443/"] {
            assert!(HttpAddress::parse(url).unwrap().is_https(), "{url}");
        }
        for url in ["http://localhost:1/a", "http://LOCALHOST", "http://127.9.8.7:80/", "http://[::1]:9/"] {
            let address = HttpAddress::parse(url).unwrap();
            assert!(address.is_loopback() && !address.is_https(), "{url}");
        }
        assert!(!HttpAddress::parse("https://localhost.example/").unwrap().is_loopback());
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
            assert!(matches!(HttpAddress::parse(url), Err(HttpError::NotAllowed(_))), "{url}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let at = |url: &str| HttpAddress::parse(url).unwrap();
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
    fn redirect_location_resolves_against_its_request() {
        let here = HttpAddress::parse("https://a.example:8443/one/two?q=1").unwrap();
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
    fn password_and_query_are_not_printed() {
        let address = HttpAddress::parse("https://id.example:8443/token?code=hunter2#hunter2").unwrap();
        assert_eq!(address.to_string(), "https://id.example:8443/token");
        for url in
            ["https://ada:hunter2@id.example/x?hunter2", "http://a@hunter2@b", "hunter2", "!://hunter2"]
        {
            let told = HttpAddress::parse(url).unwrap_err().to_string();
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
}
