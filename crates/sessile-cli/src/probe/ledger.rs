//! Ledger of observations. Of replies only their code words are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Serialize;

use super::canary::{Canaries, CodeWordId, excerpt};
use super::capture::CapturedResponse;
use super::encoding::{Encoding, visit_decodings};
use super::service::{FailureKind, ProbeFailure, ProbeReply, StoredHistory};

/// Limits of leaks with an excerpt: in all, and per pair of users.
const KEPT: usize = 1000;
const KEPT_OF_PAIR: u64 = 3;

/// Place of a leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LeakPlace {
    /// In a reply.
    Reply,
    /// In a header of an answer.
    Header,
    /// A history.
    History,
    /// In an answer that says that something went wrong.
    Error,
}

/// Another user's code word.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Leak {
    /// Owner of the code word.
    pub(crate) from: u32,
    /// User that saw it.
    pub(crate) to: u32,
    /// Turn of the leak; `None` in a history.
    pub(crate) turn: Option<u32>,
    /// Turn in which its owner sent it.
    pub(crate) told_in_turn: u32,
    #[serde(rename = "where")]
    pub(crate) place: LeakPlace,
    /// Encodings around the code word, from the outside in.
    pub(crate) encodings: Vec<Encoding>,
    pub(crate) canary: String,
    /// Text around the code word, decoded.
    pub(crate) excerpt: String,
    /// Source of the excerpt.
    pub(crate) source: &'static str,
}

/// Judged part of a reply: the user's own code words, by turn.
#[derive(Clone, Debug)]
pub(crate) struct ReplyRecord {
    pub(crate) user: u32,
    pub(crate) turn: u32,
    pub(crate) own: Vec<OwnCodeWord>,
}

/// One of the user's own code words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnCodeWord {
    pub(crate) turn: u32,
    /// Whether the code word is part of its message's text.
    pub(crate) is_told: bool,
}

/// History of a user: the turns in it, in order.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) user: u32,
    pub(crate) told: Vec<u32>,
    pub(crate) is_users_only: bool,
}

/// Observations so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) replies: Vec<ReplyRecord>,
    pub(crate) histories: Vec<History>,
    pub(crate) latencies: Vec<Duration>,
    /// Counts of failures, by kind.
    pub(crate) failed: BTreeMap<FailureKind, u64>,
    pub(crate) unread_histories: BTreeMap<FailureKind, u64>,
    /// First message of the service, by kind of failure.
    pub(crate) told: BTreeMap<FailureKind, String>,
    /// Counts of foreign code words, by owner and by user that saw them.
    pub(crate) pairs: BTreeMap<(u32, u32), u64>,
    /// In how many places of each kind.
    pub(crate) places: BTreeMap<LeakPlace, u64>,
    pub(crate) leaks: Vec<Leak>,
}

/// Progress of a probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeProgress {
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    pub(crate) leaks: u64,
}

impl Ledger {
    /// Progress.
    pub(crate) fn progress(&self) -> ProbeProgress {
        ProbeProgress {
            answered: self.replies.len() as u64,
            failed: self.failures(),
            leaks: self.leak_count(),
        }
    }

    /// Number of requests without a reply.
    pub(crate) fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Number of foreign code words.
    pub(crate) fn leak_count(&self) -> u64 {
        self.places.values().sum()
    }

    /// A reply came.
    pub(crate) fn heard(
        &mut self,
        canaries: &Canaries,
        at: CodeWordId,
        said: &ProbeReply,
        received: &CapturedResponse,
    ) {
        let seen = canaries.find(&said.text);
        let own = seen.iter().filter(|seen| seen.code.user == at.user);
        let own = own.map(|seen| OwnCodeWord { turn: seen.code.turn, is_told: seen.is_told }).collect();
        self.replies.push(ReplyRecord { user: at.user, turn: at.turn, own });
        self.look(canaries, at.user, Some(at.turn), LeakPlace::Reply, received, &[&said.text, &said.whole]);
    }

    /// Records a missing reply.
    pub(crate) fn missed(
        &mut self,
        canaries: &Canaries,
        at: CodeWordId,
        trouble: ProbeFailure,
        received: &CapturedResponse,
    ) {
        self.look(canaries, at.user, Some(at.turn), LeakPlace::Error, received, &[&trouble.whole]);
        if let Some(told) = trouble.told {
            self.told.entry(trouble.kind.clone()).or_insert(told);
        }
        count(&mut self.failed, trouble.kind, 1);
    }

    /// Records a history, or a failure to read it.
    pub(crate) fn read(
        &mut self,
        canaries: &Canaries,
        user: u32,
        stored: Result<StoredHistory, ProbeFailure>,
        received: &CapturedResponse,
    ) {
        match stored {
            Ok(StoredHistory { items, is_users_only, whole }) => {
                let seen = items.iter().flat_map(|item| canaries.find(item));
                let told = seen.filter(|seen| seen.code.user == user && seen.is_told);
                let told = told.map(|seen| seen.code.turn).collect();
                self.histories.push(History { user, told, is_users_only });
                let texts = items.iter().chain([&whole]).map(String::as_str).collect::<Vec<_>>();
                self.look(canaries, user, None, LeakPlace::History, received, &texts);
            }
            Err(trouble) => {
                self.look(canaries, user, None, LeakPlace::Error, received, &[&trouble.whole]);
                count(&mut self.unread_histories, trouble.kind, 1);
            }
        }
    }

    /// Merges another ledger, which was filled without a lock.
    pub(crate) fn merge(&mut self, other: Ledger) {
        for leak in other.leaks {
            let known = self.pairs.get(&(leak.from, leak.to)).copied().unwrap_or_default();
            // A service that leaks everything would fill the memory with excerpts of the same leak.
            if known < KEPT_OF_PAIR && self.leaks.len() < KEPT {
                self.leaks.push(leak);
            }
        }
        other.pairs.into_iter().for_each(|(pair, count)| *self.pairs.entry(pair).or_default() += count);
        other.places.into_iter().for_each(|(place, count)| *self.places.entry(place).or_default() += count);
        for (kind, told) in other.told {
            self.told.entry(kind).or_insert(told);
        }
        other.failed.into_iter().for_each(|(kind, times)| count(&mut self.failed, kind, times));
        other
            .unread_histories
            .into_iter()
            .for_each(|(kind, times)| count(&mut self.unread_histories, kind, times));
        self.replies.extend(other.replies);
        self.histories.extend(other.histories);
        self.latencies.extend(other.latencies);
    }

    /// Searches an answer for code words of other users, also encoded ones. Each code word counts once.
    fn look(
        &mut self,
        canaries: &Canaries,
        to: u32,
        turn: Option<u32>,
        place: LeakPlace,
        received: &CapturedResponse,
        texts: &[&str],
    ) {
        let mut known = BTreeSet::new();
        // The body as it came is mostly one of the texts.
        let body = Some(received.body.as_str()).filter(|body| !texts.contains(body));
        let texts = texts.iter().copied().chain(body).map(|text| (place, text));
        for (place, text) in texts.chain([(LeakPlace::Header, received.headers.as_str())]) {
            visit_decodings(text, &mut |encodings, text| {
                for seen in canaries.find(text) {
                    let CodeWordId { user: from, turn: told_in_turn } = seen.code;
                    // The same word is in the text, in the body around it and perhaps in a header.
                    if from == to || !known.insert(seen.code) {
                        continue;
                    }
                    let count = self.pairs.entry((from, to)).or_default();
                    *count += 1;
                    *self.places.entry(place).or_default() += 1;
                    if *count <= KEPT_OF_PAIR && self.leaks.len() < KEPT {
                        self.leaks.push(Leak {
                            from,
                            to,
                            turn,
                            told_in_turn,
                            place,
                            encodings: encodings.to_vec(),
                            canary: canaries.word(seen.code).to_owned(),
                            excerpt: excerpt(text, seen.at),
                            source: "agent",
                        });
                    }
                }
            });
        }
    }
}

/// Counts a reason. A service may say a new one each time; those are one.
fn count(reasons: &mut BTreeMap<FailureKind, u64>, kind: FailureKind, times: u64) {
    const MOST: usize = 50;
    let is_new = !reasons.contains_key(&kind);
    let kind = if is_new && reasons.len() >= MOST {
        FailureKind::Unusable("other reasons".to_owned())
    } else {
        kind
    };
    *reasons.entry(kind).or_default() += times;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const USERS: u32 = 4;
    const TURNS: u32 = 5;

    fn said(text: String) -> ProbeReply {
        ProbeReply { whole: format!("{{\"reply\": \"{text}\"}}"), text }
    }

    fn honest(canaries: &Canaries, at: CodeWordId) -> String {
        let words = (1..=at.turn).map(|turn| canaries.word(CodeWordId { turn, ..at }));
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_error_and_a_history_can_leak_too() {
        let canaries = Canaries::new(USERS, TURNS, Some(1)).unwrap();
        let (one, two) = (CodeWordId { user: 1, turn: 1 }, CodeWordId { user: 2, turn: 3 });
        let mut ledger = Ledger::default();
        let trouble = || {
            let whole = format!("stack: {}", canaries.word(one));
            ProbeFailure { whole, ..ProbeFailure::new(FailureKind::Status(500)) }
        };
        ledger.missed(&canaries, two, trouble(), &CapturedResponse::default());
        let message = |code| canaries.message(code);
        let stored = StoredHistory { items: vec![message(two), message(one)], ..StoredHistory::default() };
        ledger.read(&canaries, 2, Ok(stored), &CapturedResponse::default());
        ledger.read(&canaries, 2, Err(trouble()), &CapturedResponse::default());
        let places = ledger.leaks.iter().map(|leak| (leak.from, leak.to, leak.turn, leak.place));
        let expected = [
            (1, 2, Some(3), LeakPlace::Error),
            (1, 2, None, LeakPlace::History),
            (1, 2, None, LeakPlace::Error),
        ];
        assert_eq!(places.collect::<Vec<_>>(), expected);
        assert_eq!((ledger.failures(), &ledger.histories[0].told), (1, &vec![3]));
        assert!(ledger.leaks[0].excerpt.contains(canaries.word(one)));
    }

    #[test]
    fn joined_chunks_are_complete_and_bounded() {
        let canaries = Canaries::new(USERS, TURNS, Some(1)).unwrap();
        let mut all = Ledger::default();
        for turn in 1..=TURNS {
            let mut one = Ledger::default();
            let (at, foreign) = (CodeWordId { user: 1, turn }, CodeWordId { user: 2, turn });
            one.heard(&canaries, at, &said(canaries.word(foreign).to_owned()), &CapturedResponse::default());
            one.latencies.push(Duration::ZERO);
            one.missed(
                &canaries,
                at,
                ProbeFailure::unusable(&format!("odd {turn}"), ""),
                &CapturedResponse::default(),
            );
            all.merge(one);
        }
        assert_eq!((all.leak_count(), all.pairs[&(2, 1)], all.leaks.len()), (5, 5, 3));
        assert_eq!((all.replies.len(), all.latencies.len(), all.failures()), (5, 5, 5));
        (0..100).for_each(|odd| count(&mut all.failed, FailureKind::Unusable(format!("new {odd}")), 1));
        assert_eq!((all.failures(), all.failed.len()), (105, 51));
    }

    #[test]
    fn leak_in_a_header_or_an_unparsed_body_is_found_once() {
        let canaries = Canaries::new(USERS, TURNS, Some(1)).unwrap();
        let (at, foreign) = (CodeWordId { user: 1, turn: 1 }, CodeWordId { user: 2, turn: 1 });
        let word = canaries.word(foreign);
        let received = |headers: &str, body: &str| CapturedResponse {
            headers: headers.to_owned(),
            body: body.to_owned(),
        };
        let line = format!("x-trace: {word}\n");
        for (received, place) in [
            (received(&line, ""), LeakPlace::Header),
            (received(&line, &format!("{{\"debug\": \"{word}\"}}")), LeakPlace::Reply),
        ] {
            let mut ledger = Ledger::default();
            ledger.heard(&canaries, at, &said("fine".to_owned()), &received);
            assert_eq!(ledger.places.into_iter().collect::<Vec<_>>(), [(place, 1)]);
            assert!(ledger.leaks[0].excerpt.contains(word) && ledger.leaks[0].encodings.is_empty());
        }
    }

    proptest! {
        #[test]
        fn foreign_word_is_a_leak_and_own_words_are_not(
            user in 1..=USERS, turn in 1..=TURNS, from in 1..=USERS, told in 1..=TURNS,
            before in "[ -~]{0,30}", after in "\\PC{0,30}", only_around in any::<bool>(),
        ) {
            let canaries = Canaries::new(USERS, TURNS, Some(3)).unwrap();
            let at = CodeWordId { user, turn };
            let mut ledger = Ledger::default();
            ledger.heard(&canaries, at, &said(honest(&canaries, at)), &CapturedResponse::default());
            prop_assert_eq!(ledger.leak_count(), 0);
            let foreign = CodeWordId { user: from, turn: told };
            let leaky = format!("{before}{}{after}", canaries.word(foreign));
            let own = said(honest(&canaries, at));
            let reply = if only_around { ProbeReply { whole: leaky, ..own } } else { ProbeReply { text: leaky, ..own } };
            ledger.heard(&canaries, at, &reply, &CapturedResponse::default());
            let expected: Vec<_> = (from != user).then_some(((from, user), 1)).into_iter().collect();
            prop_assert_eq!(ledger.pairs.into_iter().collect::<Vec<_>>(), expected);
            prop_assert!(ledger.leaks.iter().all(|leak| leak.told_in_turn == told && leak.turn == Some(turn)));
        }
    }
}
