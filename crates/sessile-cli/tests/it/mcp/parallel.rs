//! Two servers and many commands on one store: nothing is lost, nothing is stale, and a lock excludes them all.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{Home, McpClient, quickest_within};

use super::{code, refused, result, serve};
use crate::{home, home_with, start};

/// How often each adds one.
const TIMES: usize = 3;

/// Adds one to the session's counter by compare-and-set, as often as it takes; the revision that it was.
fn add_one(mut read: impl FnMut() -> Value, mut set: impl FnMut(i64, i64) -> Option<i64>) -> i64 {
    loop {
        let found = read();
        let (value, revision) = (found["value"].as_i64().unwrap(), found["revision"].as_i64().unwrap());
        if let Some(revision) = set(value + 1, revision) {
            return revision;
        }
    }
}

fn by_server(client: &mut McpClient) -> i64 {
    let client = Mutex::new(client);
    add_one(
        || {
            result(&mut client.lock().unwrap(), "get_state", json!({ "key": "n", "session": "work" }))["values"][0].clone()
        },
        |value, revision| {
            let given = json!({ "key": "n", "value": value, "if_revision": revision, "session": "work" });
            let answer = client.lock().unwrap().call("set_state", given);
            if answer["isError"] == true {
                assert_eq!(refused(&answer)["code"], "REVISION_CONFLICT", "{answer}");
                return None;
            }
            answer["structuredContent"]["revision"].as_i64()
        },
    )
}

fn by_command(home: &Home) -> i64 {
    let state = |words: &[&str]| {
        let flags = ["--session", "work", "-ojson", "--lock-timeout", "60s"];
        home.call(&["session", "state"]).args(words).args(&flags)
    };
    add_one(
        || state(&["get", "n"]).ok().json(),
        |value, revision| {
            let (value, revision) = (value.to_string(), revision.to_string());
            let done = state(&["set", "n", &value, "--if-revision", &revision]).run();
            if done.status() == Some(0) {
                return done.json()["revision"].as_i64();
            }
            assert_eq!(done.code(), "REVISION_CONFLICT", "{}", done.told());
            None
        },
    )
}

#[test]
fn a_crowd_of_servers_and_commands_loses_no_update() {
    let home = home();
    start(&home, &["--name", "work"]);
    home.call(&["session", "state", "set", "n", "0", "--session", "work"]).ok();
    let revisions = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = serve(&home, &["--lock-timeout", "60s"]);
                for _ in 0..5 * TIMES {
                    let revision = by_server(&mut client);
                    revisions.lock().unwrap().push(revision);
                }
            });
        }
        for _ in 0..20 {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    let revision = by_command(&home);
                    revisions.lock().unwrap().push(revision);
                }
            });
        }
    });
    let all = 30 * TIMES;
    let found = home.call(&["session", "state", "get", "n", "--session", "work", "-ojson"]).ok().json();
    assert_eq!(found["value"], all);
    let mut revisions = revisions.into_inner().unwrap();
    revisions.sort_unstable();
    revisions.dedup();
    assert_eq!(revisions.len(), all, "every revision is unique");
}

#[test]
fn change_of_one_server_is_visible_to_the_other() {
    let home = home_with(&["dev"]);
    let (mut one, mut two) = (serve(&home, &[]), serve(&home, &[]));
    let id = result(&mut one, "start_session", json!({ "name": "work", "context": "dev" }))["id"].clone();
    assert_eq!(result(&mut two, "show_session", json!({ "session": "work" }))["id"], id);
    for round in 0..10 {
        let key = json!({ "key": "k", "session": "work" });
        let set = json!({ "key": "k", "value": round, "session": "work" });
        result(if round % 2 == 0 { &mut one } else { &mut two }, "set_state", set);
        let seen = result(if round % 2 == 0 { &mut two } else { &mut one }, "get_state", key);
        assert_eq!(seen["values"][0]["value"], round);
        let setting = json!({ "key": "env.ROUND", "value": round.to_string(), "session": "work" });
        result(&mut one, "set_setting", setting);
        let seen = result(&mut two, "get_settings", json!({ "key": "env.ROUND", "session": "work" }));
        assert_eq!(seen["settings"][0]["value"], round.to_string(), "{seen}");
    }
    // By commands too, in both directions, and for files.
    home.call(&["context", "create", "later"]).ok();
    assert_eq!(result(&mut two, "list_contexts", json!({}))["count"], 2);
    home.call(&["config", "set", "--global", "agents.bot.url", "https://bot.example"]).ok();
    assert_eq!(result(&mut one, "list_agents", json!({}))["count"], 1);
    result(&mut two, "stop_session", json!({ "session": "work" }));
    assert_eq!(code(&mut one, "get_state", json!({ "session": "work" })), "SESSION_EXPIRED");
    assert!(crate::live(&home).is_empty());
}

#[test]
fn a_lock_excludes_servers_and_commands_alike() {
    let home = home();
    let (mut one, mut two) = (serve(&home, &[]), serve(&home, &[]));
    let held = result(&mut one, "acquire_lock", json!({ "name": "deploy" }));
    // The default is five seconds.
    quickest_within(Duration::from_secs(4), || {
        let begun = Instant::now();
        let told = refused(&two.call("acquire_lock", json!({ "name": "deploy", "wait": "0s" })));
        assert_eq!((&told["code"], &told["retryable"]), (&json!("LOCK_HELD"), &json!(true)));
        begun.elapsed()
    });
    let done = home.call(&["lock", "run", "deploy", "--lock-timeout", "0s", "-ojson", "--", "true"]).run();
    assert_eq!(done.exit(125).code(), "LOCK_HELD");
    // Only its token opens it.
    let token = held["token"].as_i64().unwrap();
    assert_ne!(code(&mut two, "release_lock", json!({ "name": "deploy", "token": token + 1 })), "USAGE");
    assert_eq!(result(&mut two, "list_locks", json!({}))["count"], 1);
    // Who waits gets it as soon as it is free, with a token that is greater.
    let waiting = two.call_async("acquire_lock", json!({ "name": "deploy", "wait": "30s" }));
    home.call(&["lock", "release", "deploy", "--token", &token.to_string()]).ok();
    let next = two.answer(waiting).unwrap()["structuredContent"]["token"].as_i64().unwrap();
    assert!(next > token);
    assert_ne!(
        code(&mut one, "renew_lock", json!({ "name": "deploy", "token": token })),
        "USAGE",
        "the old one is void"
    );
}

#[test]
fn quick_calls_do_not_wait_for_slow_ones() {
    let (home, agent) = (home(), super::agent());
    start(&home, &["--name", "work"]);
    let mut client = serve(&home, &[]);
    let slow: Vec<u64> = (0..40)
        .map(|n| {
            client.call_async("send_message", json!({ "agent": agent.url(), "text": format!("hold {n}") }))
        })
        .collect();
    crate::eventually("the slow calls", || {
        (0..40).filter(|n| agent.heard(&format!("hold {n}"))).count() >= 30
    });
    // The agent holds the slow calls for as long as the test runs.
    quickest_within(Duration::from_secs(4), || {
        let begun = Instant::now();
        result(&mut client, "status", json!({}));
        result(&mut client, "list_sessions", json!({}));
        result(&mut client, "set_state", json!({ "key": "k", "value": 1, "session": "work" }));
        begun.elapsed()
    });
    drop(slow);
}

#[test]
fn held_lock_tells_its_holder_and_never_its_token() {
    let home = home();
    start(&home, &["--name", "one"]);
    start(&home, &["--name", "two"]);
    let mut client = serve(&home, &[]);
    // Far from every other number in the answers.
    for n in 0..3 {
        let held = result(&mut client, "acquire_lock", json!({ "name": format!("n{n}") }));
        result(&mut client, "release_lock", json!({ "name": format!("n{n}"), "token": held["token"] }));
    }
    let held = result(&mut client, "acquire_lock", json!({ "name": "deploy", "session": "one" }));
    let token = held["token"].as_i64().unwrap();
    let told =
        refused(&client.call("acquire_lock", json!({ "name": "deploy", "session": "two", "wait": "0s" })));
    assert_eq!(told["code"], "LOCK_HELD");
    assert!(!told.to_string().contains(&format!("token {token}")), "{told}");
    let listed = result(&mut client, "list_locks", json!({}));
    assert_eq!(listed["locks"][0]["name"], "deploy");
    assert!(!listed.to_string().contains("token"), "{listed}");
    let again =
        refused(&client.call("acquire_lock", json!({ "name": "deploy", "session": "one", "wait": "0s" })));
    assert_eq!(again["code"], "LOCK_HELD");
    let message = again["message"].as_str().unwrap();
    assert!(message.contains("held by this session"), "{again}");
    assert!(!again.to_string().contains(&format!("token {token}")), "{again}");
}

#[test]
fn stopping_a_session_releases_and_reports_its_locks() {
    let home = home();
    start(&home, &["--name", "one"]);
    let mut client = serve(&home, &[]);
    for name in ["deploy", "schema"] {
        result(&mut client, "acquire_lock", json!({ "name": name, "session": "one" }));
    }
    let stopped = result(&mut client, "stop_session", json!({ "session": "one" }));
    assert_eq!(stopped["released_locks"], json!(["deploy", "schema"]), "{stopped}");
    assert_eq!(result(&mut client, "list_locks", json!({}))["count"], 0);
}

#[test]
fn no_two_hold_a_lock_at_the_same_time() {
    let home = home();
    let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
    let within = || {
        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(2));
        inside.fetch_sub(1, Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = serve(&home, &[]);
                for _ in 0..5 {
                    let held = result(&mut client, "acquire_lock", json!({ "name": "l", "wait": "60s" }));
                    within();
                    result(&mut client, "release_lock", json!({ "name": "l", "token": held["token"] }));
                }
            });
            scope.spawn(|| {
                for _ in 0..5 {
                    let held = home
                        .call(&["lock", "acquire", "l", "--quiet", "--lock-timeout", "60s"])
                        .ok()
                        .stdout();
                    within();
                    home.call(&["lock", "release", "l", "--token", held.trim()]).ok();
                }
            });
        }
    });
    assert_eq!(most.into_inner(), 1);
}
