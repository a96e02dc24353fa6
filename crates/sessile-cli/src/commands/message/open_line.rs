//! Text of a reply that arrives in chunks.

use sessile_wire::a2a::AgentEvent;

/// Line of text that the next chunk continues.
#[derive(Clone, Debug)]
pub(crate) enum OpenLine {
    /// Chunks of the artifact with this id.
    Artifact(Option<String>),
    /// Texts of status messages.
    Status {
        /// Whether the texts are pieces of one: a piece began or ended with white space.
        is_pieces: bool,
        ends_with_space: bool,
    },
}

impl OpenLine {
    /// The line after a text of this event, if the text continues the line.
    pub(crate) fn continued(&self, event: &AgentEvent, text: &str) -> Option<OpenLine> {
        match (self, event) {
            (OpenLine::Artifact(id), AgentEvent::Artifact(update)) if *id == update.artifact_id => {
                Some(OpenLine::Artifact(id.clone()))
            }
            (OpenLine::Status { is_pieces, ends_with_space }, AgentEvent::Status(_)) => {
                let is_pieces = *is_pieces || *ends_with_space || text.starts_with(char::is_whitespace);
                is_pieces.then(|| OpenLine::Status { is_pieces, ends_with_space: ends_with_space_of(text) })
            }
            _ => None,
        }
    }

    /// Line that a text of this event begins, if another may continue it.
    pub(crate) fn begun(event: &AgentEvent, text: &str) -> Option<OpenLine> {
        match event {
            AgentEvent::Artifact(update) => Some(OpenLine::Artifact(update.artifact_id.clone())),
            AgentEvent::Status(_) => {
                Some(OpenLine::Status { is_pieces: false, ends_with_space: ends_with_space_of(text) })
            }
            AgentEvent::Task(_) | AgentEvent::Message(_) => None,
        }
    }
}

fn ends_with_space_of(text: &str) -> bool {
    text.ends_with(char::is_whitespace)
}
