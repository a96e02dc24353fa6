//! One open conversation.

use std::collections::VecDeque;

use sessile_wire::a2a::{AgentCard, Part};

use super::composer::Composer;
use super::transcript::Transcript;
use crate::agent_session::{Continuation, ConversationSelector};
use crate::chat::engine::{ConversationScope, JobHandle, TabId};
use crate::chat::model::ChatConversation;

/// Lines of the wire log that are kept.
const MOST_WIRE_LINES: usize = 2_000;

/// One open conversation.
#[derive(Debug)]
pub(super) struct ChatTab {
    /// Number that events carry.
    pub(super) id: TabId,
    /// Name or URL of the agent.
    pub(super) agent: String,
    /// Session or context of the conversation.
    pub(super) scope: ConversationScope,
    /// Selection of the conversation before its first message.
    pub(super) start: ConversationSelector,
    /// Conversation.
    pub(super) chat: ChatConversation,
    /// Rows of the conversation.
    pub(super) transcript: Transcript,
    /// Message that is being written.
    pub(super) composer: Composer,
    /// Parts that the next message carries.
    pub(super) attachments: Vec<Part>,
    /// Message or task that is followed.
    pub(super) exchange: Option<JobHandle>,
    /// Cancellation that is under way.
    pub(super) cancel: Option<JobHandle>,
    /// Task to follow once the conversation is loaded.
    pub(super) watch: Option<String>,
    /// Whether the conversation is still being loaded.
    pub(super) is_loading: bool,
    /// Rows between the last one and the bottom of the view; 0 follows the reply.
    pub(super) scroll: usize,
    /// Lines of the wire log.
    pub(super) wire: VecDeque<String>,
    /// Card of the agent, once it was fetched.
    pub(super) card: Option<AgentCard>,
    /// Whether something arrived while another tab was active.
    pub(super) is_unread: bool,
}

impl ChatTab {
    /// Tab of a conversation with an agent.
    pub(super) fn new(
        id: TabId,
        agent: String,
        scope: ConversationScope,
        start: ConversationSelector,
    ) -> Self {
        ChatTab {
            id,
            agent,
            scope,
            start,
            chat: ChatConversation::default(),
            transcript: Transcript::default(),
            composer: Composer::default(),
            attachments: Vec::new(),
            exchange: None,
            cancel: None,
            watch: None,
            is_loading: false,
            scroll: 0,
            wire: VecDeque::new(),
            card: None,
            is_unread: false,
        }
    }

    /// Whether the tab has the conversation that a selection means.
    pub(super) fn is_of(&self, agent: &str, scope: &ConversationScope, start: &ConversationSelector) -> bool {
        match &start.continued {
            Some(Continuation::Id(id)) => self.chat.ids.conversation.as_ref() == Some(id),
            Some(Continuation::Last) => false,
            None => {
                let is_plain = |start: &ConversationSelector| !start.new && start.name.is_none();
                let is_last = is_plain(start) && is_plain(&self.start) && self.start.continued.is_none();
                is_last && self.agent == agent && self.scope == *scope
            }
        }
    }

    /// Adds a line to the wire log.
    pub(super) fn push_wire(&mut self, line: String) {
        if self.wire.len() == MOST_WIRE_LINES {
            self.wire.pop_front();
        }
        self.wire.push_back(line);
    }

    /// Mark of the tab: a question, a running reply, or something unread.
    pub(super) fn mark(&self) -> &'static str {
        match () {
            () if self.chat.question().is_some() => "?",
            () if self.exchange.is_some() => "*",
            () if self.is_unread => "+",
            () => "",
        }
    }

    /// Label of the agent.
    pub(super) fn label(&self) -> &str {
        self.agent.split_once("://").map_or(self.agent.as_str(), |(_, rest)| rest)
    }
}
