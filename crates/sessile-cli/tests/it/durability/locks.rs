//! `sessile lock`: one holder at a time, a token that only grows, and a holder that dies lets go.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::Home;

use crate::{eventually, home, home_with, start};

fn lock_run(home: &Home, flags: &[&str], words: &[&str]) -> testkit::Call {
    home.call(&["lock", "run", "l"]).args(flags).arg("--").args(words)
}

fn acquire(home: &Home, flags: &[&str]) -> i64 {
    let done = home.call(&["lock", "acquire", "l", "--quiet"]).args(flags).ok();
    done.stdout().trim().parse().unwrap()
}

fn in_background(call: testkit::Call) -> Child {
    call.command().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn held(home: &Home) -> Vec<serde_json::Value> {
    home.call(&["lock", "list", "-ojson"]).ok().json().as_array().unwrap().clone()
}

#[test]
fn the_exit_status_is_the_commands_own() {
    let home = home();
    for status in [0, 1, 2, 77, 125, 255] {
        lock_run(&home, &[], &["/bin/sh", "-c", &format!("exit {status}")]).run().exit(status);
    }
    lock_run(&home, &[], &["/bin/sh", "-c", "kill -KILL $$"]).run().exit(137);
    lock_run(&home, &[], &["/bin/sh", "-c", "kill -TERM $$"]).run().exit(143);
    lock_run(&home, &[], &["no-such-command"]).run().exit(127);
    home.write("not-executable", "");
    lock_run(&home, &[], &["./not-executable"]).run().exit(126);
    lock_run(&home, &[], &["/"]).run().exit(126);
    assert!(held(&home).is_empty(), "whatever became of it, the lock is free");
}

#[test]
fn own_failures_are_125_with_the_code_in_the_error() {
    let home = home_with(&["a"]);
    acquire(&home, &[]);
    let done = lock_run(&home, &["--lock-timeout", "100ms", "-ojson"], &["true"]).run().exit(125);
    let error = done.json_error();
    assert_eq!(error["code"], "LOCK_HELD");
    assert_eq!(error["retryable"], true);
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("pid") && !message.contains("token"),
        "the token is the holder's secret: {error}"
    );
    home.call(&["lock", "run", "../x", "--", "true"]).run().exit(125);
    lock_run(&home, &["--session", "nobody"], &["true"]).run().exit(125);
}

#[test]
fn streams_arguments_and_the_token_reach_the_command_untouched() {
    let home = home();
    let script = "cat; printf '%s|' \"$@\"; echo \"$SESSILE_LOCK_TOKEN\"; echo err >&2";
    let done = lock_run(&home, &["-ojson"], &["/bin/sh", "-c", script, "sh", "--yes", "a b", ""])
        .stdin("in\0put")
        .ok();
    assert_eq!(done.stdout(), "in\0put--yes|a b||1\n");
    assert_eq!(done.stderr(), "err\n");
}

#[test]
fn a_signal_is_passed_on_and_the_status_tells_it() {
    let home = home();
    for (signal, status) in [("TERM", 7), ("HUP", 7), ("USR1", 7)] {
        let _ = std::fs::remove_file(home.path("ready"));
        let script = format!("trap 'exit 7' {signal}; touch ready; while :; do sleep 0.05; done");
        let mut child = in_background(lock_run(&home, &[], &["/bin/bash", "-c", &script]));
        eventually("the command", || home.path("ready").exists());
        Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(status), "{signal}");
    }
    assert!(held(&home).is_empty());
}

#[test]
fn an_interrupt_from_the_terminal_reaches_the_command_once() {
    let home = home();
    let script = "trap 'echo caught; n=$((n+1))' INT; echo ready; while [ -z \"$n\" ]; do sleep 0.05; done; \
                  sleep 0.3; echo \"times $n\"; exit 9";
    let mut tty = home.tty(&["lock", "run", "l", "--", "/bin/bash", "-c", script]);
    tty.expect("ready");
    tty.interrupt();
    tty.expect("caught");
    tty.expect("times 1");
    assert_eq!(tty.finish().1, 9);
}

#[test]
fn a_command_that_is_interrupted_ends_with_its_signal() {
    let home = home();
    let mut tty = home.tty(&["lock", "run", "l", "--", "/bin/sh", "-c", "echo ready; sleep 100"]);
    tty.expect("ready");
    tty.interrupt();
    assert_eq!(tty.finish().1, 130);
    assert!(held(&home).is_empty());
}

#[test]
fn the_lock_is_the_commands_also_when_the_program_is_killed() {
    let home = home();
    let script = "echo $$ > pid; touch ready; exec sleep 1000";
    let mut child = in_background(lock_run(&home, &[], &["/bin/sh", "-c", script]));
    eventually("the command", || home.path("ready").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    lock_run(&home, &["--lock-timeout", "300ms"], &["true"]).run().exit(125);
    Command::new("kill").args(["-9", home.read("pid").trim()]).status().unwrap();
    lock_run(&home, &[], &["true"]).ok();
}

/// One line per child: who came, and who left. A killed child leaves without saying so.
#[test]
fn of_sixteen_contenders_killed_at_random_never_two_hold_it() {
    const CONTENDERS: usize = 16;
    let home = home();
    // The line is one write to the end of a file: whole, and in the order of the kernel.
    let script = "printf 'enter %s %s %s\\n' $SESSILE_LOCK_TOKEN $$ $(date +%s%N) >> log; sleep 0.0$1; \
                  printf 'leave %s %s %s\\n' $SESSILE_LOCK_TOKEN $$ $(date +%s%N) >> log";
    let mut children: Vec<Child> = (0..CONTENDERS)
        .map(|number| {
            let time = (number % 9).to_string();
            let flags = ["--lock-timeout", "2m"];
            in_background(lock_run(&home, &flags, &["/bin/bash", "-c", script, "sh", &time]))
        })
        .collect();
    // Whoever holds it, every other time, dies: the program first, then its command.
    let mut killed: BTreeMap<String, u128> = BTreeMap::new();
    let begun = Instant::now();
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        assert!(begun.elapsed() < Duration::from_secs(120), "a waiter hangs");
        let log = std::fs::read_to_string(home.path("log")).unwrap_or_default();
        let last = log.lines().last().unwrap_or_default();
        let words: Vec<&str> = last.split(' ').collect();
        if let ["enter", token, pid, _] = words[..]
            && token.parse::<i64>().unwrap() % 2 == 0
            && !killed.contains_key(token)
        {
            let parent = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent = parent.rsplit(')').next().unwrap().split(' ').nth(2).unwrap_or("0").to_owned();
            let ours = children.iter().any(|child| child.id().to_string() == parent);
            if ours {
                // Its children too: whoever has the descriptor has the lock.
                let kill = format!("kill -9 {parent} {pid} $(ps -o pid= --ppid {pid})");
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
                Command::new("/bin/sh").args(["-c", &kill]).stderr(Stdio::null()).status().unwrap();
                killed.insert(token.to_owned(), now.as_nanos());
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    for mut child in children {
        let _ = child.wait();
    }
    let log = home.read("log");
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split(' ').collect()).collect();
    let mut holder: Option<&str> = None;
    let (mut last, mut waits) = (0, Vec::new());
    for line in &lines {
        let [what, token, _, at] = line[..] else { panic!("a torn line: {line:?}") };
        match what {
            "enter" => {
                if let Some(before) = holder {
                    let died = killed.get(before).unwrap_or_else(|| panic!("{before} and {token}\n{log}"));
                    waits.push(at.parse::<u128>().unwrap().saturating_sub(*died) / 1_000_000);
                }
                let number: i64 = token.parse().unwrap();
                assert!(number > last, "{number} after {last}\n{log}");
                (last, holder) = (number, Some(token));
            }
            _ => {
                assert_eq!(holder, Some(token), "{log}");
                holder = None;
            }
        }
    }
    let entered = lines.iter().filter(|line| line[0] == "enter").count();
    assert_eq!(entered, CONTENDERS, "every contender acquired the lock\n{log}");
    assert!(!killed.is_empty(), "no contender was killed\n{log}");
    assert!(waits.iter().all(|wait| *wait < 2_000), "{waits:?}");
}

#[test]
fn a_lease_is_renewed_and_released_with_its_token() {
    let home = home();
    let token = acquire(&home, &["--ttl", "10m"]);
    home.call(&["lock", "acquire", "l", "--lock-timeout", "50ms"]).run().exit(6);
    let view = &held(&home)[0];
    assert_eq!((&view["token"], &view["waiting"]), (&token.into(), &0.into()));
    let until = |home: &Home| held(home)[0]["expires_at"].as_str().unwrap().to_owned();
    let before = until(&home);
    home.call(&["lock", "renew", "l", "--ttl", "2h", "--token", &token.to_string()]).ok();
    assert!(until(&home) > before);
    let wrong = (token + 1).to_string();
    for verb in ["renew", "release"] {
        let done = home.call(&["lock", verb, "l", "--token", &wrong, "-ojson"]).run().exit(6);
        assert_eq!(done.code(), "LOCK_LOST");
    }
    home.call(&["lock", "release", "l", "--token", &token.to_string()]).ok();
    home.call(&["lock", "release", "l", "--token", &token.to_string()]).run().exit(6);
    assert!(held(&home).is_empty());
    assert!(acquire(&home, &[]) > token);
    home.call(&["lock", "acquire", "x", "--ttl", "0s"]).run().exit(2);
    home.call(&["lock", "acquire", "x", "--ttl", "8d"]).run().exit(2);
}

#[test]
fn a_lease_ends_by_itself() {
    let home = home();
    let first = acquire(&home, &["--ttl", "500ms"]);
    let second = acquire(&home, &["--ttl", "10m", "--lock-timeout", "30s"]);
    assert!(second > first);
    let late = home.call(&["lock", "renew", "l", "--token", &first.to_string(), "-ojson"]).run().exit(6);
    assert_eq!(late.code(), "LOCK_LOST", "what has ended cannot be renewed");
}

#[test]
fn expired_lease_cannot_be_renewed() {
    let home = home();
    let token = acquire(&home, &["--ttl", "200ms"]);
    eventually("the end of the lease", || held(&home).is_empty());
    home.call(&["lock", "renew", "l", "--token", &token.to_string()]).run().exit(6);
}

#[test]
fn a_break_needs_the_holders_token_and_is_recorded() {
    let home = home();
    let token = acquire(&home, &[]);
    home.call(&["lock", "break", "l"]).run().exit(2);
    let wrong = home.call(&["lock", "break", "l", "--holder", "99", "-ojson"]).run().exit(6);
    assert_eq!(wrong.code(), "LOCK_LOST");
    assert_eq!(held(&home).len(), 1);
    home.call(&["lock", "break", "l", "--holder", &token.to_string()]).ok();
    assert!(held(&home).is_empty());
    home.call(&["lock", "break", "l", "--holder", &token.to_string()]).run().exit(5);
    home.call(&["lock", "release", "l", "--token", &token.to_string()]).run().exit(6);
    assert!(acquire(&home, &[]) > token);
    let history = home.call(&["history", "-ojson"]).ok().json();
    let broken = history.as_array().unwrap().iter().find(|one| one["command"] == "lock break").unwrap();
    assert!(broken["subject"].as_str().unwrap().starts_with(&format!("l token {token} of ")), "{broken}");
}

/// The one who waits is let in, though the kernel still holds the lock for the broken one.
#[test]
fn breaking_the_lock_of_a_running_command_lets_the_next_one_in() {
    let home = home();
    let script = "touch ready; sleep 1000";
    let mut holder = in_background(lock_run(&home, &[], &["/bin/bash", "-c", script]));
    eventually("the holder", || home.path("ready").exists());
    let mut waiter =
        in_background(lock_run(&home, &["--lock-timeout", "60s"], &["/bin/sh", "-c", "touch through"]));
    eventually("the waiter", || held(&home)[0]["waiting"] == 1);
    home.call(&["lock", "break", "l", "--holder", "1"]).ok();
    eventually("the next holder", || home.path("through").exists());
    assert!(waiter.wait().unwrap().success());
    lock_run(&home, &[], &["true"]).ok();
    Command::new("kill").arg(holder.id().to_string()).status().unwrap();
    holder.wait().unwrap();
}

#[test]
fn restore_keeps_held_locks_and_grows_tokens() {
    let home = home();
    home.call(&["lock", "acquire", "other"]).ok();
    home.call(&["backup", "copy"]).ok();
    let token = acquire(&home, &[]);
    home.call(&["backup", "restore", "copy", "--yes"]).ok();
    home.call(&["lock", "acquire", "l", "--lock-timeout", "50ms"]).run().exit(6);
    home.call(&["lock", "release", "l", "--token", &token.to_string()]).ok();
    assert!(acquire(&home, &[]) > token);
}

#[test]
fn locks_are_first_come_first_served() {
    let home = home();
    let first = acquire(&home, &[]);
    let waiters: Vec<Child> = (1..=5)
        .map(|number| {
            let script = format!("echo {number} >> order");
            let child =
                in_background(lock_run(&home, &["--lock-timeout", "60s"], &["/bin/sh", "-c", &script]));
            eventually("its place", || held(&home)[0]["waiting"] == number);
            child
        })
        .collect();
    home.call(&["lock", "release", "l", "--token", &first.to_string()]).ok();
    for mut waiter in waiters {
        assert!(waiter.wait().unwrap().success());
    }
    assert_eq!(home.read("order"), "1\n2\n3\n4\n5\n");
}

#[test]
fn a_lock_run_in_a_session_keeps_it_busy_and_names_it() {
    let home = home();
    let id = start(&home, &[]);
    let call =
        lock_run(&home, &[], &["/bin/sh", "-c", "touch ready; sleep 1000"]).env("SESSILE_SESSION", &id);
    let mut child = in_background(call);
    eventually("the command", || home.path("ready").exists());
    assert_eq!(held(&home)[0]["holder"]["session"], id.as_str());
    home.call(&["session", "stop", &id]).ok();
    child.wait().unwrap();
    eventually("the lock", || held(&home).is_empty());
}

#[test]
fn no_file_of_a_ticket_is_left() {
    let home = home();
    for _ in 0..3 {
        lock_run(&home, &[], &["true"]).ok();
    }
    let token = acquire(&home, &[]);
    home.call(&["lock", "release", "l", "--token", &token.to_string()]).ok();
    let left = std::fs::read_dir(home.path(".local/state/sessile/tickets")).unwrap().count();
    assert_eq!(left, 0);
}

#[test]
fn background_process_of_a_command_keeps_the_lock() {
    let home = home();
    let script = "(while ! [ -e go ]; do sleep 0.05; done) >/dev/null 2>&1 & echo started";
    home.call(&["lock", "run", "bg", "--", "/bin/sh", "-c", script]).ok();
    let held = home.call(&["lock", "list", "-ojson"]).ok().json();
    assert_eq!(held[0]["name"], "bg");
    home.call(&["lock", "run", "bg", "--lock-timeout", "0", "--", "/bin/true"]).run().exit(125);
    home.write("go", "");
    home.call(&["lock", "run", "bg", "--lock-timeout", "30s", "--", "/bin/true"]).ok();
    assert_eq!(home.call(&["lock", "list", "-ojson"]).ok().json(), serde_json::json!([]));
}

#[test]
fn script_without_interpreter_line_keeps_its_environment() {
    let home = home();
    let script = home.write("bin/plain", "echo $1 $MINE $SESSILE_LOCK_TOKEN ${SESSILE_CREDENTIAL_X:-none}\n");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", home.path("bin").display());
    for (word, token) in [("./bin/plain", "1"), ("plain", "2")] {
        let call = lock_run(&home, &[], &[word, "it"]).env("PATH", &path);
        let told = call.env("MINE", "kept").env("SESSILE_CREDENTIAL_X", "secret").ok().stdout();
        assert_eq!(told, format!("it kept {token} none\n"), "{word}");
    }
}
