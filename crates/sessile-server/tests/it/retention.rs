//! What is old is removed, and nothing else, in each store.

use std::time::Duration;

use serde_json::json;
use sessile_server::change::{Busy, Refusal, StoreChange};
use sessile_server::ids::SessionId;
use sessile_server::query::{EventPage, Query, QueryAnswer};
use sessile_server::request::{Access, AuditedRead};
use sessile_server::retention::{RetentionPolicy, sweep};
use sessile_server::store::{ExpiringRows, Sweep, SweepKind};
use sessile_server::users;

use crate::stores::{Throwaway, User, before, id, session, starting, ticket, turn};
use crate::suite::with_every_store;

with_every_store! {
    sweep_deletes_only_expired_rows
    sweep_deletes_bounded_slices_of_one_user
    concurrent_sweeps_agree
    expired_session_is_deleted_with_its_rows
    sweep_visits_only_users_who_have_something_to_remove
    lease_has_one_holder_until_it_expires
    new_store_keeps_ended_sessions_for_30_days_and_an_older_one_forever
}

/// Every kind for this long.
fn keep(seconds: u64) -> RetentionPolicy {
    let time = Duration::from_secs(seconds);
    RetentionPolicy { answered: time, events: time, audit: time, sessions: None }
}

fn followed(session: &SessionId) -> Query {
    Query::Events { session: session.clone(), after: 0, limit: 100_000 }
}

async fn events(user: &User, session: &SessionId) -> Vec<i64> {
    match user.ask(followed(session)).await {
        Ok(QueryAnswer::Events(page)) => page.events.iter().map(|event| event.number).collect(),
        other => panic!("{other:?}"),
    }
}

async fn record(user: &User) -> usize {
    let query = Query::History { session: None, since_ms: None, reads: true, before: None, limit: 100_000 };
    match user.ask(query).await {
        Ok(QueryAnswer::History(page)) => page.items.len(),
        other => panic!("{other:?}"),
    }
}

async fn sweep_deletes_only_expired_rows(store: &Throwaway) {
    let db = &store.db;
    for name in ["ann", "bob"] {
        users::add(db, name).await.unwrap();
    }
    let (ann, bob) = (User::new(db, "ann"), User::new(db, "bob"));
    let (hers, his) = (ann.start(None).await, bob.start(None).await);
    let append = |text: &str| StoreChange::Append {
        session: hers.id.clone(),
        bodies: vec![json!(text).into()],
        if_last: None,
    };
    ann.keyed(Some("key"), append("a")).await.unwrap();
    bob.append(&his.id, &["b"]).await.unwrap();
    let now = hers.started_ms;
    // Nothing is an hour old.
    assert_eq!(sweep(db, &keep(3600), now + 60_000).await.unwrap(), 0);
    assert_eq!(ann.keyed(Some("key"), append("other")).await, Err(Refusal::KeyReused));
    let (events_before, record_before) = (events(&ann, &hers.id).await, record(&ann).await);
    assert_eq!((events_before, record_before), (vec![1, 2], 4));
    // Two hours later all of it is.
    let removed = sweep(db, &keep(3600), now + 7_200_000).await.unwrap();
    assert_eq!(removed, 1 + 4 + 4 + 3, "a key, events, and what is on the record of each");
    for (user, session) in [(&ann, &hers), (&bob, &his)] {
        assert_eq!((events(user, &session.id).await, record(user).await), (Vec::new(), 0));
        let page = EventPage { events: Vec::new(), last: 2 };
        assert_eq!(user.ask(followed(&session.id)).await, Ok(QueryAnswer::Events(page)), "the numbers go on");
    }
    assert_eq!(bob.ask(followed(&hers.id)).await, Err(Refusal::NoSession));
    assert_eq!(ann.texts(&hers.id).await, ["a"], "messages stay");
    ann.keyed(Some("key"), append("again")).await.unwrap();
    assert_eq!(ann.texts(&hers.id).await, ["a", "again"], "a key that is forgotten can be used again");
    assert_eq!(events(&ann, &hers.id).await, [3]);
}

async fn sweep_deletes_bounded_slices_of_one_user(store: &Throwaway) {
    let db = &store.db;
    let (ann, bob) = (User::new(db, "ann"), User::new(db, "bob"));
    let read = |user: &User, at_ms| AuditedRead {
        user: user.id.clone(),
        access: Access { id: id().into(), token: None },
        action: "messages".to_owned(),
        session: None,
        outcome: "done".to_owned(),
        at_ms,
    };
    let old: Vec<AuditedRead> = (0..25).map(|_| read(&ann, 1)).collect();
    db.record(old).await.unwrap();
    db.record(vec![read(&ann, 1000), read(&bob, 1)]).await.unwrap();
    let mut removed = Vec::new();
    for _ in 0..4 {
        removed.push(db.delete_expired(&ann.id, ExpiringRows::Audit, before(1000)).await.unwrap());
    }
    assert_eq!(removed, [10, 10, 5, 0]);
    assert_eq!((record(&ann).await, record(&bob).await), (1, 1));
}

async fn concurrent_sweeps_agree(store: &Throwaway) {
    let db = &store.db;
    let user = users::add(db, "ann").await.unwrap();
    let ann = User { db: db.clone(), id: user };
    let session = ann.start(None).await;
    for number in 0..30 {
        let bodies = vec![json!(number).into()];
        let append = StoreChange::Append { session: session.id.clone(), bodies, if_last: None };
        ann.keyed(Some(&format!("key {number}")), append).await.unwrap();
    }
    let later = session.started_ms + 7_200_000;
    let sweeping: Vec<_> = [db.clone(), store.another().await, db.clone(), store.another().await]
        .map(|db| tokio::spawn(async move { sweep(&db, &keep(3600), later).await.unwrap() }))
        .into();
    let mut removed = 0;
    for one in sweeping {
        removed += one.await.unwrap();
    }
    assert_eq!(removed, 30 + 31 + 32, "each row by one of them");
    assert_eq!(ann.texts(&session.id).await.len(), 30);
}

async fn expired_session_is_deleted_with_its_rows(store: &Throwaway) {
    let db = &store.db;
    let (ann, bob) = (User::new(db, "ann"), User::new(db, "bob"));
    for name in ["ann", "bob"] {
        users::add(db, name).await.unwrap();
    }
    let (ended, live, expired) = (
        ann.start(Some("a")).await,
        ann.start(Some("b")).await,
        session(ann.change(starting(None, 1)).await),
    );
    let his = bob.start(None).await;
    for of in [&ended, &live] {
        ann.append(&of.id, &["x"; 25]).await.unwrap();
        let value = StoreChange::SetEntry {
            session: of.id.clone(),
            key: "k".to_owned(),
            value: Some(json!(1).into()),
            if_revision: None,
        };
        ann.change(value).await.unwrap();
        let held = ticket(ann.ask_for(&turn(of), Busy::Reject, 60_000).await);
        ann.commit(&of.id, held.token.unwrap(), &["last".to_owned()]).await.unwrap();
    }
    for (user, of) in [(&ann, &ended), (&bob, &his)] {
        user.change(StoreChange::EndSession { session: of.id.clone(), reason: "done".to_owned() })
            .await
            .unwrap();
    }
    let now = ended.started_ms;
    let soon = now + 60_000;
    assert_eq!(db.expired_sessions(&ann.id, before(now - 1000)).await.unwrap(), []);
    let mut over = [ended.id.clone(), expired.id.clone()];
    over.sort_unstable();
    let mut found = db.expired_sessions(&ann.id, before(soon)).await.unwrap();
    found.sort_unstable();
    assert_eq!(found, over);
    assert!(db.delete_session(&ann.id, &live.id, before(soon)).await.unwrap());
    assert_eq!(ann.texts(&live.id).await.len(), 26, "a live session is kept");
    // In pieces, and never with a gap.
    assert!(!db.delete_session(&ann.id, &ended.id, before(soon)).await.unwrap());
    assert_eq!(ann.texts(&ended.id).await.len(), 16);
    assert!(!db.delete_session(&ann.id, &ended.id, before(soon)).await.unwrap());
    assert_eq!(ann.texts(&ended.id).await.len(), 6);
    let keep = RetentionPolicy { sessions: Some(Duration::from_secs(3600)), ..keep(1_000_000) };
    assert_eq!(sweep(db, &keep, now + 60_000).await.unwrap(), 0);
    assert_eq!(sweep(db, &keep, soon + 3_600_000).await.unwrap(), 3, "hers, hers that expired, and his");
    for of in [&ended, &expired] {
        let query = Query::Session { session: of.id.clone().into() };
        assert_eq!(ann.ask(query).await, Err(Refusal::NoSession));
    }
    assert_eq!(bob.ask(Query::Session { session: his.id.clone().into() }).await, Err(Refusal::NoSession));
    let kept = store.left_of(&ended.id);
    assert_eq!(kept, 0, "nothing of it is left");
    assert!(store.left_of(&live.id) > 0, "and it was looked in the right places");
    assert_eq!(ann.texts(&live.id).await.len(), 26);
}

async fn sweep_visits_only_users_who_have_something_to_remove(store: &Throwaway) {
    let db = &store.db;
    for name in ["ann", "bob", "eve"] {
        users::add(db, name).await.unwrap();
    }
    let ann = User::new(db, "ann");
    let session = ann.start(None).await;
    let (now, hour) = (session.started_ms, 3_600_000);
    let kinds = [
        SweepKind::Rows(ExpiringRows::Answered),
        SweepKind::Rows(ExpiringRows::Events),
        SweepKind::Rows(ExpiringRows::Audit),
        SweepKind::Sessions,
    ];
    let due = async |at: i64| {
        let mut due = Vec::new();
        for what in kinds {
            due.extend(
                db.due(Sweep { kind: what, before_ms: at - hour, now_ms: at }, 10)
                    .await
                    .unwrap()
                    .into_iter()
                    .map(String::from),
            );
        }
        due.sort_unstable();
        due
    };
    assert_eq!(due(now).await, [""; 0]);
    assert_eq!(due(now + 2 * hour).await.len(), 3 * kinds.len(), "every user is due before the first sweep");
    let keep = RetentionPolicy { sessions: Some(Duration::from_secs(3600)), ..keep(3600) };
    sweep(db, &keep, now + 2 * hour).await.unwrap();
    assert_eq!(due(now + 2 * hour).await, [""; 0]);
    let later = due(now + 2 * hour + hour / 2).await;
    assert_eq!(later, ["ann"], "only ann is due, for her expired session");
    // What is written from now on, as the sweep saw it, is due when it is old.
    let read = AuditedRead {
        user: ann.id.clone(),
        access: Access { id: id().into(), token: None },
        action: "append".to_owned(),
        session: None,
        outcome: "done".to_owned(),
        at_ms: now + 2 * hour,
    };
    db.record(vec![read]).await.unwrap();
    assert_eq!(sweep(db, &keep, now + 4 * hour).await.unwrap(), 2, "the session and the entry");
    // A sweep by a clock that is ahead does not keep the others from sweeping.
    sweep(db, &keep, now + 1_000_000 * hour).await.unwrap();
    assert_eq!(due(now + 5 * hour).await.len(), 3 * kinds.len());
}

async fn lease_has_one_holder_until_it_expires(store: &Throwaway) {
    let (here, there) = (&store.db, &store.another().await);
    let (long, short) = (Duration::from_secs(60), Duration::from_millis(1));
    assert!(here.acquire_lease("sweep", long).await.unwrap());
    assert!(!there.acquire_lease("sweep", long).await.unwrap());
    assert!(there.acquire_lease("other", long).await.unwrap());
    assert!(here.acquire_lease("sweep", short).await.unwrap(), "the holder renews");
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(there.acquire_lease("sweep", long).await.unwrap());
    assert!(!here.acquire_lease("sweep", long).await.unwrap());
}

async fn new_store_keeps_ended_sessions_for_30_days_and_an_older_one_forever(store: &Throwaway) {
    let days = Duration::from_secs(30 * 86_400);
    assert_eq!(store.db.session_retention().await.unwrap(), Some(days));
    assert_eq!(store.another().await.session_retention().await.unwrap(), Some(days));
    store.sql("DELETE FROM store_setting", "DELETE FROM store_setting");
    assert_eq!(
        store.another().await.session_retention().await.unwrap(),
        None,
        "an opened store keeps no retention of its own"
    );
}
