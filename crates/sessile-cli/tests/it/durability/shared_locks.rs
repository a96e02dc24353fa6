//! `lock --shared`, the waiting line, and the locks of a session.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::{Call, Home};

use crate::{eventually, home, start};

fn in_background(call: Call) -> Child {
    call.command().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn held(home: &Home) -> Vec<Value> {
    home.call(&["lock", "list", "-ojson"]).ok().json().as_array().unwrap().clone()
}

fn acquire(home: &Home, flags: &[&str]) -> String {
    home.call(&["lock", "acquire", "l", "--quiet"]).args(flags).ok().stdout().trim().to_owned()
}

fn release(home: &Home, token: &str) {
    home.call(&["lock", "release", "l", "--token", token]).ok();
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap().success());
}

/// A waiter that holds the lock for a moment and then appends its name to `order`.
fn waiter(home: &Home, name: &str, waiting: usize, flags: &[&str]) -> Child {
    let call = home.call(&["lock", "run", "l", "--lock-timeout", "60s"]).args(flags);
    let child = in_background(call.args(&["--", "/bin/sh", "-c", &format!("echo {name} >> order")]));
    eventually("its place", || held(home)[0]["waiting"] == waiting);
    child
}

#[test]
fn shared_holders_are_listed_and_exclude_exclusive_ones() {
    let home = home();
    let (first, second) = (acquire(&home, &["--shared"]), acquire(&home, &["--shared"]));
    let list = held(&home);
    assert_eq!(list.len(), 1, "{list:?}");
    assert_eq!(
        (&list[0]["mode"], &list[0]["token"]),
        (&"shared".into(), &first.parse::<i64>().unwrap().into())
    );
    let tokens: Vec<String> =
        list[0]["holders"].as_array().unwrap().iter().map(|hold| hold["token"].to_string()).collect();
    assert_eq!(tokens, [first.clone(), second.clone()]);
    let table = home.call(&["lock", "list"]).ok().stdout();
    assert_eq!(table.matches("shared").count(), 2, "{table}");
    home.call(&["lock", "acquire", "l", "--lock-timeout", "50ms"]).run().exit(6);
    home.call(&["lock", "renew", "l", "--token", &second, "--ttl", "1h"]).ok();
    release(&home, &first);
    home.call(&["lock", "acquire", "l", "--lock-timeout", "50ms"]).run().exit(6);
    home.call(&["lock", "break", "l", "--holder", &second]).ok();
    let third = acquire(&home, &["--lock-timeout", "0"]);
    home.call(&["lock", "acquire", "l", "--shared", "--lock-timeout", "50ms"]).run().exit(6);
    assert_eq!(held(&home)[0]["mode"], "exclusive");
    assert!(third.parse::<i64>().unwrap() > second.parse::<i64>().unwrap());
}

#[test]
fn shared_request_waits_behind_an_exclusive_one() {
    let home = home();
    let reader = acquire(&home, &["--shared"]);
    let writer = waiter(&home, "writer", 1, &[]);
    home.call(&["lock", "acquire", "l", "--shared", "--lock-timeout", "100ms"]).run().exit(6);
    let late = waiter(&home, "late", 2, &["--shared"]);
    release(&home, &reader);
    for mut child in [writer, late] {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(home.read("order"), "writer\nlate\n");
}

/// Each writes a line when it enters and when it leaves.
#[test]
fn eight_readers_and_two_writers_never_overlap() {
    let home = home();
    let script = "printf '+%s\\n' $0 >> log; sleep 0.0$1; printf '%s\\n' -$0 >> log";
    let begun = Instant::now();
    let mut children = Vec::new();
    for round in 0..3 {
        for number in 0..10 {
            let (name, flags): (_, &[&str]) = if number % 5 == 3 { ("w", &[]) } else { ("r", &["--shared"]) };
            let time = ((number + round) % 9).to_string();
            let call = match number % 2 {
                0 => home.call(&["lock", "run", "l", "--lock-timeout", "2m"]).args(flags),
                _ if name == "r" => {
                    home.call(&["run", "--lock", "l", "--lock-shared", "--lock-timeout", "2m"])
                }
                _ => home.call(&["run", "--lock", "l", "--lock-timeout", "2m"]),
            };
            children.push(in_background(call.args(&["--", "/bin/sh", "-c", script, name, &time])));
        }
    }
    for child in children {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let log = home.read("log");
    let (mut readers, mut writers, mut most) = (0, 0, 0);
    for line in log.lines() {
        match line {
            "+r" => readers += 1,
            "-r" => readers -= 1,
            "+w" => writers += 1,
            "-w" => writers -= 1,
            other => panic!("{other}"),
        }
        most = most.max(readers);
        assert!(writers == 0 || (writers == 1 && readers == 0), "{log}");
    }
    assert_eq!(log.lines().count(), 60, "{log}");
    assert!(most > 1, "readers share it\n{log}");
    assert!(begun.elapsed() < Duration::from_secs(100));
    assert!(held(&home).is_empty());
}

#[test]
fn queue_skips_a_killed_stopped_or_timed_out_waiter() {
    let home = home();
    for way in ["KILL", "STOP", "timeout"] {
        home.write("order", "");
        let token = acquire(&home, &[]);
        let mut first = if way == "timeout" {
            in_background(home.call(&["lock", "run", "l", "--lock-timeout", "700ms", "--", "true"]))
        } else {
            waiter(&home, "first", 1, &[])
        };
        eventually("its place", || held(&home)[0]["waiting"] == 1);
        let second = waiter(&home, "second", 2, &[]);
        let third = waiter(&home, "third", 3, &["--shared"]);
        match way {
            "timeout" => assert_eq!(first.wait().unwrap().code(), Some(125)),
            signal_name => signal(&first, signal_name),
        }
        let begun = Instant::now();
        release(&home, &token);
        for mut child in [second, third] {
            assert!(child.wait().unwrap().success());
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{way}: {:?}", begun.elapsed());
        assert_eq!(home.read("order"), "second\nthird\n", "{way}");
        if way == "STOP" {
            signal(&first, "CONT");
            assert!(first.wait().unwrap().success(), "the continued waiter rejoins the queue");
            assert_eq!(home.read("order"), "second\nthird\nfirst\n");
        }
        let _ = first.wait();
    }
    let files = std::fs::read_dir(home.path(".local/state/sessile/tickets")).unwrap().count();
    assert_eq!(files, 0, "no file of a ticket is left");
}

#[test]
fn waiter_prints_its_position() {
    let home = home();
    let token = acquire(&home, &[]);
    let first = waiter(&home, "first", 1, &[]);
    let second = waiter(&home, "second", 2, &[]);
    let mut children = [(first, 1), (second, 2)];
    // Read before the lock is released, while both still wait.
    for (child, position) in &mut children {
        let (mut told, expected) = (String::new(), format!("position {position} in line"));
        let mut lines = BufReader::new(child.stderr.as_mut().unwrap());
        while !told.contains(&expected) {
            assert_ne!(lines.read_line(&mut told).unwrap(), 0, "{told}");
        }
        assert!(told.contains("waiting for lock \"l\""), "{told}");
    }
    release(&home, &token);
    for (mut child, _) in children {
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn token_defaults_to_the_variable() {
    let home = home();
    let token = acquire(&home, &[]);
    for verb in ["renew", "release"] {
        let missing = home.call(&["lock", verb, "l"]).run().exit(2);
        assert!(missing.stderr().contains("--token"), "{}", missing.told());
        let wrong = home.call(&["lock", verb, "l"]).env("SESSILE_LOCK_TOKEN", "x").run().exit(2);
        assert!(wrong.stderr().contains("SESSILE_LOCK_TOKEN"), "{}", wrong.told());
        home.call(&["lock", verb, "l"]).env("SESSILE_LOCK_TOKEN", &token).ok();
    }
    assert!(held(&home).is_empty());
}

#[test]
fn lock_run_takes_a_command_without_dashes() {
    let home = home();
    let done = home.call(&["lock", "run", "--shared", "l", "/bin/echo", "--yes", "-q", "--", "x"]).ok();
    assert_eq!(done.stdout(), "--yes -q -- x\n");
    home.call(&["lock", "run", "l"]).run().exit(2);
}

#[test]
fn lock_that_is_already_held_here_is_named() {
    let home = home();
    let id = start(&home, &[]);
    let call = |words: &[&str]| home.call(words).env("SESSILE_SESSION", &id);
    call(&["lock", "acquire", "l"]).ok();
    let again = call(&["lock", "acquire", "l", "--lock-timeout", "50ms", "-ojson"]).run().exit(6);
    let error = again.json_error();
    assert!(error["message"].as_str().unwrap().contains("held by this session"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("lock renew l"), "{error}");
    // Without a session the token shows it.
    let token = home.call(&["lock", "acquire", "t", "-q"]).ok().stdout();
    let again = home.call(&["lock", "acquire", "t", "--lock-timeout", "50ms", "-ojson"]);
    let error = again.env("SESSILE_LOCK_TOKEN", token.trim()).run().exit(6).json_error();
    assert!(error["message"].as_str().unwrap().contains("held by this caller"), "{error}");
    let other = home.call(&["lock", "acquire", "t", "--lock-timeout", "50ms", "-ojson"]);
    let error = other.env("SESSILE_LOCK_TOKEN", "7000").run().exit(6).json_error();
    assert!(!error["message"].as_str().unwrap().contains("this caller"), "{error}");
    // A command that waits for the lock of its own caller would wait for ever.
    let begun = Instant::now();
    let nested = ["lock", "run", "n", "/bin/sh", "-c", "\"$0\" lock run n --lock-timeout 1m true"];
    let done = home.call(&nested).arg(env!("CARGO_BIN_EXE_sessile")).run().exit(125);
    assert!(done.stderr().contains("held by a parent of this process"), "{}", done.told());
    assert!(begun.elapsed() < Duration::from_secs(20));
    let both = ["lock", "run", "--shared", "s", "/bin/sh", "-c", "\"$0\" lock run --shared s true"];
    home.call(&both).arg(env!("CARGO_BIN_EXE_sessile")).ok();
}

#[test]
fn stopping_a_session_releases_and_names_its_locks() {
    let home = home();
    let id = start(&home, &[]);
    home.call(&["lock", "acquire", "mine"]).env("SESSILE_SESSION", &id).ok();
    home.call(&["lock", "acquire", "other"]).ok();
    let run = home.call(&["lock", "run", "running", "/bin/sh", "-c", "touch ready; sleep 1000"]);
    let mut child = in_background(run.env("SESSILE_SESSION", &id));
    eventually("the command", || home.path("ready").exists());
    let done = home.call(&["session", "stop", &id, "-ojson"]).ok().json();
    assert_eq!(done["released_locks"], serde_json::json!(["mine", "running"]), "{done}");
    child.wait().unwrap();
    eventually("the lock of the command", || held(&home).len() == 1);
    assert_eq!(held(&home)[0]["name"], "other");
    let id = start(&home, &[]);
    home.call(&["lock", "acquire", "mine"]).env("SESSILE_SESSION", &id).ok();
    let text = home.call(&["session", "stop", &id]).ok().stdout();
    assert!(text.contains("released lock \"mine\""), "{text}");
}
