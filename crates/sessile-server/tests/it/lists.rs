//! Lists with filters: right, however much there is, and bounded in what one request reads.

use std::time::Duration;

use serde_json::json;
use sessile_server::change::{Busy, StoreChange};
use sessile_server::ids::SessionId;
use sessile_server::model::MessageRecord;
use sessile_server::query::{ListPage, Query, QueryAnswer, SCAN_ROWS};
use sessile_server::request::{Access, AuditedRead};

use crate::stores::{Throwaway, User, before, id, lock, session, starting, ticket};
use crate::suite::with_every_store;

with_every_store! {
    page_ends_with_the_item_that_fills_it
    live_sessions_are_found_behind_many_ended_ones
    labels_are_found_edited_and_removed
    page_ends_early_where_little_matches
    audit_log_of_one_session_is_read_in_bounded_pages
    locks_are_found_behind_many_expired_ones
}

/// In 2100.
const FUTURE_MS: i64 = 4_102_444_800_000;

fn sessions(live: bool, label: Option<(&str, &str)>, after: Option<String>, limit: i64) -> Query {
    let label = label.map(|(key, value)| (key.to_owned(), value.to_owned()));
    Query::Sessions { live, label, after, limit }
}

async fn list(user: &User, query: Query) -> (Vec<SessionId>, Option<String>) {
    match user.ask(query).await {
        Ok(QueryAnswer::Sessions(ListPage { items, next })) => {
            (items.into_iter().map(|session| session.id).collect(), next)
        }
        other => panic!("{other:?}"),
    }
}

/// All pages of a list, and how many there were.
async fn all(user: &User, live: bool, label: Option<(&str, &str)>, limit: i64) -> (Vec<SessionId>, usize) {
    let (mut found, mut after, mut pages) = (Vec::new(), None, 0);
    loop {
        let (mut ids, next) = list(user, sessions(live, label, after, limit)).await;
        found.append(&mut ids);
        pages += 1;
        if next.is_none() {
            assert!(found.windows(2).all(|pair| pair[0] > pair[1]), "the newest first, none twice");
            return (found, pages);
        }
        after = next;
    }
}

async fn live_sessions_are_found_behind_many_ended_ones(store: &Throwaway) {
    store.add_sessions("ann", "0198", 3, FUTURE_MS, None);
    store.add_sessions("ann", "0199", 5000, 1000, None);
    store.add_sessions("bob", "0199", 2, FUTURE_MS, None);
    let ann = User::new(&store.db, "ann");
    let (first, next) = list(&ann, sessions(true, None, None, 2)).await;
    assert_eq!(first.len(), 2, "in one step, however many have ended since");
    assert!(first.iter().all(|id| id.as_str().starts_with("0198")) && next.is_some(), "{first:?}");
    let (rest, end) = list(&ann, sessions(true, None, next, 2)).await;
    assert_eq!((rest.len(), end), (1, None));
    assert_eq!(all(&ann, false, None, 1000).await.0.len(), 5003);
    assert_eq!(all(&User::new(&store.db, "bob"), true, None, 100).await, (list_of("0199", 2), 1));
}

fn list_of(prefix: &str, count: u32) -> Vec<SessionId> {
    let id = |number| format!("{prefix}0000-0000-7000-8000-{number:012x}").parse().unwrap();
    (1..=count).rev().map(id).collect()
}

async fn labels_are_found_edited_and_removed(store: &Throwaway) {
    let (ann, bob) = (User::new(&store.db, "ann"), User::new(&store.db, "bob"));
    let labelled = |team: &str| {
        let mut change = starting(None, 3_600_000);
        if let StoreChange::StartSession { labels, .. } = &mut change {
            labels.insert("team".to_owned(), team.to_owned());
            labels.insert("empty".to_owned(), String::new());
        }
        change
    };
    let web = session(ann.change(labelled("web")).await).id;
    let ops = session(ann.change(labelled("ops")).await).id;
    session(bob.change(labelled("web")).await);
    ann.start(None).await;
    for live in [true, false] {
        let find = async |user: &User, label| all(user, live, Some(label), 10).await.0;
        assert_eq!(find(&ann, ("team", "web")).await, std::slice::from_ref(&web));
        assert_eq!(find(&ann, ("empty", "")).await, [ops.clone(), web.clone()]);
        assert_eq!(find(&ann, ("team", "")).await, []);
        assert_eq!(find(&bob, ("team", "ops")).await, []);
    }
    let edit = |labels: Option<(&str, &str)>| StoreChange::EditSession {
        session: web.clone(),
        if_revision: None,
        name: None,
        labels: labels.map(|(key, value)| [(key.to_owned(), value.to_owned())].into()),
        settings: Default::default(),
    };
    ann.change(edit(None)).await.unwrap();
    assert_eq!(
        all(&ann, true, Some(("team", "web")), 10).await.0,
        std::slice::from_ref(&web),
        "labels were not edited"
    );
    ann.change(edit(Some(("team", "ops")))).await.unwrap();
    assert_eq!(all(&ann, true, Some(("team", "web")), 10).await.0, []);
    assert_eq!(all(&ann, true, Some(("empty", "")), 10).await.0, std::slice::from_ref(&ops));
    let fork = StoreChange::Fork { session: ops.clone(), at: None, id: id(), name: None };
    let forked = session(ann.change(fork).await);
    assert_eq!(all(&ann, true, Some(("team", "ops")), 10).await.0, [forked.id, ops.clone(), web.clone()]);
    let end = StoreChange::EndSession { session: ops.clone(), reason: String::new() };
    let ended = session(ann.change(end).await).ended_ms.unwrap();
    assert_eq!(all(&ann, true, Some(("team", "ops")), 10).await.0.len(), 2);
    assert_eq!(all(&ann, false, Some(("team", "ops")), 10).await.0.len(), 3);
    assert!(store.db.delete_session(&ann.id, &ops, before(ended + 1)).await.unwrap());
    assert_eq!(all(&ann, false, Some(("team", "ops")), 10).await.0.len(), 2);
    assert_eq!(store.left_of(&ops), 0);
}

/// More live sessions than are looked through at once, of which none of the newest fits.
async fn page_ends_early_where_little_matches(store: &Throwaway) {
    store.add_sessions("ann", "0197", 1, FUTURE_MS, Some(("team", "web")));
    store.add_sessions("ann", "0198", 300, FUTURE_MS, None);
    store.add_sessions("ann", "0199", 1000, 1000, Some(("team", "web")));
    let ann = User::new(&store.db, "ann");
    let (found, next) = list(&ann, sessions(true, Some(("team", "web")), None, 10)).await;
    assert_eq!(found, []);
    assert!(next.is_some(), "the page is empty and has a next cursor");
    let (found, pages) = all(&ann, true, Some(("team", "web")), 10).await;
    assert_eq!(found, list_of("0197", 1));
    assert!(pages <= 1001 / usize::try_from(SCAN_ROWS).unwrap() + 2, "{pages}");
    let (found, _) = all(&ann, true, None, 100).await;
    assert_eq!(found.len(), 301);
    assert_eq!(all(&ann, false, Some(("team", "web")), 100).await.0.len(), 1001);
    assert_eq!(
        all(&ann, true, Some(("team", "none")), 10).await,
        (Vec::new(), 1),
        "the label says it at once"
    );
}

async fn audit_log_of_one_session_is_read_in_bounded_pages(store: &Throwaway) {
    let ann = User::new(&store.db, "ann");
    let read = |session: &str, at_ms| AuditedRead {
        user: ann.id.clone(),
        access: Access { id: id().into(), token: None },
        action: "append".to_owned(),
        session: Some(session.to_owned()),
        outcome: "done".to_owned(),
        at_ms,
    };
    let hour = 3_600_000;
    store.db.record(vec![read("rare", 10 * hour)]).await.unwrap();
    for _ in 0..4 {
        store.db.record((0..200).map(|_| read("often", 100 * hour)).collect()).await.unwrap();
    }
    let ask = async |session: &str, since_ms, reads, before| {
        let session = Some(session.to_owned());
        match ann.ask(Query::History { session, since_ms, reads, before, limit: 5 }).await {
            Ok(QueryAnswer::History(page)) => page,
            other => panic!("{other:?}"),
        }
    };
    for reads in [true, false] {
        let (mut before, mut found, mut pages) = (None, 0, 0);
        loop {
            let page = ask("rare", None, reads, before).await;
            (found, pages) = (found + page.items.len(), pages + 1);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!((found, pages), (1, 4), "in pages of so many rows, and not at once");
        let since = ask("rare", Some(200 * hour), reads, None).await;
        assert_eq!((since.items.len(), since.next), (0, None), "older entries are not read");
        let full = ask("often", Some(hour), reads, None).await;
        assert_eq!((full.items.len(), full.next.is_some()), (5, true));
    }
}

async fn locks_are_found_behind_many_expired_ones(store: &Throwaway) {
    let ann = User::new(&store.db, "ann");
    let insert = |column: &str, name: &str, numbers: &str| {
        format!(
            "INSERT INTO place ({column}, resource, place, token, holder, process, claim, asked_ms, expires_ms)
             SELECT 'ann', 'lock:' || {name}, i, i, 'h', '', '', 0, 1 {numbers};"
        )
    };
    let recursive = "FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600) SELECT i FROM n) AS n";
    let series = "FROM generate_series(1, 600) AS i";
    let both = |column: &str, numbers: &str| {
        [insert(column, "'b' || i", numbers), insert(column, "'c'", numbers)].concat()
    };
    store.sql(&both("user", recursive), &both("user_id", series));
    for name in ["a", "d"] {
        assert!(ticket(ann.ask_for(&lock(name), Busy::Reject, 60_000).await).token.is_some());
    }
    assert!(ticket(ann.ask_for(&lock("d"), Busy::Enqueue, 60_000).await).token.is_none());
    let (mut after, mut found, mut pages) = (None, Vec::new(), 0);
    loop {
        let Ok(QueryAnswer::Locks(page)) = ann.ask(Query::Locks { after, limit: 10 }).await else { panic!() };
        found.extend(page.items.into_iter().map(|lock| (lock.name, lock.waiting)));
        pages += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, [("a".to_owned(), 0), ("d".to_owned(), 1)]);
    assert!((3..=6).contains(&pages), "{pages}");
}

/// By what the database itself counts.
#[tokio::test(flavor = "multi_thread")]
async fn list_in_postgres_reads_a_bounded_number_of_rows() {
    let store = Throwaway::postgres().await;
    store.add_sessions("ann", "0198", 3, FUTURE_MS, Some(("team", "web")));
    store.add_sessions("ann", "0199", 20_000, 1000, None);
    let count = |sql: &str| store.database().sql(sql).parse::<i64>().unwrap();
    let connections = || count("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()");
    let rows = || {
        count(
            "SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname IN ('session', 'label'))::bigint
                + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname IN ('session', 'label'))::bigint",
        )
    };
    let (connected, before) = (connections(), rows());
    let ann = User::new(&store.another().await, "ann");
    let mut lists = 0;
    for live in [true, false] {
        for label in [None, Some(("team", "web")), Some(("team", "none"))] {
            for limit in [1, 16] {
                list(&ann, sessions(live, label, None, limit)).await;
                lists += 1;
            }
        }
    }
    drop(ann);
    // A connection tells what it read when it ends.
    while connections() > connected {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let read = rows() - before;
    assert!((1..=lists * 2 * SCAN_ROWS).contains(&read), "{read} rows were read for {lists} lists");
}

async fn page_ends_with_the_item_that_fills_it(store: &Throwaway) {
    let user = User::new(&store.db, "ann");
    let session = user.start(None).await.id;
    // Each has three bytes as JSON.
    user.append(&session, &["a", "b", "c", "d"]).await.unwrap();
    for key in ["a", "b", "c", "d"] {
        let (key, value) = (key.to_owned(), Some(json!(key).into()));
        let set = StoreChange::SetEntry { session: session.clone(), key, value, if_revision: None };
        user.change(set).await.unwrap();
    }
    for (bytes, count) in [(1, 1), (3, 1), (4, 2), (9, 3), (12, 4), (i64::MAX, 4)] {
        let first = Query::Messages { session: session.clone(), after: 0, limit: 9, bytes };
        let Ok(QueryAnswer::Messages(first)) = user.ask(first).await else { panic!() };
        let numbers = |read: &[MessageRecord]| read.iter().map(|one| one.number).collect::<Vec<_>>();
        assert_eq!(numbers(&first), (1..=count).collect::<Vec<_>>(), "{bytes} bytes");
        let last = Query::LastMessages { session: session.clone(), limit: 9, bytes };
        let Ok(QueryAnswer::Messages(last)) = user.ask(last).await else { panic!() };
        assert_eq!(numbers(&last), (5 - count..=4).collect::<Vec<_>>(), "{bytes} bytes");
        let entries = Query::Entries { session: session.clone(), key: None, after: None, limit: 9, bytes };
        let Ok(QueryAnswer::Entries(page)) = user.ask(entries).await else { panic!() };
        assert_eq!(i64::try_from(page.items.len()).unwrap(), count, "{bytes} bytes");
        let is_full = bytes <= 12;
        assert_eq!(page.next, page.items.last().filter(|_| is_full).map(|last| last.key.clone()));
    }
}
