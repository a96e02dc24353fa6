//! Errors of agents and their tasks.

use crate::app::App;
use crate::code::Code;
use crate::error::Diagnostic;
use crate::text::{quoted, shell_quoted, shown};

/// Errors of agents and their tasks.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// An agent that said no.
    #[error("the agent at {} refuses: {}", shown(agent), shown(reason))]
    Refused {
        /// Its URL.
        agent: String,
        /// What it said.
        reason: String,
    },
    /// An agent that wants a credential, or another one.
    #[error("the agent at {}{} does not let this call in (status {status})", shown(agent), shown(wanted))]
    Unauthorized {
        /// Its URL.
        agent: String,
        /// The HTTP status.
        status: u16,
        /// What it asks for, in words.
        wanted: String,
    },
    /// Something that is no agent, or speaks as none should.
    #[error("{} cannot be used as an agent: {}", shown(agent), shown(reason))]
    Unusable {
        /// Its URL.
        agent: String,
        /// Why.
        reason: String,
    },
    /// A task that the agent does not know.
    #[error("the agent at {} does not know task {}", shown(agent), quoted(task))]
    TaskNotFound {
        /// Its URL.
        agent: String,
        /// The task.
        task: String,
    },
    /// A task that has ended.
    #[error("task {} has ended: {}", quoted(task), shown(reason))]
    TaskOver {
        /// The task.
        task: String,
        /// How.
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
        }
    }

    fn hint(&self, app: &App) -> Option<String> {
        let name = app.name();
        Some(match self {
            Self::Unauthorized { agent, .. } => {
                format!("give it a credential: {name} auth set --url {}", shell_quoted(agent))
            }
            Self::TaskOver { .. } | Self::TaskNotFound { .. } => {
                "nothing was sent anew; the next message begins another task, and --new another conversation"
                    .to_owned()
            }
            _ => return None,
        })
    }
}
