//! State beside a `--config` file in a working tree: what a clone or a pull brings there is refused.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};
use testkit::{Call, Home};

use super::clean;
use crate::home;

/// Runs a script with git and the umask of a careful user, under which a checkout is as private as Sessile's own files.
#[track_caller]
fn script(home: &Home, script: &str) {
    let git =
        "git() { command git -c user.name=a -c user.email=a@example.org -c init.defaultBranch=main \"$@\"; }";
    home.tool("bash", &["-euc", &format!("umask 077; {git}; {script}")]).ok();
}

/// A repository `origin` with `ci.json`, and a clone of it.
fn cloned() -> Home {
    let home = home();
    home.write("origin/ci.json", "{}");
    script(&home, "cd origin; git init -q; git add .; git commit -qm one");
    script(&home, "git clone -q origin clone");
    home
}

fn in_clone(home: &Home, args: &[&str]) -> Call {
    home.call(&["--config", "clone/ci.json"]).args(args)
}

/// Commits what a script puts into the repository, and pulls it into the clone.
#[track_caller]
fn pull(home: &Home, put: &str) {
    script(home, &format!("cd origin; mkdir -p ci.json.state; cd ci.json.state; {put}"));
    script(home, "cd origin; git add -Af .; git commit -qm two; cd ../clone; git pull -q --ff-only");
}

/// Removes from the clone what the last pull brought.
#[track_caller]
fn take_back(home: &Home) {
    script(home, "cd clone; git ls-files ci.json.state | xargs -r rm -f; git reset -q --hard HEAD~1");
    script(home, "cd origin; git reset -q --hard HEAD~1");
}

#[track_caller]
fn refusal(call: Call, named: &Path) -> Value {
    let done = clean(call.env("SESSILE_OUTPUT", "json").run());
    let error = done.json_error();
    assert_eq!(error["code"], "PROJECT_FILE_UNSAFE", "{}", done.told());
    assert!(error["message"].as_str().unwrap().contains(named.to_str().unwrap()), "{error}");
    error
}

#[test]
fn cloned_state_directory_is_refused() {
    let home = home();
    home.write("origin/ci.json", "{}");
    // A state directory that works, as whoever made the repository has it.
    let at_origin = |args: &[&str]| home.call(args).args(&["--config", "origin/ci.json"]);
    at_origin(&["session", "start", "--name", "web"]).ok();
    at_origin(&["auth", "set", "bot", "--secret-stdin"]).stdin("theirs").ok();
    script(&home, "cd origin; git init -q; git add -Af .; git commit -qm one");
    script(&home, "git clone -q origin clone");
    let state = home.path("clone/ci.json.state");
    assert_eq!(state.metadata().unwrap().mode() & 0o7777, 0o700, "the umask leaves a private directory");
    for args in [
        &["session", "list"][..],
        &["session", "gc"],
        &["session", "start"],
        &["env", "--session", "web"],
        &["run", "--session", "web", "--", "true"],
        &["auth", "list"],
        &["auth", "set", "bot", "--secret-stdin"],
        &["lock", "list"],
        &["user", "list"],
    ] {
        let error = refusal(in_clone(&home, args).stdin("x"), &state);
        assert!(error["hint"].as_str().unwrap().contains("chmod -R +t "), "{error}");
    }
}

#[test]
fn pulled_state_is_refused() {
    let home = cloned();
    let state = home.path("clone/ci.json.state");
    in_clone(&home, &["session", "start", "--name", "web"]).ok();
    let id = "0199c1d2-7a52-7f31-8a52-6f1f2a9d3b10";
    // As long as nothing of that name exists in the clone, git adds it.
    for (put, named) in [
        ("mkdir vault; echo x > vault/credentials", "vault"),
        ("mkdir tickets; echo x > tickets/1", "tickets"),
        ("mkdir intents; echo x > intents/1", "intents"),
        ("mkdir service; echo x > service/service.db", "service"),
        ("echo x > state.db-journal", "state.db-journal"),
    ] {
        pull(&home, put);
        let named = state.join(named);
        assert_eq!(named.metadata().unwrap().mode() & 0o1077, 0, "{}", named.display());
        refusal(in_clone(&home, &["session", "list"]), &named);
        refusal(in_clone(&home, &["auth", "list"]), &named);
        take_back(&home);
        in_clone(&home, &["session", "list"]).ok();
    }
    // A room that no session has is swept up, and its plan says what is moved where.
    let plan = json!({
        "version": 1, "complete": true, "tools": [], "bound": [],
        "home": state.join("rooms").join(id).join("home"), "real_home": home.dir(),
    });
    home.write("plan.json", plan.to_string());
    pull(
        &home,
        &format!(
            "mkdir -p rooms/{id}/home; cp ../../plan.json rooms/{id}; echo x > rooms/{id}/home/planted; : > rooms/{id}/lock"
        ),
    );
    refusal(in_clone(&home, &["session", "gc"]), &state.join("rooms").join(id));
    assert!(!home.path("planted").exists());
}

#[test]
fn pulled_store_is_refused() {
    let home = cloned();
    let state = home.path("clone/ci.json.state");
    // A state directory without a store, and then one whose store git takes for a file that it may overwrite.
    in_clone(&home, &["auth", "set", "bot", "--secret-stdin"]).stdin("hunter2").ok();
    script(&home, "rm clone/ci.json.state/state.db*");
    home.write("other.json", "{}");
    home.call(&["--config", "other.json", "session", "start", "--name", "theirs"]).ok();
    pull(&home, "cp ../../other.json.state/state.db .");
    refusal(in_clone(&home, &["session", "list"]), &state.join("state.db"));
    take_back(&home);
    in_clone(&home, &["session", "start", "--name", "mine"]).ok();
    home.write("clone/.git/info/exclude", "*.state/\n");
    pull(&home, "cp ../../other.json.state/state.db .");
    refusal(in_clone(&home, &["session", "list"]), &state.join("state.db"));
}

#[test]
fn pulled_log_of_a_store_is_refused() {
    let home = cloned();
    let state = home.path("clone/ci.json.state");
    in_clone(&home, &["session", "start", "--name", "web"]).ok();
    let log = state.join("state.db-wal");
    assert_eq!(log.metadata().unwrap().mode() & 0o7777, 0o1600, "the log stays, with its mark");
    home.write("clone/.git/info/exclude", "*.state/\n");
    pull(&home, "echo x > state.db-wal");
    refusal(in_clone(&home, &["session", "list"]), &log);
}

#[test]
fn pulled_log_of_a_service_store_is_refused() {
    let home = cloned();
    let state = home.path("clone/ci.json.state");
    let list = || in_clone(&home, &["user", "list"]);
    in_clone(&home, &["user", "add", "ann"]).ok();
    list().ok();
    let log = state.join("service/service.db-wal");
    assert_eq!(log.metadata().unwrap().mode() & 0o7777, 0o1600, "the log stays, with its mark");
    for name in ["service.db-wal", "service.db-journal"] {
        let (path, aside) = (state.join("service").join(name), home.path("aside"));
        let exists = std::fs::rename(&path, &aside).is_ok();
        script(&home, &format!("echo x > clone/ci.json.state/service/{name}"));
        refusal(list(), &path);
        std::fs::remove_file(&path).unwrap();
        if exists {
            std::fs::rename(&aside, &path).unwrap();
        }
    }
    list().ok();
    in_clone(&home, &["user", "add", "bob"]).ok();
}

#[test]
fn links_in_a_state_directory_are_refused() {
    let home = cloned();
    let state = home.path("clone/ci.json.state");
    in_clone(&home, &["session", "start", "--name", "web"]).ok();
    in_clone(&home, &["auth", "set", "bot", "--secret-stdin"]).stdin("hunter2").ok();
    in_clone(&home, &["session", "list"]).ok();
    for name in
        ["state.db", "state.db-wal", "state.db-journal", "rooms", "vault", "vault/credentials", "vault/key"]
    {
        let (path, aside) = (state.join(name), home.path("aside"));
        let exists = std::fs::rename(&path, &aside).is_ok();
        symlink(&aside, &path).unwrap();
        let error = refusal(in_clone(&home, &["auth", "list"]), &path);
        assert!(error["hint"].as_str().unwrap().contains("rm "), "{error}");
        std::fs::remove_file(&path).unwrap();
        if exists {
            std::fs::rename(&aside, &path).unwrap();
        }
    }
    in_clone(&home, &["auth", "list"]).ok();
}

#[test]
fn link_in_the_place_of_a_room_s_lock_or_settings_is_refused() {
    let home = home();
    let id = home.call(&["session", "start", "-q"]).ok().stdout().trim().to_owned();
    let room = home.path(".local/state/sessile/rooms").join(&id);
    home.write("victim", "safe");
    let lock = std::fs::read(room.join("lock")).unwrap();
    std::fs::remove_file(room.join("lock")).unwrap();
    symlink(home.path("victim"), room.join("lock")).unwrap();
    clean(home.call(&["run", "--session", &id, "--", "true"]).run()).exit(125);
    assert_eq!(home.read("victim"), "safe");
    std::fs::remove_file(room.join("lock")).unwrap();
    std::fs::write(room.join("lock"), lock).unwrap();
    std::fs::create_dir_all(home.path("elsewhere")).unwrap();
    symlink(home.path("elsewhere"), room.join("home")).unwrap();
    let done =
        clean(home.call(&["run", "--session", &id, "--isolate", "home", "-ojson", "--", "true"]).run());
    assert_eq!(done.code(), "ROOM_UNSAFE", "{}", done.told());
    assert_eq!(std::fs::read_dir(home.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn unmarked_state_directory_is_accepted_after_the_hint() {
    let home = cloned();
    let state = home.path("clone/ci.json.state");
    in_clone(&home, &["session", "start", "--name", "web"]).ok();
    in_clone(&home, &["auth", "set", "bot", "--secret-stdin"]).stdin("hunter2").ok();
    for mode in [0o1755, 0o1711, 0o755, 0o700] {
        std::fs::set_permissions(&state, Permissions::from_mode(mode)).unwrap();
        refusal(in_clone(&home, &["session", "list"]), &state);
    }
    // As an earlier version left it: nothing in it has the mark.
    script(&home, "chmod -R -t clone/ci.json.state");
    let error = refusal(in_clone(&home, &["session", "list"]), &state);
    let command = error["hint"].as_str().unwrap().rsplit_once(": ").unwrap().1.to_owned();
    script(&home, &command);
    assert!(in_clone(&home, &["session", "list"]).ok().stdout().contains("web"));
    assert!(in_clone(&home, &["auth", "list"]).ok().stdout().contains("bot"));
    in_clone(&home, &["run", "--session", "web", "--", "true"]).ok();
}

#[test]
fn first_commands_in_parallel_find_no_unmarked_state() {
    let home = cloned();
    for round in 0..3 {
        let file = format!("clone/{round}.json");
        home.write(&file, "{}");
        let children: Vec<_> = (0..12)
            .map(|_| {
                let mut command = home.call(&["session", "start", "--config", &file]).command();
                command
                    .stderr(std::process::Stdio::piped())
                    .stdout(std::process::Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in children {
            let done = child.wait_with_output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        let list = home.call(&["session", "list", "-ojson", "--config", &file]).ok().json();
        assert_eq!(list.as_array().map(Vec::len), Some(12), "{list}");
    }
}

#[test]
fn backup_and_restore_keep_the_mark() {
    let home = cloned();
    in_clone(&home, &["session", "start", "--name", "web"]).ok();
    in_clone(&home, &["backup", "copy.db"]).ok();
    in_clone(&home, &["backup", "restore", "copy.db", "--yes"]).ok();
    in_clone(&home, &["session", "list"]).ok();
    // A damaged store is replaced by a new one.
    let store = home.path("clone/ci.json.state/state.db");
    std::fs::write(&store, vec![7; 8192]).unwrap();
    in_clone(&home, &["session", "start", "--name", "next"]).run();
    assert!(in_clone(&home, &["session", "list"]).ok().stdout().contains("next"));
    assert_eq!(store.metadata().unwrap().mode() & 0o7777, 0o1600);
}

#[test]
fn plan_of_a_room_names_no_other_home() {
    let home = home();
    let id = home.call(&["session", "start", "-q"]).ok().stdout().trim().to_owned();
    home.call(&[
        "run",
        "--session",
        &id,
        "--isolate",
        "home",
        "--",
        "sh",
        "-c",
        "echo work > \"$HOME/made\"",
    ])
    .ok();
    let plan = home.path(".local/state/sessile/rooms").join(&id).join("plan.json");
    let own = std::fs::read_to_string(&plan).unwrap();
    let mut changed: Value = serde_json::from_str(&own).unwrap();
    std::fs::create_dir_all(home.path("victim")).unwrap();
    changed["real_home"] = json!(home.path("victim"));
    std::fs::write(&plan, changed.to_string()).unwrap();
    let done = clean(home.call(&["session", "stop", &id, "-ojson"]).run());
    assert_eq!(done.code(), "ROOM_UNSAFE", "{}", done.told());
    assert_eq!(std::fs::read_dir(home.path("victim")).unwrap().count(), 0);
    assert!(plan.with_file_name("home").join("made").exists(), "the work stays in the room");
    std::fs::write(&plan, own).unwrap();
    home.call(&["session", "gc"]).ok();
    assert_eq!(home.read("made"), "work\n");
}
