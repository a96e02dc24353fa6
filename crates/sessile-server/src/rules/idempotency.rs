//! Idempotency: the same change under the same key has the same outcome, however often it is sent.

use serde::Deserialize;
use serde_json::Value;
use sessile::database::SENT_CHANGE;
use sessile::json::ObjectMembers;

use super::snapshot::StoredAnswer;
use crate::change::{ChangeOutcome, Refusal, StoreChange};
use crate::ids::{Position, SessionId};
use crate::json_text::{JsonText, canonical};
use crate::query::{CommittedTurn, QueryAnswer, StoredOutcome};

/// Members that differ between retries of a change, and the wait.
// Ids and claims are generated per attempt, and a retry may wait for less time than the first one.
const NOT_COMPARED: [&str; 3] = ["id", "claim", "wait_ms"];

/// Stored form of a change under its idempotency key.
pub(crate) fn encode(change: &StoreChange) -> serde_json::Result<String> {
    Ok(format!("{SENT_CHANGE}{}", serde_json::to_string(change)?))
}

/// The JSON of a stored change, and whether it is as it was sent. Changes without the prefix were stored by versions that
/// rounded numbers.
fn json_of(stored: &str) -> (&str, bool) {
    stored.strip_prefix(SENT_CHANGE).map_or((stored, false), |json| (json, true))
}

/// The stored outcome, if it is that of the same change.
pub(super) fn replay(stored: &StoredAnswer, change: &str) -> Result<ChangeOutcome, Refusal> {
    let ((before, is_as_sent), (change, _)) = (json_of(&stored.change), json_of(change));
    let is_same = if is_as_sent {
        before == change || comparable(before).is_some_and(|before| Some(before) == comparable(change))
    } else {
        // Rounding both sides is the only comparison left for a change that was stored rounded.
        rounded(before) == rounded(change)
    };
    match serde_json::from_str(&stored.done) {
        Ok(done) if is_same => Ok(done),
        _ => Err(Refusal::KeyReused),
    }
}

/// The stored outcome, whichever change it is of.
pub(crate) fn decode(stored: &StoredAnswer) -> Result<QueryAnswer, Refusal> {
    #[derive(Deserialize)]
    struct StoredChange {
        change: String,
        session: Option<SessionId>,
        bodies: Option<Vec<JsonText>>,
    }
    let change: Result<StoredChange, _> = serde_json::from_str(json_of(&stored.change).0);
    let turn = match change {
        Ok(StoredChange { change, session: Some(session), bodies: Some(bodies) })
            if change == "commit_turn" =>
        {
            Some(CommittedTurn { session, bodies })
        }
        Ok(_) => None,
        Err(_) => return Err(Refusal::KeyReused),
    };
    let done = serde_json::from_str(&stored.done).map_err(|_| Refusal::KeyReused)?;
    Ok(QueryAnswer::Answered(Some(Box::new(StoredOutcome { turn, done }))))
}

/// Position of the place that was answered, if it was one.
pub(crate) fn position(stored: &StoredAnswer) -> Option<Position> {
    match serde_json::from_str(&stored.done) {
        Ok(ChangeOutcome::Ticket { ticket, .. }) => Some(ticket.place),
        _ => None,
    }
}

/// The form in which changes are compared: canonical JSON, with numbers as they were sent.
fn comparable(change: &str) -> Option<Vec<(String, String)>> {
    let ObjectMembers(members) = serde_json::from_str(change).ok()?;
    let compared = members.into_iter().filter(|(name, _)| !NOT_COMPARED.contains(&name.as_str()));
    Some(compared.map(|(name, value)| (name, canonical(&value))).collect())
}

/// The form in which a change is compared with one that was stored with its numbers rounded.
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
    use super::replay;
    use crate::change::{ChangeOutcome, Refusal};
    use crate::rules::StoredAnswer;

    #[test]
    fn change_of_an_older_version_is_recognized() {
        let rounded = r#"{"change":"append","session":"s","bodies":[{"a":1,"n":1e30}],"if_last":null}"#;
        let sent = r#"as-sent {"change":"append","session":"s","bodies":[{"n":1000000000000000000000000000000,"a":1}],"if_last":null}"#;
        let done = r#"{"done":"appended","with":{"first":1,"last":1}}"#;
        let stored = |change: &str| StoredAnswer { change: change.to_owned(), done: done.to_owned() };
        assert_eq!(replay(&stored(rounded), sent), Ok(ChangeOutcome::Appended { first: 1, last: 1 }));
        assert_eq!(replay(&stored(sent), sent), Ok(ChangeOutcome::Appended { first: 1, last: 1 }));
        let other = sent.replace("000000,", "000001,");
        assert_eq!(replay(&stored(sent), &other), Err(Refusal::KeyReused));
    }
}
