//! Two processes on one store: what one does, the other sees.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::Postgres;

use super::{Service, Store, a_moment};
use crate::home;

#[test]
fn two_processes_share_a_sqlite_store() {
    let home = home();
    two_processes_share(&Store::file(&home));
}

#[test]
fn two_processes_share_a_postgres_store() {
    let (home, server) = (home(), Postgres::shared());
    let database = server.database();
    two_processes_share(&Store::postgres(&home, &database.url()));
}

fn two_processes_share(store: &Store<'_>) {
    let token = store.user("ann");
    let (one, two) = (Service::start(store), Service::start(store));
    let (here, there) = (one.client(&token), two.client(&token));

    let session = here.session();
    here.ok("POST", &format!("{session}/messages"), &json!({ "messages": ["hi"] }));
    assert_eq!(there.texts(&session), ["hi"], "sessions are shared");
    there.ok("PUT", &format!("{session}/state/k"), &json!(1));
    assert_eq!(here.get(&format!("{session}/state/k"))["value"], 1, "values too");

    let (turns, refuse) = (format!("{session}/turns"), json!({ "busy": "reject" }));
    let first = here.ok("POST", &turns, &json!({}));
    let (status, problem) = there.send("POST", &turns, Some(&refuse));
    assert_eq!((status, problem["code"].as_str()), (409, Some("LOCK_HELD")), "a turn is one's at a time");
    let waits = {
        let (there, turns) = (there.clone(), turns.clone());
        std::thread::spawn(move || (there.ok("POST", &turns, &json!({})), Instant::now()))
    };
    a_moment();
    let commit = |token: &serde_json::Value| format!("{turns}/{token}/commit");
    let since = Instant::now();
    here.ok("POST", &commit(&first["token"]), &json!({ "messages": ["one"] }));
    let (second, when) = waits.join().unwrap();
    assert!(when - since < Duration::from_secs(5), "the next waiter gets the turn at once");
    assert!(second["token"].as_i64() > first["token"].as_i64());
    assert_eq!(second["history"].as_array().unwrap().len(), 2, "with what the other process wrote");
    // A turn that one process gave can be ended at the other; and only once.
    here.ok("POST", &commit(&second["token"]), &json!({ "messages": ["two"] }));
    let late = there.send("POST", &commit(&second["token"]), Some(&json!({ "messages": ["late"] })));
    assert_eq!((late.0, late.1["code"].as_str()), (409, Some("LOCK_LOST")));
    assert_eq!(there.texts(&session), ["hi", "one", "two"]);

    let lock = here.ok("POST", "/v1/locks/deploy", &json!({ "ttl_ms": 60_000 }));
    let (status, problem) = there.send("POST", "/v1/locks/deploy", Some(&refuse));
    assert_eq!((status, problem["code"].as_str()), (409, Some("LOCK_HELD")), "so is a lock");
    // Whoever holds it is served by whichever process is left.
    drop(one);
    let token = lock["token"].as_i64().unwrap();
    there.ok("POST", "/v1/locks/deploy/renew", &json!({ "token": token }));
    assert_eq!(there.send("DELETE", &format!("/v1/locks/deploy?token={token}"), None).0, 204);
    let next = there.ok("POST", "/v1/locks/deploy", &refuse);
    assert!(next["token"].as_i64().unwrap() > token);
}
