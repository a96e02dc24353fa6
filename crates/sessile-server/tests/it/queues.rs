//! Queues for turns and locks: who holds, who waits, and who is passed over.

use std::time::Duration;

use sessile_server::change::{Busy, ChangeOutcome, LockMode, PRESENT_MS, Refusal, StoreChange};
use sessile_server::ids::Position;
use sessile_server::model::Resource;
use sessile_server::query::{Query, QueryAnswer};
use sessile_server::store::PendingWait;

use crate::stores::{CLAIM, Throwaway, User, asking, lock, ticket, turn};
use crate::suite::with_every_store;

/// When nothing is heard of a process for so long, it is passed over.
const PATIENCE: Duration = Duration::from_millis(PRESENT_MS.unsigned_abs());

with_every_store! {
    turn_has_one_holder_and_ordered_waiters
    lost_turn_commits_nothing
    busy_turn_is_rejected_or_interrupted
    place_is_released_once
    waiter_of_a_dead_process_is_skipped
    waiter_that_stepped_aside_is_skipped_and_can_return
    waiter_of_a_live_process_is_not_skipped
    place_belongs_to_the_last_claim
    lock_excludes_within_a_user_only
    lock_of_a_session_is_found_and_refused_after_its_end
    shared_lock_admits_readers_and_starves_no_writer
}

async fn turn_has_one_holder_and_ordered_waiters(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let session = user.start(None).await;
    let turn = turn(&session);
    let first = ticket(user.ask_for(&turn, Busy::Enqueue, 60_000).await);
    let second = ticket(user.ask_for(&turn, Busy::Enqueue, 60_000).await);
    let third = ticket(user.ask_for(&turn, Busy::Enqueue, 60_000).await);
    assert!(first.token.is_some() && second.token.is_none() && third.token.is_none());
    assert!(matches!(user.append(&session.id, &["x"]).await, Err(Refusal::Held { .. })));
    assert!(matches!(
        user.change(StoreChange::Rewind { session: session.id.clone(), to: 0 }).await,
        Err(Refusal::Held { .. })
    ));
    let token = first.token.unwrap();
    user.commit(&session.id, token, &["one".to_owned(), "two".to_owned()]).await.unwrap();
    assert_eq!(ticket(user.wait_for(&turn, third.place, 1000).await).token, None, "the second comes before");
    let Ok(ChangeOutcome::Ticket { ticket: second, history }) =
        user.wait_for(&turn, second.place, 60_000).await
    else {
        panic!()
    };
    assert_eq!(history.unwrap().len(), 2, "the history contains the earlier commits");
    assert!(second.token.unwrap() > token);
    user.leave(&turn, second.place).await.unwrap();
    let third = ticket(user.wait_for(&turn, third.place, 60_000).await);
    assert!(third.token > second.token);
    user.commit(&session.id, third.token.unwrap(), &[]).await.unwrap();
    assert_eq!(user.texts(&session.id).await, ["one", "two"]);
}

async fn shared_lock_admits_readers_and_starves_no_writer(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let lock = lock("schema");
    let ask = async |mode| ticket(user.ask_in(&lock, Busy::Enqueue, mode, 60_000).await);
    let first = ask(LockMode::Shared).await;
    let second = ask(LockMode::Shared).await;
    assert!(first.token.is_some() && second.token > first.token, "readers share it, each with a token");
    let writer = ask(LockMode::Exclusive).await;
    let late = [ask(LockMode::Shared).await, ask(LockMode::Shared).await];
    assert!(
        writer.token.is_none() && late.iter().all(|late| late.token.is_none()),
        "a writer waits before them"
    );
    let rejected = user.ask_in(&lock, Busy::Reject, LockMode::Shared, 60_000).await;
    assert!(matches!(rejected, Err(Refusal::Held { .. })), "{rejected:?}");
    let Ok(QueryAnswer::Locks(page)) = user.ask(Query::Locks { after: None, limit: 10 }).await else {
        panic!()
    };
    let listed = &page.items[0];
    assert_eq!((listed.ticket.place, listed.others.len(), listed.waiting), (first.place, 1, 3));
    assert_eq!(listed.ticket.mode, LockMode::Shared);
    user.change(StoreChange::Release { resource: lock.clone(), token: second.token.unwrap() }).await.unwrap();
    assert_eq!(ticket(user.wait_for(&lock, writer.place, 1000).await).token, None, "a reader is left");
    user.change(StoreChange::Release { resource: lock.clone(), token: first.token.unwrap() }).await.unwrap();
    for late in &late {
        assert_eq!(ticket(user.wait_for(&lock, late.place, 1000).await).token, None, "the writer is next");
    }
    let writer = ticket(user.wait_for(&lock, writer.place, 60_000).await);
    assert!(writer.token > second.token);
    user.change(StoreChange::Release { resource: lock.clone(), token: writer.token.unwrap() }).await.unwrap();
    for late in late.iter().rev() {
        assert!(ticket(user.wait_for(&lock, late.place, 60_000).await).token > writer.token);
    }
}

async fn lost_turn_commits_nothing(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let session = user.start(None).await;
    let turn = turn(&session);
    let late = ticket(user.ask_for(&turn, Busy::Enqueue, 30).await).token.unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    let renewed = StoreChange::Renew { resource: turn.clone(), token: late, ttl_ms: 60_000 };
    assert_eq!(user.change(renewed).await, Err(Refusal::Lost { token: late }));
    let next = ticket(user.ask_for(&turn, Busy::Enqueue, 60_000).await).token.unwrap();
    assert!(next > late);
    assert_eq!(
        user.commit(&session.id, late, &["late".to_owned()]).await,
        Err(Refusal::Lost { token: late })
    );
    user.commit(&session.id, next, &["next".to_owned()]).await.unwrap();
    let twice = user.commit(&session.id, next, &["twice".to_owned()]).await;
    assert_eq!(twice, Err(Refusal::Lost { token: next }));
    assert_eq!(user.texts(&session.id).await, ["next"]);
}

async fn busy_turn_is_rejected_or_interrupted(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let session = user.start(None).await;
    let turn = turn(&session);
    let first = ticket(user.ask_for(&turn, Busy::Reject, 60_000).await).token.unwrap();
    assert!(matches!(user.ask_for(&turn, Busy::Reject, 60_000).await, Err(Refusal::Held { .. })));
    let waits = ticket(user.ask_for(&turn, Busy::Enqueue, 60_000).await);
    let taker = ticket(user.ask_for(&turn, Busy::Interrupt, 60_000).await);
    assert!(taker.token.unwrap() > first);
    assert_eq!(user.commit(&session.id, first, &["x".to_owned()]).await, Err(Refusal::Lost { token: first }));
    assert_eq!(ticket(user.wait_for(&turn, waits.place, 60_000).await).token, None);
    user.commit(&session.id, taker.token.unwrap(), &["taken".to_owned()]).await.unwrap();
    let waited = ticket(user.wait_for(&turn, waits.place, 60_000).await);
    assert!(waited.token > taker.token, "tokens grow in the order of holding");
}

async fn place_is_released_once(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let lock = lock("deploy");
    let held = ticket(user.ask_for(&lock, Busy::Enqueue, 60_000).await);
    let waits = ticket(user.ask_for(&lock, Busy::Enqueue, 60_000).await);
    user.leave(&lock, waits.place).await.unwrap();
    assert_eq!(
        user.wait_for(&lock, waits.place, 1000).await,
        Err(Refusal::PlaceLost { place: Some(waits.place) })
    );
    user.leave(&lock, held.place).await.unwrap();
    assert_eq!(user.leave(&lock, held.place).await, Err(Refusal::PlaceLost { place: Some(held.place) }));
}

async fn waiter_of_a_dead_process_is_skipped(store: &Throwaway) {
    let (here, there) = (User::new(&store.db, "ann"), User::new(&store.another().await, "ann"));
    let lock = lock("deploy");
    let held = ticket(here.ask_for(&lock, Busy::Enqueue, 60_000).await);
    let dies = ticket(there.keyed(Some("k"), asking(&lock, "first", Busy::Enqueue, 60_000)).await);
    let waits = ticket(here.ask_for(&lock, Busy::Enqueue, 60_000).await);
    let behind = ticket(here.ask_for(&lock, Busy::Enqueue, 60_000).await);
    here.leave(&lock, held.place).await.unwrap();
    let now = ticket(here.wait_for(&lock, waits.place, 60_000).await);
    assert_eq!(now.token, None, "a waiter of another process is first");
    let begun = std::time::Instant::now();
    // The other process sends no further heartbeat.
    while ticket(here.wait_for(&lock, waits.place, 60_000).await).token.is_none() {
        assert!(begun.elapsed() < 5 * PATIENCE, "the waiter of a dead process blocks the queue");
        tokio::time::sleep(PATIENCE / 10).await;
    }
    assert!(begun.elapsed() > PATIENCE / 2, "a slow waiter is not skipped too early");
    // Whoever waited there asks again here, and is where they were.
    let again = ticket(here.keyed(Some("k"), asking(&lock, "again", Busy::Enqueue, 60_000)).await);
    assert_eq!((again.place, again.token), (dies.place, None));
    here.leave(&lock, waits.place).await.unwrap();
    assert_eq!(ticket(here.wait_for(&lock, behind.place, 60_000).await).token, None);
    let wait = StoreChange::Wait {
        resource: lock.clone(),
        place: again.place,
        claim: "again".to_owned(),
        ttl_ms: 60_000,
        session: None,
        history: 0,
    };
    assert!(ticket(here.change(wait).await).token.is_some());
}

async fn waiter_that_stepped_aside_is_skipped_and_can_return(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let lock = lock("deploy");
    let asks = |claim: &str| asking(&lock, claim, Busy::Enqueue, 60_000);
    let aside = |claim: &str| StoreChange::StepAside { resource: lock.clone(), claim: claim.to_owned() };
    let held = ticket(user.ask_for(&lock, Busy::Enqueue, 60_000).await);
    let first = ticket(user.keyed(Some("k"), asks("first")).await);
    let second = ticket(user.ask_for(&lock, Busy::Enqueue, 60_000).await);
    let third = ticket(user.ask_for(&lock, Busy::Enqueue, 60_000).await);
    user.change(aside("first")).await.unwrap();
    user.leave(&lock, held.place).await.unwrap();
    assert!(ticket(user.wait_for(&lock, second.place, 60_000).await).token.is_some());
    // It comes back before those who came later, and what it said of the place before is nothing to it any more.
    assert_eq!(ticket(user.keyed(Some("k"), asks("again")).await).place, first.place);
    assert_eq!(user.change(aside("first")).await, Err(Refusal::PlaceLost { place: None }));
    user.leave(&lock, second.place).await.unwrap();
    assert_eq!(ticket(user.wait_for(&lock, third.place, 60_000).await).token, None);
    let back = ticket(user.keyed(Some("k"), asks("again")).await);
    assert_eq!((back.place, back.token.is_some()), (first.place, true));
    // What is held is not left by stepping aside.
    assert_eq!(user.change(aside("again")).await, Err(Refusal::PlaceLost { place: None }));
    assert_eq!(ticket(user.wait_for(&lock, third.place, 60_000).await).token, None);
}

async fn waiter_of_a_live_process_is_not_skipped(store: &Throwaway) {
    let (here, there) = (User::new(&store.db, "ann"), User::new(&store.another().await, "ann"));
    let lock = lock("deploy");
    let held = ticket(here.ask_for(&lock, Busy::Enqueue, 60_000).await);
    let waits = ticket(there.ask_for(&lock, Busy::Enqueue, 60_000).await);
    let behind = ticket(here.ask_for(&lock, Busy::Enqueue, 60_000).await);
    here.leave(&lock, held.place).await.unwrap();
    for _ in 0..12 {
        tokio::time::sleep(PATIENCE / 5).await;
        there.db.heartbeat().await.unwrap();
        assert_eq!(ticket(here.wait_for(&lock, behind.place, 60_000).await).token, None);
    }
    assert!(ticket(there.wait_for(&lock, waits.place, 1000).await).token.is_some());
}

async fn place_belongs_to_the_last_claim(store: &Throwaway) {
    let (here, there) = (User::new(&store.db, "ann"), User::new(&store.another().await, "ann"));
    let lock = lock("deploy");
    let asks = |claim: &str| asking(&lock, claim, Busy::Enqueue, 60_000);
    let leaves = |place, claim: &str| StoreChange::Leave {
        resource: lock.clone(),
        place: Some(place),
        claim: claim.to_owned(),
        key: None,
    };
    let held = ticket(here.ask_for(&lock, Busy::Enqueue, 60_000).await);
    let place = ticket(here.keyed(Some("k"), asks("first")).await).place;
    let behind = ticket(here.ask_for(&lock, Busy::Enqueue, 60_000).await);
    // Sent again, to another process: it keeps its place, and the first can no longer take or leave it.
    assert_eq!(ticket(there.keyed(Some("k"), asks("second")).await).place, place);
    let lost = Err(Refusal::PlaceLost { place: Some(place) });
    assert_eq!(here.change(leaves(place, "first")).await, lost);
    here.leave(&lock, held.place).await.unwrap();
    assert_eq!(ticket(here.wait_for(&lock, behind.place, 1000).await).token, None);
    // Sent again once more, it is the first by now, and held.
    let third = ticket(here.keyed(Some("k"), asks("third")).await);
    assert!(third.token.is_some() && third.place == place);
    assert_eq!(
        there.change(leaves(place, "second")).await,
        lost,
        "a held place cannot be withdrawn by another claim"
    );
    assert_eq!(ticket(there.keyed(Some("k"), asks("fourth")).await).token, third.token);
    there.change(leaves(place, "fourth")).await.unwrap();
    assert_eq!(here.keyed(Some("k"), asks("fifth")).await, lost, "the lock was released");
    // Who leaves without having been told of it lets the same key ask anew.
    let new = ticket(here.keyed(Some("new"), asks("sixth")).await).place;
    let (resource, claim, key) = (lock.clone(), "sixth".to_owned(), Some("new".to_owned()));
    here.change(StoreChange::Leave { resource, place: None, claim, key }).await.unwrap();
    assert!(ticket(there.keyed(Some("new"), asks("seventh")).await).place > new);
}

async fn lock_of_a_session_is_found_and_refused_after_its_end(store: &Throwaway) {
    let (ann, bob) = (User::new(&store.db, "ann"), User::new(&store.db, "bob"));
    let session = ann.start(None).await;
    let asks = |claim: &str, lock: &Resource| {
        let mut ask = asking(lock, claim, Busy::Enqueue, 60_000);
        if let StoreChange::Ask { session: owner, .. } = &mut ask {
            *owner = Some(session.id.clone());
        }
        ask
    };
    let (first, second, other) = (lock("a"), lock("b"), lock("c"));
    let held = ticket(ann.change(asks("1", &first)).await);
    assert_eq!(held.session.as_deref(), Some(session.id.as_str()));
    let token = held.token.unwrap();
    ticket(ann.ask_for(&second, Busy::Reject, 60_000).await);
    ticket(ann.ask_for(&other, Busy::Reject, 60_000).await);
    let waiting = ticket(ann.change(asks("2", &second)).await);
    assert!(waiting.token.is_none());
    assert!(
        matches!(bob.change(asks("3", &first)).await, Err(Refusal::NoSession)),
        "a session of another user"
    );
    let end = StoreChange::EndSession { session: session.id.clone(), reason: "done".to_owned() };
    ann.change(end).await.unwrap();
    let locks = Query::SessionLocks { session: session.id.clone() };
    let Ok(QueryAnswer::SessionLocks(found)) = ann.ask(locks.clone()).await else { panic!() };
    assert_eq!(found, [("a".to_owned(), token)]);
    let Ok(QueryAnswer::SessionLocks(found)) = bob.ask(locks).await else { panic!() };
    assert!(found.is_empty());
    assert!(matches!(ann.change(asks("4", &first)).await, Err(Refusal::SessionOver)));
    let wait = StoreChange::Wait {
        resource: second.clone(),
        place: waiting.place,
        claim: "2".to_owned(),
        ttl_ms: 60_000,
        session: Some(session.id.clone()),
        history: 0,
    };
    assert!(matches!(ann.change(wait).await, Err(Refusal::SessionOver)));
}

pub(crate) async fn lock_excludes_within_a_user_only(store: &Throwaway) {
    let (ann, bob) = (User::new(&store.db, "ann"), User::new(&store.db, "bob"));
    let lock = lock("deploy");
    let hers = ticket(ann.ask_for(&lock, Busy::Reject, 60_000).await).token.unwrap();
    assert!(matches!(ann.ask_for(&lock, Busy::Reject, 60_000).await, Err(Refusal::Held { .. })));
    ticket(bob.ask_for(&lock, Busy::Reject, 60_000).await);
    let renew = StoreChange::Renew { resource: lock.clone(), token: hers, ttl_ms: 120_000 };
    assert!(ticket(ann.change(renew).await).expires_ms > 0);
    let Ok(QueryAnswer::Locks(locks)) = ann.ask(Query::Locks { after: None, limit: 10 }).await else {
        panic!()
    };
    let locks = locks.items;
    assert_eq!(locks.len(), 1);
    assert_eq!((locks[0].name.as_str(), locks[0].ticket.token), ("deploy", Some(hers)));
    // Who waits is counted while there is somebody, and only with the own.
    let waits = ticket(ann.ask_for(&lock, Busy::Enqueue, 60_000).await);
    ticket(ann.ask_for(&lock, Busy::Enqueue, 60_000).await);
    ticket(ann.ask_for(&Resource::Lock { name: "other".to_owned() }, Busy::Reject, 60_000).await);
    for (name, user, waiting) in [("ann", &ann, &[2, 0][..]), ("bob", &bob, &[0])] {
        let Ok(QueryAnswer::Locks(locks)) = user.ask(Query::Locks { after: None, limit: 10 }).await else {
            panic!()
        };
        assert_eq!(locks.items.iter().map(|lock| lock.waiting).collect::<Vec<_>>(), waiting, "{name}");
    }
    ann.leave(&lock, waits.place).await.unwrap();
    let Ok(QueryAnswer::Locks(locks)) = ann.ask(Query::Locks { after: None, limit: 10 }).await else {
        panic!()
    };
    assert_eq!(locks.items[0].waiting, 1);
}

/// A wait that is left with the store.
fn left(user: &User, resource: &Resource, place: Position, claim: &str) -> PendingWait {
    user.db.wait_with_release(user.request(StoreChange::Wait {
        resource: resource.clone(),
        place,
        claim: claim.to_owned(),
        ttl_ms: 60_000,
        session: None,
        history: 0,
    }))
}

#[tokio::test]
async fn turn_is_handed_over_with_its_release() {
    let store = Throwaway::sqlite().await;
    let user = User::new(&store.db, "ann");
    let session = user.start(None).await;
    let turn = turn(&session);
    let first = ticket(user.ask_for(&turn, Busy::Enqueue, 60_000).await).token.unwrap();
    let second = ticket(user.ask_for(&turn, Busy::Enqueue, 60_000).await);
    let third = ticket(user.ask_for(&turn, Busy::Enqueue, 60_000).await);
    let mut waits = left(&user, &turn, second.place, CLAIM);
    let mut taken_over = left(&user, &turn, second.place, "earlier");
    let mut withdrawn = left(&user, &turn, third.place, CLAIM);
    user.commit(&session.id, first, &["one".to_owned()]).await.unwrap();
    let second = ticket(waits.outcome().await.unwrap()).token.unwrap();
    assert!(second > first);
    let refused = taken_over.outcome().await.unwrap();
    assert!(matches!(refused, Err(Refusal::PlaceLost { .. })), "the place belongs to the last claim");
    assert!(withdrawn.withdraw().await.is_none(), "the withdrawn waiter was not next");
    drop(withdrawn);
    user.commit(&session.id, second, &["two".to_owned()]).await.unwrap();
    // The turn has no holder, because the wait was withdrawn.
    assert_eq!(user.commit(&session.id, second, &[]).await, Err(Refusal::Lost { token: second }));
    let third = ticket(user.wait_for(&turn, third.place, 60_000).await).token.unwrap();
    user.commit(&session.id, third, &["three".to_owned()]).await.unwrap();
    assert_eq!(user.texts(&session.id).await, ["one", "two", "three"]);
}

#[tokio::test]
async fn lock_is_handed_over_to_all_who_share_it() {
    let store = Throwaway::sqlite().await;
    let (user, bob) = (User::new(&store.db, "ann"), User::new(&store.db, "bob"));
    let lock = lock("schema");
    let ask = async |user: &User, mode| ticket(user.ask_in(&lock, Busy::Enqueue, mode, 60_000).await);
    let writer = ask(&user, LockMode::Exclusive).await.token.unwrap();
    ask(&bob, LockMode::Exclusive).await;
    let bob_waits = ask(&bob, LockMode::Shared).await;
    let mut of_bob = left(&bob, &lock, bob_waits.place, CLAIM);
    let readers = [ask(&user, LockMode::Shared).await, ask(&user, LockMode::Shared).await];
    let late = ask(&user, LockMode::Exclusive).await;
    let waits = readers.each_ref().map(|reader| left(&user, &lock, reader.place, CLAIM));
    let mut too_late = left(&user, &lock, late.place, CLAIM);
    user.change(StoreChange::Release { resource: lock.clone(), token: writer }).await.unwrap();
    for mut wait in waits {
        assert!(ticket(wait.outcome().await.unwrap()).token.unwrap() > writer);
    }
    assert!(too_late.withdraw().await.is_none());
    assert!(of_bob.withdraw().await.is_none(), "the lock of another user");
}
