//! Limits of a session's life around the commands that run in it.

use std::process::Stdio;
use std::time::{Duration, Instant};

use testkit::Home;

use crate::{eventually, home, shown, start};

fn state(home: &Home, id: &str) -> String {
    shown(home, id)["state"].as_str().unwrap().to_owned()
}

#[test]
fn command_past_the_longest_life_is_ended_with_what_it_started() {
    let home = home();
    let id = start(&home, &["--max", "2s"]);
    let begun = Instant::now();
    let script = "sleep 1000 & echo $! > child; sleep 1000";
    let done = home.call(&["run", "--session", &id, "--", "/bin/sh", "-c", script]).run().exit(143);
    assert!(done.stderr().contains("reached its maximum lifetime of 2 s"), "{}", done.told());
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let child = home.read("child");
    let is_gone = || !std::path::Path::new(&format!("/proc/{}", child.trim())).exists();
    eventually("the end of its child", is_gone);
    let json = home.call(&["run", "--session", "short", "--max", "1s", "-ojson", "--", "sleep", "60"]).run();
    let error = json.exit(143).json_error();
    assert_eq!((&error["code"], &error["exit_code"]), (&"TIMED_OUT".into(), &143.into()), "{error}");
}

#[test]
fn command_that_ignores_sigterm_is_killed_after_grace() {
    let home = home();
    let begun = Instant::now();
    let script = "trap '' TERM; while :; do sleep 0.1; done";
    home.call(&["run", "--session", "s", "--max", "1s", "--", "/bin/sh", "-c", script]).run().exit(137);
    let time = begun.elapsed();
    assert!(time > Duration::from_secs(5) && time < Duration::from_secs(30), "{time:?}");
}

#[test]
fn session_for_one_command_has_a_longest_life_too() {
    let home = home();
    let done = home.call(&["run", "--max", "1s", "--", "sleep", "60"]).run().exit(143);
    assert!(done.stderr().contains("maximum lifetime"), "{}", done.told());
    // The shorter of two limits is the one that is named.
    let done = home.call(&["run", "--max", "60s", "--timeout", "1s", "--", "sleep", "60"]).run().exit(124);
    assert!(done.stderr().contains("--timeout"), "{}", done.told());
}

#[test]
fn max_action_warn_leaves_the_command_alone() {
    let home = home();
    let words = ["run", "--session", "s", "--max", "1s", "--max-action", "warn", "--", "sleep", "3"];
    let done = home.call(&words).ok();
    if cfg!(target_os = "linux") {
        assert!(done.stderr().contains("reached its maximum lifetime of 1 s"), "{}", done.told());
    }
    let setting =
        ["run", "--session", "t", "--max", "1s", "--set", "session.max-action=warn", "--", "sleep", "2"];
    home.call(&setting).ok();
}

#[test]
fn shell_past_the_longest_life_is_ended() {
    let home = home();
    let mut tty = home.tty(&["shell", "--session", "s", "--max", "2s", "--shell", "/bin/sh"]);
    tty.expect("reached its maximum lifetime");
    // A shell on a terminal ignores SIGTERM.
    assert_eq!(tty.finish().1, 137);
}

#[test]
fn idle_time_counts_from_the_end_of_the_last_command() {
    let home = home();
    let id = start(&home, &["--idle", "5s"]);
    home.call(&["run", "--session", &id, "--", "sleep", "7"]).ok();
    let ended = Instant::now();
    assert_eq!(state(&home, &id), "live", "a command that runs longer than the idle limit keeps the session");
    let mut last_live = Duration::ZERO;
    while ended.elapsed() < Duration::from_secs(60) {
        let now = ended.elapsed();
        home.call(&["session", "list"]).ok();
        home.call(&["status", "--session", &id]).run();
        if state(&home, &id) != "live" {
            break;
        }
        last_live = now;
    }
    assert!(last_live > Duration::from_millis(500), "{last_live:?}");
    // Looks that extended it would keep it alive for the whole minute.
    assert!(ended.elapsed() < Duration::from_secs(50), "looks extended it: {:?}", ended.elapsed());
}

/// Nobody looks before the idle time is over.
#[test]
fn unobserved_session_expires_by_the_end_of_its_command() {
    let home = home();
    let id = start(&home, &["--idle", "2s"]);
    home.call(&["run", "--session", &id, "--", "sleep", "1"]).ok();
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(state(&home, &id), "expired");
}

#[test]
fn watcher_is_not_a_child_and_keeps_no_pipe() {
    let home = home();
    let script = "import os\ntry:\n  os.wait()\nexcept ChildProcessError: print('none')";
    let done = home.call(&["run", "--session", "s", "--", "python3", "-c", script]).ok();
    assert_eq!(done.stdout(), "none\n");
    let begun = Instant::now();
    let program = env!("CARGO_BIN_EXE_sessile");
    let line = format!("exec 7>&1; '{program}' run --session u -- true; echo done");
    let call = home.call(&[]).command();
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &line]).env_clear().stdin(Stdio::null());
    for (name, value) in call.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    let output = shell.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n", "{output:?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
