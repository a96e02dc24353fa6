//! Failures of requests to a service, as errors of commands: the service's codes are the command line's own.

use std::time::Duration;

use sessile::error::{LockError, SessionError, UsageError};
use sessile::text::shell_quoted;
use sessile::{Code, Report};
use sessile_wire::service::{ProblemDetails, ProblemReason};

use crate::error::{CommandError, Failure, RequestError};
use crate::http::HttpError;
use crate::renewer::unreachable;

/// Failure of a request to a service.
#[derive(Debug)]
pub(crate) enum RemoteError {
    /// The service sent no response.
    Http(HttpError),
    /// The service refused the request.
    Refused(ServiceProblem),
    /// The response is not one of a session service.
    InvalidResponse(serde_json::Error),
}

/// Problem that a service reports.
#[derive(Debug)]
pub(crate) struct ServiceProblem {
    pub(crate) status: u16,
    /// Error code; `None` if this version does not know it.
    pub(crate) code: Option<Code>,
    pub(crate) detail: String,
    pub(crate) is_retryable: bool,
    pub(crate) retry_after: Option<Duration>,
    /// Current revision, after a conflict.
    revision: Option<i64>,
    /// Reason that the code leaves open.
    reason: Option<ProblemReason>,
}

impl ServiceProblem {
    /// Problem in the body of a response. The body may be anything if a proxy answered.
    pub(crate) fn from_response(status: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        match sessile::json::from_slice::<ProblemDetails>(body) {
            Ok(details) => ServiceProblem::from_details(status, &details, retry_after),
            Err(_) => ServiceProblem {
                status,
                code: None,
                detail: format!("status {status}"),
                is_retryable: status == 503,
                retry_after,
                revision: None,
                reason: None,
            },
        }
    }

    /// Problem that arrived with this status.
    pub(crate) fn from_details(status: u16, details: &ProblemDetails, retry_after: Option<Duration>) -> Self {
        let wait = details.retry_after_ms.and_then(|millis| u64::try_from(millis).ok());
        ServiceProblem {
            status,
            // A newer service may have codes that this version does not know.
            code: Code::ALL.iter().copied().find(|code| code.as_str() == details.code),
            detail: sessile::text::shortened(&details.detail, 500),
            is_retryable: details.retryable,
            retry_after: wait.map(Duration::from_millis).or(retry_after),
            revision: details.revision,
            reason: details.reason,
        }
    }
}

/// Subject of a request, named in its errors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Subject<'a> {
    /// Session, as the user named it.
    pub(crate) session: &'a str,
    /// Whether a variable named the session, which may be one of this machine.
    pub(crate) by_variable: bool,
    /// Key of a state value.
    pub(crate) key: &'a str,
    /// Expected revision of the value.
    pub(crate) expected: Option<i64>,
    /// New name of a session.
    pub(crate) name: &'a str,
    /// Fencing token of a lock.
    pub(crate) token: i64,
}

impl RemoteError {
    /// Failure of the command that made the request.
    pub(crate) fn into_failure(self, url: &str, about: &Subject<'_>) -> Failure {
        match self {
            RemoteError::Http(HttpError::NotAllowed(reason)) => UsageError::Arguments(reason).into(),
            RemoteError::Http(HttpError::TimedOut { .. }) => {
                RequestError::TimedOut { what: format!("the response of {url}") }.into()
            }
            RemoteError::Http(error) => unreachable(url, &error).into(),
            RemoteError::Refused(problem) => refusal(url, problem, about),
            RemoteError::InvalidResponse(error) => {
                let reason = format!("the response is not from a session service ({error})");
                RequestError::unreachable(url, reason).into()
            }
        }
    }
}

fn refusal(url: &str, problem: ServiceProblem, about: &Subject<'_>) -> Failure {
    let ServiceProblem { status, code, detail, is_retryable, retry_after, revision, reason } = problem;
    let site = url.to_owned();
    match code {
        Some(Code::SessionNotFound) if about.by_variable => not_of_server(url, about.session),
        Some(Code::SessionNotFound) => SessionError::NotFound(about.session.to_owned()).into(),
        Some(Code::EntryNotFound) => CommandError::EntryNotFound(about.key.to_owned()).into(),
        Some(Code::LockLost) => LockError::Lost(about.token).into(),
        Some(Code::SessionExists) if !about.name.is_empty() => {
            SessionError::Exists(about.name.to_owned()).into()
        }
        Some(Code::RevisionConflict) if about.expected.is_some() => SessionError::RevisionConflict {
            key: about.key.to_owned(),
            expected: about.expected.unwrap_or_default(),
            found: revision.filter(|found| *found > 0),
        }
        .into(),
        Some(Code::RateLimited) => RequestError::RateLimited { what: site, wait: retry_after }.into(),
        // A proxy in front of the service may answer 401 without a code.
        _ if status == 401 => unauthorized(url, format!("{url} rejected the token")),
        Some(code) => {
            let mut report = Report::new(code, format!("{url}: {detail}"));
            (report.retryable, report.retry_after) = (is_retryable, retry_after);
            if reason == Some(ProblemReason::NoUpstream) {
                report.hint = Some("configure an upstream: sessile serve --upstream URL".to_owned());
            }
            Failure::Remote(Box::new(report))
        }
        None => {
            RequestError::unreachable(site, format!("{detail}; the response is not from a session service"))
                .into()
        }
    }
}

/// Failure of a call without a valid token.
pub(crate) fn unauthorized(url: &str, message: String) -> Failure {
    let login = format!("sessile auth login --server {}", shell_quoted(url));
    let mut report = Report::new(Code::CredentialRejected, message);
    report.hint = Some(format!("log in: {login}"));
    report.fix_command = Some(login);
    Failure::Remote(Box::new(report))
}

/// A variable names a session that the server does not have: perhaps one of this machine.
fn not_of_server(url: &str, session: &str) -> Failure {
    let session = sessile::text::quoted(session);
    let message = format!("session {session} of SESSILE_SESSION not found on {url}");
    let mut report = Report::new(Code::SessionNotFound, message);
    let hint =
        "the session may be local; pass --session with one of the server, or --server '' to work locally";
    report.hint = Some(hint.to_owned());
    Failure::Remote(Box::new(report))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: Code, revision: Option<i64>, reason: &str, expected: Option<i64>) -> Failure {
        let details = serde_json::json!({
            "type": "", "title": "", "status": 409, "detail": "it is at 9", "code": code.as_str(),
            "retryable": false, "retry_after_ms": null, "revision": revision, "reason": reason,
        });
        let problem = ServiceProblem::from_response(409, details.to_string().as_bytes(), None);
        let about = Subject { key: "k", expected, ..Subject::default() };
        RemoteError::Refused(problem).into_failure("https://s.example", &about)
    }

    #[test]
    fn conflict_has_the_revision_of_its_field() {
        for (revision, expected) in [(Some(3), Some(3)), (Some(0), None), (None, None)] {
            match failure(Code::RevisionConflict, revision, "new_in_a_later_version", Some(1)) {
                Failure::Library(sessile::Error::Session(SessionError::RevisionConflict {
                    found, ..
                })) => assert_eq!(found, expected),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn hint_follows_the_reason() {
        for (reason, has_hint) in [("no_upstream", true), ("another", false)] {
            match failure(Code::Usage, None, reason, None) {
                Failure::Remote(report) => assert_eq!(report.hint.is_some(), has_hint),
                other => panic!("{other:?}"),
            }
        }
    }
}
