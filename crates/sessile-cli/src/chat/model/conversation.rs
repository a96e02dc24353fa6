//! A conversation with one agent.

use sessile_wire::a2a::{AgentEvent, Part, TaskState};

use super::artifact::ChatArtifact;
use super::entry::{ChatEntry, EntryAuthor, EntryBlock};
use crate::agent_session::{Continuation, ConversationSelector};
use crate::chat::command::ArtifactRange;

/// Ids that a conversation is continued by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConversationIds {
    /// Conversation in the store; `None` if nothing is stored.
    pub(crate) conversation: Option<String>,
    /// Conversation at the agent.
    pub(crate) context_id: Option<String>,
    /// Last task.
    pub(crate) task_id: Option<String>,
}

/// View model of a conversation with one agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChatConversation {
    /// Entries, oldest first.
    pub(crate) entries: Vec<ChatEntry>,
    /// Ids.
    pub(crate) ids: ConversationIds,
    /// Name, if the user gave it one.
    pub(crate) name: Option<String>,
    /// State of the last task.
    pub(crate) task_state: Option<TaskState>,
    /// Number of earlier items in the store that are not loaded.
    pub(crate) earlier: usize,
}

impl ChatConversation {
    /// Adds a message of the user.
    pub(crate) fn push_sent(&mut self, parts: &[Part]) {
        let blocks = parts.iter().map(|part| match part {
            Part::Text(text) => EntryBlock::Text(text.clone()),
            part => EntryBlock::Part(part.clone()),
        });
        self.entries.push(ChatEntry::new(EntryAuthor::User, blocks.collect()));
    }

    /// Adds a note of this program.
    pub(crate) fn push_note(&mut self, text: impl Into<String>) {
        self.entries.push(ChatEntry::note(text.into(), false));
    }

    /// Adds a failure.
    pub(crate) fn push_failure(&mut self, text: impl Into<String>) {
        self.entries.push(ChatEntry::note(text.into(), true));
    }

    /// Adds an event of the agent.
    pub(crate) fn take(&mut self, event: &AgentEvent) {
        if let Some(id) = event.context_id() {
            self.ids.context_id = Some(id.to_owned());
        }
        if let Some(id) = event.task_id() {
            self.ids.task_id = Some(id.to_owned());
        }
        let entry = match self.open_reply(event) {
            Some(at) => &mut self.entries[at],
            None => {
                self.entries.push(ChatEntry::new(EntryAuthor::Agent, Vec::new()));
                let last = self.entries.len() - 1;
                &mut self.entries[last]
            }
        };
        entry.take(event);
        self.task_state = match event {
            // A message is the whole reply: no task waits behind it.
            AgentEvent::Message(message) if !message.is_user && message.task_id.is_none() => None,
            _ => entry.state().or(self.task_state),
        };
    }

    /// Index of the entry that an event continues: the reply after the last message of the user, or an earlier one of the task.
    fn open_reply(&self, event: &AgentEvent) -> Option<usize> {
        let mut replies = self.entries.iter().enumerate().rev();
        let newest = replies.find(|(_, entry)| entry.author != EntryAuthor::Client)?;
        let is_reply = newest.1.author == EntryAuthor::Agent;
        if is_reply && newest.1.reply.task_id().is_none_or(|id| Some(id) == event.task_id()) {
            return Some(newest.0);
        }
        None
    }

    /// Task that waits for the user, with its question.
    pub(crate) fn question(&self) -> Option<&ChatEntry> {
        let waits = self.task_state.is_some_and(TaskState::waits);
        self.entries.iter().rev().find(|entry| entry.author == EntryAuthor::Agent).filter(|_| waits)
    }

    /// Task that the next message answers.
    pub(crate) fn waiting_task(&self) -> Option<&str> {
        self.ids.task_id.as_deref().filter(|_| self.task_state.is_some_and(TaskState::waits))
    }

    /// Task that may still run.
    pub(crate) fn running_task(&self) -> Option<&str> {
        let runs = self.task_state.is_some_and(|state| !state.is_terminal() && !state.waits());
        self.ids.task_id.as_deref().filter(|_| runs)
    }

    /// Artifacts of all replies, oldest first.
    pub(crate) fn artifacts(&self) -> Vec<ChatArtifact> {
        self.entries.iter().flat_map(ChatArtifact::of).collect()
    }

    /// Artifacts that a command means, or why it means none.
    pub(crate) fn artifacts_in(&self, range: ArtifactRange) -> Result<Vec<ChatArtifact>, String> {
        let all = self.artifacts();
        match range {
            _ if all.is_empty() => Err("this conversation has no artifacts".to_owned()),
            ArtifactRange::All => Ok(all),
            ArtifactRange::One(number) => match all.get(number - 1) {
                Some(one) => Ok(vec![one.clone()]),
                None => Err(format!("artifact {number} not found; the last one is {}", all.len())),
            },
        }
    }

    /// Takes the ids that a request ended with.
    pub(crate) fn take_ids(&mut self, ids: ConversationIds) {
        self.ids.conversation = ids.conversation.or(self.ids.conversation.take());
        self.ids.context_id = ids.context_id.or(self.ids.context_id.take());
        self.ids.task_id = ids.task_id.or(self.ids.task_id.take());
    }

    /// Selection of this conversation for the next message. `start` selects it before its first message.
    pub(crate) fn selector(&self, start: &ConversationSelector) -> ConversationSelector {
        let ConversationIds { conversation, context_id, .. } = &self.ids;
        match (conversation, context_id) {
            (Some(id), _) => ConversationSelector {
                continued: Some(Continuation::Id(id.clone())),
                ..ConversationSelector::default()
            },
            // Without a session nothing is stored, and the agent's ids are all there is.
            (None, Some(_)) => ConversationSelector {
                context_id: context_id.clone(),
                task_id: self.waiting_task().map(str::to_owned),
                ..ConversationSelector::default()
            },
            (None, None) => start.clone(),
        }
    }

    /// Selection of this conversation to follow a task: the stored one, else the one that the task belongs to.
    pub(crate) fn watch_selector(&self, task: &str) -> ConversationSelector {
        match &self.ids.conversation {
            Some(_) => self.selector(&ConversationSelector::default()),
            None => {
                ConversationSelector { task_id: Some(task.to_owned()), ..ConversationSelector::default() }
            }
        }
    }

    /// Last reply of the agent.
    pub(crate) fn last_reply(&self) -> Option<&ChatEntry> {
        self.entries.iter().rev().find(|entry| entry.author == EntryAuthor::Agent)
    }

    /// Label for people: name, id at the agent, or nothing yet.
    pub(crate) fn label(&self) -> &str {
        let ids = [&self.name, &self.ids.conversation, &self.ids.context_id];
        ids.into_iter().flatten().next().map_or("new", String::as_str)
    }
}
