//! Where a browser says that a request comes from. A page that somebody opened must not talk to a service on their machine:
//! not by its address, and not by a name of its own that leads to that address.

use std::net::IpAddr;

use axum::http::{HeaderMap, StatusCode, header};
use sessile::Code;

use crate::http::{Problem, header as one};

/// Lets through what comes from no page, from a page of this machine, or, where TLS or a proxy vouches for the name that the
/// service is asked by, from a page of that name.
pub(super) fn check(headers: &HeaderMap, has_name: bool) -> Result<(), Problem> {
    let Some(origin) = one(headers, header::ORIGIN.as_str())? else { return Ok(()) };
    let refused = Problem::new(
        StatusCode::FORBIDDEN,
        Code::Usage,
        "pages of another origin are not answered: send no `Origin`, or that of this service",
    );
    let Some((_, authority)) = origin.split_once("://") else { return Err(refused) };
    if is_this_machine(authority) {
        return Ok(());
    }
    let host = one(headers, header::HOST.as_str())?;
    let is_own = has_name && host.is_some_and(|host| host.eq_ignore_ascii_case(authority));
    if is_own { Ok(()) } else { Err(refused) }
}

fn is_this_machine(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
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
        assert!(!lets("https://service.example:444", "service.example", true));
    }
}
