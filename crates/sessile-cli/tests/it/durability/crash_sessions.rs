//! A process killed at any instant of a session's life loses nothing that was acknowledged.
//!
//! `SESSILE_TEST_KILLS` says how many processes are killed.

use std::collections::BTreeMap;

use crate::durability::crash::{Killer, assert_not_locked, kills};
use crate::{home, live, shown, start};

const STATE: &str = ".local/state/sessile";

#[test]
fn a_killed_start_set_or_stop_is_whole_or_absent() {
    let home = home();
    let set = |id: &str, value: usize| {
        home.call(&["session", "state", "set", "k", &value.to_string(), "--session", id])
    };
    let stop = |id: &str| home.call(&["session", "stop", id]);
    let name = |number: usize| format!("n{number}");
    let begin = |number: usize| home.call(&["session", "start", "--name", &name(number)]);
    let steady = start(&home, &[]);
    let spare = start(&home, &[]);
    let warm = [begin(1_000_000), set(&steady, 0), stop(&spare), begin(1_000_001), set(&steady, 0)];
    let mut killer = Killer::new(0x5e55_11e05, warm);
    let value = || {
        let done = home.call(&["session", "state", "get", "k", "--session", &steady, "-ojson"]).ok().json();
        (done["value"].as_u64().unwrap(), done["revision"].as_i64().unwrap())
    };
    let kills = kills();
    let mut victims: Vec<String> = Vec::new();
    let mut states: BTreeMap<String, &str> = BTreeMap::new();
    for number in 0..kills {
        match number % 3 {
            0 => {
                let done = killer.kill(begin(number));
                let found = home.call(&["session", "show", &name(number), "-ojson"]).run();
                assert!(found.status() == Some(0) || !done, "an acknowledged session is missing");
                if found.status() == Some(0) {
                    let id = found.json()["id"].as_str().unwrap().to_owned();
                    // It is whole: it can be used at once.
                    set(&id, number).ok();
                    states.insert(id.clone(), "live");
                    victims.push(id);
                }
            }
            1 => {
                let (old, revision) = value();
                let done = killer.kill(set(&steady, number));
                let now = value();
                let new = (number as u64, revision + 1);
                assert!(now == new || (now == (old, revision) && !done), "{now:?} after {old} -> {number}");
            }
            _ => {
                let Some(id) = victims.pop() else { continue };
                let done = killer.kill(stop(&id));
                let state = shown(&home, &id)["state"].as_str().unwrap().to_owned();
                assert!(state == "ended" || (state == "live" && !done), "{state} after a stop");
                states.insert(id, if state == "ended" { "ended" } else { "live" });
            }
        }
        assert_not_locked(&home.path(STATE));
        if number % 10 == 9 {
            home.call(&["session", "gc", "--lock-timeout=0"]).ok();
            home.call(&["doctor"]).ok();
        }
    }
    for (id, state) in &states {
        assert_eq!(shown(&home, id)["state"], *state, "{id}");
    }
    // What was left between a row and its room is swept up; every live session has its room.
    home.call(&["session", "gc"]).ok();
    let mut rooms: Vec<String> = std::fs::read_dir(home.path(STATE).join("rooms"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    rooms.sort();
    assert_eq!(rooms, live(&home));
    home.call(&["doctor"]).ok();
    killer.assert_it_was_a_fight(kills);
}

#[test]
fn killed_lock_holder_blocks_no_waiter_and_repeats_no_token() {
    let home = home();
    let acquire = || home.call(&["lock", "acquire", "l", "--ttl", "200ms", "--lock-timeout", "30s"]);
    let run = || home.call(&["lock", "run", "l", "--lock-timeout", "30s", "--", "true"]);
    let mut killer = Killer::new(0x5e55_11e06, [acquire(), run(), run()]);
    let kills = kills() / 2;
    let mut last = 0;
    for number in 0..kills {
        killer.kill(if number % 4 == 0 { acquire() } else { run() });
        if number % 5 == 4 {
            let done = home.call(&["lock", "run", "l", "--lock-timeout", "30s", "--", "/bin/sh", "-c"]);
            let token = done.arg("echo $SESSILE_LOCK_TOKEN").ok().stdout().trim().parse::<i64>().unwrap();
            assert!(token > last, "{token} after {last}");
            last = token;
        }
    }
    assert_eq!(home.call(&["lock", "list", "-ojson"]).ok().stdout(), "[]\n");
    home.call(&["doctor"]).ok();
    killer.assert_it_was_a_fight(kills);
}
