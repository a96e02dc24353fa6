//! Many users at once, in two processes' worth of stores.

use std::sync::Arc;

use sessile_server::change::{Busy, ChangeOutcome};

use crate::stores::{Throwaway, User, turn};

/// Takes a turn, says what it was, and commits; waits as a server would.
async fn one_turn(user: &User, session: &sessile_server::model::SessionRecord, mark: &str) {
    let turn = turn(session);
    let mut placed = user.ask_for(&turn, Busy::Enqueue, 30_000).await;
    let (token, seen) = loop {
        match placed {
            Ok(ChangeOutcome::Ticket { ticket, history: Some(history) }) => {
                break (ticket.token.unwrap(), history.len());
            }
            Ok(ChangeOutcome::Ticket { ticket, history: None }) => {
                let woken = user.db.wait_for_wakeup(&user.id, &turn, ticket.place);
                placed = user.wait_for(&turn, ticket.place, 30_000).await;
                if matches!(placed, Ok(ChangeOutcome::Ticket { history: None, .. })) {
                    woken.await;
                }
            }
            other => panic!("{other:?}"),
        }
    };
    let bodies = [format!("{mark} after {seen}"), format!("{mark} reply")];
    user.commit(&session.id, token, &bodies).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_of_many_users_stay_separate_in_sqlite() {
    neither_lost_nor_doubled_nor_mixed(Throwaway::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_of_many_users_stay_separate_in_postgres() {
    neither_lost_nor_doubled_nor_mixed(Throwaway::postgres().await).await;
}

async fn neither_lost_nor_doubled_nor_mixed(store: Throwaway) {
    let store = Arc::new(store);
    let other = store.another().await;
    let mut work = tokio::task::JoinSet::new();
    let mut sessions = Vec::new();
    for number in 0..10 {
        let user = User::new(&store.db, &format!("user-{number}"));
        let session = user.start(None).await;
        sessions.push((user.clone(), session.clone()));
        for turn in 0..10 {
            // Every other one goes by the other process.
            let user =
                if turn % 2 == 0 { user.clone() } else { User::new(&other, &format!("user-{number}")) };
            let session = session.clone();
            work.spawn(async move {
                one_turn(&user, &session, &format!("user-{number} turn-{turn}")).await;
            });
        }
    }
    while let Some(done) = work.join_next().await {
        done.unwrap();
    }
    for (number, (user, session)) in sessions.iter().enumerate() {
        let texts = user.texts(&session.id).await;
        assert_eq!(texts.len(), 20);
        let mut turns = std::collections::BTreeSet::new();
        for (at, pair) in texts.chunks(2).enumerate() {
            let mark = pair[0].rsplit_once(" after ").unwrap();
            assert_eq!(mark.1, (at * 2).to_string(), "the turn read every earlier commit: {pair:?}");
            assert_eq!(pair[1], format!("{} reply", mark.0), "no other turn is in between");
            assert!(mark.0.starts_with(&format!("user-{number} ")), "{pair:?}");
            assert!(turns.insert(mark.0.to_owned()), "{pair:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_reads_release_their_readers() {
    let store = Throwaway::sqlite().await;
    let user = User::new(&store.db, "ann");
    let session = user.start(None).await;
    let read = || sessile_server::query::Query::Session { session: session.id.clone().into() };
    for _ in 0..200 {
        for _ in 0..16 {
            let mut left = std::pin::pin!(user.db.ask(&user.id, read()));
            // It is begun, and given up.
            let _ = std::future::poll_fn(|context| std::task::Poll::Ready(left.as_mut().poll(context))).await;
        }
        user.ask(read()).await.unwrap();
    }
}
