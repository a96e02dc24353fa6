//! How long one user's large changes keep another user's small ones waiting, in a file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use sessile_server::change::StoreChange;
use sessile_server::model::SessionRecord;

use crate::stores::{Throwaway, User, id, session};

const MESSAGES: usize = 100_000;

async fn long_session(user: &User) -> SessionRecord {
    let of = user.start(None).await;
    let body = json!({ "role": "user", "content": "x".repeat(200) });
    for _ in 0..MESSAGES / 1000 {
        let bodies = (0..1000).map(|_| body.clone().into()).collect();
        user.change(StoreChange::Append { session: of.id.clone(), bodies, if_last: None }).await.unwrap();
    }
    of
}

/// Makes a change beside another user who appends all the time: how long it took, and the longest wait of the other.
async fn beside(store: &Throwaway, user: &User, change: StoreChange) -> (Duration, Duration) {
    let other = User::new(&store.db, "bob");
    let of = other.start(None).await.id;
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let appends = tokio::spawn(async move {
        let mut longest = Duration::ZERO;
        while !is_over.load(Ordering::Relaxed) {
            let began = Instant::now();
            other.append(&of, &["x"]).await.unwrap();
            longest = longest.max(began.elapsed());
        }
        longest
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = Instant::now();
    user.change(change).await.unwrap();
    let took = began.elapsed();
    // What is removed afterwards is part of it.
    tokio::time::sleep(Duration::from_millis(500)).await;
    over.store(true, Ordering::Relaxed);
    (took, appends.await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn fork_and_rewind_of_a_long_session_let_other_writers_in() {
    let store = Throwaway::sqlite().await;
    let ann = User::new(&store.db, "ann");
    let of = long_session(&ann).await.id;
    let fork = StoreChange::Fork { session: of.clone(), at: None, id: id(), name: None };
    let (fork_took, fork_stall) = beside(&store, &ann, fork).await;
    let began = Instant::now();
    let rewind = StoreChange::Rewind { session: of.clone(), to: 10 };
    let (rewind_took, rewind_stall) = beside(&store, &ann, rewind).await;
    println!(
        "fork {fork_took:?}, longest stall {fork_stall:?}; rewind {rewind_took:?}, longest stall {rewind_stall:?}"
    );
    assert!(fork_stall < (fork_took / 4).max(Duration::from_millis(150)), "{fork_stall:?} of {fork_took:?}");
    assert!(rewind_stall < (began.elapsed() / 4).max(Duration::from_millis(150)), "{rewind_stall:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fork_beside_rewinds_is_whole_and_of_one_moment() {
    let store = Throwaway::sqlite().await;
    let ann = User::new(&store.db, "ann");
    let of = ann.start(None).await.id;
    // Every message says how often the session was rewound: a mix of two would show.
    let fill = async |round: i64| {
        let rewind = StoreChange::Rewind { session: of.clone(), to: 0 };
        ann.change(rewind).await.unwrap();
        let bodies = (0..5000).map(|_| json!(round).into()).collect();
        ann.change(StoreChange::Append { session: of.clone(), bodies, if_last: Some(0) }).await.unwrap();
    };
    fill(0).await;
    let over = Arc::new(AtomicBool::new(false));
    let forks = tokio::spawn({
        let (ann, of, over) = (ann.clone(), of.clone(), Arc::clone(&over));
        async move {
            let mut lengths = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let fork = StoreChange::Fork { session: of.clone(), at: None, id: id(), name: None };
                let forked = session(ann.change(fork).await);
                let bodies = ann.bodies(&forked.id).await;
                assert_eq!(i64::try_from(bodies.len()).unwrap(), forked.messages);
                assert!(bodies.iter().all(|body| *body == bodies[0]), "{:?}", bodies.len());
                lengths.push(bodies.len());
            }
            lengths
        }
    });
    for round in 1..15 {
        fill(round).await;
    }
    over.store(true, Ordering::Relaxed);
    let lengths = forks.await.unwrap();
    assert!(
        lengths.iter().all(|length| [0, 5000].contains(length)) && lengths.contains(&5000),
        "{lengths:?}"
    );
    // What does not count is removed.
    let began = Instant::now();
    while store.rows_of(&of) != 5000 || store.has_leftovers() {
        assert!(began.elapsed() < Duration::from_secs(10), "{}", store.rows_of(&of));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_fork_and_unfinished_fork_leave_nothing() {
    let store = Throwaway::sqlite().await;
    let ann = User::new(&store.db, "ann");
    let of = ann.start(Some("taken")).await.id;
    let bodies = (0..5000).map(|number| json!(number).into()).collect();
    ann.change(StoreChange::Append { session: of.clone(), bodies, if_last: None }).await.unwrap();
    let to = id();
    let fork =
        StoreChange::Fork { session: of.clone(), at: None, id: to.clone(), name: Some("taken".to_owned()) };
    ann.change(fork).await.unwrap_err();
    // As a process leaves it that died while it copied, long ago; and one that died after a rewind.
    let unfinished = id();
    store.sqlite_batch(&format!(
        "INSERT INTO leftover (user, session, since_ms, from_event) VALUES ('ann', '{unfinished}', 1, 1);
         INSERT INTO message (user, session, number, token, body, at_ms)
             SELECT user, '{unfinished}', number, 0, body, at_ms FROM message WHERE session = '{of}' LIMIT 3000;
         INSERT INTO leftover (user, session, since_ms, from_event) VALUES ('ann', '{of}', {now}, 0);
         UPDATE session SET next_message = 11 WHERE id = '{of}';",
        now = i64::MAX / 2
    ));
    assert_eq!(ann.bodies(&of).await.len(), 10);
    let _another = store.another().await;
    let began = Instant::now();
    while [&to, &unfinished].iter().any(|session| store.rows_of(session) > 0)
        || store.rows_of(&of) != 10
        || store.has_leftovers()
    {
        assert!(began.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
