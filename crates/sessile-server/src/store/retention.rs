//! Rows that a store deletes after a time.

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

/// Rows that a sweep deletes, user by user.
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

/// One pass over a user's rows of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Sweep {
    /// Rows that the sweep deletes.
    pub kind: SweepKind,
    /// Time before which rows are deleted, in milliseconds since 1970.
    pub before_ms: i64,
    /// Time of the sweep.
    pub now_ms: i64,
}

/// Bounds of one deletion.
#[derive(Clone, Copy, Debug)]
pub struct SweepLimit {
    /// Time before which rows are deleted, in milliseconds since 1970.
    pub before_ms: i64,
    /// Rows that are deleted at once, at most.
    pub most: i64,
}

/// Days for which a store that is created now keeps sessions after their end.
const KEEP_SESSIONS_DAYS: i64 = 30;

/// Setting of a store with the retention of its sessions, in milliseconds.
pub(super) const KEEP_SESSIONS: (&str, i64) = ("keep_sessions_ms", KEEP_SESSIONS_DAYS * 86_400_000);
