//! Whether what clients saw could have happened one after the other, in an order that nobody's clock contradicts.
//!
//! Every change of a value hands out a revision, so the order is known, and only has to be held against the clocks: what
//! ended before something else began comes before it. That is all there is to linearizability of such a value.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;
use sessile_server::change::{Busy, Change, Done, Refusal};
use sessile_server::query::{Answer, Query};

use crate::stores::{Throwaway, User, lock};

/// A clock that never shows the same twice.
static CLOCK: AtomicI64 = AtomicI64::new(0);

fn tick() -> i64 {
    CLOCK.fetch_add(1, Ordering::SeqCst)
}

/// What a client did, and what it saw.
#[derive(Clone, Copy, Debug)]
struct Seen {
    begun: i64,
    ended: i64,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// It changed the value, and got this revision.
    Wrote(i64),
    /// It read this revision, or was told of it when it was refused.
    Read(i64),
}

impl Seen {
    /// Where it stands in the order: a reader between the change that it saw and the next.
    fn position(&self) -> i64 {
        match self.what {
            What::Wrote(revision) => 2 * revision,
            What::Read(revision) => 2 * revision + 1,
        }
    }
}

/// What is wrong with what clients of one value saw, if anything is.
fn contradiction(seen: &[Seen]) -> Option<String> {
    let mut written: Vec<i64> = seen
        .iter()
        .filter_map(|one| if let What::Wrote(revision) = one.what { Some(revision) } else { None })
        .collect();
    written.sort_unstable();
    if let Some(twice) = written.windows(2).find(|pair| pair[0] == pair[1]) {
        return Some(format!("revision {} was given twice", twice[0]));
    }
    let last = written.last().copied().unwrap_or(0);
    if i64::try_from(written.len()).ok() != Some(last) {
        return Some(format!(
            "{last} revisions, and {} were given: a change was lost or made twice",
            written.len()
        ));
    }
    // In the order of beginning, against the furthest that had ended before.
    let (mut by_begin, mut by_end) = (seen.to_vec(), seen.to_vec());
    by_begin.sort_by_key(|one| one.begun);
    by_end.sort_by_key(|one| one.ended);
    let (mut ended, mut furthest): (usize, Option<Seen>) = (0, None);
    for one in &by_begin {
        while let Some(before) = by_end.get(ended).filter(|before| before.ended < one.begun) {
            if furthest.is_none_or(|far| far.position() < before.position()) {
                furthest = Some(*before);
            }
            ended += 1;
        }
        if let Some(before) = furthest.filter(|before| before.position() > one.position()) {
            return Some(format!("{before:?} had ended when {one:?} began"));
        }
    }
    // Nobody reads what nobody has begun to write.
    for one in seen {
        if let What::Read(revision) = one.what
            && let Some(writer) = seen.iter().find(|other| other.what == What::Wrote(revision))
            && writer.begun > one.ended
        {
            return Some(format!("{one:?} saw {writer:?}"));
        }
    }
    None
}

#[test]
fn the_checker_accepts_what_can_be_and_refuses_what_cannot() {
    let seen = |begun, ended, what| Seen { begun, ended, what };
    use What::{Read, Wrote};
    assert_eq!(
        contradiction(&[seen(0, 1, Read(0)), seen(2, 5, Wrote(1)), seen(3, 4, Read(0)), seen(3, 9, Read(1))]),
        None
    );
    for (wrong, why) in [
        (vec![seen(0, 1, Wrote(1)), seen(2, 3, Read(0))], "a stale read"),
        (vec![seen(0, 1, Wrote(2)), seen(2, 3, Wrote(1))], "an order against the clock"),
        (vec![seen(0, 1, Wrote(1)), seen(2, 3, Wrote(1))], "twice"),
        (vec![seen(0, 1, Wrote(1)), seen(2, 3, Wrote(3))], "lost"),
        (vec![seen(0, 1, Read(1)), seen(2, 3, Wrote(1))], "from the future"),
        (vec![seen(0, 9, Wrote(1)), seen(1, 2, Read(1)), seen(3, 4, Read(0))], "back again"),
    ] {
        assert!(contradiction(&wrong).is_some(), "{why}");
    }
}

/// One client of a value: reads it, and changes it if nobody else has meanwhile.
async fn client(user: User, session: String, rounds: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    for _ in 0..rounds {
        let begun = tick();
        let query =
            Query::Entries { session: session.clone(), key: Some("k".to_owned()), after: None, limit: 1 };
        let Ok(Answer::Entries(entries)) = user.ask(query).await else { panic!() };
        let revision = entries.first().map_or(0, |entry| entry.revision);
        seen.push(Seen { begun, ended: tick(), what: What::Read(revision) });
        let begun = tick();
        let set = Change::SetEntry {
            session: session.clone(),
            key: "k".to_owned(),
            value: Some(json!(begun)),
            if_revision: Some(revision),
        };
        let what = match user.change(set).await {
            Ok(Done::Entry(Some(entry))) => What::Wrote(entry.revision),
            Err(Refusal::Changed { revision }) => What::Read(revision),
            other => panic!("{other:?}"),
        };
        seen.push(Seen { begun, ended: tick(), what });
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_could_have_been_changed_one_after_the_other() {
    let store = Throwaway::sqlite().await;
    let other = store.another().await;
    let session = User::new(&store.db, "ann").start(None).await.id;
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..16 {
        let user = User::new(if number % 2 == 0 { &store.db } else { &other }, "ann");
        clients.spawn(client(user, session.clone(), 25));
    }
    let seen: Vec<Seen> = clients.join_all().await.concat();
    assert_eq!(contradiction(&seen), None);
    assert!(seen.iter().any(|one| matches!(one.what, What::Wrote(_))));
}

/// The time in which somebody had a lock for certain: from being told until giving it back.
#[derive(Clone, Copy, Debug)]
struct Had {
    from: i64,
    until: i64,
    token: i64,
}

/// Two who had a lock at once, or one who had it later with a smaller token.
fn overlap(had: &[Had]) -> Option<(Had, Had)> {
    let mut had = had.to_vec();
    had.sort_by_key(|one| one.from);
    had.windows(2)
        .map(|pair| (pair[0], pair[1]))
        .find(|(one, two)| two.from < one.until || two.token <= one.token)
}

#[test]
fn two_who_have_it_at_once_are_found() {
    let had = |from, until, token| Had { from, until, token };
    assert!(overlap(&[had(0, 2, 1), had(3, 4, 2)]).is_none());
    assert!(overlap(&[had(0, 4, 1), had(3, 5, 2)]).is_some());
    assert!(overlap(&[had(0, 2, 2), had(3, 4, 1)]).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_is_never_had_by_two() {
    let store = Throwaway::sqlite().await;
    let other = store.another().await;
    let all = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..12 {
        let (all, user) =
            (Arc::clone(&all), User::new(if number % 2 == 0 { &store.db } else { &other }, "ann"));
        clients.spawn(async move {
            let lock = lock("deploy");
            for _ in 0..8 {
                let mut placed = user.ask_for(&lock, Busy::Enqueue, 30_000).await;
                let (ticket, from) = loop {
                    match placed {
                        Ok(Done::Ticket { ticket, .. }) if ticket.token.is_some() => break (ticket, tick()),
                        Ok(Done::Ticket { ticket, .. }) => {
                            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                            placed = user.wait_for(&lock, ticket.place, 30_000).await;
                        }
                        other => panic!("{other:?}"),
                    }
                };
                let (until, token) = (tick(), ticket.token.unwrap());
                user.change(Change::Release { resource: lock.clone(), token }).await.unwrap();
                all.lock().unwrap().push(Had { from, until, token });
            }
        });
    }
    clients.join_all().await;
    let had = all.lock().unwrap().clone();
    assert_eq!(had.len(), 96);
    assert!(overlap(&had).is_none(), "{:?}", overlap(&had));
}
