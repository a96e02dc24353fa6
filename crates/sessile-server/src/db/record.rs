//! What stores write down about a change: for the record, and to know it again.

use serde::Deserialize;
use serde_json::Value;

use super::Request;
use crate::change::{Change, Done, Refusal};
use crate::json_text::{JsonText, Members, canonical};
use crate::model::Resource;
use crate::query::{Answer, Answered, CommittedTurn};

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

/// Begins the text of a change whose JSON is as it was sent; others are from before that was so.
const AS_SENT: &str = "as-sent ";

/// A change, as it is stored under its idempotency key.
pub(super) fn written(change: &Change) -> serde_json::Result<String> {
    Ok(format!("{AS_SENT}{}", serde_json::to_string(change)?))
}

/// The JSON of a stored change, and whether it is as it was sent.
fn json_of(stored: &str) -> (&str, bool) {
    stored.strip_prefix(AS_SENT).map_or((stored, false), |json| (json, true))
}

/// What was answered before, if it was to the same change.
pub(super) fn again(before: &str, change: &str, done: &str) -> Result<Done, Refusal> {
    let ((before, is_as_sent), (change, _)) = (json_of(before), json_of(change));
    let is_same = if is_as_sent {
        comparable(before).is_some_and(|before| Some(before) == comparable(change))
    } else {
        rounded(before) == rounded(change)
    };
    match serde_json::from_str(done) {
        Ok(done) if is_same => Ok(done),
        _ => Err(Refusal::KeyReused),
    }
}

/// What was made under a key, whatever it was.
pub(super) fn before(change: &str, done: &str) -> Result<Answer, Refusal> {
    #[derive(Deserialize)]
    struct Stored {
        change: String,
        session: Option<String>,
        bodies: Option<Vec<JsonText>>,
    }
    let stored: Result<Stored, _> = serde_json::from_str(json_of(change).0);
    match (stored, serde_json::from_str(done)) {
        (Ok(Stored { change, session: Some(session), bodies: Some(bodies) }), Ok(done))
            if change == "commit_turn" =>
        {
            let turn = Some(CommittedTurn { session, bodies });
            Ok(Answer::Answered(Some(Box::new(Answered { turn, done }))))
        }
        (Ok(_), Ok(done)) => Ok(Answer::Answered(Some(Box::new(Answered { turn: None, done })))),
        _ => Err(Refusal::KeyReused),
    }
}

/// What is made anew each time a change is sent, and how patient its sender is.
const NOT_COMPARED: [&str; 3] = ["id", "claim", "wait_ms"];

/// What two changes are compared by: their JSON in canonical form, numbers as they were sent.
fn comparable(change: &str) -> Option<Vec<(String, String)>> {
    let Members(members) = serde_json::from_str(change).ok()?;
    let compared = members.into_iter().filter(|(name, _)| !NOT_COMPARED.contains(&name.as_str()));
    Some(compared.map(|(name, value)| (name, canonical(&value))).collect())
}

/// What a change is compared by with one that was stored with its numbers rounded.
fn rounded(change: &str) -> Value {
    let mut change: Value = serde_json::from_str(change).unwrap_or_default();
    if let Some(members) = change.as_object_mut() {
        for name in NOT_COMPARED {
            members.remove(name);
        }
    }
    change
}

#[cfg(test)]
mod tests {
    use super::again;
    use crate::change::{Done, Refusal};

    #[test]
    fn change_that_was_stored_before_json_was_kept_as_sent_is_recognized() {
        let stored = r#"{"change":"append","session":"s","bodies":[{"a":1,"n":1e30}],"if_last":null}"#;
        let sent = r#"as-sent {"change":"append","session":"s","bodies":[{"n":1000000000000000000000000000000,"a":1}],"if_last":null}"#;
        let done = r#"{"done":"appended","with":{"first":1,"last":1}}"#;
        assert_eq!(again(stored, sent, done), Ok(Done::Appended { first: 1, last: 1 }));
        assert_eq!(again(sent, sent, done), Ok(Done::Appended { first: 1, last: 1 }));
        let other = sent.replace("000000,", "000001,");
        assert_eq!(again(sent, &other, done), Err(Refusal::KeyReused));
    }
}
