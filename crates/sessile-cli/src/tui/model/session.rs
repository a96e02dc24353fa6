//! Sessions as rows.

use std::cmp::Ordering;

use sessile::context::{Guard, anonymous};
use sessile::session::lifecycle::Lifecycle;

use super::listing::{ListRow, RowFilter};
use crate::view::SessionView;

/// Remaining time below which a session is about to expire.
const EXPIRING_MS: i64 = 10 * 60 * 1000;

/// A session of this machine or of a service.
#[derive(Clone, Debug)]
pub(crate) struct SessionItem {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) context: Option<String>,
    /// Guard of the context; none if the session has no context or its context was deleted.
    pub(crate) guard: Option<Guard>,
    pub(crate) state: Lifecycle,
    pub(crate) owner: String,
    /// Programs that run in it, with their pids.
    pub(crate) running: Vec<String>,
    pub(crate) started_ms: i64,
    pub(crate) used_ms: i64,
    pub(crate) idle_limit_ms: i64,
    pub(crate) max_ms: i64,
    /// Number of pinned values that a command has moved.
    pub(crate) drift: usize,
    /// Whether it is the session of this terminal.
    pub(crate) is_current: bool,
}

impl SessionItem {
    /// ListRow of a session that was looked at.
    pub(crate) fn new(view: &SessionView, now_ms: i64) -> Self {
        let agent = view.owner.agent.as_ref().map_or_else(String::new, |agent| format!(" ({agent})"));
        SessionItem {
            id: view.id.clone(),
            name: view.name.clone(),
            context: view.context.as_deref().map(anonymous::label),
            guard: None,
            state: view.state,
            owner: format!("{}@{}{agent}", view.owner.user, view.owner.host),
            running: view.running.iter().map(|one| format!("{}[{}]", one.program, one.process.pid)).collect(),
            started_ms: view.started_ms,
            used_ms: now_ms.saturating_sub(view.idle_ms),
            idle_limit_ms: view.idle_limit_ms,
            max_ms: view.max_ms,
            drift: 0,
            is_current: false,
        }
    }

    /// Label for people: the name, else the id.
    pub(crate) fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }

    /// Idle time. A session in which something runs is not idle.
    pub(crate) fn idle_ms(&self, now_ms: i64) -> i64 {
        if self.running.is_empty() { now_ms.saturating_sub(self.used_ms).max(0) } else { 0 }
    }

    /// Time until it expires without another use.
    pub(crate) fn remaining_ms(&self, now_ms: i64) -> i64 {
        let by_age = self.max_ms.saturating_sub(now_ms.saturating_sub(self.started_ms));
        let by_idleness = self.idle_limit_ms.saturating_sub(self.idle_ms(now_ms));
        by_age.min(by_idleness).max(0)
    }

    /// Whole time that the remaining time is a part of.
    pub(crate) fn lifetime_ms(&self) -> i64 {
        self.idle_limit_ms.min(self.max_ms)
    }

    /// Whether it is live and expires soon.
    pub(crate) fn is_expiring(&self, now_ms: i64) -> bool {
        self.state == Lifecycle::Live && self.remaining_ms(now_ms) < EXPIRING_MS.min(self.lifetime_ms() / 4)
    }
}

impl ListRow for SessionItem {
    const ORDERS: &'static [&'static str] =
        &["newest first", "name", "context", "idle time", "remaining time"];

    fn key(&self) -> &str {
        &self.id
    }

    fn matches(&self, filter: &RowFilter) -> bool {
        let texts = [
            &*self.id,
            self.label(),
            self.context.as_deref().unwrap_or("-"),
            &self.owner,
            self.guard.map_or("", Guard::as_str),
            if self.drift > 0 { "drift" } else { "" },
            self.state.as_str(),
            if self.running.is_empty() { "idle" } else { "running" },
        ];
        filter.matches(&texts, &self.running)
    }

    fn compare(&self, other: &Self, order: usize, now_ms: i64) -> Ordering {
        let newest = || other.id.cmp(&self.id);
        match order {
            1 => self.label().cmp(other.label()).then_with(newest),
            2 => self.context.cmp(&other.context).then_with(newest),
            3 => other.idle_ms(now_ms).cmp(&self.idle_ms(now_ms)).then_with(newest),
            4 => self.remaining_ms(now_ms).cmp(&other.remaining_ms(now_ms)).then_with(newest),
            // Ids begin with the time of the start.
            _ => newest(),
        }
    }
}
