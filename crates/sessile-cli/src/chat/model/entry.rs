//! Entries of a conversation.

use sessile_wire::a2a::{AgentEvent, AgentReply, Part, TaskState};

use crate::commands::message::OpenLine;

/// Author of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryAuthor {
    /// The person at this machine.
    User,
    /// The agent. Its text is untrusted.
    Agent,
    /// This program: a note or an error.
    Client,
}

/// Piece of an entry, in the order of arrival.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EntryBlock {
    /// Text of a message or an artifact.
    Text(String),
    /// Text of a status: progress of the work, or a question.
    Status(String),
    /// Name of the artifact that the next blocks belong to.
    ArtifactName(String),
    /// Any other part.
    Part(Part),
}

/// Consecutive content of one author.
#[derive(Clone, Debug)]
pub(crate) struct ChatEntry {
    /// Author.
    pub(crate) author: EntryAuthor,
    /// Content.
    pub(crate) blocks: Vec<EntryBlock>,
    /// Whether the entry reports a failure.
    pub(crate) is_failure: bool,
    /// Reply so far, for an entry of the agent.
    pub(super) reply: AgentReply,
    open: Option<OpenLine>,
    /// Artifact that the last block belongs to.
    artifact: Option<String>,
}

impl ChatEntry {
    /// Entry of an author.
    pub(super) fn new(author: EntryAuthor, blocks: Vec<EntryBlock>) -> Self {
        ChatEntry {
            author,
            blocks,
            is_failure: false,
            reply: AgentReply::default(),
            open: None,
            artifact: None,
        }
    }

    /// Note of this program.
    pub(super) fn note(text: String, is_failure: bool) -> Self {
        ChatEntry { is_failure, ..ChatEntry::new(EntryAuthor::Client, vec![EntryBlock::Text(text)]) }
    }

    /// State of the task, if the entry is one of a task.
    pub(crate) fn state(&self) -> Option<TaskState> {
        self.reply.state()
    }

    /// Text of all blocks, for search and for the clipboard.
    pub(crate) fn text(&self) -> String {
        let texts = self.blocks.iter().map(|block| match block {
            EntryBlock::Text(text) | EntryBlock::Status(text) => text.clone(),
            EntryBlock::ArtifactName(name) => format!("[artifact {name}]"),
            EntryBlock::Part(part) => part.summary(),
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Adds an event of the agent.
    pub(super) fn take(&mut self, event: &AgentEvent) {
        let new = self.reply.take(event);
        if new.is_empty() {
            return;
        }
        self.name_artifact(event);
        for part in new {
            match part {
                Part::Text(text) => self.take_text(event, text),
                part => {
                    self.open = None;
                    self.blocks.push(EntryBlock::Part(part));
                }
            }
        }
    }

    /// Begins an artifact with its name, if it holds more than text: a reply that is a text needs no heading.
    fn name_artifact(&mut self, event: &AgentEvent) {
        let AgentEvent::Artifact(update) = event else { return };
        if self.artifact.is_some() && self.artifact == update.artifact_id {
            return;
        }
        self.artifact.clone_from(&update.artifact_id);
        let is_text = update.parts().iter().all(Part::is_text);
        if let (Some(name), false) = (&update.name, is_text) {
            self.open = None;
            self.blocks.push(EntryBlock::ArtifactName(name.clone()));
        }
    }

    fn take_text(&mut self, event: &AgentEvent, text: String) {
        let continued = self.open.as_ref().and_then(|open| open.continued(event, &text));
        let is_continued = continued.is_some();
        self.open = continued.or_else(|| OpenLine::begun(event, &text));
        match self.blocks.last_mut() {
            Some(EntryBlock::Text(last) | EntryBlock::Status(last)) if is_continued => last.push_str(&text),
            // A snapshot of a task has its result and the message of its status.
            _ if matches!(event, AgentEvent::Status(_)) => self.blocks.push(EntryBlock::Status(text)),
            _ => self.blocks.push(EntryBlock::Text(text)),
        }
    }
}
