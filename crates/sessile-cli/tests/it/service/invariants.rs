//! What is wrong with what a session says in the end.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// A turn that was acknowledged.
#[derive(Clone, Debug)]
pub(super) struct AcknowledgedWrites {
    pub(super) turn: String,
    pub(super) token: i64,
    pub(super) first: i64,
    pub(super) last: i64,
}

/// How often something was wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Violation {
    /// Messages of somebody else.
    pub(super) leaked: usize,
    /// Turns that are not whole, or had not seen all that was said before.
    pub(super) interleaved: usize,
    /// Acknowledged turns that are not where they were said to be.
    pub(super) lost: usize,
    /// Turns that are there twice.
    pub(super) doubled: usize,
    /// Turns that nobody acknowledged, or with a token that does not grow.
    pub(super) unfenced: usize,
}

impl Violation {
    pub(super) fn add(&mut self, other: Violation) {
        self.leaked += other.leaked;
        self.interleaved += other.interleaved;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.unfenced += other.unfenced;
    }
}

/// Holds the messages of a user's session against what was acknowledged. A message says whose it is, of which turn, which
/// part of it, and after which message it was written.
pub(super) fn wrong(user: &str, messages: &[Value], acknowledged: &[AcknowledgedWrites]) -> Violation {
    let mut wrong = Violation::default();
    let mut there = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut before = 0;
    wrong.leaked = messages.iter().filter(|message| message["body"]["user"] != user).count();
    for (at, pair) in messages.chunks(2).enumerate() {
        let after = i64::try_from(at * 2).unwrap();
        let whole = pair.len() == 2
            && pair.iter().zip(0..).all(|(message, part)| {
                message["number"] == after + 1 + part
                    && message["body"]["part"] == part
                    && message["body"]["after"] == after
                    && message["body"]["turn"] == pair[0]["body"]["turn"]
                    && message["token"] == pair[0]["token"]
            });
        wrong.interleaved += usize::from(!whole);
        let turn = pair[0]["body"]["turn"].as_str().unwrap_or_default().to_owned();
        let token = pair[0]["token"].as_i64().unwrap_or_default();
        wrong.unfenced += usize::from(token <= before);
        before = token;
        wrong.doubled += usize::from(!seen.insert(turn.clone()));
        there.insert((turn, token), (after + 1, after + 2));
    }
    for one in acknowledged {
        let found = there.remove(&(one.turn.clone(), one.token));
        wrong.lost += usize::from(found != Some((one.first, one.last)));
    }
    // Everybody asks until it is acknowledged, so what is left was written by who had lost the turn.
    wrong.unfenced += there.len();
    wrong
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{AcknowledgedWrites, Violation, wrong};

    fn said(number: i64, token: i64, user: &str, turn: &str, part: i64, after: i64) -> Value {
        json!({ "number": number, "token": token, "body": { "user": user, "turn": turn, "part": part, "after": after } })
    }

    fn told(turn: &str, token: i64, first: i64) -> AcknowledgedWrites {
        AcknowledgedWrites { turn: turn.to_owned(), token, first, last: first + 1 }
    }

    #[test]
    fn checker_finds_every_kind_of_violation() {
        let a = [said(1, 1, "ann", "a", 0, 0), said(2, 1, "ann", "a", 1, 0)];
        let b = [said(3, 2, "ann", "b", 0, 2), said(4, 2, "ann", "b", 1, 2)];
        let all = [a.clone(), b.clone()].concat();
        let both = [told("a", 1, 1), told("b", 2, 3)];
        assert_eq!(wrong("ann", &all, &both), Violation::default());
        assert_eq!(wrong("ann", &a, &both).lost, 1);
        assert_eq!(wrong("bob", &all, &both).leaked, 4);
        assert_eq!(wrong("ann", &all, &both[..1]).unfenced, 1, "the write was not acknowledged");
        let mixed = [a[0].clone(), b[0].clone(), a[1].clone(), b[1].clone()];
        assert_eq!(wrong("ann", &mixed, &both).interleaved, 2);
        let stale = [said(3, 2, "ann", "b", 0, 0), said(4, 2, "ann", "b", 1, 0)];
        assert_eq!(wrong("ann", &[a.clone(), stale].concat(), &both).interleaved, 1);
        let twice = [said(3, 2, "ann", "a", 0, 2), said(4, 2, "ann", "a", 1, 2)];
        assert_eq!(wrong("ann", &[a.clone(), twice].concat(), &both[..1]).doubled, 1);
        let old = [said(3, 1, "ann", "b", 0, 2), said(4, 1, "ann", "b", 1, 2)];
        assert_eq!(wrong("ann", &[a, old].concat(), &[told("a", 1, 1), told("b", 1, 3)]).unfenced, 1);
    }
}
