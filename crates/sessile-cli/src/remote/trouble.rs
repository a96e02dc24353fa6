//! What went wrong with a service, in the words of the program: its codes are the program's own.

use std::time::Duration;

use serde_json::Value;
use sessile::error::{CommandError, LockError, RequestError, SessionError, UsageError};
use sessile::text::shell_quoted;
use sessile::{Code, Error, Report};

use crate::error::Failure;
use crate::http::HttpError;
use crate::renewer::unreachable;

/// Why a request was not carried out.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// There is no answer.
    Http(HttpError),
    /// It was refused.
    Refused(Problem),
}

/// What a service says when it refuses.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: u16,
    /// The code, if it is one that is known here.
    pub(crate) code: Option<Code>,
    pub(crate) detail: String,
    pub(crate) retryable: bool,
    pub(crate) retry_after: Option<Duration>,
}

impl Problem {
    /// What a body says; a server that is none may say anything.
    pub(crate) fn of(status: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        let told: Value = sessile::json::from_slice(body).unwrap_or_default();
        Problem::of_json(status, &told, retry_after)
    }

    /// The same, of what came in a stream.
    pub(crate) fn of_json(status: u16, told: &Value, retry_after: Option<Duration>) -> Self {
        let code = told["code"].as_str().and_then(|text| Code::ALL.iter().find(|code| code.as_str() == text));
        let detail = told["detail"].as_str().map(|text| sessile::text::shortened(text, 500));
        Problem {
            status,
            code: code.copied(),
            detail: detail.unwrap_or_else(|| format!("it answered with status {status}")),
            retryable: told["retryable"].as_bool().unwrap_or(status == 503),
            retry_after: told["retry_after_ms"].as_u64().map(Duration::from_millis).or(retry_after),
        }
    }
}

/// What a request was about, for the words of its failure.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Subject<'a> {
    /// The session, as it was named.
    pub(crate) session: &'a str,
    /// Whether a variable named it, which may mean one of this machine.
    pub(crate) by_variable: bool,
    /// The key of a value.
    pub(crate) key: &'a str,
    /// The revision that was expected.
    pub(crate) expected: Option<i64>,
    /// The new name of a session.
    pub(crate) name: &'a str,
    /// The token of a lock.
    pub(crate) token: i64,
}

impl Trouble {
    /// The failure of a command.
    pub(crate) fn told(self, url: &str, about: &Subject<'_>) -> Failure {
        match self {
            Trouble::Http(HttpError::NotAllowed(reason)) => UsageError::Arguments(reason).into(),
            Trouble::Http(HttpError::TimedOut { .. }) => {
                RequestError::TimedOut { what: format!("the answer of {url}") }.into()
            }
            Trouble::Http(error) => unreachable(url, &error).into(),
            Trouble::Refused(problem) => refused(url, problem, about),
        }
    }
}

fn refused(url: &str, problem: Problem, about: &Subject<'_>) -> Failure {
    let Problem { status, code, detail, retryable, retry_after } = problem;
    let site = url.to_owned();
    let error = match code {
        Some(Code::SessionNotFound) if about.by_variable => return not_of_server(url, about.session),
        Some(Code::SessionNotFound) => Error::Session(SessionError::NotFound(about.session.to_owned())),
        Some(Code::EntryNotFound) => Error::Command(CommandError::EntryNotFound(about.key.to_owned())),
        Some(Code::LockLost) => Error::Lock(LockError::Lost(about.token)),
        Some(Code::SessionExists) if !about.name.is_empty() => {
            Error::Session(SessionError::Exists(about.name.to_owned()))
        }
        Some(Code::RevisionConflict) if about.expected.is_some() => {
            Error::Session(SessionError::RevisionConflict {
                key: about.key.to_owned(),
                expected: about.expected.unwrap_or_default(),
                found: detail
                    .rsplit(' ')
                    .next()
                    .and_then(|word| word.parse().ok())
                    .filter(|found| *found > 0),
            })
        }
        Some(Code::RateLimited) => {
            Error::Request(RequestError::RateLimited { what: site, wait: retry_after })
        }
        _ if status == 401 => return not_let_in(url, format!("{url} does not accept the token")),
        Some(code) => {
            let mut report = Report::new(code, format!("{url}: {detail}"));
            (report.retryable, report.retry_after) = (retryable, retry_after);
            return Failure::Service { report: Box::new(report), own: false };
        }
        None => Error::Request(RequestError::Unreachable {
            what: site,
            reason: format!("{detail}, and not as a session service does"),
        }),
    };
    error.into()
}

/// The failure of who has no token, or none that counts.
pub(crate) fn not_let_in(url: &str, message: String) -> Failure {
    let login = format!("sessile auth login --server {}", shell_quoted(url));
    let mut report = Report::new(Code::CredentialRejected, message);
    report.hint = Some(format!("log in: {login}"));
    report.fix_command = Some(login);
    Failure::Service { report: Box::new(report), own: false }
}

/// A variable names a session that the server does not have: perhaps one of this machine.
fn not_of_server(url: &str, session: &str) -> Failure {
    let session = sessile::text::quoted(session);
    let message = format!("SESSILE_SESSION names session {session}, which {url} does not have");
    let mut report = Report::new(Code::SessionNotFound, message);
    let hint = "it may be one of this machine: name one of the server's with --session, or work here with --server ''";
    report.hint = Some(hint.to_owned());
    Failure::Service { report: Box::new(report), own: false }
}
