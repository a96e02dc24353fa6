//! What went wrong with an agent, in the words of the program.

use sessile::Error;
use sessile::error::{AgentError, RequestError, UsageError};
use sessile::vault::Site;
use sessile_wire::a2a::AgentErrorKind;

use crate::a2a::A2aError;
use crate::http::HttpError;
use crate::renewer::unreachable;

/// The error for what an agent at a URL did, or did not do; `task` is the one that was asked about.
pub(crate) fn failed(url: &str, task: Option<&str>, error: A2aError) -> Error {
    let agent = url.to_owned();
    let site = |url: &str| Site::of_url(url).map_or_else(|_| url.to_owned(), |site| site.to_string());
    match error {
        A2aError::Credential(error) => *error,
        A2aError::Http(HttpError::NotAllowed(reason)) => Error::Usage(UsageError::Arguments(reason)),
        A2aError::Http(HttpError::TimedOut { .. }) | A2aError::TimedOut { .. } => {
            Error::Request(RequestError::TimedOut { what: format!("the reply of {url}") })
        }
        A2aError::Http(error) => unreachable(url, &error),
        A2aError::Unauthorized { status, challenge, .. } => {
            let wanted =
                challenge.map_or_else(String::new, |challenge| format!(", which asks for {challenge},"));
            Error::Agent(AgentError::Unauthorized { agent, status, wanted })
        }
        A2aError::RateLimited { retry_after } => {
            Error::Request(RequestError::RateLimited { what: agent, wait: retry_after })
        }
        A2aError::Server { status, url } => Error::Request(RequestError::Unreachable {
            what: site(&url),
            reason: format!("it answered with status {status}"),
        }),
        A2aError::Agent(error) => match (error.kind, task) {
            (AgentErrorKind::TaskNotFound, Some(task)) => {
                Error::Agent(AgentError::TaskNotFound { agent, task: task.to_owned() })
            }
            (AgentErrorKind::TaskTerminal | AgentErrorKind::TaskNotCancelable, Some(task)) => {
                Error::Agent(AgentError::TaskOver { task: task.to_owned(), reason: error.message })
            }
            _ => Error::Agent(AgentError::Refused { agent, reason: error.message }),
        },
        other => Error::Agent(AgentError::Unusable { agent, reason: other.to_string() }),
    }
}
