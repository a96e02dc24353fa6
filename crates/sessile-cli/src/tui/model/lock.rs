//! Locks as rows, one for each holder.

use std::cmp::Ordering;

use super::listing::{ListRow, RowFilter};
use super::time::parse_rfc3339;
use crate::view::LockView;

/// A holder of a lock.
#[derive(Clone, Debug)]
pub(crate) struct LockRow {
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) mode: &'static str,
    pub(crate) token: i64,
    pub(crate) holder: String,
    pub(crate) since_ms: i64,
    /// End of the lease; none for a lock that lasts as long as its command.
    pub(crate) until_ms: Option<i64>,
    pub(crate) waiting: i64,
}

impl LockRow {
    /// Rows of a lock.
    pub(crate) fn of(lock: &LockView) -> impl Iterator<Item = LockRow> {
        lock.holds().map(|hold| LockRow {
            key: format!("{} {}", lock.name, hold.token),
            name: lock.name.clone(),
            mode: lock.mode_word(),
            token: hold.token,
            holder: hold.holder,
            since_ms: parse_rfc3339(hold.since).unwrap_or_default(),
            until_ms: hold.expires_at.and_then(parse_rfc3339),
            waiting: lock.waiting(),
        })
    }
}

impl ListRow for LockRow {
    const ORDERS: &'static [&'static str] = &["name", "age", "waiters"];

    fn key(&self) -> &str {
        &self.key
    }

    fn matches(&self, filter: &RowFilter) -> bool {
        filter.matches(&[&self.name, self.mode, &self.holder], &[])
    }

    fn compare(&self, other: &Self, order: usize, _now_ms: i64) -> Ordering {
        let by_name = || self.key.cmp(&other.key);
        match order {
            1 => self.since_ms.cmp(&other.since_ms).then_with(by_name),
            2 => other.waiting.cmp(&self.waiting).then_with(by_name),
            _ => by_name(),
        }
    }
}
