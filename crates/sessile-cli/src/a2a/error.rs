//! How talking to an agent can fail.

use std::fmt;
use std::time::Duration;

use sessile::text;

use crate::http::HttpError;

/// Why there is no reply. Texts of the agent in it are shown only through `text::shown`.
#[derive(Debug)]
pub(crate) enum A2aError {
    /// There is no card at this address.
    NotAnAgent {
        /// What was asked for.
        url: String,
    },
    /// The card names no interface that is understood here.
    NoUsableInterface {
        /// Those that it names.
        offered: Vec<String>,
    },
    /// There was no answer, or it was not asked.
    Http(HttpError),
    /// The credential for it could not be had.
    Credential(Box<sessile::Error>),
    /// The agent wants a credential, or another one.
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// Who said so.
        url: String,
        /// Its `WWW-Authenticate`.
        challenge: Option<String>,
    },
    /// The agent said no.
    Rpc(Refusal),
    /// What the agent said cannot be understood; why.
    Malformed(String),
    /// It points elsewhere, and nothing is sent there.
    Redirected {
        /// Who said so.
        url: String,
        /// Why it was not followed.
        reason: &'static str,
    },
    /// The reply is longer than it may be.
    TooLarge {
        /// Who said it.
        url: String,
    },
    /// It took too long.
    TimedOut {
        /// Who was asked.
        url: String,
    },
    /// It was asked too often.
    RateLimited {
        /// When to ask again.
        retry_after: Option<Duration>,
    },
    /// The server failed.
    Server {
        /// Its status.
        status: u16,
        /// Who was asked.
        url: String,
    },
}

/// A request that the agent did not carry out, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What it means.
    pub(crate) kind: RefusalKind,
    /// The agent's number for it, if it has one.
    pub(crate) code: Option<i64>,
    /// In the agent's words.
    pub(crate) message: String,
    /// The agent's name for it, as in TASK_NOT_FOUND.
    pub(crate) reason: Option<String>,
}

/// What a refusal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// It does not know the task.
    TaskNotFound,
    /// The task cannot be called off.
    TaskNotCancelable,
    /// The task has ended, and takes no message.
    TaskTerminal,
    /// It sends no notifications.
    PushNotSupported,
    /// It cannot do this.
    UnsupportedOperation,
    /// It does not take or make this kind of content.
    ContentTypeNotSupported,
    /// What does the work gave it something unusable.
    InvalidAgentResponse,
    /// It has no extended card.
    NoExtendedCard,
    /// It insists on an extension.
    ExtensionRequired,
    /// It does not speak this version.
    VersionNotSupported,
    /// It does not like the parameters.
    InvalidParams,
    /// It does not understand the request.
    InvalidRequest,
    /// It does not know the method.
    MethodNotFound,
    /// It failed.
    Internal,
    /// Anything else.
    Other,
}

impl A2aError {
    /// What the agent's refusal means, if it is one.
    pub(crate) fn refusal(&self) -> Option<RefusalKind> {
        match self {
            A2aError::Rpc(refusal) => Some(refusal.kind),
            _ => None,
        }
    }

    /// Something that cannot be understood, with the beginning of it.
    pub(super) fn malformed(what: &str, said: &[u8]) -> Self {
        let beginning = String::from_utf8_lossy(&said[..said.len().min(400)]);
        let excerpt = text::shown(text::shortened(beginning.trim(), 80));
        A2aError::Malformed(match excerpt.is_empty() {
            true => format!("{what}: it is empty"),
            false => format!("{what}: {excerpt}"),
        })
    }
}

impl From<HttpError> for A2aError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::TimedOut { url } => A2aError::TimedOut { url },
            HttpError::TooLarge { url } => A2aError::TooLarge { url },
            other => A2aError::Http(other),
        }
    }
}

impl fmt::Display for A2aError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| text::shown(text::shortened(text, 400));
        match self {
            A2aError::NotAnAgent { url } => write!(f, "there is no agent card at {}", shown(url)),
            A2aError::NoUsableInterface { offered } if offered.is_empty() => {
                f.write_str("the agent's card names no interface")
            }
            A2aError::NoUsableInterface { offered } => {
                write!(f, "none of the agent's interfaces is supported: {}", shown(&offered.join(", ")))
            }
            A2aError::Http(error) => error.fmt(f),
            A2aError::Credential(error) => error.fmt(f),
            A2aError::Unauthorized { status: 403, url, .. } => {
                write!(f, "{} does not allow this with the credential it got", shown(url))
            }
            A2aError::Unauthorized { url, .. } => write!(f, "{} wants a credential", shown(url)),
            A2aError::Rpc(refusal) => refusal.fmt(f),
            A2aError::Malformed(why) => f.write_str(&shown(why)),
            A2aError::Redirected { url, reason } => {
                write!(f, "{} points elsewhere, which is not followed: {reason}", shown(url))
            }
            A2aError::TooLarge { url } => write!(f, "the answer of {} is too large", shown(url)),
            A2aError::TimedOut { url } => write!(f, "{} did not answer in time", shown(url)),
            A2aError::RateLimited { retry_after: Some(wait) } => {
                write!(f, "the agent was asked too often; it says to wait {} s", wait.as_secs())
            }
            A2aError::RateLimited { retry_after: None } => f.write_str("the agent was asked too often"),
            A2aError::Server { status, url } => write!(f, "{} failed with HTTP status {status}", shown(url)),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = text::shown(text::shortened(&self.message, 400));
        match self.code {
            Some(code) if message.is_empty() => write!(f, "the agent refused, code {code}"),
            Some(code) => write!(f, "the agent refused: {message} (code {code})"),
            None if message.is_empty() => f.write_str("the agent refused"),
            None => write!(f, "the agent refused: {message}"),
        }
    }
}

impl std::error::Error for A2aError {}
