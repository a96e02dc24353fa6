//! Errors of an agent as errors of the program.

use sessile::error::UsageError;
use sessile::site::Site;
use sessile_wire::a2a::RpcErrorKind;

use crate::a2a::A2aError;
use crate::error::{AgentError, Failure, RequestError};
use crate::http::HttpError;
use crate::renewer::unreachable;

/// Error of a request to the agent at a URL. `task` is the task that the request named.
pub(crate) fn agent_error(url: &str, task: Option<&str>, error: A2aError) -> Failure {
    let agent = url.to_owned();
    let site = |url: &str| Site::of_url(url).map_or_else(|_| url.to_owned(), |site| site.to_string());
    match error {
        A2aError::Credential(error) => (*error).into(),
        // The URL came from the user, and was refused before anything was sent.
        A2aError::Http(HttpError::NotAllowed(_)) if is_plain_http(url) => {
            Failure::Agent(AgentError::PlainHttp { agent })
        }
        A2aError::Http(HttpError::NotAllowed(reason)) => UsageError::Arguments(reason).into(),
        A2aError::Http(HttpError::TimedOut { .. }) | A2aError::TimedOut { .. } => {
            Failure::Request(RequestError::TimedOut { what: format!("the reply of {url}") })
        }
        A2aError::Http(error) => unreachable(url, &error).into(),
        A2aError::Unauthorized { status, challenge, had_credential, schemes, .. } => {
            Failure::Agent(AgentError::Unauthorized { agent, status, challenge, had_credential, schemes })
        }
        A2aError::ExtensionsRequired { uris } => {
            Failure::Agent(AgentError::ExtensionsRequired { agent, uris })
        }
        A2aError::NotOffered { operation } => Failure::Agent(AgentError::Unsupported { agent, operation }),
        A2aError::RateLimited { retry_after } => {
            Failure::Request(RequestError::RateLimited { what: agent, wait: retry_after })
        }
        A2aError::Server { status, url, body } => {
            let body = if body.is_empty() { body } else { format!(": {body}") };
            RequestError::unreachable(site(&url), format!("HTTP status {status}{body}")).into()
        }
        A2aError::Rpc(error) => match (error.kind, task) {
            (RpcErrorKind::TaskNotFound, Some(task)) => {
                Failure::Agent(AgentError::TaskNotFound { agent, task: task.to_owned() })
            }
            (RpcErrorKind::TaskTerminal | RpcErrorKind::TaskNotCancelable, Some(task)) => {
                Failure::Agent(AgentError::TaskOver { task: task.to_owned(), reason: error.message })
            }
            _ => Failure::Agent(AgentError::Refused { agent, reason: error.message }),
        },
        other => Failure::Agent(AgentError::Unusable { agent, reason: other.to_string() }),
    }
}

/// Whether a URL is one of plain http on another machine.
fn is_plain_http(url: &str) -> bool {
    Site::of_url(url).is_ok_and(|site| !site.is_private())
}
