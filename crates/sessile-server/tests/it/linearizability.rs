//! What clients of a store see, held against [`testkit::linearizability`].

use std::sync::Arc;

use serde_json::json;
use sessile_server::change::{Busy, ChangeOutcome, Refusal, StoreChange};
use sessile_server::ids::SessionId;
use sessile_server::query::{Query, QueryAnswer};
use testkit::linearizability::{LeaseInterval, Observation, ObservedRevision, contradiction, overlap, tick};

use crate::stores::{Throwaway, User, lock};

/// One client of a value: reads it, and changes it if nobody else has meanwhile.
async fn client(user: User, session: SessionId, rounds: usize) -> Vec<Observation> {
    let mut seen = Vec::new();
    for _ in 0..rounds {
        let begun = tick();
        let query = Query::Entries {
            session: session.clone(),
            key: Some("k".to_owned()),
            after: None,
            limit: 1,
            bytes: i64::MAX,
        };
        let Ok(QueryAnswer::Entries(entries)) = user.ask(query).await else { panic!() };
        let revision = entries.items.first().map_or(0, |entry| entry.revision);
        seen.push(Observation { begun, ended: tick(), what: ObservedRevision::Read(revision) });
        let begun = tick();
        let set = StoreChange::SetEntry {
            session: session.clone(),
            key: "k".to_owned(),
            value: Some(json!(begun).into()),
            if_revision: Some(revision),
        };
        let what = match user.change(set).await {
            Ok(ChangeOutcome::Entry(Some(entry))) => ObservedRevision::Wrote(entry.revision),
            Err(Refusal::Changed { revision }) => ObservedRevision::Read(revision),
            other => panic!("{other:?}"),
        };
        seen.push(Observation { begun, ended: tick(), what });
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn value_changes_in_sqlite_are_linearizable() {
    value_changes_are_linearizable(Throwaway::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn value_changes_in_postgres_are_linearizable() {
    value_changes_are_linearizable(Throwaway::postgres().await).await;
}

async fn value_changes_are_linearizable(store: Throwaway) {
    let other = store.another().await;
    let session = User::new(&store.db, "ann").start(None).await.id;
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..16 {
        let user = User::new(if number % 2 == 0 { &store.db } else { &other }, "ann");
        clients.spawn(client(user, session.clone(), 25));
    }
    let seen: Vec<Observation> = clients.join_all().await.concat();
    assert_eq!(contradiction(&seen), None);
    assert!(seen.iter().any(|one| matches!(one.what, ObservedRevision::Wrote(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_in_sqlite_has_one_holder_at_a_time() {
    lock_has_one_holder_at_a_time(Throwaway::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_in_postgres_has_one_holder_at_a_time() {
    lock_has_one_holder_at_a_time(Throwaway::postgres().await).await;
}

async fn lock_has_one_holder_at_a_time(store: Throwaway) {
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
                        Ok(ChangeOutcome::Ticket { ticket, .. }) if ticket.token.is_some() => {
                            break (ticket, tick());
                        }
                        Ok(ChangeOutcome::Ticket { ticket, .. }) => {
                            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                            placed = user.wait_for(&lock, ticket.place, 30_000).await;
                        }
                        other => panic!("{other:?}"),
                    }
                };
                let (until, token) = (tick(), ticket.token.unwrap());
                user.change(StoreChange::Release { resource: lock.clone(), token }).await.unwrap();
                all.lock().unwrap().push(LeaseInterval { from, until, token: token.get() });
            }
        });
    }
    clients.join_all().await;
    let had = all.lock().unwrap().clone();
    assert_eq!(had.len(), 96);
    assert!(overlap(&had).is_none(), "{:?}", overlap(&had));
}
