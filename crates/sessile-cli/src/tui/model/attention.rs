//! Things that need a person.

use sessile::session::lifecycle::Lifecycle;

use super::context::RequestRow;
use super::conversation::AgentRow;
use super::session::SessionItem;
use super::time::countdown;

/// ListRow that an item is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AttentionTarget {
    /// Context by name.
    Context(String),
    /// Conversation by id.
    Conversation(String),
    /// Session by id.
    Session(String),
    /// Credential by name, which no pane shows.
    Credential(String),
}

/// Something that needs a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttentionItem {
    pub(crate) text: String,
    pub(crate) target: AttentionTarget,
}

/// Items that are made. The others are counted: thousands of sessions may expire soon.
const MOST_ITEMS: usize = 100;

/// Things that need a person, the most urgent first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AttentionList {
    pub(crate) items: Vec<AttentionItem>,
    /// Number of things, those without an item included.
    pub(crate) total: usize,
}

impl AttentionList {
    fn push(&mut self, target: impl FnOnce() -> AttentionTarget, text: impl FnOnce() -> String) {
        self.total += 1;
        if self.items.len() < MOST_ITEMS {
            self.items.push(AttentionItem { text: text(), target: target() });
        }
    }
}

/// Things that need a person, the most urgent first: approval requests, questions of agents, drift, what expires soon.
pub(crate) fn attention(
    requests: &[RequestRow],
    agents: &[AgentRow],
    sessions: &[SessionItem],
    credentials: &[(String, i64)],
    now_ms: i64,
) -> AttentionList {
    let mut list = AttentionList::default();
    for request in requests {
        let session =
            || request.session.as_ref().map_or_else(String::new, |name| format!(" in session \"{name}\""));
        let (context, by) = (&request.context, &request.requested_by);
        list.push(
            || AttentionTarget::Context(context.clone()),
            || format!("approval of \"{context}\" requested by {by}{}: {}", session(), request.command),
        );
    }
    for row in agents.iter().filter(|row| row.needs_input) {
        list.push(
            || AttentionTarget::Conversation(row.key.clone()),
            || format!("{} requires input", row.name.as_deref().unwrap_or(&row.url)),
        );
    }
    let live = || sessions.iter().filter(|row| row.state == Lifecycle::Live);
    let target = |row: &SessionItem| AttentionTarget::Session(row.id.clone());
    for row in live().filter(|row| row.drift > 0) {
        list.push(|| target(row), || format!("session \"{}\" drifted from its context", row.label()));
    }
    for row in live().filter(|row| row.is_expiring(now_ms)) {
        let left = || countdown(row.remaining_ms(now_ms));
        list.push(|| target(row), || format!("session \"{}\" expires in {}", row.label(), left()));
    }
    for (name, end_ms) in credentials {
        let text = || match end_ms.saturating_sub(now_ms) {
            left if left > 0 => format!("credential \"{name}\" expires in {}", countdown(left)),
            _ => format!("credential \"{name}\" expired"),
        };
        list.push(|| AttentionTarget::Credential(name.clone()), text);
    }
    list
}
