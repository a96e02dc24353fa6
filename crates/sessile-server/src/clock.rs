//! Clock of the service.

use std::time::Duration;

use sessile_wire::id::ordered_uuid_v7;

#[expect(clippy::disallowed_methods, reason = "the service has no injected world; this is its only clock")]
fn now() -> Duration {
    // A clock before 1970 must not stop the service; it counts as 1970.
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    i64::try_from(now().as_millis()).unwrap_or(i64::MAX)
}

/// Id that was never used before, in the order of calls within this process.
pub(crate) fn new_id() -> Result<String, sessile::Error> {
    Ok(ordered_uuid_v7(now(), sessile::random::bytes()?))
}

#[cfg(test)]
mod tests {
    use super::new_id;

    #[test]
    fn consecutive_ids_are_in_order() {
        let mut before = new_id().unwrap();
        for _ in 0..1000 {
            std::thread::sleep(std::time::Duration::from_micros(1));
            let next = new_id().unwrap();
            assert!(before < next && next.as_bytes()[14] == b'7', "{before} {next}");
            before = next;
        }
    }
}
