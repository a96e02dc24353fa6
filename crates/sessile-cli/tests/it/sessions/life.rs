//! How long a session lives: idle and longest time, never cut off while something runs in it, swept up afterwards.

use std::process::Stdio;
use std::time::Duration;

use testkit::Home;

use crate::{eventually, home, home_with, shown, start};

fn room(home: &Home, id: &str) -> std::path::PathBuf {
    home.path(format!(".local/state/sessile/rooms/{id}"))
}

fn is_over(home: &Home, id: &str) -> bool {
    shown(home, id)["state"] != "live"
}

#[test]
fn an_idle_session_expires_and_says_how_to_start_another() {
    let home = home_with(&["staging"]);
    let id = start(&home, &["--name", "work", "--context", "staging", "--idle", "1s"]);
    home.call(&["session", "state", "set", "k", "1", "--session", &id]).ok();
    eventually("the end", || shown(&home, &id)["state"] == "expired");
    for args in [
        &["session", "state", "set", "k", "2"][..],
        &["session", "state", "get", "k"],
        &["config", "set", "env.A", "1"],
    ] {
        let error = home.call(args).args(&["--session", "work", "-ojson"]).run().exit(4).json_error();
        assert_eq!(error["code"], "SESSION_EXPIRED", "{args:?}");
        let fix = error["fix_command"].as_str().unwrap();
        assert_eq!(fix, "sessile session start --name work --context staging");
    }
    let done = home.call(&["lock", "run", "l", "--session", "work", "-ojson", "--", "true"]).run().exit(125);
    assert_eq!(done.code(), "SESSION_EXPIRED");
    let again = start(&home, &["--name", "work", "--context", "staging"]);
    assert_ne!(again, id);
    home.call(&["session", "state", "set", "k", "2", "--session", "work"]).ok();
}

#[test]
fn use_keeps_an_idle_session_and_nothing_keeps_an_old_one() {
    let home = home();
    let used = start(&home, &["--idle", "3s"]);
    let old = start(&home, &["--max", "2s"]);
    for number in 0..8 {
        let number = number.to_string();
        home.call(&["session", "state", "set", "k", &number, "--session", &used]).ok();
        home.call(&["session", "state", "set", "k", &number, "--session", &old]).run();
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(shown(&home, &used)["state"], "live");
    assert!(is_over(&home, &old));
}

#[test]
fn a_look_does_not_keep_it() {
    let home = home();
    let id = start(&home, &["--idle", "1s"]);
    eventually("the end, though it is looked at", || is_over(&home, &id));
}

#[test]
fn the_room_goes_with_the_next_change_and_not_with_a_look() {
    let home = home();
    let id = start(&home, &["--idle", "1s"]);
    eventually("the end", || is_over(&home, &id));
    assert!(room(&home, &id).exists());
    home.call(&["status"]).ok();
    home.call(&["config", "set", "env.A", "1", "--global"]).ok();
    assert!(!room(&home, &id).exists());
    assert_eq!(shown(&home, &id)["end_reason"], "expired");
}

#[test]
fn session_with_a_running_command_is_not_removed() {
    let home = home();
    let id = start(&home, &["--idle", "1s", "--max", "2s"]);
    let mut child = home
        .call(&[
            "lock",
            "run",
            "l",
            "--set",
            "session.max-action=warn",
            "--",
            "/bin/sh",
            "-c",
            "touch ready; while ! [ -e go ]; do sleep 0.1; done",
        ])
        .env("SESSILE_SESSION", &id)
        .command()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the command", || home.path("ready").exists());
    std::thread::sleep(Duration::from_millis(3_000));
    // Past its longest life it takes no new work; what runs in it goes on.
    assert_eq!(shown(&home, &id)["state"], "expired");
    let more = home.call(&["lock", "run", "m", "--", "/bin/true"]).env("SESSILE_SESSION", &id);
    let _ = more.run().exit(125);
    assert_eq!(home.call(&["session", "gc", "-ojson"]).ok().json()["ended"], serde_json::json!([]));
    home.call(&["config", "set", "env.A", "1", "--global"]).ok();
    assert!(room(&home, &id).join("lock").exists());
    home.write("go", "");
    child.wait().unwrap();
    eventually("the end", || is_over(&home, &id));
    home.call(&["session", "gc"]).ok();
    assert!(!room(&home, &id).exists());
}

/// The idle time begins when what ran in it is over, however long that took.
#[test]
fn a_long_command_does_not_use_up_the_idle_time() {
    let home = home();
    let id = start(&home, &["--idle", "4s"]);
    let run = |script: &str| {
        home.call(&["lock", "run", "l", "--", "/bin/sh", "-c", script]).env("SESSILE_SESSION", &id).ok();
    };
    run("sleep 5");
    assert_eq!(shown(&home, &id)["state"], "live");
    assert!(shown(&home, &id)["idle_ms"].as_u64().unwrap() < 4_000);
    // What outlives the command counts too.
    run("sleep 6 >/dev/null 2>&1 &");
    std::thread::sleep(Duration::from_millis(7_000));
    assert_eq!(shown(&home, &id)["state"], "live");
    eventually("the end", || is_over(&home, &id));
}

#[test]
fn gc_ends_everything_that_has_expired() {
    let home = home();
    let kept = start(&home, &[]);
    let ids: Vec<String> = (0..12).map(|_| start(&home, &["--idle", "1s"])).collect();
    eventually("the end", || ids.iter().all(|id| is_over(&home, id)));
    home.call(&["session", "gc"]).ok();
    let rooms: Vec<_> = std::fs::read_dir(home.path(".local/state/sessile/rooms")).unwrap().collect();
    assert_eq!(rooms.len(), 1);
    assert!(room(&home, &kept).exists());
    let listed = home.call(&["session", "list", "--state", "ended", "-ojson"]).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 12);
}

/// A process that is killed between a session's row and its room leaves a room that belongs to nobody.
#[test]
fn gc_removes_rooms_that_belong_to_no_live_session() {
    let home = home();
    let (kept, ended) = (start(&home, &[]), start(&home, &[]));
    home.call(&["session", "stop", &ended]).ok();
    for orphan in [ended.as_str(), "01890a5d-ac96-774b-bcce-b302099a8057"] {
        home.write(format!(".local/state/sessile/rooms/{orphan}/lock"), "");
    }
    home.write(".local/state/sessile/rooms/not-a-room/x", "");
    home.call(&["session", "gc"]).ok();
    let mut left: Vec<String> = std::fs::read_dir(home.path(".local/state/sessile/rooms"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, [kept, "not-a-room".to_owned()]);
}

#[test]
fn session_without_its_room_can_be_used_and_stopped() {
    let home = home();
    let id = start(&home, &[]);
    std::fs::remove_dir_all(room(&home, &id)).unwrap();
    home.call(&["session", "state", "set", "k", "1", "--session", &id]).ok();
    home.call(&["session", "state", "get", "k", "--session", &id]).ok();
    home.call(&["session", "stop", &id]).ok();
    assert!(is_over(&home, &id));
}

#[test]
fn lifetimes_come_from_settings_unless_passed() {
    let home = home();
    home.write(".config/sessile/config.toml", "session.idle = \"30m\"\nsession.max = \"3h\"\n");
    let configured = shown(&home, &start(&home, &[]));
    assert_eq!(
        (&configured["idle_limit_ms"], &configured["max_ms"]),
        (&1_800_000.into(), &10_800_000.into())
    );
    let said = shown(&home, &start(&home, &["--idle", "1m", "--max", "2m"]));
    assert_eq!((&said["idle_limit_ms"], &said["max_ms"]), (&60_000.into(), &120_000.into()));
    let home = crate::home();
    let usual = shown(&home, &start(&home, &[]));
    assert_eq!((&usual["idle_limit_ms"], &usual["max_ms"]), (&7_200_000.into(), &28_800_000.into()));
}

#[test]
fn looking_makes_nothing() {
    let home = home();
    for args in [&["session", "list"][..], &["lock", "list"], &["history"], &["context", "list"], &["status"]]
    {
        home.call(args).ok();
    }
    home.call(&["session", "show", "none"]).run().exit(5);
    assert!(home.tree().is_empty());
}
