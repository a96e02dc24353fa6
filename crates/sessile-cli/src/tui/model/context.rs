//! Contexts and approval requests as rows.

use std::cmp::Ordering;

use sessile::context::request::ApprovalRequest;
use sessile::context::{Bindings, Context, Guard};
use sessile::text::shell_quoted;

use super::listing::{ListRow, RowFilter};

/// A context.
#[derive(Clone, Debug)]
pub(crate) struct ContextRow {
    pub(crate) name: String,
    pub(crate) guard: Guard,
    /// Bindings as `TOOL.KEY=VALUE`.
    pub(crate) bindings: Vec<String>,
    pub(crate) description: String,
    pub(crate) home: &'static str,
    pub(crate) is_trusted: bool,
    pub(crate) is_current: bool,
    /// End of the active approval, in milliseconds since 1970.
    pub(crate) approved_until_ms: Option<i64>,
    /// Number of refused commands that wait for an approval.
    pub(crate) requests: usize,
    /// Number of live sessions that are pinned to it.
    pub(crate) sessions: usize,
    /// Error in its file.
    pub(crate) error: Option<String>,
}

impl ContextRow {
    /// ListRow of a context whose file was read.
    pub(crate) fn new(context: &Context) -> Self {
        let bound = |(tool, bindings): &(String, Bindings)| {
            let pairs = bindings.iter().map(|(key, value)| {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                format!("{tool}.{key}={value}")
            });
            pairs.collect::<Vec<_>>()
        };
        ContextRow {
            name: context.name.to_string(),
            guard: context.guard,
            bindings: context.tools.iter().flat_map(bound).collect(),
            description: context.shown_description().unwrap_or_default(),
            home: context.home.as_str(),
            is_trusted: context.trusted,
            is_current: false,
            approved_until_ms: None,
            requests: 0,
            sessions: 0,
            error: None,
        }
    }

    /// ListRow of a context whose file cannot be read.
    pub(crate) fn broken(name: String, error: String) -> Self {
        ContextRow {
            name,
            guard: Guard::None,
            bindings: Vec::new(),
            description: String::new(),
            home: "",
            is_trusted: true,
            is_current: false,
            approved_until_ms: None,
            requests: 0,
            sessions: 0,
            error: Some(error),
        }
    }

    /// Remaining time of the approval; none without an active approval.
    pub(crate) fn approval_left_ms(&self, now_ms: i64) -> Option<i64> {
        self.approved_until_ms.map(|until| until.saturating_sub(now_ms)).filter(|left| *left > 0)
    }
}

impl ListRow for ContextRow {
    const ORDERS: &'static [&'static str] = &["name", "guard", "sessions"];

    fn key(&self) -> &str {
        &self.name
    }

    fn matches(&self, filter: &RowFilter) -> bool {
        let texts = [&*self.name, self.guard.as_str(), &self.description, self.home];
        filter.matches(&texts, &self.bindings)
    }

    fn compare(&self, other: &Self, order: usize, _now_ms: i64) -> Ordering {
        let by_name = || self.name.cmp(&other.name);
        match order {
            1 => other.guard.cmp(&self.guard).then_with(by_name),
            2 => other.sessions.cmp(&self.sessions).then_with(by_name),
            _ => by_name(),
        }
    }
}

/// A command that was refused and waits for an approval.
#[derive(Clone, Debug)]
pub(crate) struct RequestRow {
    pub(crate) context: String,
    pub(crate) command: String,
    pub(crate) requested_by: String,
    pub(crate) session: Option<String>,
}

impl From<ApprovalRequest> for RequestRow {
    fn from(request: ApprovalRequest) -> Self {
        let words: Vec<String> = request.command.iter().map(|word| shell_quoted(word)).collect();
        RequestRow {
            context: request.context,
            command: words.join(" "),
            requested_by: request.requested_by,
            session: request.session,
        }
    }
}
