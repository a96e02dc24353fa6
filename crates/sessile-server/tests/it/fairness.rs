//! One user who asks for much does not keep the others waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sessile_server::account::TokenScope;
use sessile_server::query::Query;
use sessile_server::users;

use crate::stores::{Throwaway, User};
use crate::suite::with_every_store;

with_every_store! {
    read_of_one_user_overtakes_the_queue_of_another
    token_check_overtakes_the_reads_of_all_users
}

/// Reads that are begun at once.
const READS: usize = 128;

/// Begins many long reads; how many of them are done.
async fn flood(users: &[User]) -> (Arc<AtomicUsize>, tokio::task::JoinSet<()>) {
    let done = Arc::new(AtomicUsize::new(0));
    let mut work = tokio::task::JoinSet::new();
    for user in users {
        let session = user.start(None).await;
        let text = "x".repeat(1000);
        user.append(&session.id, &vec![text.as_str(); 1000]).await.unwrap();
        for _ in 0..READS {
            let (user, session, done) = (user.clone(), session.id.clone(), Arc::clone(&done));
            work.spawn(async move {
                user.ask(Query::LastMessages { session, limit: 1000, bytes: i64::MAX }).await.unwrap();
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
    }
    while done.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (done, work)
}

async fn read_of_one_user_overtakes_the_queue_of_another(store: &Throwaway) {
    let (ann, bob) = (User::new(&store.db, "ann"), User::new(&store.db, "bob"));
    bob.start(None).await;
    let (done, work) = flood(std::slice::from_ref(&ann)).await;
    let before = done.load(Ordering::SeqCst);
    // Not a short read, which SQLite answers past the queue.
    bob.ask(Query::Sessions { live: true, label: None, after: None, limit: 10 }).await.unwrap();
    let meanwhile = done.load(Ordering::SeqCst) - before;
    assert!(meanwhile < READS / 4, "{meanwhile} of ann's reads were done before bob's");
    work.join_all().await;
}

async fn token_check_overtakes_the_reads_of_all_users(store: &Throwaway) {
    let bob = users::add(&store.db, "bob").await.unwrap();
    let made = users::create_token(&store.db, &bob, &[TokenScope::Read], None).await.unwrap();
    let many: Vec<User> = (0..4).map(|number| User::new(&store.db, &format!("user-{number}"))).collect();
    let (done, work) = flood(&many).await;
    let before = done.load(Ordering::SeqCst);
    let hash = made.secret.hash();
    assert!(store.db.token(&hash).await.unwrap().is_some());
    store.db.ready().await.unwrap();
    users::revoke(&store.db, made.token.id.as_str()).await.unwrap();
    assert!(store.db.token(&hash).await.unwrap().is_none(), "and revoked is revoked");
    let meanwhile = done.load(Ordering::SeqCst) - before;
    assert!(meanwhile < READS, "{meanwhile} reads were done before the token was checked");
    work.join_all().await;
}
