//! `sessile backup`: a whole copy whatever others write, and a damaged or newer store that is never overwritten.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use testkit::Home;

use crate::{home, live, shown, start};

const STORE: &str = ".local/state/sessile/state.db";

/// The files beside the store whose names go on like this.
fn beside(home: &Home, ending: &str) -> Vec<PathBuf> {
    let dir = std::fs::read_dir(home.path(".local/state/sessile")).unwrap();
    let prefix = format!("state.db.{ending}");
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&prefix);
    dir.map(|entry| entry.unwrap().path()).filter(named).collect()
}

/// Two values are always changed together, in one import; a torn copy would have sessions with one of them.
#[test]
fn a_copy_made_while_others_write_is_a_consistent_whole() {
    let home = home();
    let model = start(&home, &[]);
    for key in ["a", "b", "c"] {
        home.call(&["session", "state", "set", key, "1", "--session", &model]).ok();
    }
    home.call(&["session", "export", &model, "--file", "one.json"]).ok();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    home.call(&["session", "import", "one.json"]).ok();
                }
            });
        }
        for number in 0..6 {
            home.call(&["backup", &format!("copy{number}")]).ok();
        }
        over.store(true, Ordering::Relaxed);
    });
    let all = live(&home);
    for number in 0..6 {
        let other = crate::home();
        start(&other, &[]);
        let copy = home.path(format!("copy{number}"));
        other.call(&["backup", "restore", copy.to_str().unwrap(), "--yes"]).ok();
        let copied = live(&other);
        assert!(copied.iter().all(|id| all.contains(id)));
        for id in copied {
            assert_eq!(shown(&other, &id)["state_values"], 3);
        }
        other.call(&["doctor"]).ok();
    }
}

#[test]
fn a_copy_is_private_and_replaces_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    start(&home, &[]);
    home.call(&["backup", "copy"]).ok();
    assert_eq!(home.path("copy").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(home.call(&["backup", "copy", "-ojson"]).run().exit(6).code(), "FILE_EXISTS");
    let path = home.call(&["backup", "-ojson"]).ok().json()["path"].as_str().unwrap().to_owned();
    assert!(PathBuf::from(path).exists());
}

#[test]
fn a_restore_asks_and_keeps_what_it_replaces() {
    let home = home();
    let first = start(&home, &["--name", "first"]);
    home.call(&["backup", "copy"]).ok();
    let second = start(&home, &["--name", "second"]);
    let refused = home.call(&["backup", "restore", "copy", "-ojson"]).run().exit(2);
    assert_eq!(refused.code(), "CONFIRMATION_REQUIRED");
    let mut tty = home.tty(&["backup", "restore", "copy"]);
    tty.expect("[y/N]");
    tty.end_input();
    assert_ne!(tty.finish().1, 0);
    assert_eq!(live(&home), [first.clone(), second.clone()]);

    let done = home.call(&["backup", "restore", "copy", "--yes", "-ojson"]).ok().json();
    assert_eq!(live(&home), std::slice::from_ref(&first));
    let kept = done["kept"].as_str().unwrap();
    home.call(&["backup", "restore", kept, "--yes"]).ok();
    assert_eq!(live(&home), [first, second]);
    let history = home.call(&["history", "-ojson"]).ok().json();
    assert_eq!(history[0]["command"], "backup restore");
}

#[test]
fn invalid_backup_is_not_restored() {
    let home = home();
    let id = start(&home, &[]);
    home.write("text", "this is no database, and long enough to be taken for one".repeat(50));
    home.write("empty", "");
    home.call(&["backup", "restore", "missing", "--yes"]).run().exit(5);
    for file in ["text", "empty", "."] {
        let done = home.call(&["backup", "restore", file, "--yes"]).run();
        assert_ne!(done.status(), Some(0), "{file}");
    }
    assert_eq!(live(&home), [id]);
    home.call(&["doctor"]).ok();
}

fn sql(path: PathBuf, text: &str) {
    let script =
        "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.commit()";
    let done = Command::new("python3").args(["-c", script]).arg(path).arg(text).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_newer_store_or_copy_is_refused_and_left_as_it_is() {
    let home = home();
    start(&home, &[]);
    home.call(&["backup", "copy"]).ok();
    sql(home.path("copy"), "PRAGMA user_version = 99");
    let done = home.call(&["backup", "restore", "copy", "--yes", "-ojson"]).run();
    assert_eq!(done.code(), "STORE_TOO_NEW");
    assert_eq!(live(&home).len(), 1);
    sql(home.path(STORE), "PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
    let before = std::fs::read(home.path(STORE)).unwrap();
    for args in
        [&["session", "start"][..], &["session", "list"], &["config", "set", "env.A", "1", "--global"]]
    {
        let done = home.call(args).arg("-ojson").run();
        assert_eq!(done.code(), "STORE_TOO_NEW", "{args:?}");
        let message = done.json_error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("99"), "{message}");
    }
    assert_eq!(std::fs::read(home.path(STORE)).unwrap(), before);
    assert!(beside(&home, "damaged").is_empty());
}

#[test]
fn store_that_is_not_a_database_is_moved_aside_by_a_write() {
    let home = home();
    start(&home, &[]);
    for file in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(home.path(format!("{STORE}{file}")));
    }
    let garbage = "not a database at all\n".repeat(500);
    home.write(STORE, &garbage);
    assert_eq!(home.call(&["history", "-ojson"]).run().code(), "STORE_CORRUPT", "a look moves nothing");
    assert_eq!(home.read(STORE), garbage);
    let done = home.call(&["session", "start", "--quiet"]).ok();
    assert!(!done.stdout().is_empty());
    let kept = beside(&home, "damaged");
    assert_eq!(kept.len(), 1);
    assert_eq!(std::fs::read_to_string(&kept[0]).unwrap(), garbage);
    home.call(&["doctor"]).ok();
}

/// Some pages are lost; the rows of the others are saved, and no number comes twice.
#[test]
fn readable_rows_of_a_damaged_store_are_saved() {
    let home = home();
    let ids: Vec<String> = (0..40).map(|_| start(&home, &[])).collect();
    let text = "v".repeat(3_000);
    for id in &ids[..20] {
        home.call(&["session", "state", "set", "k", &text, "--session", id]).ok();
    }
    let token = home.call(&["lock", "acquire", "l", "--quiet"]).ok().stdout();
    home.call(&["lock", "release", "l", "--token", token.trim()]).ok();
    sql(home.path(STORE), "PRAGMA wal_checkpoint(TRUNCATE)");
    // Pages of the history, far behind the schema.
    let mut bytes = std::fs::read(home.path(STORE)).unwrap();
    let script = "import sqlite3,sys\nc=sqlite3.connect(sys.argv[1])\n\
                  print(c.execute(\"select rootpage from sqlite_master where name='operation'\").fetchone()[0])";
    let root = Command::new("python3").args(["-c", script]).arg(home.path(STORE)).output().unwrap();
    let root: usize = String::from_utf8(root.stdout).unwrap().trim().parse().unwrap();
    bytes[(root - 1) * 4096..root * 4096].fill(0xee);
    std::fs::write(home.path(STORE), bytes).unwrap();

    let done = home.call(&["session", "start"]).run();
    let again = if done.status() == Some(0) { done } else { home.call(&["session", "start"]).ok() };
    assert!(again.stderr().contains("damaged") || !beside(&home, "damaged").is_empty(), "{}", again.told());
    let now = live(&home);
    assert!(ids.iter().all(|id| now.contains(id)), "every session is there");
    let whole = |path: &&PathBuf| !path.to_str().unwrap().ends_with(['l', 'm']);
    assert_eq!(
        beside(&home, "damaged").iter().filter(whole).count(),
        1,
        "one damaged database, not counting its log and shared memory"
    );
    let next = home.call(&["lock", "acquire", "l", "--quiet"]).ok().stdout();
    assert!(next.trim().parse::<i64>().unwrap() > token.trim().parse::<i64>().unwrap());
    home.call(&["doctor"]).ok();
}

/// Who has seen a newer value than the restored one must find out.
#[test]
fn a_revision_is_not_handed_out_twice_after_a_restore() {
    let home = home();
    let id = start(&home, &[]);
    let set = |key: &str, value: &str| {
        let done =
            home.call(&["session", "state", "set", key, value, "-ojson"]).env("SESSILE_SESSION", &id).ok();
        done.json()["revision"].as_i64().unwrap()
    };
    assert_eq!(set("v", "1"), 1);
    home.call(&["backup", "copy"]).ok();
    assert_eq!((set("v", "2"), set("new", "1")), (2, 1));
    home.call(&["backup", "restore", "copy", "--yes"]).ok();
    let stale =
        home.call(&["session", "state", "set", "v", "3", "--if-revision", "2"]).env("SESSILE_SESSION", &id);
    stale.run().exit(6);
    assert!(set("v", "3") > 3);
    assert_eq!(set("new", "2"), 2);
}
