//! Origins of HTTP servers, and the rule which of them may receive a credential: those of `https`, and loopback.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Reason why a text is not the address of a server, or of one that may receive a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// Text that is not an absolute URL.
    Malformed,
    /// Scheme other than `http` and `https`.
    Scheme,
    /// User name or password in front of the host.
    UserInfo,
    /// Host that is neither a name nor an IP address.
    Host,
    /// Port that is not a number from 0 to 65535.
    Port,
    /// `http` to another machine: everybody on the way can read the request.
    Insecure,
}

/// Scheme of a URL that requests can be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UrlScheme {
    /// Plain text.
    Http,
    /// TLS.
    Https,
}

impl UrlScheme {
    /// Name of the scheme in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            UrlScheme::Http => "http",
            UrlScheme::Https => "https",
        }
    }

    /// Port of a URL that names none.
    pub fn default_port(self) -> u16 {
        match self {
            UrlScheme::Http => 80,
            UrlScheme::Https => 443,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [UrlScheme::Http, UrlScheme::Https]
            .into_iter()
            .find(|scheme| text.eq_ignore_ascii_case(scheme.as_str()))
    }
}

/// Host and optional port, as in a URL and in the headers `Host` and `Origin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    host: String,
    port: Option<u16>,
}

impl Authority {
    /// Parses `HOST`, `HOST:PORT`, or either with an IPv6 address in brackets. Text in any other place is refused: lenient
    /// parsers take `[::1]evil.example` for `[::1]`.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        // Before the host is looked at: `a@b` names host `b`.
        if text.contains('@') {
            return Err(AddressError::UserInfo);
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']').ok_or(AddressError::Host)?;
                address.parse::<Ipv6Addr>().map_err(|_| AddressError::Host)?;
                let port = match port {
                    "" => "",
                    port => port.strip_prefix(':').ok_or(AddressError::Host)?,
                };
                (&text[..address.len() + 2], port)
            }
            None => {
                let (host, port) = text.split_once(':').unwrap_or((text, ""));
                if host.is_empty() || !host.bytes().all(is_name_byte) {
                    return Err(AddressError::Host);
                }
                (host, port)
            }
        };
        let port = match port {
            "" => None,
            // `parse` would also accept a leading `+`.
            port if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(port.parse().map_err(|_| AddressError::Port)?)
            }
            _ => return Err(AddressError::Port),
        };
        // Hosts are case-insensitive (RFC 3986, 3.2.2).
        Ok(Authority { host: host.to_ascii_lowercase(), port })
    }

    /// Whether the host is this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }

    /// Whether both are the same host and port, where no port means the default port of the scheme.
    pub fn is_same(&self, other: &Authority, scheme: &str) -> bool {
        let default = UrlScheme::parse(scheme).map(UrlScheme::default_port);
        self.host == other.host && self.port.or(default) == other.port.or(default)
    }
}

/// Scheme, host and port, which identify the server of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HttpOrigin {
    scheme: UrlScheme,
    host: String,
    port: u16,
}

impl HttpOrigin {
    /// Origin of an `http` or `https` URL.
    pub fn of_url(url: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = url.split_once("://").ok_or(AddressError::Malformed)?;
        let scheme = UrlScheme::parse(scheme).ok_or(AddressError::Scheme)?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let Authority { host, port } = Authority::parse(authority)?;
        Ok(HttpOrigin { scheme, host, port: port.unwrap_or(scheme.default_port()) })
    }

    /// Origin of a URL that may receive a credential.
    pub fn of_secure_url(url: &str) -> Result<Self, AddressError> {
        let origin = HttpOrigin::of_url(url)?;
        if origin.is_secure() { Ok(origin) } else { Err(AddressError::Insecure) }
    }

    /// Same origin in its canonical spelling: the shortest form of an IPv6 address, no dot at the end of a name.
    pub fn normalized(mut self) -> Self {
        // One address has many spellings, and a credential's sites are compared as text.
        if let Some(Ok(address)) = unbracketed(&self.host).map(str::parse::<Ipv6Addr>) {
            self.host = format!("[{address}]");
        // A trailing dot names the same host.
        } else if self.host.ends_with('.') {
            self.host.pop();
        }
        self
    }

    /// Scheme.
    pub fn scheme(&self) -> UrlScheme {
        self.scheme
    }

    /// Host in lower case; an IPv6 address has its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port, also where the URL names none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether requests are protected by TLS.
    pub fn is_https(&self) -> bool {
        self.scheme == UrlScheme::Https
    }

    /// Whether the host is this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }

    /// Whether a credential may be sent to the origin: the connection is encrypted or local.
    pub fn is_secure(&self) -> bool {
        self.is_https() || self.is_loopback()
    }
}

impl fmt::Display for HttpOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HttpOrigin { scheme, host, port } = self;
        write!(f, "{}://{host}", scheme.as_str())?;
        // As people and browsers write it, so that equal origins have equal texts.
        if *port == scheme.default_port() { Ok(()) } else { write!(f, ":{port}") }
    }
}

/// Address between brackets.
pub fn unbracketed(host: &str) -> Option<&str> {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
}

/// Whether a host is this machine. Only spellings that every resolver reads alike count: `127.1` does not.
fn is_loopback(host: &str) -> bool {
    match unbracketed(host) {
        Some(address) => address.parse().is_ok_and(|ip: Ipv6Addr| ip.is_loopback()),
        None => {
            // RFC 6761 (6.3) reserves the name for loopback addresses.
            host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback())
        }
    }
}

/// Whether a byte is valid in a host name: unreserved characters and delimiters of RFC 3986, no percent-encoding.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn https_and_loopback_are_secure() {
        for url in ["https://id.example/token?x=1", "https://127.0.0.1", "HTTPS://ID.EXAMPLE:8443/"] {
            assert!(HttpOrigin::of_secure_url(url).unwrap().is_https(), "{url}");
        }
        for url in ["http://localhost:1/a", "http://LOCALHOST", "http://127.9.8.7:80/", "http://[::1]:9/"] {
            let origin = HttpOrigin::of_secure_url(url).unwrap();
            assert!(origin.is_loopback() && !origin.is_https(), "{url}");
        }
        assert!(!HttpOrigin::of_url("https://localhost.example/").unwrap().is_loopback());
    }

    #[test]
    fn other_addresses_are_refused_with_their_reason() {
        use AddressError::{Host, Insecure, Malformed, Port, Scheme, UserInfo};
        for (url, reason) in [
            ("http://id.example/token", Insecure),
            ("http://localhost.example/", Insecure),
            ("http://127.0.0.1.example/", Insecure),
            ("http://127.1/", Insecure),
            ("http://2130706433/", Insecure),
            ("http://[::ffff:127.0.0.1]/", Insecure),
            ("http://[::2]/", Insecure),
            ("http://0.0.0.0/", Insecure),
            ("http://id.example#@localhost/", Insecure),
            ("http://localhost@id.example/", UserInfo),
            ("http://id.example\\@localhost/", UserInfo),
            ("https://ada:hunter2@id.example/token", UserInfo),
            ("http://[::1]evil.example/", Host),
            ("http://[::1/", Host),
            ("https://", Host),
            ("https:///token", Host),
            ("https://a b/", Host),
            ("https://caf\u{e9}.example", Host),
            ("https://a%2eb", Host),
            ("https://a:99999", Port),
            ("https://a:-1", Port),
            ("https://a:1:2", Port),
            ("ftp://localhost/", Scheme),
            ("file:///etc/passwd", Scheme),
            ("javascript:alert(1)", Malformed),
            ("/token", Malformed),
            ("id.example", Malformed),
            ("", Malformed),
        ] {
            assert_eq!(HttpOrigin::of_secure_url(url), Err(reason), "{url}");
        }
    }

    #[test]
    fn origins_are_equal_by_scheme_host_and_port() {
        let origin = |url: &str| HttpOrigin::of_url(url).unwrap();
        for (one, two) in [
            ("https://a.example/x", "https://A.EXAMPLE:443/y?z"),
            ("http://localhost:80/", "http://localhost/"),
            ("http://[::1]:7/", "http://[::1]:7/a"),
        ] {
            assert_eq!(origin(one), origin(two));
        }
        for (one, two) in [
            ("https://a.example/", "https://b.example/"),
            ("https://a.example/", "https://a.example:8443/"),
            ("https://localhost:80/", "http://localhost:80/"),
            ("http://localhost/", "http://127.0.0.1/"),
        ] {
            assert_ne!(origin(one), origin(two));
        }
    }

    #[test]
    fn normalized_origin_has_one_spelling() {
        let shown = |url: &str| HttpOrigin::of_url(url).unwrap().normalized().to_string();
        assert_eq!(shown("https://API.example.com.:443/v1"), "https://api.example.com");
        assert_eq!(shown("http://[0:0::1]:80/"), "http://[::1]");
        assert_eq!(shown("http://localhost:8000"), "http://localhost:8000");
    }

    #[test]
    fn authority_with_anything_beside_host_and_port_is_refused() {
        for text in [
            "",
            "[::1]evil.example",
            "[::1].evil.example:80",
            "localhost@evil.example",
            "localhost:1@evil.example",
            "localhost:port",
            "localhost:99999",
            "localhost/x",
            "a b",
            "[evil.example]",
            "[::1",
            "::1",
            ":80",
        ] {
            assert!(Authority::parse(text).is_err(), "{text}");
        }
        for text in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:9", "[::1]", "[::1]:8737"] {
            assert!(Authority::parse(text).is_ok_and(|authority| authority.is_loopback()), "{text}");
        }
        for text in ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "[::2]", "sessile-1:8737"]
        {
            assert!(Authority::parse(text).is_ok_and(|authority| !authority.is_loopback()), "{text}");
        }
    }
}
