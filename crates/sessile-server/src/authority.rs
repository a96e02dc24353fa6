//! Hosts and ports, as `Host` and `Origin` and URLs have them.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::uri;

/// A host with an optional port, and nothing else: no user name, no text after a bracket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    host: String,
    port: Option<u16>,
}

impl Authority {
    /// Parses `HOST`, `HOST:PORT` or either with an IPv6 address in brackets.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parsed: uri::Authority = text.parse().ok()?;
        let host = parsed.host();
        if host.is_empty() {
            return None;
        }
        let is_valid = match bare(host) {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => !host.contains(['[', ']', '@']),
        };
        // The parser accepts anything between a bracket and the port.
        let port = match text.strip_prefix(host)? {
            "" => None,
            rest => match rest.strip_prefix(':')? {
                "" => None,
                digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
                _ => return None,
            },
        };
        is_valid.then(|| Authority { host: host.to_ascii_lowercase(), port })
    }

    /// Whether the host is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        match bare(&self.host) {
            Some(address) => address.parse().is_ok_and(|ip: Ipv6Addr| ip.is_loopback()),
            None => self.host == "localhost" || self.host.parse().is_ok_and(|ip: Ipv4Addr| ip.is_loopback()),
        }
    }

    /// Whether both are the same host and port, where no port means the scheme's.
    pub(crate) fn is_same(&self, other: &Authority, scheme: &str) -> bool {
        let usual = match scheme {
            "https" => Some(443),
            "http" => Some(80),
            _ => None,
        };
        self.host == other.host && self.port.or(usual) == other.port.or(usual)
    }
}

/// An address without its brackets.
fn bare(host: &str) -> Option<&str> {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
}

#[cfg(test)]
mod tests {
    use super::Authority;

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
            assert_eq!(Authority::parse(text), None, "{text}");
        }
        for text in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:9", "[::1]", "[::1]:8737"] {
            assert!(Authority::parse(text).is_some_and(|authority| authority.is_loopback()), "{text}");
        }
        for text in ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "[::2]", "sessile-1:8737"]
        {
            assert!(Authority::parse(text).is_some_and(|authority| !authority.is_loopback()), "{text}");
        }
    }
}
