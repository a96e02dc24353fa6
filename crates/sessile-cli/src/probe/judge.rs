//! Judgement of observations: order, lost and duplicated turns. Unknowns are not guessed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::ledger::{History, LeakPlace, ReplyRecord};

/// Finding about one user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ProbeFinding {
    pub(crate) user: u32,
    /// The turn whose code word it is about.
    pub(crate) told_in_turn: u32,
    /// For a wrong order, the turn whose code word it stands behind and should not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) behind_turn: Option<u32>,
    /// First turn; `None` in a history.
    pub(crate) turn: Option<u32>,
    #[serde(rename = "where")]
    pub(crate) place: LeakPlace,
    /// Whether a lost word reappeared later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) back: Option<bool>,
}

/// Whether something could be judged; else why not.
pub(crate) type Assessment = Result<(), String>;

/// Findings and their basis.
#[derive(Debug)]
pub(crate) struct Judgement {
    pub(crate) order: Vec<ProbeFinding>,
    pub(crate) lost: Vec<ProbeFinding>,
    pub(crate) doubled: Vec<ProbeFinding>,
    pub(crate) replies: Assessment,
    pub(crate) histories: Assessment,
    /// Number of judged replies.
    pub(crate) judged_replies: usize,
}

impl Judgement {
    /// Whether anything is wrong.
    pub(crate) fn is_bad(&self) -> bool {
        !(self.order.is_empty() && self.lost.is_empty() && self.doubled.is_empty())
    }
}

/// Judges the observations of a number of turns; later replies carry no code word.
pub(crate) fn judge(replies: &[ReplyRecord], histories: &[History], turns: u32) -> Judgement {
    let mut all = Judgement {
        order: Vec::new(),
        lost: Vec::new(),
        doubled: Vec::new(),
        replies: repeats(replies),
        histories: tells(replies, histories),
        judged_replies: 0,
    };
    let mut by_user: BTreeMap<u32, Vec<&ReplyRecord>> = BTreeMap::new();
    for reply in replies {
        by_user.entry(reply.user).or_default().push(reply);
    }
    for own in by_user.values_mut() {
        // Threads finish in any order.
        own.sort_by_key(|reply| reply.turn);
    }
    if all.replies.is_ok() {
        by_user.values().for_each(|own| judge_replies(own, &mut all));
    }
    if all.histories.is_ok() {
        for history in histories {
            let answered = by_user.get(&history.user).into_iter().flatten().map(|reply| reply.turn);
            let found =
                ListFindings::of(history.told.clone(), &answered.filter(|turn| *turn <= turns).collect());
            all.take(history.user, None, LeakPlace::History, &found);
        }
    }
    all
}

fn judge_replies(own: &[&ReplyRecord], all: &mut Judgement) {
    let mut answered = BTreeSet::new();
    for reply in own {
        // The newest is not judged yet: many repeat it beside the list, some only with the next message.
        let earlier = reply.own.iter().filter(|seen| seen.turn < reply.turn);
        // Who repeats whole messages may say much else; then only those count.
        let has_told = earlier.clone().any(|seen| seen.is_told);
        let list: Vec<u32> = earlier.filter(|seen| seen.is_told == has_told).map(|seen| seen.turn).collect();
        // A reply without any of the user's words says something else, and nothing of what is known.
        if !reply.own.is_empty() {
            all.judged_replies += 1;
            let found = ListFindings::of(once(list), &answered);
            all.take(reply.user, Some(reply.turn), LeakPlace::Reply, &found);
        }
        // After the judgement: a reply may lack the word of its own turn.
        answered.insert(reply.turn);
    }
    // Those of the users before have been settled already.
    for wrong in all.lost.iter_mut().filter(|wrong| wrong.back.is_none()) {
        let later = own.iter().filter(|reply| Some(reply.turn) > wrong.turn);
        let mut words = later.flat_map(|reply| &reply.own);
        wrong.back = Some(words.any(|seen| seen.turn == wrong.told_in_turn));
    }
}

impl Judgement {
    /// Adds findings, without duplicates.
    fn take(&mut self, user: u32, turn: Option<u32>, place: LeakPlace, found: &ListFindings) {
        let wrong = |told_in_turn, behind_turn| ProbeFinding {
            user,
            told_in_turn,
            behind_turn,
            turn,
            place,
            back: None,
        };
        let add = |list: &mut Vec<ProbeFinding>, new: ProbeFinding| {
            let same = |old: &ProbeFinding| {
                (old.user, old.told_in_turn, old.behind_turn, old.place)
                    == (new.user, new.told_in_turn, new.behind_turn, new.place)
            };
            // Those of one user come together.
            if !list.iter().rev().take_while(|old| old.user == user).any(same) {
                list.push(new);
            }
        };
        found.order.iter().for_each(|(late, early)| add(&mut self.order, wrong(*early, Some(*late))));
        found.lost.iter().for_each(|lost| add(&mut self.lost, wrong(*lost, None)));
        found.doubled.iter().for_each(|twice| add(&mut self.doubled, wrong(*twice, None)));
    }
}

/// Whether the service repeats words: most replies contain one from an earlier turn.
fn repeats(replies: &[ReplyRecord]) -> Assessment {
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    for reply in replies {
        let turn = first.entry(reply.user).or_insert(reply.turn);
        *turn = reply.turn.min(*turn);
    }
    let later: Vec<&ReplyRecord> = replies
        .iter()
        .filter(|reply| first.get(&reply.user).is_some_and(|turn| *turn < reply.turn))
        .collect();
    let repeating = later.iter().filter(|reply| reply.own.iter().any(|seen| seen.turn < reply.turn)).count();
    match (repeating, later.len()) {
        (_, 0) => Err("no user got two replies".to_owned()),
        (0, _) => Err("no reply repeats an earlier code word".to_owned()),
        (few, all) if few * 2 < all => {
            Err(format!("only {few} of {all} replies repeat an earlier code word"))
        }
        _ => Ok(()),
    }
}

/// Whether histories hold the users' own words.
fn tells(replies: &[ReplyRecord], histories: &[History]) -> Assessment {
    let echoes = || replies.iter().flat_map(|reply| &reply.own).any(|seen| seen.is_told);
    match () {
        () if histories.is_empty() => Err("no history could be read".to_owned()),
        () if histories.iter().all(|history| history.told.is_empty()) => {
            Err("no stored history contains a sent message unchanged".to_owned())
        }
        () if histories.iter().any(|history| !history.is_users_only) && echoes() => {
            Err("replies repeat whole messages and cannot be distinguished from messages in the history"
                .to_owned())
        }
        () => Ok(()),
    }
}

/// Findings of one list of turns.
#[derive(Debug, Default, PartialEq, Eq)]
struct ListFindings {
    /// The later turn that stands before an earlier one.
    order: Option<(u32, u32)>,
    lost: Vec<u32>,
    doubled: Vec<u32>,
}

impl ListFindings {
    /// Turns that were not answered may be there, be missing or have come late: they do not count.
    fn of(mut list: Vec<u32>, answered: &BTreeSet<u32>) -> Self {
        let (mut known, mut doubled) = (BTreeSet::new(), BTreeSet::new());
        list.retain(|turn| answered.contains(turn));
        list.retain(|turn| {
            let is_first = known.insert(*turn);
            if !is_first {
                doubled.insert(*turn);
            }
            is_first
        });
        let order = list.windows(2).find(|pair| pair[0] > pair[1]).map(|pair| (pair[0], pair[1]));
        let lost = answered.difference(&known).copied().collect();
        ListFindings { order, lost, doubled: doubled.into_iter().collect() }
    }
}

/// Removes repetitions of a whole list.
fn once(list: Vec<u32>) -> Vec<u32> {
    let end = (1..list.len()).find(|at| list[*at] <= list[*at - 1]).unwrap_or(list.len());
    let is_repeated =
        end > 0 && list.len().is_multiple_of(end) && list.chunks(end).all(|run| run == &list[..end]);
    if is_repeated { list[..end].to_vec() } else { list }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::probe::ledger::OwnCodeWord;

    fn reply(user: u32, turn: u32, list: &[u32]) -> ReplyRecord {
        let own = list.iter().map(|turn| OwnCodeWord { turn: *turn, is_told: false }).collect();
        ReplyRecord { user, turn, own }
    }

    fn about(wrong: &[ProbeFinding]) -> Vec<(u32, u32)> {
        wrong.iter().map(|wrong| (wrong.user, wrong.told_in_turn)).collect()
    }

    #[test]
    fn list_is_judged_regardless_of_its_wording() {
        let lists: [&[u32]; 6] =
            [&[1, 2, 3], &[3, 1, 2, 3], &[1, 2], &[1, 2, 3, 3], &[1, 2, 3, 1, 2, 3], &[1, 2, 1, 2, 3]];
        for list in lists {
            let replies =
                [reply(1, 1, &[1]), reply(1, 2, &[1, 2]), reply(1, 3, list), reply(1, 4, &[1, 2, 3])];
            let judged = judge(&replies, &[], 3);
            assert!(judged.replies.is_ok() && !judged.is_bad(), "{list:?}: {judged:?}");
        }
    }

    #[test]
    fn each_finding_is_reported_once() {
        let say = |list: &[u32]| {
            judge(
                &[
                    reply(1, 1, &[1]),
                    reply(1, 2, &[1, 2]),
                    reply(1, 3, &[1, 2, 3]),
                    reply(1, 4, list),
                    reply(1, 5, list),
                ],
                &[],
                4,
            )
        };
        let (order, lost, doubled) = (say(&[2, 1, 3, 4]), say(&[1, 3, 4]), say(&[1, 2, 2, 3, 4]));
        assert_eq!((about(&order.order), order.order[0].behind_turn), (vec![(1, 1)], Some(2)));
        assert!(order.lost.is_empty() && order.doubled.is_empty());
        assert_eq!(
            (about(&lost.lost), lost.lost[0].turn, lost.lost[0].back),
            (vec![(1, 2)], Some(4), Some(false))
        );
        assert!(lost.order.is_empty() && lost.doubled.is_empty());
        assert_eq!((about(&doubled.doubled), doubled.order.len(), doubled.lost.len()), (vec![(1, 2)], 0, 0));
        assert_eq!(about(&say(&[1, 1, 2, 2, 3, 3]).doubled), [(1, 1), (1, 2), (1, 3)]);
    }

    #[test]
    fn a_word_that_comes_back_was_lost_for_a_time() {
        let replies =
            [reply(1, 1, &[1]), reply(1, 2, &[1, 2]), reply(1, 3, &[1, 3]), reply(1, 4, &[1, 2, 3])];
        let judged = judge(&replies, &[], 3);
        assert_eq!((about(&judged.lost), judged.lost[0].back), (vec![(1, 2)], Some(true)));
    }

    #[test]
    fn service_without_repeated_words_is_not_judged() {
        let echo = judge(&[reply(1, 1, &[1]), reply(1, 2, &[2]), reply(1, 3, &[3])], &[], 3);
        assert!(echo.replies.is_err() && !echo.is_bad());
        let silent = judge(&[reply(1, 1, &[]), reply(1, 2, &[])], &[], 2);
        assert!(silent.replies.is_err() && !silent.is_bad());
        let rarely = [reply(1, 1, &[1]), reply(1, 2, &[1, 2]), reply(1, 3, &[3]), reply(1, 4, &[4])];
        assert_eq!(
            judge(&rarely, &[], 4).replies.unwrap_err(),
            "only 1 of 3 replies repeat an earlier code word"
        );
        // One that says something else once is only not judged for that.
        let refusal = judge(&[reply(1, 1, &[1]), reply(1, 2, &[]), reply(1, 3, &[1, 2, 3])], &[], 3);
        assert!(refusal.replies.is_ok() && !refusal.is_bad() && refusal.judged_replies == 2);
    }

    #[test]
    fn a_turn_that_was_not_answered_may_be_there_or_not() {
        for list in [&[1, 3][..], &[1, 2, 3], &[1, 3, 2]] {
            let judged = judge(&[reply(1, 1, &[1]), reply(1, 3, list), reply(1, 4, list)], &[], 3);
            assert!(judged.replies.is_ok() && !judged.is_bad(), "{list:?}: {judged:?}");
        }
    }

    #[test]
    fn history_with_distinguishable_messages_is_judged() {
        let said = |is_told| {
            (1..=3)
                .map(|turn| ReplyRecord { user: 1, turn, own: vec![OwnCodeWord { turn, is_told }] })
                .collect::<Vec<_>>()
        };
        let history = |told: &[u32], is_users_only| [History { user: 1, told: told.to_vec(), is_users_only }];
        let judged = |told: &[u32], only, echo| judge(&said(echo), &history(told, only), 3);
        assert!(
            judged(&[1, 2, 3], false, false).histories.is_ok() && !judged(&[1, 2, 3], false, false).is_bad()
        );
        assert_eq!(about(&judged(&[1, 3], true, true).lost), [(1, 2)]);
        assert_eq!(about(&judged(&[1, 2, 2, 3], false, false).doubled), [(1, 2)]);
        assert_eq!(about(&judged(&[2, 1, 3], true, false).order), [(1, 1)]);
        assert!(judged(&[1, 1, 2, 2, 3, 3], false, true).histories.is_err());
        assert!(judged(&[], true, false).histories.is_err());
    }

    /// Replies of a correct service to users in some order.
    fn honest(users: u32, turns: u32, order: &[u32]) -> Vec<ReplyRecord> {
        let mut next = vec![1; users as usize];
        let mut replies = Vec::new();
        let mut serve = |user: u32, next: &mut Vec<u32>| {
            let turn = &mut next[user as usize];
            if *turn <= turns + 1 {
                replies.push(reply(user + 1, *turn, &(1..=(*turn).min(turns)).collect::<Vec<_>>()));
                *turn += 1;
            }
        };
        order.iter().for_each(|user| serve(user % users, &mut next));
        (0..users).for_each(|user| (0..=turns).for_each(|_| serve(user, &mut next)));
        replies
    }

    proptest! {
        #[test]
        fn any_interleaving_of_honest_users_is_clean(
            users in 1u32..6, turns in 1u32..8, order in prop::collection::vec(any::<u32>(), 0..40),
        ) {
            let replies = honest(users, turns, &order);
            let histories: Vec<_> = (1..=users)
                .map(|user| History { user, told: (1..=turns).collect(), is_users_only: true }).collect();
            let judged = judge(&replies, &histories, turns);
            prop_assert!(judged.replies.is_ok() && judged.histories.is_ok() && !judged.is_bad(), "{judged:?}");
        }

        #[test]
        fn word_missing_at_the_end_is_lost(
            users in 1u32..6, turns in 3u32..8, order in prop::collection::vec(any::<u32>(), 0..40),
            who in any::<u32>(), which in any::<u32>(),
        ) {
            let mut replies = honest(users, turns, &order);
            let (user, word) = (who % users + 1, which % turns + 1);
            let last = replies.iter_mut().filter(|reply| reply.user == user).max_by_key(|reply| reply.turn).unwrap();
            last.own.retain(|seen| seen.turn != word);
            let judged = judge(&replies, &[], turns);
            prop_assert_eq!(about(&judged.lost), vec![(user, word)]);
            prop_assert!(judged.order.is_empty() && judged.doubled.is_empty());
        }
    }
}
