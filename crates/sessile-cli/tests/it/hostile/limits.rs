//! Exhausted resources: processes, memory, inodes, disk space, stopped processes. Nothing panics or lies.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::Home;

use super::clean;
use super::system::{UnprivilegedUser, on_a_disk};
use crate::{eventually, home};

/// A process that holds the lock of a directory, until it is dropped.
struct LockHolder(Child);

impl LockHolder {
    fn of(dir: &Path) -> Self {
        let mut command = Command::new("flock");
        let child = command.arg(dir).args(["sleep", "600"]).stdin(Stdio::null()).spawn().unwrap();
        let holder = LockHolder(child);
        let is_held = || {
            let tried = Command::new("flock").arg("--nonblock").arg(dir).arg("true").status().unwrap();
            !tried.success()
        };
        eventually("the lock is held", is_held);
        holder
    }
}

impl Drop for LockHolder {
    fn drop(&mut self) {
        // The lock is also its child's.
        let children = format!("/proc/{0}/task/{0}/children", self.0.id());
        for pid in std::fs::read_to_string(children).unwrap_or_default().split_whitespace() {
            let _ = Command::new("kill").args(["-9", pid]).status();
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn held_lock_is_waited_for_where_no_thread_can_be_started() {
    let user = UnprivilegedUser::new(61_201);
    user.call(&["context", "create", "a"]).ok();
    let holder = LockHolder::of(&user.home().path(".local/state/sessile"));
    let begun = Instant::now();
    let create = |name: &str, timeout: &str| {
        user.limited("ulimit -u 0", &["context", "create", name, "--lock-timeout", timeout, "-ojson"])
    };
    let done = clean(create("b", "700ms").run()).exit(6);
    assert_eq!(done.code(), "LOCK_HELD", "{}", done.told());
    assert!(begun.elapsed() >= Duration::from_millis(700), "{:?}", begun.elapsed());
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| clean(create("b", "60s").run()));
        std::thread::sleep(Duration::from_millis(500));
        drop(holder);
        waiting.join().unwrap().exit(0);
    });
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn command_runs_or_fails_cleanly_at_every_memory_limit() {
    let home = home();
    let marker = home.path("ran");
    let command = format!("echo ran >> {}", marker.display());
    let (mut ran, mut refused) = (0, Vec::new());
    for megabytes in (24..=100).step_by(2) {
        let _ = std::fs::remove_file(&marker);
        let limited = format!("ulimit -v {} && exec \"$0\" \"$@\"", megabytes * 1024);
        let args = ["run", "--isolate", "home", "--timeout", "1m", "--", "sh", "-c", &command];
        let done = home.tool("bash", &["-c", &limited]).arg(home.program()).args(&args).run();
        let told = done.told();
        assert!(done.status() != Some(101) && !told.contains("panicked"), "{megabytes} MB: {told}");
        let has_run = marker.exists();
        assert!(!has_run || done.status() == Some(0), "{megabytes} MB: {told}");
        if has_run { ran += 1 } else { refused.push(told) }
    }
    assert!(ran > 0 && !refused.is_empty(), "{ran} ran; {:?}", refused.last());
}

/// A library that is loaded before all others.
fn preloaded(home: &Home, source: &str) -> String {
    let (code, library) = (home.write("preloaded.c", source), home.path("preloaded.so"));
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &code]).arg("-ldl").status();
    assert!(built.unwrap().success(), "a C compiler is needed");
    library.to_str().unwrap().to_owned()
}

const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(id, at);
    if (id == CLOCK_REALTIME && getenv("TEST_CLOCK")) at->tv_sec = atoll(getenv("TEST_CLOCK"));
    return done;
}
"#;

#[test]
fn clock_far_in_the_past_or_future_does_not_panic() {
    // The end of what can be written as a date, 9999-12-31, beyond that, before 1970, and before the year -9999.
    for seconds in ["253402207200", "253402300799", "99999999999999", "-1", "-99999999999999"] {
        let home = home();
        let library = preloaded(&home, CLOCK);
        let call = |args: &[&str]| {
            let call = home.call(args).env("LD_PRELOAD", &library).env("TEST_CLOCK", seconds);
            clean(call.stdin("token").run())
        };
        let token = ["auth", "set", "t", "--bearer-token-stdin", "--expires-in", "1h"];
        home.call(&token).stdin("token").ok();
        call(&["context", "create", "a", "--env-credential", "T=t"]).exit(0);
        for args in [
            &["run", "--context", "a", "--", "true"][..],
            &["session", "start", "--name", "s"],
            &["session", "list"],
            &["session", "show", "s"],
            &["session", "state", "set", "v", "1", "--session", "s"],
            &["run", "--session", "s", "--", "true"],
            &["run", "--", "true"],
            &["lock", "acquire", "l", "--ttl", "1h"],
            &["lock", "list"],
            &["auth", "set", "k", "--bearer-token-stdin", "--expires-in", "1h"],
            &["auth", "list"],
            &["history"],
            &["undo"],
            &["status"],
            &["doctor"],
            &["session", "gc"],
            &["session", "stop", "s"],
        ] {
            call(args);
        }
    }
}

#[test]
fn long_lock_timeout_does_not_panic() {
    let home = home();
    for (name, timeout) in [("a", "3d"), ("b", "365d"), ("c", "36500d")] {
        clean(home.call(&["context", "create", name, "--lock-timeout", timeout]).run()).exit(0);
    }
}

#[test]
fn null_in_a_session_is_not_a_missing_value() {
    let home = home();
    home.call(&["session", "start", "--name", "s"]).ok();
    let call = |args: &[&str]| home.call(args).args(&["--session", "s", "-ojson"]).run();
    let set = |value: &str| drop(call(&["session", "state", "set", "v", value]).exit(0));
    let value = || {
        let found = call(&["session", "state", "get", "v"]);
        (found.status() == Some(0)).then(|| found.json()["value"].clone())
    };
    set("null");
    assert_eq!(value(), Some(Value::Null));
    let operation = call(&["history"]).exit(0).json()[0].clone();
    let effect = &operation["effects"][0];
    assert_eq!(
        (&effect["after_is_null"], &effect["before_is_null"]),
        (&json!(true), &Value::Null),
        "{effect}"
    );
    call(&["undo", "--yes"]).exit(0);
    assert_eq!(value(), None);
    set("null");
    set("1");
    call(&["undo", "--yes"]).exit(0);
    assert_eq!(value(), Some(Value::Null));
    call(&["session", "state", "unset", "v"]).exit(0);
    call(&["undo", "--yes"]).exit(0);
    assert_eq!(value(), Some(Value::Null));
}

#[test]
fn message_on_a_nearly_full_disk_says_what_was_stored() {
    let told = on_a_disk(
        "size=1000k",
        r#"
        unset XDG_CONFIG_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
        set_to() { printf $1 | "$BIN" auth set k --bearer-token-stdin --output json; }
        set_to old >/dev/null 2>&1 && "$BIN" context create c --env-credential T=k >/dev/null 2>&1 || echo WRONG setup
        for pages in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 18 20 24 32; do
            set_to old >/dev/null 2>&1 || echo WRONG setup of $pages
            "$BIN" config set env.A old --global >/dev/null 2>&1 || echo WRONG setup of $pages
            cat /dev/zero > fill 2>/dev/null; truncate -s -$((pages * 4096)) fill
            out=$(set_to new 2>&1 >/dev/null); code=$?
            "$BIN" config set env.A new --global >/dev/null 2>&1; setting=$?
            rm fill
            now=$("$BIN" run --context c -- printenv T 2>/dev/null)
            case "$code $now $out" in
                "0 new "*) all=1;;
                "1 old "*DISK_FULL*"still has its old content"*) none=1;;
                "3 new "*NOT_RECORDED*"the change was made"*"the change is in effect"*) partly=1;;
                *) echo "WRONG $pages pages: exit $code, the secret is $now: $out";;
            esac
            case "$setting $("$BIN" config get env.A)" in
                "0 new"|"1 old") ;;
                *) echo "WRONG $pages pages: setting: $setting";;
            esac
        done
        echo "seen: ${all-} ${none-} ${partly-}"
        "#,
    );
    assert!(told.contains("seen: 1 1 1"), "{told}");
}

#[test]
fn disk_without_inodes_is_a_full_disk() {
    on_a_disk(
        "size=4m,nr_inodes=60",
        r#"
        unset XDG_CONFIG_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
        "$BIN" context create a --env A=1 >/dev/null 2>&1; "$BIN" context create b >/dev/null 2>&1
        "$BIN" context use a --global >/dev/null 2>&1; "$BIN" session start --name s >/dev/null 2>&1 || echo WRONG setup
        mkdir fill; i=0; while (: > fill/$i) 2>/dev/null; do i=$((i + 1)); done
        says DISK_FULL 1 config set env.A 1 --global
        says DISK_FULL 1 context create c
        says DISK_FULL 1 context use b --global
        says DISK_FULL 1 session start
        says DISK_FULL 1 session state set v 1 --session s
        says DISK_FULL 1 lock acquire l
        says DISK_FULL 1 session stop s
        "$BIN" context current | grep -qx a || echo WRONG context
        "$BIN" session list | grep -q live || echo WRONG list
        "$BIN" history >/dev/null || echo WRONG history
        rm -r fill
        "$BIN" context use b --global >/dev/null 2>&1 || echo WRONG after
        "$BIN" doctor || echo WRONG doctor
        "#,
    );
}

/// Stops the process at its first look into a write-ahead log.
const STOP: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
ssize_t pread64(int fd, void *buffer, size_t length, off64_t at) {
    static ssize_t (*real)(int, void *, size_t, off64_t);
    if (!real) real = dlsym(RTLD_NEXT, "pread64");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t end = readlink(link, path, sizeof path - 1);
    if (end > 4 && !strncmp(path + end - 4, "-wal", 4)) raise(SIGSTOP);
    return real(fd, buffer, length, at);
}
ssize_t pread(int fd, void *buffer, size_t length, off_t at) { return pread64(fd, buffer, length, at); }
"#;

/// Leaves a write-ahead log behind, as a process that is killed does.
const KILLED: &str = "
import os, sqlite3, sys
store = sqlite3.connect(sys.argv[1])
store.execute('PRAGMA wal_autocheckpoint = 0')
store.execute('UPDATE session SET name = name')
store.commit()
os._exit(0)
";

#[test]
fn process_stopped_in_a_recovery_is_named_after_timeout() {
    let home = home();
    home.call(&["session", "start", "--name", "s"]).ok();
    let store = home.path(".local/state/sessile/state.db");
    let left = Command::new("python3").args(["-c", KILLED]).arg(&store).status();
    assert!(left.unwrap().success() && store.with_extension("db-wal").metadata().unwrap().len() > 0);
    let library = preloaded(&home, STOP);
    let mut stopped = home.call(&["session", "list"]).env("LD_PRELOAD", &library).command();
    let mut stopped =
        stopped.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = stopped.id();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    eventually("the process is stopped", || state().contains("State:\tT"));
    for args in [&["session", "list"][..], &["context", "create", "b"]] {
        let begun = Instant::now();
        let call = home.call(args).args(&["--lock-timeout", "1s", "-ojson"]);
        let done = clean(call.run()).exit(6);
        // Without a limit it takes ten.
        assert!(begun.elapsed() < Duration::from_secs(9), "{:?}: {}", begun.elapsed(), done.told());
        let error = done.json_error();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&format!("pid {pid}")) && message.contains("stopped"), "{error}");
        assert!(error["hint"].as_str().unwrap().contains(&format!("kill -CONT {pid}")), "{error}");
        let now = home.call(args).args(&["--lock-timeout", "0s", "-ojson"]);
        assert_eq!(clean(now.run()).exit(6).code(), "LOCK_HELD");
    }
    // One that gives way is waited for.
    std::thread::scope(|threads| {
        let waiting = threads.spawn(|| home.call(&["session", "list", "--lock-timeout", "60s"]).run());
        std::thread::sleep(Duration::from_millis(500));
        stopped.kill().unwrap();
        stopped.wait().unwrap();
        waiting.join().unwrap().exit(0);
    });
}

/// Commands that start threads: the service's store, the service itself, and requests over the network.
const THREADED: [&[&str]; 6] = [
    &["user", "list"],
    &["user", "add", "ann"],
    &["serve", "--listen", "127.0.0.1:0", "--log", "off"],
    &["mcp"],
    &["message", "send", "http://localhost:1", "hi"],
    &["auth", "check", "a", "--url", "http://localhost:1"],
];

#[test]
fn missing_threads_are_an_error() {
    let user = UnprivilegedUser::new(61_203);
    for processes in 0..4 {
        for args in THREADED {
            let limit = format!("ulimit -u {processes}");
            let done = clean(user.limited(&limit, args).env("SESSILE_CREDENTIAL_A", "x").run());
            // With one thread `mcp` serves, and ends with its client.
            let is_served = args == ["mcp"] && done.status() == Some(0);
            assert!(is_served || done.stderr().contains("error: "), "{limit} {args:?}: {}", done.told());
        }
    }
}

#[test]
fn missing_descriptors_are_an_error() {
    let user = UnprivilegedUser::new(61_204);
    user.call(&["user", "add", "bob"]).ok();
    for descriptors in 4..14 {
        for args in THREADED {
            clean(user.limited(&format!("ulimit -n {descriptors}"), args).run());
        }
    }
}

#[test]
fn file_size_limit_is_an_error() {
    let user = UnprivilegedUser::new(61_205);
    user.call(&["session", "start", "--name", "web"]).ok();
    let value = "x".repeat(4000);
    for args in [
        &["session", "state", "set", "k", &value, "--session", "web"][..],
        &["context", "create", "a", "--description", &value],
        &["backup", "copy"],
    ] {
        let done = clean(user.limited("ulimit -f 1", args).run());
        assert!(done.status().is_some_and(|status| (1..128).contains(&status)), "{args:?}: {}", done.told());
        assert!(done.stderr().contains("error: "), "{args:?}: {}", done.told());
    }
    // A command that is run has the default action.
    let script = "head -c 9999999 /dev/zero > big; echo $?";
    let home = home();
    home.call(&["session", "start", "--name", "web"]).ok();
    let limited = ["-c", "ulimit -f 4096 && exec \"$0\" \"$@\"", home.program().to_str().unwrap()];
    let run = ["run", "--session", "web", "--", "bash", "-c", script];
    let done = home.tool("bash", &[&limited[..], &run].concat()).run();
    assert_eq!(done.stdout(), "153\n", "{}", done.told());
}
