//! What stores write down about a change: for the record, and to know it again.

use serde_json::Value;

use super::Request;
use crate::change::{Change, Done, Refusal};
use crate::model::Resource;
use crate::query::Answer;

/// The actions that change something, for a statement. The index `audit_changes` has the same ones in the same order, else it
/// is of no use.
macro_rules! changing {
    () => {
        "action IN ('start_session', 'edit_session', 'end_session', 'append', 'rewind', 'fork', 'set_entry', 'ask', \
         'wait', 'renew', 'leave', 'release', 'commit_turn', 'user.add', \
         'user.disable', 'user.enable', 'token.create', 'token.revoke', \
         'login.approve')"
    };
}
pub(super) use changing;

/// What the record says of a change.
pub(super) struct Noted {
    pub(super) action: String,
    pub(super) session: Option<String>,
    pub(super) subject: Option<String>,
}

/// What a change is, and which session, lock or value it is about.
pub(super) fn noted(request: &Request) -> Noted {
    let change = serde_json::to_value(&request.change).unwrap_or_default();
    let session = change["session"]
        .as_str()
        .or_else(|| change["id"].as_str())
        .or_else(|| change["resource"]["session"].as_str());
    Noted {
        action: change["change"].as_str().unwrap_or_default().to_owned(),
        session: session.map(str::to_owned),
        subject: subject(&request.change).map(str::to_owned),
    }
}

/// What a change is about beside its session: the name of a lock, or the key of a value.
fn subject(change: &Change) -> Option<&str> {
    match change {
        Change::SetEntry { key, .. } => Some(key),
        Change::Ask { resource, .. }
        | Change::Wait { resource, .. }
        | Change::Renew { resource, .. }
        | Change::Leave { resource, .. }
        | Change::StepAside { resource, .. }
        | Change::Release { resource, .. } => match resource {
            Resource::Lock { name } => Some(name),
            Resource::Turn { .. } => None,
        },
        Change::StartSession { .. }
        | Change::EditSession { .. }
        | Change::EndSession { .. }
        | Change::Append { .. }
        | Change::Rewind { .. }
        | Change::Fork { .. }
        | Change::CommitTurn { .. }
        | Change::TakeConversation { .. } => None,
    }
}

/// Whether it is for the record at all. That somebody still waits, or does not for a moment, is not: it would be said all the
/// time.
pub(super) fn is_noted(request: &Request, outcome: &Result<Done, Refusal>) -> bool {
    let waits = matches!(outcome, Ok(Done::Ticket { ticket, .. }) if ticket.token.is_none());
    match request.change {
        Change::StepAside { .. } => false,
        Change::Wait { .. } => !waits,
        _ => true,
    }
}

/// What came of it, in a word.
pub(super) fn word(outcome: &Result<Done, Refusal>) -> String {
    let Err(refusal) = outcome else { return "done".to_owned() };
    let refusal = serde_json::to_value(refusal).unwrap_or_default();
    refusal["refusal"].as_str().unwrap_or("refused").to_owned()
}

/// What was answered before, if it was to the same change.
pub(super) fn again(before: &str, change: &str, done: &str) -> Result<Done, Refusal> {
    match serde_json::from_str(done) {
        Ok(done) if comparable(before) == comparable(change) => Ok(done),
        _ => Err(Refusal::KeyReused),
    }
}

/// What was made under a key, whatever it was.
pub(super) fn before(change: &str, done: &str) -> Result<Answer, Refusal> {
    match (serde_json::from_str(change), serde_json::from_str(done)) {
        (Ok(change), Ok(done)) => Ok(Answer::Answered(Some(Box::new((change, done))))),
        _ => Err(Refusal::KeyReused),
    }
}

/// A change without what is made anew each time it is sent, and without how patient who sends it is.
fn comparable(change: &str) -> Value {
    let mut change: Value = serde_json::from_str(change).unwrap_or_default();
    if let Some(members) = change.as_object_mut() {
        for name in ["id", "claim", "wait_ms"] {
            members.remove(name);
        }
    }
    change
}
