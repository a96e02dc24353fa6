//! Errors of an agent as errors of the program.

use sessile::Error;
use sessile::error::{AgentError, RequestError, UsageError};
use sessile::vault::Site;
use sessile_wire::a2a::RpcErrorKind;

use crate::a2a::A2aError;
use crate::http::HttpError;
use crate::renewer::unreachable;

/// Error of a request to the agent at a URL. `task` is the task that the request named.
pub(crate) fn agent_error(url: &str, task: Option<&str>, error: A2aError) -> Error {
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
        A2aError::Rpc(error) => match (error.kind, task) {
            (RpcErrorKind::TaskNotFound, Some(task)) => {
                Error::Agent(AgentError::TaskNotFound { agent, task: task.to_owned() })
            }
            (RpcErrorKind::TaskTerminal | RpcErrorKind::TaskNotCancelable, Some(task)) => {
                Error::Agent(AgentError::TaskOver { task: task.to_owned(), reason: error.message })
            }
            _ => Error::Agent(AgentError::Refused { agent, reason: error.message }),
        },
        other => Error::Agent(AgentError::Unusable { agent, reason: other.to_string() }),
    }
}
