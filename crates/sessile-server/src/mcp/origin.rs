//! Where a browser says that a request comes from. A page that somebody opened must not talk to a service on their machine:
//! not by its address, and not by a name of its own that leads to that address.

use axum::http::{HeaderMap, StatusCode, header};
use sessile::Code;
use sessile_wire::address::Authority;

use crate::http::{ApiProblem, header as one};

/// Allows requests without an origin, from a page of this machine, or from a page of the service's own name. The name
/// counts only if TLS or a proxy verifies it.
pub(super) fn check(headers: &HeaderMap, has_name: bool) -> Result<(), ApiProblem> {
    // Browsers send Origin with every POST; programs send none.
    let Some(origin) = one(headers, header::ORIGIN.as_str())? else { return Ok(()) };
    let refused = ApiProblem::new(
        StatusCode::FORBIDDEN,
        Code::Usage,
        "origin not allowed: send no `Origin`, or that of this service",
    );
    let Some((scheme, text)) = origin.split_once("://") else { return Err(refused) };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let Some(origin) = Authority::parse(text).ok().filter(|_| is_scheme) else { return Err(refused) };
    if origin.is_loopback() {
        return Ok(());
    }
    let host = one(headers, header::HOST.as_str())?.and_then(|host| Authority::parse(host).ok());
    // Without a vouched name the Host is whatever the page's DNS says (DNS rebinding).
    let is_own = has_name && host.is_some_and(|host| host.is_same(&origin, &scheme.to_ascii_lowercase()));
    if is_own { Ok(()) } else { Err(refused) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_pages_are_refused() {
        let lets = |origin: &str, host: &str, has_name: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, origin.parse().unwrap());
            headers.insert(header::HOST, host.parse().unwrap());
            check(&headers, has_name).is_ok()
        };
        assert!(check(&HeaderMap::new(), false).is_ok());
        for own in ["http://localhost:6274", "http://127.0.0.1", "https://[::1]:8080", "http://LOCALHOST"] {
            assert!(lets(own, "127.0.0.1:8737", false), "{own}");
        }
        for foreign in
            ["https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1.nip.io", ""]
        {
            assert!(!lets(foreign, "127.0.0.1:8737", false), "{foreign}");
            assert!(!lets(foreign, "service.example", true), "{foreign}");
        }
        // A name of the page's own that leads here.
        assert!(!lets("http://evil.example:8737", "evil.example:8737", false));
        assert!(lets("https://service.example", "service.example", true));
        assert!(lets("https://service.example", "service.example:443", true));
        assert!(!lets("https://service.example:444", "service.example", true));
        assert!(!lets("http://service.example", "service.example:443", true));
    }
}
