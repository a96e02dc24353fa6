//! Messages for a probe without replies: the refusal and a hint.

use sessile::text::{shell_quoted, shown};
use sessile::{Code, Report as ErrorReport};

use super::report::{ProbeReport, ProbeSubject};
use super::service::FailureKind;
use crate::error::{AgentError, Failure, RequestError};

impl ProbeReport {
    /// The failure, if nothing was answered at all.
    pub(crate) fn failure(&self) -> Option<Failure> {
        // A leak in an error is a result, although nothing was answered.
        if !self.ledger.replies.is_empty() || self.ledger.leak_count() > 0 || !self.is_complete {
            return None;
        }
        let (kind, _) = *self.reasons().first()?;
        let what = self.about.url.clone();
        let failure = match kind {
            FailureKind::TimedOut => {
                Failure::Request(RequestError::TimedOut { what: format!("replies of {what}") })
            }
            FailureKind::Status(status @ (401 | 403)) if self.about.protocol == "sessile" => {
                return Some(self.unauthorized(*status));
            }
            FailureKind::Status(status @ (401 | 403)) => Failure::Agent(AgentError::Unauthorized {
                agent: what,
                status: *status,
                challenge: None,
                had_credential: true,
                schemes: Vec::new(),
            }),
            FailureKind::Status(429) => Failure::Request(RequestError::RateLimited { what, wait: None }),
            FailureKind::Unusable(reason) => {
                Failure::Agent(AgentError::Unusable { agent: what, reason: reason.clone() })
            }
            FailureKind::Status(status) => return Some(self.refused(*status)),
            FailureKind::Unreachable(reason) => {
                Failure::Request(RequestError::Unreachable { what, reason: reason.clone() })
            }
        };
        Some(failure)
    }

    /// Failure of a response with an error status: the service was reached and refused.
    fn refused(&self, status: u16) -> Failure {
        let reasons = self.reasons();
        let url = shown(&self.about.url);
        // What fails on its own side may well be mended later; what it refuses will not be.
        let (code, did) = match status {
            500.. => (Code::Unreachable, "answered"),
            _ => (Code::AgentRefused, "refused"),
        };
        let mut message = match reasons[..] {
            [(_, count), _, ..] => format!(
                "no request to {url} succeeded: {count} of {} were {did} with status {status}",
                self.ledger.failures()
            ),
            _ => format!("every request to {url} was {did} with status {status}"),
        };
        message.push_str(&self.told(status));
        let mut report = ErrorReport::new(code, message);
        report.hint = hint(&self.about, status);
        Failure::Remote(Box::new(report))
    }

    /// Hint for our own service, which authenticates users by tokens and not by an agent's credential.
    fn unauthorized(&self, status: u16) -> Failure {
        let url = shown(&self.about.url);
        let message = match status {
            403 => {
                format!("the service at {url} rejected the token (status 403){}", self.told(status))
            }
            _ => {
                format!("the service at {url} requires a valid token (status {status})")
            }
        };
        let mut report = ErrorReport::new(Code::CredentialRejected, message);
        let login = format!("sessile auth login --server {}", shell_quoted(&self.about.url));
        report.hint = Some(format!(
            "pass a file with one token per user: --tokens FILE; or log in to use one account for all users: {login}"
        ));
        report.fix_command = Some(login).filter(|_| status == 401);
        Failure::Remote(Box::new(report))
    }

    /// Service's message with a status, as the end of a sentence.
    fn told(&self, status: u16) -> String {
        let told = self.ledger.told.get(&FailureKind::Status(status));
        told.map(|told| format!(": {}", shown(told))).unwrap_or_default()
    }
}

/// Hint at settings that are commonly wrong, by protocol.
fn hint(about: &ProbeSubject, status: u16) -> Option<String> {
    let url = about.url.trim_end_matches('/');
    Some(match (about.protocol, status) {
        (_, 500..) => return None,
        (_, 300..400) => "redirects are not followed; pass the final URL".to_owned(),
        ("sessile", _) => match url.strip_suffix("/v1") {
            Some(base) => format!("leave /v1 out: {}", shell_quoted(base)),
            None => "check that the URL belongs to a session service".to_owned(),
        },
        ("openai", _) => {
            format!("check the endpoint {}/chat/completions and the model of --model", shown(url))
        }
        ("http", 404 | 405) => "check the URL and --request, or the template".to_owned(),
        ("http", _) => "check --body and --header, or the template".to_owned(),
        _ => return None,
    })
}
