//! Locks that exclude other machines.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Machine, Service, Store, ann, shape};
use crate::home;

/// Starts a call and leaves it running.
fn spawned(call: testkit::Call) -> Child {
    call.command().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A service with one user, and two machines of hers.
fn two_machines(home: &testkit::Home) -> (Service, [Machine; 2]) {
    let store = Store::file(home);
    let token = store.user("ann");
    let service = Service::start(&store);
    let machines = [Machine::new(&service, &token), Machine::new(&service, &token)];
    (service, machines)
}

/// Until a command that runs under a lock has written its token.
#[track_caller]
fn await_token(file: &Path) {
    crate::eventually("the command runs", || {
        std::fs::read_to_string(file).is_ok_and(|text| !text.trim().is_empty())
    });
}

fn refs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn remote_command_prints_what_the_local_one_prints() {
    let home = home();
    let (_service, machine) = ann(&home);
    for words in [
        &["lock", "acquire", "deploy", "--ttl", "5m"][..],
        &["lock", "list"],
        &["lock", "renew", "deploy", "--ttl", "5m", "--token"],
        &["lock", "release", "deploy", "--token"],
        &["lock", "list"],
        &["lock", "acquire", "deploy"],
        &["lock", "break", "deploy", "--holder"],
    ] {
        let with_token = |list: &serde_json::Value| {
            let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            if words.last().is_some_and(|last| last == "--token" || last == "--holder") {
                words.push(list[0]["token"].to_string());
            }
            words
        };
        let there = with_token(&machine.json(&["lock", "list"]));
        let here = with_token(&machine.json_here(&["lock", "list"]));
        let (there, here) = (machine.json(&refs(&there)), machine.json_here(&refs(&here)));
        assert_eq!(shape(&there), shape(&here), "{words:?}\n{there:#}\n{here:#}");
    }
}

#[test]
fn lock_flag_selects_server_or_local() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let service = Service::start(&store);
    let machine = Machine::new(&service, &token);
    let url = format!("http://{}", service.address);
    let stranger = crate::home();
    for words in [
        &["run", "--lock", "deploy"][..],
        &["run", "--session", "own", "--lock", "deploy"],
        &["lock", "run", "deploy"],
    ] {
        let there = [words, &["--server", &url, "--", "true"]].concat();
        // Nobody runs under a lock of this machine instead.
        let done = stranger.call(&there).run();
        assert_ne!(done.status(), Some(0), "{there:?}: {}", done.told());
        assert!(done.stderr().contains("auth login --server"), "{}", done.told());
        let here = [words, &["--server", "", "--", "sh", "-c", "echo $SESSILE_LOCK_TOKEN"]].concat();
        stranger.call(&here).ok();
        let before = service.client(&token).get("/v1/history")["history"].as_array().unwrap().len();
        machine.call(&here).ok();
        assert_eq!(service.client(&token).get("/v1/history")["history"].as_array().unwrap().len(), before);
        machine.call(&there).ok();
        assert!(service.client(&token).get("/v1/history")["history"].as_array().unwrap().len() > before);
    }
}

#[test]
fn remote_lock_excludes_another_machine() {
    let home = home();
    let (_service, machines) = two_machines(&home);
    // Each adds one to what it has read some time before: two at a time would lose some.
    let file = home.write("count", "0");
    let script = "n=$(cat \"$0\"); sleep 0.05; echo $((n+1)) >\"$0\"; echo $SESSILE_LOCK_TOKEN";
    let path = file.display().to_string();
    let ways: [&[&str]; 2] = [&["run", "--lock", "deploy"], &["lock", "run", "deploy"]];
    let children: Vec<Child> = (0..4)
        .flat_map(|_| machines.iter().zip(ways))
        .map(|(machine, way)| {
            let words: Vec<&str> = way
                .iter()
                .copied()
                .chain(["--lock-timeout", "60s", "--", "sh", "-c", script, &path])
                .collect();
            spawned(machine.call(&words))
        })
        .collect();
    let mut tokens: Vec<i64> = Vec::new();
    for child in children {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        tokens.push(String::from_utf8_lossy(&done.stdout).trim().parse().unwrap());
    }
    assert_eq!(home.read("count").trim(), "8");
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 8, "each has a token of its own");
}

#[test]
fn remote_readers_share_a_lock_and_writers_exclude_them() {
    let home = home();
    let (_service, machines) = two_machines(&home);
    let log = home.path("log");
    let path = log.display().to_string();
    let script = "printf '+%s\\n' $1 >>\"$0\"; sleep 0.05; printf '%s\\n' -$1 >>\"$0\"";
    let children: Vec<Child> = (0..10)
        .map(|number| {
            let (name, way): (_, &[&str]) = match number % 5 {
                3 => ("w", &["lock", "run", "schema"]),
                1 => ("r", &["run", "--lock", "schema", "--lock-shared"]),
                _ => ("r", &["lock", "run", "--shared", "schema"]),
            };
            let words = [way, &["--lock-timeout", "60s", "--", "sh", "-c", script, &path, name]].concat();
            spawned(machines[number % 2].call(&words))
        })
        .collect();
    for child in children {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let log = home.read("log");
    let (mut readers, mut writers) = (0, 0);
    for line in log.lines() {
        match line {
            "+r" => readers += 1,
            "-r" => readers -= 1,
            "+w" => writers += 1,
            _ => writers -= 1,
        }
        assert!(writers == 0 || (writers == 1 && readers == 0), "{log}");
    }
    assert_eq!(log.lines().count(), 20, "{log}");
    let [one, two] = machines;
    for machine in [&one, &two] {
        machine.call(&["lock", "acquire", "schema", "--shared"]).ok();
    }
    let list = one.json(&["lock", "list"]);
    assert_eq!((&list[0]["mode"], list[0]["holders"].as_array().unwrap().len()), (&json!("shared"), 2));
    two.call(&["lock", "acquire", "schema", "--lock-timeout", "100ms"]).run().exit(6);
}

#[test]
fn lock_of_a_killed_command_expires() {
    let home = home();
    let (_service, [one, two]) = two_machines(&home);
    let began = one.home.path("began");
    let script = format!("echo $SESSILE_LOCK_TOKEN >{}; exec sleep 60", began.display());
    let mut holder = spawned(
        one.call(&["run", "--lock", "deploy", "--", "sh", "-c", &script]).env("SESSILE_LOCK_TTL", "3s"),
    );
    await_token(&began);
    let first: i64 = one.home.read("began").trim().parse().unwrap();
    // It is renewed: longer than its time nobody else gets it.
    let words = ["lock", "acquire", "deploy", "--output", "json", "--lock-timeout", "4s"];
    let done = two.call(&words).run().exit(6);
    assert_eq!(done.code(), "LOCK_HELD");
    assert!(
        done.json_error()["message"].as_str().unwrap().contains("pid"),
        "the error names the holder: {}",
        done.told()
    );
    assert!(holder.try_wait().unwrap().is_none(), "and the command runs on");
    holder.kill().unwrap();
    holder.wait().unwrap();
    let killed = Instant::now();
    let run =
        ["lock", "run", "deploy", "--lock-timeout", "30s", "--", "sh", "-c", "echo $SESSILE_LOCK_TOKEN"];
    let second: i64 = two.call(&run).ok().stdout().trim().parse().unwrap();
    assert!(killed.elapsed() < Duration::from_secs(20), "{:?}", killed.elapsed());
    assert!(second > first, "{second} {first}");
}

#[test]
fn command_is_terminated_when_its_lock_is_taken_over() {
    let home = home();
    let (_service, [one, two]) = two_machines(&home);
    let began = one.home.path("began");
    let script = format!(
        "trap 'echo told; exit 3' TERM; echo $SESSILE_LOCK_TOKEN >{}; while :; do sleep 0.1; done",
        began.display()
    );
    let call = one
        .call(&["lock", "run", "deploy", "--output", "json", "--", "sh", "-c", &script])
        .env("SESSILE_LOCK_TTL", "3s");
    let holder = spawned(call);
    await_token(&began);
    two.call(&["lock", "break", "deploy", "--holder", one.home.read("began").trim()]).ok();
    let done = holder.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("LOCK_LOST") && stderr.contains("lost the lock"), "{stderr}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "told\n");
}

#[test]
fn command_is_terminated_when_the_server_is_away_past_the_lease() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let mut service = Service::start(&store);
    let machine = Machine::new(&service, &token);
    let script = "trap 'exit 3' TERM; echo up; while :; do sleep 0.1; done";
    let mut call = machine
        .call(&["lock", "run", "deploy", "--", "sh", "-c", script])
        .env("SESSILE_LOCK_TTL", "3s")
        .command();
    let mut holder = call.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(holder.stdout.take().unwrap()), &mut line)
        .unwrap();
    service.kill();
    let away = Instant::now();
    let done = holder.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(125), "{stderr}");
    assert!(stderr.contains("was unreachable for"), "{stderr}");
    assert!(away.elapsed() > Duration::from_secs(1), "{:?}", away.elapsed());
    assert!(away.elapsed() < Duration::from_secs(15), "{:?}", away.elapsed());
}

#[test]
fn lock_run_returns_the_status_and_releases_at_once() {
    let home = home();
    let (_service, machine) = ann(&home);
    machine.call(&["lock", "run", "l", "--", "sh", "-c", "exit 7"]).run().exit(7);
    machine.call(&["run", "--lock", "l", "--", "sh", "-c", "exit 9"]).run().exit(9);
    machine.call(&["run", "--lock", "l", "--timeout", "1s", "--", "sleep", "60"]).run().exit(124);
    machine.call(&["lock", "run", "l", "--", "no-such-program"]).run().exit(127);
    let taken = machine.call(&["lock", "acquire", "l", "--lock-timeout", "0"]).ok();
    assert!(taken.stderr().contains(&machine.url), "the note names the server: {}", taken.told());
    machine.home.call(&["run", "--server", &machine.url, "--", "true"]).run().exit(125);
    let done = machine.call(&["lock", "run", "l", "--lock-timeout", "0", "--", "true"]).run().exit(125);
    assert!(done.stderr().contains("is held by"), "{}", done.told());
}

#[test]
fn lock_run_and_wait_name_the_server() {
    let home = home();
    let (_service, [one, two]) = two_machines(&home);
    for way in [&["run", "--quiet", "--lock", "d"][..], &["lock", "run", "--quiet", "d"]] {
        let noted = format!("using the lock of {}\nran\n", one.url);
        let words = [way, &["--", "sh", "-c", "echo ran >&2"]].concat();
        assert_eq!(one.call(&words).ok().stderr(), "ran\n", "{way:?}");
        let words: Vec<&str> = words.into_iter().filter(|word| *word != "--quiet").collect();
        let told = one.call(&words).ok().stderr();
        assert!(told.ends_with(&noted), "{way:?}: {told}");
        // And the command of this machine says nothing of a server.
        let told = one.home.call(&words).ok().stderr();
        assert_eq!(told, "ran\n", "{way:?}");
    }
    one.call(&["lock", "acquire", "d", "--ttl", "2s"]).ok();
    let waiting = format!("waiting for lock d of {}, held by ", one.url);
    let told = two.call(&["lock", "run", "d", "--lock-timeout", "20s", "--", "true"]).ok().stderr();
    assert!(told.contains(&waiting), "{told}");
}

#[test]
fn remote_lock_list_counts_waiters() {
    let home = home();
    let (_service, [one, two]) = two_machines(&home);
    let token = one.call(&["lock", "acquire", "d"]).ok().stdout();
    one.call(&["lock", "acquire", "e"]).ok();
    let list = || one.json(&["lock", "list"]);
    assert_eq!((&list()[0]["waiting"], &list()[1]["waiting"]), (&json!(0), &json!(0)));
    let process = list()[0]["holder"]["process"].clone();
    assert!(process["pid"].is_i64(), "{process}");
    assert_eq!((&process["started"], &process["boot"]), (&json!(null), &json!(null)), "{process}");
    let waits = spawned(two.call(&["lock", "run", "d", "--lock-timeout", "60s", "--", "true"]));
    crate::eventually("somebody waits", || list()[0]["waiting"] == 1);
    assert_eq!(list()[1]["waiting"], 0);
    // Between two of its requests a waiter does not count for a moment.
    crate::eventually("the table lists the waiter", || {
        let text = one.call(&["lock", "list"]).ok().stdout();
        text.lines().nth(1).unwrap().ends_with(" 1") && text.contains('@')
    });
    one.call(&["lock", "release", "d", "--token", token.trim()]).ok();
    assert!(waits.wait_with_output().unwrap().status.success());
}

#[test]
fn approval_revoked_during_a_server_lock_wait_starts_nothing() {
    let home = home();
    let (_service, machine) = ann(&home);
    machine.home.write(".config/sessile/contexts/prod.toml", "guard = \"approval\"\n");
    let (text, status) = machine.home.shell().run("sessile context approve prod --for 30m --yes");
    assert_eq!(status, 0, "{text}");
    let held = machine.json(&["lock", "acquire", "deploy", "--ttl", "5m"])["token"].to_string();
    let run = ["run", "--context", "prod", "--lock", "deploy", "--lock-timeout", "60s", "-ojson"];
    let run = machine.home.call(&run).args(&["--server", &machine.url, "--", "touch", "it-ran"]);
    let waiting = spawned(run);
    crate::eventually("a waiter", || machine.json(&["lock", "list"])[0]["waiting"] == 1);
    machine.home.call(&["context", "approve", "prod", "--revoke"]).ok();
    machine.call(&["lock", "release", "deploy", "--token", &held]).ok();
    let output = waiting.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{told}");
    assert!(told.contains("GUARD_APPROVAL"), "{told}");
    assert!(!machine.home.path("it-ran").exists());
    assert_eq!(machine.json(&["lock", "list"]), json!([]), "the lock is free");
}

/// The same as `session stop` of a local session, on both stores.
#[test]
fn stopping_a_remote_session_releases_its_locks() {
    let (file, base) = (home(), home());
    let postgres = testkit::Postgres::shared();
    let database = postgres.database();
    for store in [Store::file(&file), Store::postgres(&base, &database.url())] {
        let token = store.user("ann");
        let service = Service::start(&store);
        let machine = Machine::new(&service, &token);
        let started = |call: &dyn Fn(&[&str]) -> serde_json::Value| {
            call(&["session", "start", "--name", "web"]);
            call(&["lock", "acquire", "deploy", "--session", "web"]);
            call(&["lock", "acquire", "schema", "--shared", "--session", "web"]);
            call(&["lock", "acquire", "own"]);
            let held = call(&["lock", "list"]);
            let stopped = call(&["session", "stop", "web"]);
            let left = call(&["lock", "list"]);
            (held, stopped, left)
        };
        let there = started(&|words| machine.json(words));
        let here = started(&|words| machine.json_here(words));
        for (held, stopped, left) in [&there, &here] {
            assert_eq!(held.as_array().unwrap().len(), 3, "{held:#}");
            assert_eq!(stopped["released_locks"], json!(["deploy", "schema"]), "{stopped:#}");
            let names: Vec<&str> =
                left.as_array().unwrap().iter().filter_map(|lock| lock["name"].as_str()).collect();
            assert_eq!(names, ["own"]);
        }
        assert_eq!(shape(&there.1), shape(&here.1));
        machine.call(&["session", "start", "--name", "next"]).ok();
        machine.call(&["lock", "acquire", "deploy", "--session", "next"]).ok();
        let told = machine.call(&["session", "stop", "next"]).ok().stdout();
        assert!(told.contains("released lock \"deploy\"\n"), "{told}");
    }
}
