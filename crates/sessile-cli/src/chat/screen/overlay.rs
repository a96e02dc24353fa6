//! Overlays of a conversation.

use super::filter_list::FilterList;
use crate::chat::engine::ChatChoice;
use crate::tui::text_input::TextInput;

/// Question that Enter or `y` confirms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Confirmation {
    /// Delete the conversation from the store.
    Forget,
    /// Open an artifact of this number with the program of the desktop.
    Open(usize),
    /// Leave the chat although replies are running.
    Quit,
}

/// Overlay of a conversation.
#[derive(Debug)]
pub(super) enum Overlay {
    /// Keys and commands; the number is the first visible row.
    Help(usize),
    /// Agents and conversations.
    Agents(FilterList<ChatChoice>),
    /// Artifacts, by number.
    Artifacts(FilterList<usize>),
    /// Commands.
    Palette(FilterList<&'static str>),
    /// Card of the agent; the number is the first visible row.
    Card(usize),
    /// Wire log; the number is the distance from its end.
    Wire(usize),
    /// Search in the conversation; the number is the row of the last match.
    Search(TextInput, Option<usize>),
    /// Question.
    Confirm(Confirmation),
}
