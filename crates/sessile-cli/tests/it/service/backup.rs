//! `sessile serve backup` and `sessile serve restore`: a store is copied while it is served, and no permission comes back.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{CallResult, Home};

use super::{Client, Service, Store};
use crate::durability::crash::Killer;
use crate::home;

#[track_caller]
fn sql(path: &Path, statement: &str) -> Vec<String> {
    let script = "import sqlite3,sys\nc=sqlite3.connect(sys.argv[1],isolation_level=None)\n\
                  print('\\n'.join(str(x[0]) for x in c.execute(sys.argv[2])))";
    let done = Command::new("python3").args(["-c", script]).arg(path).arg(statement).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn beside(home: &Home, label: &str) -> Vec<PathBuf> {
    let prefix = format!("service.db.{label}");
    let entries = std::fs::read_dir(home.dir()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&prefix)).collect()
}

fn backup(store: &Store<'_>, file: &str) -> CallResult {
    store.call(&["serve", "backup", file]).run()
}

fn restore(store: &Store<'_>, file: &str) -> CallResult {
    store.call(&["serve", "restore", file, "--yes", "-ojson"]).run()
}

fn stop(service: Service) {
    service.tell(Signal::TERM);
    assert_eq!(service.ended().code(), Some(0));
}

fn append(client: &Client, session: &str, text: &str) {
    client.ok("POST", &format!("{session}/messages"), &json!({ "messages": [text] }));
}

/// Every copy has what was acknowledged before it was begun, and no half of a change.
#[test]
fn backup_while_serving_holds_every_acknowledged_change() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let service = Service::start(&store);
    let client = service.client(&token);
    let session = client.session();
    let (acknowledged, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (client, session) = (client.clone(), session.clone());
            let (acknowledged, over) = (&acknowledged, &over);
            scope.spawn(move || {
                while !over.load(Ordering::SeqCst) {
                    // Two messages go together.
                    client.ok("POST", &format!("{session}/messages"), &json!({ "messages": ["a", "b"] }));
                    acknowledged.fetch_add(2, Ordering::SeqCst);
                }
            });
        }
        for number in 0..8 {
            let before = acknowledged.load(Ordering::SeqCst);
            let name = format!("copy{number}");
            backup(&store, &name).exit(0);
            let copy = home.path(&name);
            assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(sql(&copy, "PRAGMA quick_check"), ["ok"]);
            let found: usize = sql(&copy, "SELECT count(*) FROM message")[0].parse().unwrap();
            assert!(found >= before && found.is_multiple_of(2), "{found} of at least {before}");
        }
        over.store(true, Ordering::SeqCst);
    });
    assert!(acknowledged.load(Ordering::SeqCst) > 0);
    let again = store.call(&["serve", "backup", "copy0", "-ojson"]).run().exit(6);
    assert_eq!(again.code(), "FILE_EXISTS");
    let made = store.call(&["serve", "backup", "-ojson"]).ok().json();
    assert_eq!(beside(&home, "backup"), [PathBuf::from(made["path"].as_str().unwrap())]);
    // A copy is a store that can be served.
    stop(service);
    restore(&store, "copy7").exit(0);
    let service = Service::start(&store);
    assert!(!service.client(&token).texts(&session).is_empty());
}

/// The program's own client sends a key with each change.
#[test]
fn backup_with_idempotency_keys_is_restored() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let service = Service::start(&store);
    let url = format!("http://{}", service.address);
    let start =
        home.call(&["session", "start", "--name", "x", "--server", &url]).env("SESSILE_TOKEN", &token);
    start.ok();
    stop(service);
    backup(&store, "copy").exit(0);
    assert_ne!(sql(&home.path("copy"), "SELECT count(*) FROM answered"), ["0"]);
    restore(&store, "copy").exit(0);
}

#[test]
fn restore_is_refused_while_a_service_has_the_store_open() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    backup(&store, "copy").exit(0);
    // The service is idle: nobody has asked it for anything.
    let service = Service::start(&store);
    let refused = restore(&store, "copy").exit(6);
    assert_eq!(refused.code(), "LOCK_HELD", "{}", refused.told());
    let error = refused.json_error();
    assert!(error["message"].as_str().unwrap().contains("in use by a running service"), "{error}");
    assert!(error["hint"].as_str().unwrap().starts_with("stop every service"), "{error}");
    let session = service.client(&token).session();
    append(&service.client(&token), &session, "still served");
    assert!(beside(&home, "replaced").is_empty());
    stop(service);
    restore(&store, "copy").exit(0);
    assert_eq!(beside(&home, "replaced").len(), 1);
    let service = Service::start(&store);
    assert_eq!(service.client(&token).send("GET", &session, None).0, 404);
}

fn create_token(store: &Store<'_>, user: &str) -> (String, String) {
    let made = store.call(&["user", "token", "create", user, "-ojson"]).ok().json();
    let text = |key: &str| made[key].as_str().unwrap().to_owned();
    (text("id"), text("token"))
}

#[test]
fn restore_brings_back_data_and_no_permission() {
    let home = home();
    let store = Store::file(&home);
    for user in ["ann", "bob"] {
        store.call(&["user", "add", user]).ok();
    }
    let ((_, both), (revoked_id, revoked)) = (create_token(&store, "ann"), create_token(&store, "ann"));
    let (_, disabled) = create_token(&store, "bob");
    let service = Service::start(&store);
    let ann = service.client(&both);
    let (kept, ended) = (ann.session(), ann.session());
    append(&ann, &kept, "before");
    ann.ok("PUT", &format!("{kept}/state/k"), &json!(1));
    backup(&store, "copy").exit(0);

    append(&ann, &kept, "after");
    let revision = ann.ok("PUT", &format!("{kept}/state/k"), &json!(2))["revision"].as_i64().unwrap();
    assert!((200..300).contains(&ann.send("DELETE", &ended, None).0));
    let lock = ann.ok("POST", "/v1/locks/deploy", &json!({ "ttl_ms": 600_000 }))["token"].as_i64().unwrap();
    let turn = ann.ok("POST", &format!("{kept}/turns"), &json!({}))["token"].as_i64().unwrap();
    store.call(&["user", "token", "revoke", &revoked_id]).ok();
    store.call(&["user", "disable", "bob"]).ok();
    let (_, later) = create_token(&store, "ann");
    let events = sql(&home.path("service.db"), "SELECT max(next_event) FROM session");
    let audit = || sql(&home.path("service.db"), "SELECT count(*) FROM audit")[0].parse::<usize>().unwrap();
    stop(service);
    let recorded = audit();
    let done = restore(&store, "copy").exit(0).json();
    assert_eq!(done["revoked_tokens"], 1, "{done}");
    let replaced = Path::new(done["kept"].as_str().unwrap());
    assert_eq!(sql(replaced, "SELECT count(*) FROM message"), ["2"]);
    assert_eq!(replaced.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(audit() >= recorded, "the record of accesses lost rows");

    let service = Service::start(&store);
    let ann = service.client(&both);
    assert_eq!(ann.texts(&kept), ["before"]);
    assert_eq!(service.client(&revoked).send("GET", "/v1/me", None).0, 401, "a revoked token came back");
    assert_eq!(service.client(&disabled).send("GET", "/v1/me", None).0, 401, "a disabled user came back");
    assert_eq!(service.client(&later).send("GET", "/v1/me", None).0, 401, "the backup does not have it");
    assert!(ann.get(&ended)["ended_ms"].is_number());
    let value = ann.get(&format!("{kept}/state/k"));
    assert_eq!(value["value"], 1);
    assert!(value["revision"].as_i64().unwrap() > revision, "{value}");
    // A lock guards something outside the store; a turn was begun on messages that are gone.
    let refuse = json!({ "busy": "reject" });
    assert_eq!(ann.send("POST", "/v1/locks/deploy", Some(&refuse)).0, 409);
    ann.ok("POST", "/v1/locks/deploy/renew", &json!({ "token": lock }));
    let commit = |token: i64| format!("{kept}/turns/{token}/commit");
    let late = ann.send("POST", &commit(turn), Some(&json!({ "messages": ["late"] })));
    assert_eq!((late.0, late.1["code"].as_str()), (409, Some("LOCK_LOST")));
    let next = ann.ok("POST", &format!("{kept}/turns"), &refuse)["token"].as_i64().unwrap();
    assert!(next > turn, "fencing tokens only grow");
    ann.ok("POST", &commit(next), &json!({ "messages": ["next"] }));
    assert_eq!(ann.texts(&kept), ["before", "next"]);
    let now = sql(&home.path("service.db"), "SELECT max(next_event) FROM session");
    assert!(now[0].parse::<i64>().unwrap() >= events[0].parse::<i64>().unwrap(), "{now:?} after {events:?}");
}

#[test]
fn two_restores_revive_nothing_and_repeat_no_number() {
    let home = home();
    let store = Store::file(&home);
    let ann = store.user("ann");
    backup(&store, "empty").exit(0);
    store.call(&["user", "add", "eve"]).ok();
    let (_, eve) = create_token(&store, "eve");
    let (revoked_id, revoked) = create_token(&store, "ann");
    let service = Service::start(&store);
    let client = service.client(&ann);
    let (kept, ended) = (client.session(), client.session());
    client.ok("PUT", &format!("{kept}/state/k"), &json!(1));
    backup(&store, "full").exit(0);
    client.ok("PUT", &format!("{kept}/state/k"), &json!(2));
    let later = client.ok("PUT", &format!("{kept}/state/later"), &json!(1))["revision"].as_i64().unwrap();
    let revision = client.ok("PUT", &format!("{kept}/state/k"), &json!(3))["revision"].as_i64().unwrap();
    assert!((200..300).contains(&client.send("DELETE", &ended, None).0));
    let session = client.get(&kept)["revision"].as_i64().unwrap();
    store.call(&["user", "token", "revoke", &revoked_id]).ok();
    store.call(&["user", "disable", "eve"]).ok();
    stop(service);
    restore(&store, "empty").exit(0);
    store.call(&["serve", "restore", "full", "--yes", "--keep-tokens"]).ok();

    let service = Service::start(&store);
    assert_eq!(service.client(&revoked).send("GET", "/v1/me", None).0, 401, "a revoked token came back");
    assert_eq!(service.client(&eve).send("GET", "/v1/me", None).0, 401, "a disabled user came back");
    let client = service.client(&ann);
    assert!(client.get(&ended)["ended_ms"].is_number());
    assert!(client.get(&kept)["ended_ms"].is_null(), "the live session stays live");
    assert!(client.get(&kept)["revision"].as_i64().unwrap() > session);
    assert!(client.get(&format!("{kept}/state/k"))["revision"].as_i64().unwrap() > revision);
    let next = client.ok("PUT", &format!("{kept}/state/later"), &json!(2))["revision"].as_i64().unwrap();
    assert!(next > later, "a revision came twice");
}

#[test]
fn restore_onto_a_new_store_revokes_tokens_by_default() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    backup(&store, "copy").exit(0);
    for (name, flag, expected) in [("new.db", None, 401), ("kept.db", Some("--keep-tokens"), 200)] {
        let path = home.path(name).display().to_string();
        let new = Store { home: &home, flags: vec!["--store".to_owned(), path] };
        let call = new.call(&["serve", "restore", "copy", "--yes", "-ojson"]);
        let done = flag.into_iter().fold(call, |call, flag| call.arg(flag)).ok().json();
        assert_eq!(done["kept"], Value::Null);
        assert_eq!(home.path(name).metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let service = Service::start(&new);
        assert_eq!(service.client(&token).send("GET", "/v1/me", None).0, expected, "{name}");
    }
}

#[test]
fn restore_refuses_what_is_not_a_backup_of_a_service() {
    let home = home();
    let store = Store::file(&home);
    store.user("ann");
    crate::start(&home, &[]);
    home.call(&["backup", "own"]).ok();
    home.write("text", "not a database ".repeat(100));
    home.write("empty", "");
    let before = sql(&home.path("service.db"), "SELECT count(*) FROM token");
    for file in ["own", "text", "empty"] {
        let refused = restore(&store, file);
        assert_eq!(refused.code(), "STORE_CORRUPT", "{file}: {}", refused.told());
    }
    restore(&store, "missing").exit(5);
    let asked = store.call(&["serve", "restore", "text", "-ojson"]).run();
    assert_ne!(asked.status(), Some(0));
    backup(&store, "copy").exit(0);
    let unconfirmed = store.call(&["serve", "restore", "copy", "-ojson"]).run().exit(2);
    assert_eq!(unconfirmed.code(), "CONFIRMATION_REQUIRED");
    let inside = store.call(&["serve", "restore", "copy", "--yes", "-ojson"]);
    let id = crate::start(&home, &[]);
    assert_eq!(inside.env("SESSILE_SESSION", id).run().exit(7).code(), "IN_SESSION");
    assert_eq!(sql(&home.path("service.db"), "SELECT count(*) FROM token"), before);
    assert!(beside(&home, "replaced").is_empty());
}

/// Changes a row of a table, and not in its index.
const DAMAGE_INDEX: &str = "
import sqlite3, sys
def run(*statements):
    c = sqlite3.connect(sys.argv[1], isolation_level=None)
    c.execute('PRAGMA writable_schema=ON')
    found = [c.execute(*statement).fetchall() for statement in statements]
    c.close()
    return found[0]
run(['INSERT INTO label VALUES (?, ?, ?, ?)', ['ann', 'k', 'v', 'one']])
row = run(['SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master WHERE name = ?', ['label_session']],
          ['DELETE FROM sqlite_master WHERE name = ?', ['label_session']])[0]
run(['UPDATE label SET session = ?', ['two']])
run(['INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)', row])
";

#[test]
fn backup_with_a_damaged_index_is_refused() {
    let home = home();
    let store = Store::file(&home);
    store.user("ann");
    backup(&store, "copy").exit(0);
    let damage = |file: &str| {
        let done = Command::new("python3").args(["-c", DAMAGE_INDEX]).arg(home.path(file)).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(sql(&home.path(file), "PRAGMA quick_check"), ["ok"]);
    };
    damage("copy");
    let refused = restore(&store, "copy");
    assert_eq!(refused.code(), "STORE_CORRUPT", "{}", refused.told());
    assert!(beside(&home, "replaced").is_empty());
    backup(&store, "good").exit(0);
    damage("service.db");
    let refused = store.call(&["serve", "backup", "other", "-ojson"]).run();
    assert_eq!(refused.code(), "STORE_CORRUPT", "{}", refused.told());
    restore(&store, "good").exit(0);
    assert_eq!(sql(&home.path("service.db"), "PRAGMA integrity_check"), ["ok"]);
}

#[test]
fn backup_with_a_trigger_is_refused() {
    let home = home();
    let store = Store::file(&home);
    store.user("ann");
    for (name, program) in [
        ("trigger", "CREATE TRIGGER x AFTER UPDATE ON token BEGIN UPDATE token SET revoked_ms = NULL; END"),
        ("view", "CREATE VIEW x AS SELECT * FROM token"),
    ] {
        backup(&store, name).exit(0);
        sql(&home.path(name), program);
        let refused = restore(&store, name);
        assert_eq!(refused.code(), "STORE_CORRUPT", "{}", refused.told());
    }
    assert!(beside(&home, "replaced").is_empty());
}

#[test]
fn backup_that_others_can_write_is_refused() {
    let home = home();
    let store = Store::file(&home);
    store.user("ann");
    backup(&store, "copy").exit(0);
    std::fs::set_permissions(home.path("copy"), PermissionsExt::from_mode(0o666)).unwrap();
    let refused = restore(&store, "copy");
    assert_eq!(refused.code(), "FILE_WRITABLE", "{}", refused.told());
    assert!(beside(&home, "replaced").is_empty());
}

#[test]
fn own_backup_refuses_the_store_of_a_service() {
    let home = home();
    let store = Store::file(&home);
    store.user("ann");
    crate::start(&home, &[]);
    let before = std::fs::read(home.path("service.db")).unwrap();
    for (args, hint) in [
        (&["backup", "service.db", "-ojson"][..], "serve backup --store"),
        (&["backup", "restore", "service.db", "--yes", "-ojson"], "serve restore"),
    ] {
        let error = home.call(args).run().exit(6).json_error();
        assert!(error["message"].as_str().unwrap().contains("store of a session service"), "{error}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
    }
    assert_eq!(std::fs::read(home.path("service.db")).unwrap(), before);
    let own = home.path(".local/state/sessile/state.db").display().to_string();
    let refused = home.call(&["serve", "backup", "copy", "--store", &own]).run();
    assert_ne!(refused.status(), Some(0), "{}", refused.told());
}

#[test]
fn postgres_store_is_referred_to_its_own_tools() {
    let home = home();
    for (args, tool) in [
        (&["serve", "backup", "copy", "-ojson"][..], "pg_dump"),
        (&["serve", "restore", "copy", "--yes", "-ojson"], "pg_restore"),
    ] {
        let done = home.call(args).args(&["--store", "postgres://sessile@db/sessile"]).run().exit(2);
        let hint = done.json_error()["hint"].as_str().unwrap().to_owned();
        assert!(hint.contains(tool) && hint.contains("postgres://sessile@db/sessile"), "{hint}");
    }
}

#[test]
fn killed_restore_leaves_the_old_store_or_the_new() {
    let home = home();
    let store = Store::file(&home);
    store.user("ann");
    backup(&store, "copy").exit(0);
    let call = || store.call(&["serve", "restore", "copy", "--yes"]);
    let kills = crate::durability::crash::kills() / 4;
    let mut killer = Killer::new(0x5e55_11e24, [call(), call(), call()]);
    for number in 0..kills {
        let user = format!("u{number}");
        store.call(&["user", "add", &user]).ok();
        let done = killer.kill(call());
        let users = sql(&home.path("service.db"), "SELECT user FROM account ORDER BY user");
        let is_new = users == ["ann"];
        assert!(is_new || (users.contains(&user) && !done), "{users:?}");
        assert_eq!(sql(&home.path("service.db"), "PRAGMA quick_check"), ["ok"]);
    }
    killer.assert_it_was_a_fight(kills);
    for path in beside(&home, "replaced") {
        assert_eq!(sql(&path, "PRAGMA quick_check"), ["ok"]);
    }
}

/// The backup is refused as damaged, and nothing is replaced or left behind.
#[track_caller]
fn restore_is_refused(store: &Store<'_>, home: &Home, what: &str) {
    let before = std::fs::read(home.path("service.db")).unwrap();
    let done = restore(store, "copy");
    assert_eq!(done.code(), "STORE_CORRUPT", "{what}: {}", done.told());
    assert!(done.json_error()["message"].as_str().unwrap().contains("copy"), "{what}: {}", done.told());
    assert!(std::fs::read(home.path("service.db")).unwrap() == before, "{what}: the store was changed");
    assert!(beside(home, "replaced").is_empty(), "{what}: {:?}", beside(home, "replaced"));
}

/// Puts one message of the user `ann` into the store; her token, and the session.
fn with_message(store: &Store) -> (String, String) {
    let token = store.user("ann");
    let service = Service::start(store);
    let client = service.client(&token);
    let session = client.session();
    append(&client, &session, "kept");
    stop(service);
    (token, session)
}

#[test]
fn damaged_backup_is_refused_and_leaves_nothing() {
    let home = home();
    let store = Store::file(&home);
    with_message(&store);
    backup(&store, "whole").exit(0);
    let whole = std::fs::read(home.path("whole")).unwrap();
    for cut in [1, 10, 4000] {
        std::fs::write(home.path("copy"), &whole[..whole.len() - cut]).unwrap();
        restore_is_refused(&store, &home, &format!("{cut} bytes less"));
    }
    for statement in [
        "UPDATE message SET body = 'x'",
        "UPDATE event SET body = '{'",
        "UPDATE token SET scopes = '['",
        "UPDATE session SET labels = 'x'",
        "UPDATE account SET user = char(27) || '[31m'",
        "UPDATE token SET user = ''",
        "UPDATE token SET id = 'x'",
        "UPDATE session SET user = 'a b'",
        "ALTER TABLE message RENAME COLUMN body TO bodx",
        "ALTER TABLE account RENAME COLUMN made_ms TO made_mt",
    ] {
        std::fs::write(home.path("copy"), &whole).unwrap();
        sql(&home.path("copy"), statement);
        restore_is_refused(&store, &home, statement);
    }
}

#[test]
fn damaged_message_is_an_error_and_not_null() {
    let home = home();
    let store = Store::file(&home);
    let (token, session) = with_message(&store);
    sql(&home.path("service.db"), "UPDATE message SET body = 'x'");
    let service = Service::start(&store);
    let (status, answer) = service.client(&token).send("GET", &format!("{session}/messages"), None);
    assert_eq!(status, 500, "{answer}");
}
