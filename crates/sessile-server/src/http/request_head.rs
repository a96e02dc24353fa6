//! Heads of requests, checked before anything else happens: their size and their `Host`.

use axum::http::{HeaderMap, StatusCode, Uri, Version, header};
use sessile::Code;

use super::problem::ApiProblem;

/// The largest head that is accepted, counted as the bytes of its target, names and values.
pub(crate) const MOST_BYTES: usize = 32 << 10;

/// Refuses a head that is too large, or without exactly one valid host.
pub(super) fn check(version: Version, target: &Uri, headers: &HeaderMap) -> Result<(), ApiProblem> {
    let target = target.path_and_query().map_or(0, |target| target.as_str().len());
    // The four bytes are the colon, the space and the line end, as the line was sent.
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if target + bytes > MOST_BYTES {
        let detail = format!("the head of the request is larger than {MOST_BYTES} bytes");
        return Err(ApiProblem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, Code::InvalidValue, detail));
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        // HTTP/1.0 has no Host; 1.1 requires exactly one (RFC 9112, 3.2).
        (None, _) if version < Version::HTTP_11 => Ok(()),
        (None, _) => Err(ApiProblem::usage("the Host header is missing")),
        (Some(_), Some(_)) => Err(ApiProblem::usage("duplicate Host header")),
        (Some(host), None) => {
            let is_host =
                // An empty Host is valid where the target has no authority (RFC 9112, 3.2).
                |text: &str| text.is_empty() || sessile_wire::address::Authority::parse(text).is_ok();
            if host.to_str().is_ok_and(is_host) {
                Ok(())
            } else {
                Err(ApiProblem::usage("the Host header is not a valid HOST or HOST:PORT"))
            }
        }
    }
}
