//! The time, as the service counts it.

use std::time::Duration;

use sessile::session::SessionId;

#[expect(
    clippy::disallowed_methods,
    reason = "the service has no world that is handed in; this is its one clock"
)]
fn now() -> Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    i64::try_from(now().as_millis()).unwrap_or(i64::MAX)
}

/// An id that was never used. Of two that one process makes one after the other, the second is the larger, though both are of
/// the same millisecond: what stands behind that is a fraction of it.
pub(crate) fn new_id() -> Result<String, sessile::Error> {
    let now = now();
    let id = SessionId::new(i64::try_from(now.as_millis()).unwrap_or(i64::MAX))?;
    let fraction = now.subsec_nanos() % 1_000_000 * 4096 / 1_000_000;
    let mut id = id.to_string();
    // Behind the version, as RFC 9562 has it.
    id.replace_range(15..18, &format!("{fraction:03x}"));
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::new_id;

    #[test]
    fn ids_that_are_made_one_after_the_other_are_in_order() {
        let mut before = new_id().unwrap();
        for _ in 0..1000 {
            std::thread::sleep(std::time::Duration::from_micros(1));
            let next = new_id().unwrap();
            assert!(before < next && next.as_bytes()[14] == b'7', "{before} {next}");
            before = next;
        }
    }
}
