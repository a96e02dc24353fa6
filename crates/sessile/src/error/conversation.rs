//! Errors of conversations and of the names of agents.

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::quoted;

/// Errors of conversations and of the names of agents.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// No such conversation.
    #[error("there is no conversation {}", quoted(name))]
    NotFound {
        /// The name or id given.
        name: String,
        /// The name there is that is nearest to it.
        near: Option<String>,
    },
    /// A conversation of this name.
    #[error("a conversation {} exists already in this session", quoted(_0))]
    Exists(String),
    /// No such agent.
    #[error("there is no agent {}", quoted(name))]
    AgentNotFound {
        /// The name given.
        name: String,
        /// The agent there is that is nearest to it.
        near: Option<String>,
    },
}

impl Diagnostic for ConversationError {
    fn code(&self) -> Code {
        match self {
            Self::NotFound { .. } => Code::ConversationNotFound,
            Self::Exists(_) => Code::ConversationExists,
            Self::AgentNotFound { .. } => Code::AgentNotFound,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::NotFound { near: Some(near), .. } | Self::AgentNotFound { near: Some(near), .. } => {
                format!("did you mean {}?", quoted(near))
            }
            Self::NotFound { .. } => format!("`{name} conversation list` shows those there are"),
            Self::Exists(_) => "choose another name".to_owned(),
            Self::AgentNotFound { .. } => {
                format!("name one with `{name} agent add NAME URL`, or give the URL itself")
            }
        })
    }
}
