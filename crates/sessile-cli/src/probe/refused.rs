//! What is told where nothing was answered: who refused, with what, and what may mend it.

use sessile::text::{shell_quoted, shown};
use sessile::{Code, Error, Report as Told};

use super::report::{About, Report};
use super::service::Kind;
use crate::error::Failure;

impl Report {
    /// The failure, if nothing was answered at all.
    pub(crate) fn failure(&self) -> Option<Failure> {
        if !self.ledger.replies.is_empty() || self.ledger.leak_count() > 0 || !self.is_complete {
            return None;
        }
        let (kind, _) = *self.reasons().first()?;
        let what = self.about.url.clone();
        let error = match kind {
            Kind::TimedOut => Error::TimedOut { what: format!("every reply of {what}") },
            Kind::Status(status @ (401 | 403)) => {
                Error::AgentUnauthorized { agent: what, status: *status, wanted: String::new() }
            }
            Kind::Status(429) => Error::RateLimited { what, wait: None },
            Kind::Unusable(reason) => Error::AgentUnusable { agent: what, reason: reason.clone() },
            Kind::Status(status) => return Some(self.refused(*status)),
            Kind::Unreachable(reason) => Error::Unreachable { what, reason: reason.clone() },
        };
        Some(error.into())
    }

    /// A status is an answer: the service was reached, and did not do what it was asked.
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
                "no request to {url} had a reply: {count} of {} were {did} with status {status}",
                self.ledger.failures()
            ),
            _ => format!("every request to {url} was {did} with status {status}"),
        };
        if let Some(told) = self.ledger.told.get(&Kind::Status(status)) {
            message = format!("{message}: {}", shown(told));
        }
        let mut report = Told::new(code, message);
        report.hint = hint(&self.about, status);
        Failure::Service { report: Box::new(report), own: false }
    }
}

/// What to look at, by what the protocol leaves to be said wrong.
fn hint(about: &About, status: u16) -> Option<String> {
    let url = about.url.trim_end_matches('/');
    Some(match (about.protocol, status) {
        (_, 500..) => return None,
        (_, 300..400) => "a redirect is not followed: give the address that it leads to".to_owned(),
        ("sessile", _) => match url.strip_suffix("/v1") {
            Some(base) => format!("leave /v1 out: {}", shell_quoted(base)),
            None => "is this the address of a `sessile serve`?".to_owned(),
        },
        ("openai", _) => {
            format!(
                "it was asked at {}/chat/completions: is that where it is, and is --model one it has?",
                shown(url)
            )
        }
        ("http", 404 | 405) => "are the URL and --request right, or those of the template?".to_owned(),
        ("http", _) => "are --body and --header as it wants them, or those of the template?".to_owned(),
        _ => return None,
    })
}
