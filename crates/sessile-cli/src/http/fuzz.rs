//! Fuzz target: addresses that users and servers give.

use super::address::HttpAddress;

/// An address, and a redirect from it.
pub fn address(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (url, location) = text.split_once('\n').unwrap_or((text, "/"));
    let Ok(address) = HttpAddress::parse(url) else { return };
    let host = address.uri().host().unwrap_or_default().to_ascii_lowercase();
    let is_local = host == "localhost" || host.ends_with(".localhost") || {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
    };
    assert!(!address.is_loopback() || is_local, "{url:?} counts as this machine, and its host is {host:?}");
    assert!(address.is_https() || address.is_loopback(), "{url:?} is neither https nor this machine");
    if let Ok(next) = address.join(location) {
        assert!(next.is_https() || next.is_loopback(), "{location:?} leads from {url:?} to {:?}", next.uri());
    }
}
