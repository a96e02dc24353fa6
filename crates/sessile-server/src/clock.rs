//! The time, as the service counts it.

/// Milliseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the service has no world that is handed in; this is its one clock"
)]
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
