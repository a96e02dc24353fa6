//! Backup and restore must not weaken a guard, bring back revoked trust, or lose what they replace.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::{Call, Home, Tty};

use super::refused_call;
use crate::durability::crash::{Killer, assert_not_locked, kills};
use crate::{home, live, start};

const STATE: &str = ".local/state/sessile";
const STORE: &str = ".local/state/sessile/state.db";

/// Runs SQL on a database file and returns the first column of the last statement.
#[track_caller]
pub(super) fn sql(path: impl AsRef<Path>, statements: &[&str]) -> Vec<String> {
    let script = "import sqlite3,sys,os\nc=sqlite3.connect(os.fsencode(sys.argv[1]),isolation_level=None)\n\
                  for s in sys.argv[2:]:\n r=c.execute(s).fetchall()\n\
                  print('\\n'.join(str(x[0]) for x in r))";
    let done =
        Command::new("python3").args(["-c", script]).arg(path.as_ref()).args(statements).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The files in a directory whose names begin with a prefix.
fn files(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.file_name().unwrap().as_bytes().starts_with(prefix.as_bytes())).collect();
    found.sort();
    found
}

fn restore(home: &Home, file: &str) -> Call {
    home.call(&["backup", "restore", file, "--yes"])
}

fn guarded() -> Home {
    let home = home();
    home.write(".config/sessile/contexts/prod.toml", "guard = \"approval\"\n");
    home
}

fn is_open(home: &Home) -> bool {
    let done = home.call(&["context", "current", "--check", "--context", "prod"]).run();
    match done.status() {
        Some(0) => true,
        Some(7) => false,
        _ => panic!("{}", done.told()),
    }
}

fn answered(mut tty: Tty, answers: &[(&str, &str)]) -> (String, i32) {
    for (question, answer) in answers {
        tty.expect(question);
        tty.type_line(answer);
    }
    tty.finish()
}

#[track_caller]
fn approve(home: &Home) {
    let (text, status) =
        answered(home.tty(&["context", "approve", "prod", "--for", "30m"]), &[("[y/N]", "y")]);
    assert_eq!(status, 0, "{text}");
}

#[track_caller]
fn set_pin(home: &Home, pin: &str) {
    let typed = [("New PIN: ", pin), ("Again: ", pin)];
    let (text, status) = answered(home.tty(&["context", "approve", "--set-pin"]), &typed);
    assert_eq!(status, 0, "{text}");
}

fn approve_with_pin(home: &Home, pin: &str) -> (String, i32) {
    answered(home.tty(&["context", "approve", "prod"]), &[("PIN: ", pin)])
}

#[test]
fn restore_revokes_every_approval() {
    let home = guarded();
    approve(&home);
    home.call(&["backup", "copy"]).ok();
    home.call(&["context", "approve", "prod", "--revoke"]).ok();
    restore(&home, "copy").ok();
    assert!(!is_open(&home), "a revoked approval came back");

    approve(&home);
    assert!(is_open(&home));
    restore(&home, "copy").ok();
    assert!(!is_open(&home), "an approval outlived the restore");
    let listed = home.call(&["context", "approve", "--list", "-ojson"]).ok().json();
    assert_eq!(listed, serde_json::json!([]));
    approve(&home);
    assert!(is_open(&home));
}

#[test]
fn restore_keeps_the_current_pin_and_its_wrong_tries() {
    let home = guarded();
    home.call(&["context", "list"]).ok();
    start(&home, &[]);
    home.call(&["backup", "without-pin"]).ok();
    set_pin(&home, "4711");
    home.call(&["backup", "with-pin"]).ok();
    for pin in ["1111", "2222", "3333"] {
        assert_ne!(approve_with_pin(&home, pin).1, 0);
    }
    let tries = "SELECT failures || ' ' || failed_ms FROM pin";
    let before = sql(home.path(STORE), &[tries]);
    for copy in ["without-pin", "with-pin"] {
        restore(&home, copy).ok();
        assert_eq!(sql(home.path(STORE), &[tries]), before, "{copy}");
    }
    for pin in ["4444", "5555"] {
        assert_ne!(approve_with_pin(&home, pin).1, 0);
    }
    let (text, status) = approve_with_pin(&home, "4711");
    assert_ne!(status, 0, "five wrong tries, three of them before the restore: {text}");
}

#[test]
fn restore_into_a_store_without_pin_takes_the_pin_of_the_backup() {
    let home = guarded();
    set_pin(&home, "4711");
    home.call(&["backup", "copy"]).ok();
    let (text, status) = answered(home.tty(&["context", "approve", "--remove-pin"]), &[("PIN: ", "4711")]);
    assert_eq!(status, 0, "{text}");
    restore(&home, "copy").ok();
    assert_ne!(approve_with_pin(&home, "0000").1, 0);
    assert_eq!(approve_with_pin(&home, "4711").1, 0);
}

#[test]
fn restore_keeps_only_trust_that_both_sides_have() {
    let home = home();
    for project in ["both", "revoked", "later"] {
        home.write(format!("{project}/.sessile/config.toml"), "[env]\nA = \"1\"\n");
    }
    let trust = |project: &str| drop(home.call(&["trust", "--yes"]).cwd(project).ok());
    let is_trusted = |project: &str| {
        home.call(&["status", "-ojson"]).cwd(project).ok().json()["project"]["trusted"].as_bool().unwrap()
    };
    trust("both");
    trust("revoked");
    home.call(&["backup", "copy"]).ok();
    home.call(&["trust", "--revoke"]).cwd("revoked").ok();
    trust("later");
    assert!(is_trusted("later"));
    restore(&home, "copy").ok();
    assert!(is_trusted("both"));
    assert!(!is_trusted("revoked"), "revoked trust came back");
    assert!(!is_trusted("later"), "the backup does not trust it");
}

#[test]
fn restore_inside_a_session_is_refused() {
    let home = home();
    let id = start(&home, &["--name", "agent"]);
    home.call(&["backup", "copy"]).ok();
    let from = |session: &str, code: &str| {
        refused_call(&home, || restore(&home, "copy").env("SESSILE_SESSION", session), code)
    };
    for session in ["agent", id.as_str()] {
        let error = from(session, "IN_SESSION");
        assert!(error["hint"].as_str().unwrap().contains("outside the session"), "{error}");
    }
    from("gone", "SESSION_NOT_FOUND");
    let program = home.program().to_str().unwrap();
    let inside = ["run", "--session", "agent", "--", program, "backup", "restore", "copy", "--yes", "-ojson"];
    assert_eq!(home.call(&inside).run().exit(7).code(), "IN_SESSION");
    assert!(files(&home.path(STATE), "state.db.replaced").is_empty());

    // A terminal that has a session selected.
    let mut shell = home.shell();
    shell.run("sessile session start --name mine");
    let (text, status) = shell.run("sessile backup restore copy --yes");
    assert_eq!(status, 7, "{text}");
}

#[test]
fn restore_of_a_backup_with_invalid_text_changes_nothing() {
    let home = home();
    start(&home, &["--name", "zebra"]);
    home.call(&["backup", "bk"]).ok();
    let mut bytes = std::fs::read(home.path("bk")).unwrap();
    let places: Vec<usize> = (0..bytes.len() - 5).filter(|at| bytes[*at..].starts_with(b"zebra")).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bytes[at] = 0xff);
    std::fs::write(home.path("bk"), &bytes).unwrap();
    let done = restore(&home, "bk").arg("-ojson").run();
    assert_eq!(done.code(), "STORE_CORRUPT", "{}", done.told());
    assert!(done.told().contains("UTF-8"), "{}", done.told());
    assert!(home.call(&["session", "list"]).ok().stdout().contains("zebra"));
    assert!(files(&home.path(STATE), "state.db.replaced").is_empty());
    // The same damage in the store itself is reported and repaired.
    sql(home.path(STORE), &["UPDATE session SET name = CAST(x'ff656272' AS TEXT)"]);
    let done = home.call(&["doctor"]).run().exit(1);
    assert!(done.stdout().contains("UTF-8"), "{}", done.told());
    home.call(&["doctor", "--repair", "--yes"]).run();
    home.call(&["session", "list"]).ok();
}

#[test]
fn restore_leaves_stopped_sessions_stopped() {
    let home = guarded();
    home.write(".config/sessile/contexts/staging.toml", "");
    let stopped = start(&home, &["--name", "stopped", "--context", "staging"]);
    let working = start(&home, &["--name", "working", "--context", "staging"]);
    home.call(&["backup", "copy"]).ok();
    home.call(&["session", "stop", &stopped]).ok();
    sql(home.path("copy"), &[&format!("UPDATE session SET context = 'prod' WHERE id = '{working}'")]);
    restore(&home, "copy").ok();
    assert_eq!(live(&home), std::slice::from_ref(&working));
    let done = home.call(&["run", "--", "true"]).env("SESSILE_SESSION", &stopped).run();
    assert_ne!(done.status(), Some(0), "{}", done.told());
    assert_eq!(crate::shown(&home, &working)["context"], "staging", "a session keeps its context for life");
}

/// An operation that was under way when the copy was made has ended since, one way or the other.
#[test]
fn restore_does_not_resume_operations_of_the_backup() {
    let home = home();
    home.call(&["context", "create", "a", "--env", "A=1"]).ok();
    home.call(&["context", "use", "a", "--global"]).ok();
    home.call(&["context", "rename", "a", "b"]).ok();
    home.call(&["backup", "copy"]).ok();
    sql(home.path("copy"), &["UPDATE operation SET state = 'intent', process = 'null'"]);
    home.call(&["context", "edit", "b", "--env", "A=2"]).ok();
    restore(&home, "copy").ok();
    home.call(&["context", "create", "c"]).ok();
    assert!(home.read(".config/sessile/contexts/b.toml").contains("A = \"2\""));
    assert!(!home.path(".config/sessile/contexts/a.toml").exists(), "the rename was reverted");
    assert_eq!(home.call(&["context", "current"]).ok().stdout(), "b\n");
    let states: BTreeSet<String> =
        sql(home.path(STORE), &["SELECT DISTINCT state FROM operation"]).into_iter().collect();
    assert!(!states.contains("intent"), "{states:?}");
}

fn spawn(call: Call) -> Child {
    call.command().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[track_caller]
fn all_succeed(children: Vec<Child>) {
    for child in children {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn parallel_restores_keep_every_replaced_state() {
    let home = home();
    start(&home, &["--name", "origin"]);
    for copy in ["one", "two"] {
        let id = start(&home, &["--name", copy]);
        home.call(&["backup", copy]).ok();
        home.call(&["session", "stop", &id]).ok();
        home.call(&["session", "clear", &id, "--yes"]).run();
    }
    for round in 0..12 {
        let name = format!("round{round}");
        start(&home, &["--name", &name]);
        let before = files(&home.path(STATE), "state.db.replaced");
        all_succeed(["one", "two"].map(|copy| spawn(restore(&home, copy))).into());
        let kept = files(&home.path(STATE), "state.db.replaced");
        let new: Vec<&PathBuf> = kept.iter().filter(|path| !before.contains(path)).collect();
        assert_eq!(new.len(), 2, "each restore keeps what it replaced");
        let query = format!("SELECT count(*) FROM session WHERE name = '{name}'");
        let holds = new.iter().filter(|path| sql(path, &[&query]) == ["1"]).count();
        assert_eq!(holds, 1, "{name} was replaced once and is kept once");
    }
}

#[test]
fn parallel_unnamed_backups_make_one_file_each() {
    let home = home();
    start(&home, &[]);
    all_succeed((0..32).map(|_| spawn(home.call(&["backup"]))).collect());
    let made = files(&home.path(STATE), "state.db.backup");
    assert_eq!(made.len(), 32, "{made:?}");
    for path in made {
        assert_eq!(sql(path, &["PRAGMA quick_check"]), ["ok"]);
    }
}

#[test]
fn parallel_backups_to_one_name_make_one_whole_file() {
    let home = home();
    start(&home, &[]);
    let children: Vec<Child> = (0..12).map(|_| spawn(home.call(&["backup", "copy", "-ojson"]))).collect();
    let done: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    assert_eq!(done.iter().filter(|one| one.status.success()).count(), 1);
    for refused in done.iter().filter(|one| !one.status.success()) {
        let text = String::from_utf8_lossy(&refused.stderr);
        assert!(text.contains("FILE_EXISTS"), "{text}");
    }
    assert_eq!(sql(home.path("copy"), &["PRAGMA quick_check"]), ["ok"]);
}

/// A store of some 12 MB, so that a kill can fall into the copying.
fn large() -> Home {
    let home = home();
    start(&home, &[]);
    let rows = "INSERT INTO conversation_item WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3000)
                SELECT 'u', 'c', n, 'k', json_quote(hex(randomblob(2000))), 0 FROM c";
    sql(home.path(STORE), &[rows, "PRAGMA wal_checkpoint(TRUNCATE)"]);
    home
}

/// What begins like a temporary file of a copy.
fn temporary(dir: &Path) -> Vec<PathBuf> {
    files(dir, ".sessile-tmp")
}

#[test]
fn killed_backup_leaves_a_whole_file_or_none() {
    let home = large();
    std::fs::create_dir(home.path("copies")).unwrap();
    let backup = |name: &str| home.call(&["backup", &format!("copies/{name}")]);
    let kills = kills() / 3;
    let mut killer = Killer::new(0x5e55_11e22, ["w0", "w1", "w2"].map(backup));
    let dirs = [home.path("copies"), home.path(STATE)];
    // Each copy into a directory removes what the one before left there, so it is looked for after every kill.
    let mut fell_into_a_copy = false;
    for number in 0..kills {
        let (name, named) = (format!("c{number}"), number % 2 == 0);
        let done = killer.kill(if named { backup(&name) } else { home.call(&["backup"]) });
        if named {
            let copy = home.path("copies").join(&name);
            assert!(copy.exists() || !done, "an acknowledged copy is missing");
        }
        fell_into_a_copy |= dirs.iter().any(|dir| !temporary(dir).is_empty());
    }
    let copies = dirs.iter().flat_map(|dir| files(dir, "")).filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        !name.starts_with('.') && (path.starts_with(&dirs[0]) || name.starts_with("state.db.backup"))
    });
    let mut whole = 0;
    for copy in copies {
        assert_eq!(sql(&copy, &["PRAGMA quick_check"]), ["ok"], "{}", copy.display());
        assert_eq!(sql(&copy, &["SELECT count(*) FROM conversation_item"]), ["3000"], "{}", copy.display());
        std::fs::remove_file(copy).unwrap();
        whole += 1;
    }
    assert!(whole > 0);
    // The next copy into a directory removes what killed ones left there, and only that.
    assert!(fell_into_a_copy, "no call was killed while it copied");
    home.write("copies/.sessile-tmp.txt", "a file of the user's");
    backup("last").ok();
    home.call(&["backup"]).ok();
    assert_eq!(temporary(&dirs[0]), [home.path("copies/.sessile-tmp.txt")]);
    assert_eq!(temporary(&dirs[1]), Vec::<PathBuf>::new());
    killer.assert_it_was_a_fight(kills);
}

#[test]
fn killed_restore_leaves_old_or_new_state_and_whole_copies() {
    let home = large();
    home.call(&["backup", "copy"]).ok();
    let kills = kills() / 5;
    let mut killer = Killer::new(0x5e55_11e23, [restore(&home, "copy"), restore(&home, "copy")]);
    for number in 0..kills {
        let name = format!("n{number}");
        start(&home, &["--name", &name]);
        let done = killer.kill(restore(&home, "copy"));
        assert_not_locked(&home.path(STATE));
        let kept = sql(home.path(STORE), &[&format!("SELECT count(*) FROM session WHERE name = '{name}'")]);
        assert!(kept == ["0"] || !done);
        if kept == ["0"] {
            let query = format!("SELECT count(*) FROM session WHERE name = '{name}'");
            let replaced = files(&home.path(STATE), "state.db.replaced");
            assert!(replaced.iter().any(|path| sql(path, &[&query]) == ["1"]), "{name} is in no file");
        }
    }
    for path in files(&home.path(STATE), "state.db.replaced") {
        assert_eq!(sql(path, &["PRAGMA quick_check"]), ["ok"]);
    }
    home.call(&["doctor"]).ok();
    killer.assert_it_was_a_fight(kills);
}

#[test]
fn backup_refuses_a_dangling_link_as_target() {
    let home = home();
    start(&home, &[]);
    std::os::unix::fs::symlink("elsewhere", home.path("copy")).unwrap();
    refused_call(&home, || home.call(&["backup", "copy"]), "FILE_EXISTS");
    assert!(!home.path("elsewhere").exists());
}

/// A home whose name is not UTF-8.
fn odd(home: &Home) -> PathBuf {
    let dir = home.dir().join(OsString::from_vec(b"caf\xe9".to_vec()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn home_that_is_not_utf8_is_backed_up_and_restored() {
    let home = home();
    let dir = odd(&home);
    let call = |args: &[&str]| home.call(args).env("HOME", &dir);
    call(&["session", "start", "--name", "first"]).ok();
    for output in [&[][..], &["-ojson"]] {
        call(&["backup"]).args(output).ok();
        let copy = dir.join(format!("copy{}", output.len()));
        call(&["backup"]).arg(&copy).args(output).ok();
        call(&["session", "start", "--name", &format!("second{}", output.len())]).ok();
        call(&["backup", "restore", "--yes"]).arg(&copy).args(output).ok();
        let listed = call(&["session", "list", "-ojson"]).ok().json();
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    }
    let state = dir.join(STATE);
    assert_eq!(files(&state, "state.db.backup").len(), 2);
    assert_eq!(files(&state, "state.db.replaced").len(), 2);
    // Nothing went to a directory of a similar name.
    assert_eq!(files(&home.dir(), "caf"), [dir]);
}

#[test]
fn home_that_is_not_utf8_keeps_undo_data() {
    let home = home();
    let dir = odd(&home);
    let call = |args: &[&str]| home.call(args).env("HOME", &dir);
    call(&["context", "create", "a", "--env", "A=1"]).ok();
    call(&["context", "edit", "a", "--env", "A=2"]).ok();
    call(&["config", "set", "env.B", "1", "--global"]).ok();
    call(&["config", "set", "env.B", "2", "--global"]).ok();
    let history = call(&["history", "-ojson"]).ok().json();
    for operation in history.as_array().unwrap() {
        assert_eq!(operation["undoable"], true, "{operation}");
        assert!(!operation["effects"].as_array().unwrap().is_empty(), "{operation}");
        call(&["undo", &operation["id"].to_string(), "--yes"]).ok();
    }
    assert!(!dir.join(".config/sessile/contexts/a.toml").exists());
    let config = std::fs::read_to_string(dir.join(".config/sessile/config.toml")).unwrap_or_default();
    assert!(!config.contains('B'), "{config}");
}

/// Paths that differ only in bytes that are not UTF-8 are different projects.
#[test]
fn trust_in_a_path_that_is_not_utf8_covers_no_other_path() {
    let home = home();
    let projects = [&b"p\xe9"[..], b"p\xe8"].map(|name| home.dir().join(OsString::from_vec(name.to_vec())));
    for project in &projects {
        std::fs::create_dir_all(project.join(".sessile")).unwrap();
        std::fs::write(project.join(".sessile/config.toml"), "[env]\nA = \"1\"\n").unwrap();
    }
    home.call(&["trust", "--yes"]).cwd(&projects[0]).ok();
    let is_trusted = |project: &PathBuf| {
        home.call(&["status", "-ojson"]).cwd(project).ok().json()["project"]["trusted"].as_bool().unwrap()
    };
    assert!(is_trusted(&projects[0]));
    assert!(!is_trusted(&projects[1]));
    home.call(&["trust", "--revoke"]).cwd(&projects[0]).ok();
    assert!(!is_trusted(&projects[0]));
}

#[test]
fn backup_with_an_unfinished_transaction_is_named() {
    let home = home();
    start(&home, &["--name", "web"]);
    home.call(&["backup", "copy"]).ok();
    // A program that is killed in a transaction leaves its journal.
    let script = "import sqlite3,sys,os\nc=sqlite3.connect(sys.argv[1],isolation_level=None)\n\
                  c.execute('PRAGMA cache_size=1')\nc.execute('BEGIN')\n\
                  c.execute('CREATE TABLE t (x)')\n\
                  [c.execute('INSERT INTO t VALUES (?)', ('x'*3000,)) for _ in range(200)]\nos._exit(0)";
    let done = Command::new("python3").args(["-c", script]).arg(home.path("copy")).status();
    assert!(done.unwrap().success());
    assert!(home.path("copy-journal").metadata().unwrap().len() > 0);
    let error = refused_call(&home, || restore(&home, "copy"), "STORE_CORRUPT");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("copy-journal") && message.contains("unfinished transaction"), "{message}");
}
