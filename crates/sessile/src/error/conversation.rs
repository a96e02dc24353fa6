//! Errors of conversations and of the names of agents.

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::{quoted, shell_quoted};

/// Errors of conversations and of the names of agents.
#[derive(Debug, thiserror::Error)]
pub enum ConversationError {
    /// Conversation that does not exist.
    #[error("conversation {} not found", quoted(name))]
    NotFound {
        /// Name or id in the call.
        name: String,
        /// Existing name that is most similar.
        near: Option<String>,
    },
    /// Name of another conversation of the session.
    #[error("conversation {} already exists in this session", quoted(_0))]
    Exists(String),
    /// The conversation was held in another context.
    #[error(
        "conversation {} belongs to {}, but this call is in {}",
        quoted(name),
        context_words(held_in.as_deref()),
        context_words(current.as_deref())
    )]
    OtherContext {
        /// Name or id of the conversation.
        name: String,
        /// Context it was held in.
        held_in: Option<String>,
        /// Context of the call.
        current: Option<String>,
    },
    /// The conversation belongs to another account.
    #[error("conversation {} belongs to {}", quoted(name), account_words(account.as_deref()))]
    OtherAccount {
        /// Name or id of the conversation.
        name: String,
        /// Credential that its calls named.
        account: Option<String>,
    },
    /// The session, or every session outside of one, has no conversation.
    #[error("no conversation found")]
    NoneFound,
    /// `--continue` without an id, where the session and the context have no conversation with the agent.
    #[error("no conversation with this agent in the session or its context")]
    NoneWithAgent,
    /// `--continue` without an id, outside a session.
    #[error("--continue requires a session or the id of a conversation")]
    NoneToContinue,
    /// Agent that does not exist.
    #[error("agent {} not found", quoted(name))]
    AgentNotFound {
        /// Name in the call.
        name: String,
        /// Name of the most similar agent.
        near: Option<String>,
    },
}

fn account_words(account: Option<&str>) -> String {
    account.map_or_else(
        || "calls without a credential of their own".to_owned(),
        |account| format!("the account of credential {}", quoted(account)),
    )
}

fn context_words(context: Option<&str>) -> String {
    context.map_or_else(|| "no context".to_owned(), |context| format!("context {}", quoted(context)))
}

impl Diagnostic for ConversationError {
    fn code(&self) -> Code {
        match self {
            Self::NotFound { .. } | Self::NoneFound | Self::NoneWithAgent | Self::NoneToContinue => {
                Code::ConversationNotFound
            }
            Self::Exists(_) => Code::ConversationExists,
            Self::OtherContext { .. } | Self::OtherAccount { .. } => Code::ConversationContext,
            Self::AgentNotFound { .. } => Code::AgentNotFound,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::NotFound { near: Some(near), .. } | Self::AgentNotFound { near: Some(near), .. } => {
                format!("did you mean {}?", quoted(near))
            }
            Self::NotFound { .. } | Self::NoneFound | Self::NoneWithAgent => {
                format!("list the conversations: {name} conversation list --all")
            }
            Self::Exists(_) => "choose another name".to_owned(),
            Self::OtherContext { held_in: Some(held_in), .. } => {
                format!("continue it there: --context {}", shell_quoted(held_in))
            }
            Self::OtherContext { held_in: None, .. } => {
                "continue it outside the context's session".to_owned()
            }
            Self::OtherAccount { account: Some(account), .. } => {
                format!("continue it with --credential {}", shell_quoted(account))
            }
            Self::OtherAccount { account: None, .. } => "continue it without --credential".to_owned(),
            Self::NoneToContinue => {
                format!("pass --continue=ID, with an id of `{name} conversation list`, or --session NAME")
            }
            Self::AgentNotFound { .. } => {
                format!("pass the agent's URL, or name it: {name} agent add NAME URL --global")
            }
        })
    }
}
