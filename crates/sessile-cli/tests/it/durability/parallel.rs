//! Many processes at once lose nothing, tear nothing and refuse nothing; one that must wait says for whom.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testkit::{CallResult, Home};

use crate::home;

const PROCESSES: usize = 50;

/// Runs one writer per number at the same time, while readers look on: no reader may fail or see half a file.
fn fight(home: &Home, readers: &[&[&str]], writer: impl Fn(usize) + Sync) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for args in readers {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    home.call(args).ok().json();
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
        let _over = OnDrop(&over);
        std::thread::scope(|writers| {
            for number in 0..PROCESSES {
                let writer = &writer;
                writers.spawn(move || writer(number));
            }
        });
    });
}

/// Ends the readers also when a writer fails; they would look on for ever.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const STATUS: &[&str] = &["status", "--show-state-files", "--output", "json"];
const SHOW: &[&str] = &["config", "show", "--source", "--output", "json"];
const LIST: &[&str] = &["context", "list", "--output", "json"];

fn names(done: &CallResult, key: &str) -> BTreeSet<String> {
    let json = done.json();
    let items = json.as_array().unwrap();
    items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn fifty_processes_setting_twenty_keys_each_lose_none() {
    let home = home();
    fight(&home, &[STATUS, SHOW], |process| {
        for number in 0..20 {
            let (key, value) = (format!("env.P{process}_{number}"), format!("{process}/{number}"));
            let done = home.call(&["config", "set", &key, &value, "--global", "--output", "json"]).ok();
            assert_eq!(done.json()["old"], serde_json::Value::Null);
        }
    });
    let shown = home.call(SHOW).ok().json();
    let value = |key: &str| {
        shown.as_array().unwrap().iter().find(|item| item["key"] == key).map(|item| item["value"].clone())
    };
    for process in 0..PROCESSES {
        for number in 0..20 {
            let found = value(&format!("env.P{process}_{number}"));
            assert_eq!(found, Some(format!("{process}/{number}").into()));
        }
    }
    assert_only_kept_files_are_left(&home);
}

#[test]
fn fifty_processes_making_contexts_in_a_fresh_home_lose_none() {
    let home = home();
    fight(&home, &[LIST, STATUS], |process| {
        let name = format!("c{process}");
        home.call(&["context", "create", &name, "--description", &name, "--env", "A=1"]).ok();
    });
    let expected: BTreeSet<String> = (0..PROCESSES).map(|process| format!("c{process}")).collect();
    assert_eq!(names(&home.call(LIST).ok(), "name"), expected);
    home.call(&["config", "validate"]).ok();
    assert_only_kept_files_are_left(&home);
}

#[test]
fn of_fifty_processes_making_the_same_context_one_succeeds() {
    let home = home();
    let made = std::sync::atomic::AtomicUsize::new(0);
    fight(&home, &[LIST], |process| {
        let value = format!("A={process}");
        let done = home.call(&["context", "create", "same", "--env", &value, "--output", "json"]).run();
        match done.status() {
            Some(0) => drop(made.fetch_add(1, Ordering::Relaxed)),
            _ => assert_eq!(done.exit(6).code(), "CONTEXT_EXISTS"),
        }
    });
    assert_eq!(made.into_inner(), 1);
}

/// The store is made, migrated, read and written at the same moment.
#[test]
fn fifty_processes_switch_their_directories_independently() {
    let home = home();
    for process in 0..PROCESSES {
        home.write(format!(".config/sessile/contexts/c{process}.toml"), "");
        std::fs::create_dir(home.path(format!("d{process}"))).unwrap();
    }
    fight(&home, &[STATUS, LIST], |process| {
        let (dir, name) = (format!("d{process}"), format!("c{process}"));
        home.call(&["context", "use", &name, "--dir"]).cwd(&dir).ok();
        assert_eq!(home.call(&["context", "current"]).cwd(&dir).ok().stdout().trim(), name);
        let next = format!("c{}", (process + 1) % PROCESSES);
        home.call(&["context", "use", &next, "--dir"]).cwd(&dir).ok();
        home.call(&["context", "use", "-", "--dir"]).cwd(&dir).ok();
    });
    for process in 0..PROCESSES {
        let current = home.call(&["context", "current"]).cwd(format!("d{process}")).ok();
        assert_eq!(current.stdout().trim(), format!("c{process}"));
        assert_eq!(current.stderr(), "", "the file is still trusted");
    }
    home.call(&["doctor"]).ok();
}

#[test]
fn fifty_processes_switching_one_directory_leave_one_choice() {
    let home = home();
    for process in 0..PROCESSES {
        home.write(format!(".config/sessile/contexts/c{process}.toml"), "");
    }
    std::fs::create_dir(home.path("d")).unwrap();
    fight(&home, &[STATUS, SHOW], |process| {
        let name = format!("c{process}");
        home.call(&["context", "use", &name, "--global"]).ok();
        home.call(&["context", "use", &name, "--dir"]).cwd("d").ok();
    });
    for dir in ["", "d"] {
        let current = home.call(&["context", "current", "--output", "json"]).cwd(dir).ok();
        assert!(
            current.json()["context"].as_str().is_some_and(|name| name.starts_with('c')),
            "{}",
            current.told()
        );
        assert_eq!(current.stderr(), "");
        home.call(&["context", "use", "-", if dir.is_empty() { "--global" } else { "--dir" }]).cwd(dir).ok();
    }
    home.call(&["doctor"]).ok();
}

#[test]
fn fifty_processes_trusting_projects_in_a_fresh_home_lose_none() {
    let home = home();
    for process in 0..PROCESSES {
        home.write(format!("p{process}/.sessile/config.toml"), format!("env.A = '{process}'\n"));
    }
    fight(&home, &[STATUS, &["trust", "--list", "--output", "json"]], |process| {
        let dir = format!("p{process}");
        home.call(&["trust", "--yes"]).cwd(&dir).ok();
        let value = home.call(&["config", "get", "env.A"]).cwd(&dir).ok();
        assert_eq!(value.stdout().trim(), process.to_string());
    });
    let trusted = home.call(&["trust", "--list", "--output", "json"]).ok();
    assert_eq!(names(&trusted, "state"), BTreeSet::from(["trusted".to_owned()]));
    assert_eq!(names(&trusted, "path").len(), PROCESSES);
}

fn assert_only_kept_files_are_left(home: &Home) {
    for (path, _) in home.tree().into_iter().filter(|(path, _)| !path.is_dir()) {
        let name = path.file_name().unwrap().to_string_lossy();
        assert!(name.ends_with(".toml") || name.starts_with("state.db"), "{} was left", path.display());
    }
}

/// A directory that this process has locked, as another `sessile` would.
fn held(home: &Home) -> File {
    home.write(".config/sessile/config.toml", "");
    let dir = File::open(home.path(".config/sessile")).unwrap();
    dir.lock().unwrap();
    dir
}

const SET: &[&str] = &["config", "set", "env.A", "1", "--global", "--output", "json"];

#[test]
fn held_lock_error_names_holder_and_retry_time() {
    let home = home();
    let _held = held(&home);
    let before = (home.tree_of_people(), crate::history(&home));
    let done = home.call(SET).arg("--lock-timeout").arg("400ms").run().exit(6);
    let error = done.json_error();
    assert_eq!(error["code"], "LOCK_HELD");
    assert_eq!(error["exit_code"], 6);
    assert_eq!(error["retryable"], true);
    assert!(error["retry_after_ms"].as_u64().is_some_and(|millis| millis > 0), "{error}");
    let pid = format!("pid {}", std::process::id());
    assert!(error["message"].as_str().unwrap().contains(&pid), "{error}");
    assert_eq!((home.tree_of_people(), crate::history(&home)), before);
}

/// Whoever reads standard error as JSON gets JSON on every line, the one about the wait too.
#[test]
fn long_wait_names_the_holder() {
    let home = home();
    let _held = held(&home);
    let done = home.call(SET).arg("--lock-timeout").arg("1s").run().exit(6);
    let stderr = done.stderr();
    let lines: Vec<serde_json::Value> = stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect();
    let note = lines[0]["note"].as_str().unwrap();
    assert!(note.contains("waiting for") && note.contains(&format!("pid {}", std::process::id())), "{note}");

    let text = home.call(&["config", "set", "env.A", "1", "--global", "--lock-timeout", "1s"]).run().exit(6);
    assert!(text.stderr().starts_with("waiting for "), "{}", text.told());
}

#[test]
fn a_lock_timeout_of_nothing_does_not_wait() {
    let home = home();
    let _held = held(&home);
    testkit::quickest_within(Duration::from_secs(4), || {
        let begun = Instant::now();
        let done = home.call(SET).arg("--lock-timeout").arg("0").run().exit(6);
        assert_eq!(done.code(), "LOCK_HELD");
        assert_eq!(done.stderr().lines().count(), 1, "a note about a wait: {}", done.told());
        begun.elapsed()
    });
}

#[test]
fn released_lock_goes_to_the_waiter() {
    let home = home();
    let held = held(&home);
    let mut waiting = home.call(SET).command();
    let child =
        waiting.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(600));
    drop(held);
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(home.read(".config/sessile/config.toml"), "[env]\nA = \"1\"\n");
}

/// Reading needs no lock.
#[test]
fn readers_do_not_wait_for_a_held_lock() {
    let home = home();
    let _held = held(&home);
    for args in [STATUS, SHOW, LIST] {
        assert_eq!(home.call(args).ok().stderr(), "");
    }
}
