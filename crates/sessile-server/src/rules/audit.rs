//! Entries of the audit log for changes.

use crate::change::{ChangeOutcome, Refusal, StoreChange};
use crate::ids::SessionId;
use crate::request::Request;

/// Actions that change something, for a statement. The index `audit_changes` has the same ones in the same order;
/// otherwise PostgreSQL does not use it.
macro_rules! changing {
    () => {
        "action IN ('start_session', 'edit_session', 'end_session', 'append', 'rewind', 'fork', 'set_entry', 'ask', \
         'wait', 'renew', 'leave', 'release', 'commit_turn', 'user.add', \
         'user.disable', 'user.enable', 'token.create', 'token.revoke', \
         'login.approve')"
    };
}
pub(crate) use changing;

/// Outcome of a change that the store failed to make.
pub(crate) const FAILED: &str = "failed";

/// Outcome of a change that was made.
pub(crate) const DONE: &str = "done";

/// An entry of the audit log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AuditEntry<'r> {
    /// Name of the change.
    pub(crate) action: &'static str,
    /// Session that the change is about.
    pub(crate) session: Option<&'r str>,
    /// Name of the lock, or key of the value, that the change is about.
    pub(crate) subject: Option<&'r str>,
    /// `done`, `failed`, or the code of the refusal.
    pub(crate) outcome: &'static str,
}

impl<'r> AuditEntry<'r> {
    /// Entry of a request, if it is recorded. Waiting on is not: clients do it all the time.
    pub(crate) fn of(request: &'r Request, outcome: &Result<ChangeOutcome, Refusal>) -> Option<Self> {
        let is_waiting =
            matches!(outcome, Ok(ChangeOutcome::Ticket { ticket, .. }) if ticket.token.is_none());
        match request.change {
            StoreChange::StepAside { .. } => return None,
            StoreChange::Wait { .. } if is_waiting => return None,
            _ => {}
        }
        let outcome = outcome.as_ref().map_or_else(Refusal::name, |_| DONE);
        Some(AuditEntry { outcome, ..AuditEntry::failed(request) })
    }

    /// Entry of a request that the store failed to carry out.
    pub(crate) fn failed(request: &'r Request) -> Self {
        let change = &request.change;
        AuditEntry {
            action: change.name(),
            session: change.session().map(SessionId::as_str),
            subject: change.subject(),
            outcome: FAILED,
        }
    }
}
