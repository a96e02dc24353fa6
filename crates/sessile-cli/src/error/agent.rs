//! Errors of agents and their tasks.

use sessile::error::Diagnostic;
use sessile::text::{quoted, shell_quoted, shown};
use sessile::{App, Code};

/// Errors of agents and their tasks.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Error that an agent returned.
    #[error("the agent at {} refuses: {}", shown(agent), shown(reason))]
    Refused {
        /// URL of the agent.
        agent: String,
        /// Message of the agent.
        reason: String,
    },
    /// Agent that requires a credential or rejects the one it got.
    #[error("the agent at {}{} does not let this call in (status {status})", shown(agent), shown(wanted))]
    Unauthorized {
        /// URL of the agent.
        agent: String,
        /// HTTP status.
        status: u16,
        /// Challenge of the agent, as a clause of the message; empty without one.
        wanted: String,
    },
    /// Server that is not a valid A2A agent.
    #[error("{} cannot be used as an agent: {}", shown(agent), shown(reason))]
    Unusable {
        /// URL of the server.
        agent: String,
        /// Violation of the protocol.
        reason: String,
    },
    /// Task that the agent does not know.
    #[error("the agent at {} does not know task {}", shown(agent), quoted(task))]
    TaskNotFound {
        /// URL of the agent.
        agent: String,
        /// Id of the task.
        task: String,
    },
    /// Reply that was printed and could not be stored.
    #[error("the message was delivered, but the conversation was not saved: {}", shown(reason))]
    NotSaved {
        /// Why it could not be stored.
        reason: String,
        /// Id of the agent for the conversation, if it gave one.
        context_id: Option<String>,
    },
    /// Task that has ended.
    #[error("task {} has ended: {}", quoted(task), shown(reason))]
    TaskOver {
        /// Id of the task.
        task: String,
        /// Message of the agent.
        reason: String,
    },
}

impl Diagnostic for AgentError {
    fn code(&self) -> Code {
        match self {
            Self::Unauthorized { .. } => Code::CredentialRejected,
            Self::Refused { .. } => Code::AgentRefused,
            Self::Unusable { .. } => Code::AgentUnusable,
            Self::TaskNotFound { .. } => Code::TaskNotFound,
            Self::TaskOver { .. } => Code::TaskOver,
            Self::NotSaved { .. } => Code::NotSaved,
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::Unauthorized { agent, .. } => {
                format!("give it a credential: {name} auth set --url {}", shell_quoted(agent))
            }
            Self::TaskOver { .. } | Self::TaskNotFound { .. } => {
                "start another task: send the message without --task-id; start another conversation: --new"
                    .to_owned()
            }
            Self::NotSaved { context_id: Some(id), .. } => {
                format!("do not send it again; continue with --context-id {}", shell_quoted(id))
            }
            _ => return None,
        })
    }
}
