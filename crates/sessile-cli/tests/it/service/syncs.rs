//! Syncs of the disk: every change that a client may rely on has one, and joining a queue has none.

use std::path::Path;

use serde_json::json;

use super::{Service, Store};
use crate::home;

/// Syncs in a log of strace.
fn syncs(log: &Path) -> usize {
    let text = std::fs::read_to_string(log).unwrap();
    // A call that another thread interrupted has a second line.
    text.lines().filter(|line| line.contains("sync(")).count()
}

#[test]
fn held_turns_are_synced_and_refused_ones_are_not() {
    const TURNS: usize = 20;
    let home = home();
    let log = home.path("syncs.txt");
    let store = Store::file(&home);
    let token = store.user("ann");
    let service = Service::start_with_sync_log(&store, &log);
    let ann = service.client(&token);
    let session = ann.session();
    let turns = format!("{session}/turns");

    let before = syncs(&log);
    let mut held = json!(null);
    for _ in 0..TURNS {
        held = ann.ok("POST", &turns, &json!({}));
        let commit = format!("{turns}/{}/commit", held["token"]);
        ann.ok("POST", &commit, &json!({ "messages": ["said"] }));
    }
    let of_turns = syncs(&log) - before;
    assert!(of_turns >= 2 * TURNS, "{of_turns} syncs of {TURNS} turns; the last one: {held}");

    ann.ok("POST", &turns, &json!({}));
    let before = syncs(&log);
    for _ in 0..TURNS {
        let (status, answer) = ann.send("POST", &turns, Some(&json!({ "busy": "reject" })));
        assert_eq!(status, 409, "{answer}");
    }
    // Other work of the service may need one meanwhile.
    let of_refusals = syncs(&log) - before;
    assert!(of_refusals < TURNS / 4, "{of_refusals} syncs of {TURNS} refusals");
}
