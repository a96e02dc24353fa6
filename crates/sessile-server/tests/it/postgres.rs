//! What only PostgreSQL has: two layers of isolation, restarts, TLS, other processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use sessile_server::change::{Busy, ChangeOutcome, StoreChange};
use sessile_server::ids::{FencingToken, Position, SessionId};
use sessile_server::query::{Query, QueryAnswer};
use sessile_server::request::{Access, Request};
use sessile_server::store::{PostgresOptions, ServiceStore, ServiceStoreError, UserIsolation};
use testkit::Postgres;

use crate::stores::{CLAIM, Outcome, Throwaway, User, asking, id, lock, session, starting, ticket, turn};

#[tokio::test(flavor = "multi_thread")]
async fn row_security_alone_keeps_users_apart() {
    let store = Throwaway::with_isolation(UserIsolation::OnlyRowSecurity).await;
    crate::suite::keeps_users_apart(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_alone_keep_users_apart() {
    let store = Throwaway::with_isolation(UserIsolation::OnlyStatements).await;
    crate::suite::keeps_users_apart(&store).await;
}

/// Without both, the tests above would have to fail.
#[tokio::test(flavor = "multi_thread")]
async fn users_without_either_protection_are_not_apart() {
    let store = Throwaway::with_isolation(UserIsolation::Neither).await;
    let (ann, bob) = (User::new(&store.db, "ann"), User::new(&store.db, "bob"));
    let hers = ann.start(Some("hers")).await;
    ann.append(&hers.id, &["secret"]).await.unwrap();
    assert_eq!(bob.texts(&hers.id).await, ["secret"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_security_is_forced_on_every_table_of_users() {
    let store = Throwaway::postgres().await;
    let open = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
                WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND NOT relforcerowsecurity";
    assert_eq!(
        store.database().sql(open),
        "account lease login process sessile_schema store_setting token upkeep"
    );
    let role = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = 'sessile'";
    assert_eq!(store.database().sql(role), "f", "row security applies to the tests' role");
    User::new(&store.db, "ann").start(None).await;
    let nobody = "SET ROLE sessile; SELECT count(*) FROM session";
    assert_eq!(store.database().sql(nobody), "0", "the owner of the tables sees nothing without a user");
    // Nor does it write in another's name: this fails if it can.
    store.database().sql(
        "SET ROLE sessile; SELECT set_config('sessile.user', 'bob', false);
         DO $$ BEGIN
             BEGIN INSERT INTO queue (user_id, resource, next) VALUES ('ann', 'x', 1);
             EXCEPTION WHEN insufficient_privilege THEN RETURN; END;
             RAISE 'it was let in';
         END $$",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn role_that_bypasses_row_security_is_refused() {
    let store = Throwaway::postgres().await;
    let open = async |url: &str| ServiceStore::postgres(url, PostgresOptions::default()).await.map(drop);
    let error = open(&store.database().exempt_url()).await.unwrap_err().to_string();
    assert!(error.contains("BYPASSRLS"), "{error}");
    open(&store.database().url()).await.unwrap();
    store.database().sql("ALTER TABLE message NO FORCE ROW LEVEL SECURITY");
    let error = open(&store.database().url()).await.unwrap_err().to_string();
    assert!(error.contains("(message)"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_role_creates_no_tables() {
    let server = Postgres::shared();
    let database = server.database();
    let open = async |url: &str| ServiceStore::postgres(url, PostgresOptions::default()).await.map(drop);
    for url in [database.exempt_url(), database.url().replace("//sessile:", "//postgres:")] {
        let error = open(&url).await.unwrap_err();
        assert!(matches!(&error, ServiceStoreError::Unfit(why) if why.contains("BYPASSRLS")), "{error}");
        let tables = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace";
        assert_eq!(database.sql(tables), "0", "no table was created");
    }
    open(&database.url()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn role_without_privileges_gets_a_hint() {
    let server = Postgres::shared();
    let database = server.database();
    let url = database.url();
    let open = async || ServiceStore::postgres(&url, PostgresOptions::default()).await.map(drop);
    let said = async || match open().await.unwrap_err() {
        ServiceStoreError::Unfit(why) => why,
        other => panic!("{other}"),
    };
    let owner = |role: &str| {
        let sql = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO {role}', current_database()); END $$"
        );
        database.sql(&sql);
    };
    owner("postgres");
    let why = said().await;
    assert!(why.contains("sessile, may not make tables"), "{why}");
    assert!(why.contains("GRANT CREATE ON SCHEMA public TO sessile"), "{why}");
    database.sql("GRANT CREATE ON SCHEMA public TO sessile");
    open().await.unwrap();
    for tables in ["account, message", "sessile_schema"] {
        for table in tables.split(", ") {
            database.sql(&format!("ALTER TABLE {table} OWNER TO postgres"));
        }
        let why = said().await;
        assert!(why.contains(&format!("may not use the tables that are there ({tables})")), "{why}");
        let grant = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO sessile";
        assert!(why.contains(grant), "{why}");
        database.sql(grant);
        open().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_exclude_each_other() {
    let store = Throwaway::postgres().await;
    let here = User::new(&store.db, "ann");
    let there = User::new(&store.another().await, "ann");
    let of = here.start(None).await;
    for queue in [turn(&of), lock("deploy")] {
        let inside = Arc::new(AtomicBool::new(false));
        let largest = Arc::new(AtomicU32::new(0));
        let mut work = tokio::task::JoinSet::new();
        for number in 0..16 {
            let user = if number % 2 == 0 { here.clone() } else { there.clone() };
            let (queue, inside, largest) = (queue.clone(), Arc::clone(&inside), Arc::clone(&largest));
            work.spawn(async move {
                for _ in 0..4 {
                    let held = hold(&user, &queue).await;
                    assert!(!inside.swap(true, Ordering::SeqCst), "two are in");
                    tokio::task::yield_now().await;
                    let token = u32::try_from(held.token.unwrap().get()).unwrap();
                    assert!(largest.fetch_max(token, Ordering::SeqCst) < token, "tokens grow");
                    inside.store(false, Ordering::SeqCst);
                    let release = StoreChange::Release {
                        resource: queue.clone(),
                        token: FencingToken::new(i64::from(token)),
                    };
                    user.change(release).await.unwrap();
                }
            });
        }
        while let Some(done) = work.join_next().await {
            done.unwrap();
        }
    }
}

async fn hold(user: &User, queue: &sessile_server::model::Resource) -> sessile_server::model::Ticket {
    let mut held = ticket(user.ask_for(queue, Busy::Enqueue, 30_000).await);
    while held.token.is_none() {
        let woken = user.db.wait_for_wakeup(&user.id, queue, held.place);
        held = ticket(user.wait_for(queue, held.place, 30_000).await);
        if held.token.is_none() {
            woken.await;
        }
    }
    held
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_in_another_process_is_woken() {
    let store = Throwaway::postgres().await;
    let here = User::new(&store.db, "ann");
    let there = User::new(&store.another().await, "ann");
    let queue = lock("deploy");
    // What listens needs a moment to begin, and a busy machine is slow to wake it: without a wake-up no round is fast.
    let (mut fast, mut rounds) = (0, 0);
    while fast < 3 {
        rounds += 1;
        assert!(rounds <= 40, "{fast} of {rounds} were woken, and the others looked by themselves");
        let held = ticket(here.ask_for(&queue, Busy::Enqueue, 30_000).await);
        let waits = ticket(there.ask_for(&queue, Busy::Enqueue, 30_000).await);
        let woken = there.db.wait_for_wakeup(&there.id, &queue, waits.place);
        here.leave(&queue, held.place).await.unwrap();
        let since = Instant::now();
        woken.await;
        fast += u32::from(since.elapsed() < Duration::from_millis(80));
        let held = ticket(there.wait_for(&queue, waits.place, 30_000).await);
        there
            .change(StoreChange::Release { resource: queue.clone(), token: held.token.unwrap() })
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_first_requests_agree() {
    let store = Throwaway::postgres().await;
    let other = store.another().await;
    let user = |number: u32| User::new(if number.is_multiple_of(2) { &store.db } else { &other }, "ann");
    let all = |change: &dyn Fn(u32) -> (Option<&'static str>, StoreChange)| {
        let mut work = tokio::task::JoinSet::new();
        for number in 0..8 {
            let (user, (key, change)) = (user(number), change(number));
            work.spawn(async move { user.keyed(key, change).await });
        }
        work.join_all()
    };
    let started = all(&|_| (None, starting(Some("work"), 60_000))).await;
    assert_eq!(started.iter().filter(|one| one.is_ok()).count(), 1, "one has the name: {started:?}");
    let started = all(&|_| (Some("k"), starting(Some("keyed"), 60_000))).await;
    let first = started[0].clone();
    assert!(first.is_ok() && started.iter().all(|one| *one == first), "one key, one session: {started:?}");
    let asked = all(&|_| (None, asking(&lock("new"), CLAIM, Busy::Enqueue, 60_000))).await;
    let mut places: Vec<Position> = asked.iter().map(|one| ticket(one.clone()).place).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len(), 8);
    let held = asked.into_iter().filter(|one| ticket(one.clone()).token.is_some()).count();
    assert_eq!(held, 1, "one holds it");
    // Two who exchange names do not wait for each other for ever.
    let user = user(0);
    let (one, two) = (user.start(Some("one")).await, user.start(Some("two")).await);
    let rename = |of: &SessionId, to: &str| StoreChange::EditSession {
        session: of.to_owned(),
        if_revision: None,
        name: Some(to.to_owned()),
        labels: None,
        settings: Default::default(),
    };
    for _ in 0..5 {
        let (left, right) =
            tokio::join!(user.change(rename(&one.id, "two")), user.change(rename(&two.id, "one")));
        assert!(left.is_err() && right.is_err());
    }
}

/// Sends a change under a key until it is answered, as a client of the service does.
async fn until_answered(user: &User, change: StoreChange) -> Outcome {
    let key = Some(id().to_string());
    loop {
        let access = Access { id: id().into(), token: None };
        let request = Request { user: user.id.clone(), change: change.clone(), key: key.clone(), access };
        match user.db.change(request).await {
            Ok(outcome) => return outcome,
            Err(ServiceStoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn restart_loses_and_doubles_nothing() {
    let server = Postgres::start();
    let database = server.database();
    let options = PostgresOptions { patience: Duration::from_millis(500), ..PostgresOptions::default() };
    let db = ServiceStore::postgres(&database.url(), options.clone()).await.unwrap();
    let other = ServiceStore::postgres(&database.url(), options).await.unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let mut work = tokio::task::JoinSet::new();
    for number in 0..8 {
        let user = User::new(if number % 2 == 0 { &db } else { &other }, &format!("user-{}", number / 4));
        let (over, mark) = (Arc::clone(&over), format!("writer-{number}"));
        work.spawn(async move {
            let of = session(until_answered(&user, starting(None, 3_600_000)).await);
            let mut said = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let text = format!("{mark} {}", said.len());
                let bodies = vec![json!(text).into()];
                if said.len() % 2 == 0 {
                    let append = StoreChange::Append { session: of.id.clone(), bodies, if_last: None };
                    until_answered(&user, append).await.unwrap();
                } else {
                    let ask = asking(&turn(&of), CLAIM, Busy::Enqueue, 60_000);
                    let Ok(ChangeOutcome::Ticket { ticket, history: Some(seen) }) =
                        until_answered(&user, ask).await
                    else {
                        panic!("no other holder exists")
                    };
                    assert_eq!(
                        seen.last().map(|last| last.body.to_value()),
                        said.last().map(|last| json!(last))
                    );
                    let (session, token) = (of.id.clone(), ticket.token.unwrap());
                    until_answered(
                        &user,
                        StoreChange::CommitTurn { session, token, bodies, conversation: None },
                    )
                    .await
                    .unwrap();
                }
                said.push(text);
            }
            (user, of, said)
        });
    }
    for crash in [false, true, false] {
        tokio::time::sleep(Duration::from_millis(400)).await;
        if crash {
            server.crash();
        } else {
            server.stop();
        }
        server.run();
    }
    tokio::time::sleep(Duration::from_millis(400)).await;
    over.store(true, Ordering::Relaxed);
    let mut all = 0;
    while let Some(done) = work.join_next().await {
        let (user, of, said) = done.unwrap();
        all += said.len();
        assert_eq!(user.texts(&of.id).await, said);
        let events = Query::Events { session: of.id, after: 0, limit: 1_000_000 };
        let Ok(QueryAnswer::Events(page)) = user.ask(events).await else { panic!() };
        let appended = page.events.iter().filter(|event| event.kind == "messages.appended").count();
        assert_eq!(appended, said.len());
    }
    assert!(all > 50, "{all}");
}

/// A change without a key is never made twice, and never said to be made if it may not be.
#[tokio::test(flavor = "multi_thread")]
async fn change_without_key_is_not_made_twice() {
    let server = Postgres::start();
    let database = server.database();
    let db = ServiceStore::postgres(&database.url(), PostgresOptions::default()).await.unwrap();
    let user = User::new(&db, "ann");
    let of = user.start(None).await;
    let over = Arc::new(AtomicBool::new(false));
    let mut work = tokio::task::JoinSet::new();
    for number in 0..8 {
        let (user, of, over) = (user.clone(), of.id.clone(), Arc::clone(&over));
        work.spawn(async move {
            let mut said = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let text = format!("writer-{number} {}", said.len());
                let change = StoreChange::Append {
                    session: of.clone(),
                    bodies: vec![json!(text).into()],
                    if_last: None,
                };
                let access = Access { id: id().into(), token: None };
                let request = Request { user: user.id.clone(), change, key: None, access };
                let outcome = user.db.change(request).await;
                assert!(matches!(outcome, Ok(Ok(_)) | Err(ServiceStoreError::Unavailable(_))), "{outcome:?}");
                said.push((text, outcome.is_ok()));
            }
            said
        });
    }
    for _ in 0..2 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.crash();
        server.run();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    over.store(true, Ordering::Relaxed);
    let said = work.join_all().await.concat();
    let mut count = std::collections::BTreeMap::new();
    for text in user.texts(&of.id).await {
        *count.entry(text).or_insert(0) += 1;
    }
    for (text, acknowledged) in said {
        let times = count.get(&text).copied().unwrap_or(0);
        assert!(times == 1 || (times == 0 && !acknowledged), "{text}: {times} times");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sslmode_is_obeyed_as_in_libpq() {
    let server = Postgres::with_tls();
    let database = server.database();
    let authority = server.authority().display().to_string();
    let open = async |rest: &str| {
        let options = PostgresOptions { patience: Duration::from_millis(100), ..PostgresOptions::default() };
        ServiceStore::postgres(&format!("{}{rest}", database.url()), options).await
    };
    let encrypted =
        "SELECT bool_or(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = 'sessile'";
    for (rest, tls) in [
        ("?sslmode=disable".to_owned(), "f"),
        (String::new(), "t"),
        ("?sslmode=prefer".to_owned(), "t"),
        ("?sslmode=require".to_owned(), "t"),
        (format!("?sslmode=require&sslrootcert={authority}"), "t"),
        (format!("?sslmode=verify-ca&sslrootcert={authority}"), "t"),
        (format!("?sslmode=verify-full&sslrootcert={authority}"), "t"),
    ] {
        let db = open(&rest).await.unwrap();
        db.ready().await.unwrap();
        assert_eq!(database.sql(encrypted), tls, "{rest}");
        drop(db);
        let gone = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'sessile'";
        for _ in 0..100 {
            if database.sql(gone) == "0" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    for rest in ["?sslmode=verify-full", "?sslmode=verify-ca", "?sslmode=perhaps"] {
        assert!(open(rest).await.is_err(), "the untrusted CA is refused: {rest}");
    }
    let plain = Throwaway::postgres().await;
    let url = format!("{}?sslmode=require", plain.database().url());
    let refused = ServiceStore::postgres(&url, PostgresOptions::default());
    assert!(refused.await.is_err(), "a server without TLS is refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_database_is_reported_soon() {
    let options = PostgresOptions { patience: Duration::from_millis(200), ..PostgresOptions::default() };
    let error = ServiceStore::postgres("postgres://u:geheim@127.0.0.1:1/d", options).await.unwrap_err();
    assert!(matches!(&error, ServiceStoreError::Unavailable(_)), "{error}");
    assert!(!error.to_string().contains("geheim"));
}
