//! What a store deletes after a time.

/// Rows that are deleted when they reach an age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiringRows {
    /// Outcomes of changes that were made under an idempotency key.
    Answered,
    /// Events of sessions.
    Events,
    /// The audit log.
    Audit,
}

/// What a sweep deletes, user by user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepKind {
    /// Rows that have reached an age.
    Rows(ExpiringRows),
    /// Sessions that ended or expired.
    Sessions,
}

impl SweepKind {
    /// Name of the kind in the store.
    pub(super) fn name(self) -> &'static str {
        match self {
            SweepKind::Rows(ExpiringRows::Answered) => "answered",
            SweepKind::Rows(ExpiringRows::Events) => "events",
            SweepKind::Rows(ExpiringRows::Audit) => "audit",
            SweepKind::Sessions => "sessions",
        }
    }
}

/// Days for which a store that is created now keeps sessions after their end.
const KEEP_SESSIONS_DAYS: i64 = 30;

/// Setting of a store with the retention of its sessions, in milliseconds.
pub(super) const KEEP_SESSIONS: (&str, i64) = ("keep_sessions_ms", KEEP_SESSIONS_DAYS * 86_400_000);
