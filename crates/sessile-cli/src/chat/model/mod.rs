//! View model of conversations: entries, artifacts, the state of the task. Free of the terminal and of the network, so that
//! any view can use it.
//!
//! Texts in it are as the agent sent them. A view sanitizes them before it shows them.

mod artifact;
mod conversation;
mod entry;
mod replay;
#[cfg(test)]
mod tests;

pub(crate) use artifact::ChatArtifact;
pub(crate) use conversation::{ChatConversation, ConversationIds};
pub(crate) use entry::{ChatEntry, EntryAuthor, EntryBlock};
