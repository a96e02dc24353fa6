//! Conversations and named agents as rows.

use std::cmp::Ordering;

use sessile::agents::Agent;

use super::listing::{ListRow, RowFilter};
use crate::agent_session::{Continuation, ConversationSelector};
use crate::chat::engine::ConversationScope;
use crate::view::ConversationView;

/// Kind of a row of the agents pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AgentRowKind {
    /// Conversation with an agent.
    Conversation,
    /// Agent that has a name.
    Agent,
}

/// A conversation, or an agent that has a name.
#[derive(Clone, Debug)]
pub(crate) struct AgentRow {
    pub(crate) kind: AgentRowKind,
    pub(crate) key: String,
    pub(crate) name: Option<String>,
    pub(crate) url: String,
    /// Session of the conversation; none for an agent, and after the end of the session.
    pub(crate) session: Option<String>,
    pub(crate) context: Option<String>,
    pub(crate) task_state: Option<String>,
    pub(crate) items: i64,
    pub(crate) used_at: String,
    /// Whether the agent waits for an answer of a person.
    pub(crate) needs_input: bool,
}

impl From<&ConversationView> for AgentRow {
    fn from(view: &ConversationView) -> Self {
        let task_state = view.task_state().map(|state| state.as_str().to_owned());
        AgentRow {
            kind: AgentRowKind::Conversation,
            key: view.id.clone(),
            name: view.name.clone(),
            url: view.agent_url.clone(),
            session: Some(view.session.clone()),
            context: view.context.clone(),
            needs_input: matches!(task_state.as_deref(), Some("input-required" | "auth-required")),
            task_state,
            items: view.items(),
            used_at: view.used_at().to_owned(),
        }
    }
}

impl From<&Agent> for AgentRow {
    fn from(agent: &Agent) -> Self {
        AgentRow {
            kind: AgentRowKind::Agent,
            key: format!("agent {}", agent.name.as_deref().unwrap_or(&agent.url)),
            name: agent.name.clone(),
            url: agent.url.clone(),
            session: None,
            context: None,
            task_state: None,
            items: 0,
            used_at: String::new(),
            needs_input: false,
        }
    }
}

impl AgentRow {
    /// Name or URL of the agent.
    pub(crate) fn agent(&self) -> String {
        match self.kind {
            AgentRowKind::Agent => self.name.clone().unwrap_or_else(|| self.url.clone()),
            AgentRowKind::Conversation => self.url.clone(),
        }
    }

    /// Session or context that a chat continues in.
    pub(crate) fn scope(&self) -> ConversationScope {
        ConversationScope::of_conversation(self.session.as_deref(), self.context.as_deref())
    }

    /// Conversation that a chat opens: this one, or the last one with the agent.
    pub(crate) fn start(&self) -> ConversationSelector {
        let continued = match self.kind {
            AgentRowKind::Agent => None,
            AgentRowKind::Conversation => Some(Continuation::Id(self.key.clone())),
        };
        ConversationSelector { continued, ..ConversationSelector::default() }
    }
}

impl ListRow for AgentRow {
    const ORDERS: &'static [&'static str] = &["last used", "agent"];

    fn key(&self) -> &str {
        &self.key
    }

    fn matches(&self, filter: &RowFilter) -> bool {
        let texts = [Some(&self.key), self.name.as_ref(), Some(&self.url)];
        let texts = texts.into_iter().chain([self.context.as_ref(), self.task_state.as_ref()]);
        filter.matches(&texts.flatten().map(String::as_str).collect::<Vec<_>>(), &[])
    }

    fn compare(&self, other: &Self, order: usize, _now_ms: i64) -> Ordering {
        let by_key = || self.key.cmp(&other.key);
        let newest =
            || self.kind.cmp(&other.kind).then_with(|| other.used_at.cmp(&self.used_at)).then_with(by_key);
        if order == 1 { self.url.cmp(&other.url).then_with(newest) } else { newest() }
    }
}
