//! `sessile user`: who may use the service.

use serde_json::Value;

use super::{Service, Store};
use crate::home;

#[test]
fn user_is_added_listed_and_disabled() {
    let home = home();
    let store = Store::file(&home);
    let none = home.call(&["user", "list"]).ok().stdout();
    assert!(none.contains("no users found"), "{none}");
    let added = store.call(&["user", "add", "ann"]).ok().stdout();
    assert!(added.contains("added user ann"), "{added}");
    let added = store.call(&["user", "add", "bob", "--output", "json"]).ok().json();
    assert_eq!(added["user"], "bob");
    store.call(&["user", "disable", "bob"]).ok();
    let listed = store.call(&["user", "list", "--output", "json"]).ok().json();
    let users: Vec<(&str, bool)> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|user| (user["user"].as_str().unwrap(), user["disabled_at"].is_string()))
        .collect();
    assert_eq!(users, [("ann", false), ("bob", true)]);
    let text = store.call(&["user", "list"]).ok().stdout();
    assert!(text.starts_with("USER") && text.contains("ann") && text.contains("bob"), "{text}");
    let undone = store.call(&["user", "disable", "bob", "--undo", "--output", "json"]).ok().json();
    assert_eq!((undone["user"].as_str(), undone["disabled"].as_bool()), (Some("bob"), Some(false)));
}

#[test]
fn missing_or_existing_user_or_token_has_an_error_code() {
    let home = home();
    let store = Store::file(&home);
    store.call(&["user", "add", "ann"]).ok();
    for (words, code) in [
        (&["user", "add", "ann"][..], "USER_EXISTS"),
        (&["user", "disable", "eve"], "USER_NOT_FOUND"),
        (&["user", "token", "create", "eve"], "USER_NOT_FOUND"),
        (&["user", "token", "list", "eve"], "USER_NOT_FOUND"),
        (&["user", "token", "revoke", "0199c1d2-7a52-7f31-8a52-6f1f2a9d3b10"], "TOKEN_NOT_FOUND"),
        (&["user", "add", "no such/name"], "USAGE"),
    ] {
        let done = store.call(words).args(&["--output", "json"]).run();
        assert_ne!(done.status(), Some(0), "{words:?}");
        assert_eq!(done.code(), code, "{words:?}: {}", done.told());
        let text = store.call(words).run();
        assert!(text.stderr().starts_with("error: ") && text.stdout().is_empty(), "{}", text.told());
    }
}

#[test]
fn token_is_printed_once_listed_without_secret_and_revoked() {
    let home = home();
    let store = Store::file(&home);
    store.call(&["user", "add", "ann"]).ok();
    let made = store.call(&["user", "token", "create", "ann"]).ok();
    let first = made.stdout().trim().to_owned();
    assert!(first.starts_with("sst_") && first.len() > 40, "{first}");
    assert!(made.stderr().contains("not printed again"), "{}", made.told());
    let words = ["user", "token", "create", "ann", "--scope", "read", "--expires", "90d", "--output", "json"];
    let second = store.call(&words).ok().json();
    assert_eq!(second["scopes"], serde_json::json!(["read"]));
    assert!(second["expires_at"].is_string(), "{second}");
    let secret = second["token"].as_str().unwrap();
    let (listed, text) = (
        store.call(&["user", "token", "list", "ann", "-ojson"]),
        store.call(&["user", "token", "list", "ann"]),
    );
    let (listed, text) = (listed.ok(), text.ok().stdout());
    for told in [listed.stdout(), text.clone()] {
        assert!(!told.contains("sst_") && !told.contains(secret), "{told}");
    }
    let ids: Vec<Value> = listed.json().as_array().unwrap().iter().map(|token| token["id"].clone()).collect();
    assert_eq!(ids.len(), 2, "{text}");
    assert!(ids.contains(&second["id"]), "{text}");

    let service = Service::start(&store);
    let (whole, reader) = (service.client(&first), service.client(secret));
    let session = whole.session();
    assert_eq!(reader.send("GET", &session, None).0, 200);
    let said = serde_json::json!({ "messages": ["hi"] });
    assert_eq!(
        reader.send("POST", &format!("{session}/messages"), Some(&said)).0,
        403,
        "the token has the scope read only"
    );
    store.call(&["user", "token", "revoke", second["id"].as_str().unwrap()]).ok();
    assert_eq!(reader.send("GET", &session, None).0, 401, "the token was revoked");
    assert_eq!(whole.send("GET", &session, None).0, 200, "and the other was not");
    store.call(&["user", "disable", "ann"]).ok();
    assert_eq!(whole.send("GET", &session, None).0, 401, "the user is disabled");
    store.call(&["user", "disable", "ann", "--undo"]).ok();
    assert_eq!(whole.send("GET", &session, None).0, 200, "the enabled user's session still exists");
}

#[test]
fn audit_log_is_listed() {
    let home = home();
    let store = Store::file(&home);
    assert!(home.call(&["user", "audit"]).ok().stdout().contains("no audit entries found"));
    let (ann, _) = (store.user("ann"), store.user("bob"));
    let service = Service::start(&store);
    let session = service.client(&ann).session();
    service.client(&ann).ok("POST", "/v1/locks/deploy", &serde_json::json!({ "ttl_ms": 1000 }));
    let listed = store.call(&["user", "audit", "-ojson"]).ok().json();
    assert_eq!((&listed[0]["action"], &listed[0]["subject"]), (&"ask".into(), &"deploy".into()));
    assert!(listed[1]["subject"].is_null());
    assert!(store.call(&["user", "audit"]).ok().stdout().contains(" deploy "));
    let listed =
        store.call(&["user", "audit", "-ojson", "--cursor", listed[0]["id"].as_str().unwrap()]).ok().json();
    let told: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["user"].as_str().unwrap(), item["action"].as_str().unwrap()))
        .collect();
    let expected = [
        ("ann", "start_session"),
        ("bob", "token.create"),
        ("bob", "user.add"),
        ("ann", "token.create"),
        ("ann", "user.add"),
    ];
    assert_eq!(told, expected);
    assert!(session.ends_with(listed[0]["session"].as_str().unwrap()));
    let cursor = listed[0]["id"].as_str().unwrap();
    let next =
        store.call(&["user", "audit", "ann", "--limit", "1", "-ojson", "--cursor", cursor]).ok().json();
    assert_eq!(next, serde_json::json!([listed[3]]));
    let text = store.call(&["user", "audit", "ann"]).ok().stdout();
    assert!(text.starts_with("AT") && text.lines().count() == 5 && !text.contains("bob"), "{text}");
    let none = store.call(&["user", "audit", "eve", "-ojson"]).run().exit(5);
    assert_eq!(none.code(), "USER_NOT_FOUND", "{}", none.told());
}

#[test]
fn missing_store_is_created_only_by_serve_and_user_add() {
    let home = home();
    let store = Store::file(&home);
    for words in [
        &["user", "list"][..],
        &["user", "audit"],
        &["user", "disable", "ann"],
        &["user", "token", "create", "ann"],
        &["user", "approve", "BCDF-GHJK", "--deny"],
    ] {
        let done = store.call(words).args(&["-ojson"]).run().exit(5);
        assert_eq!(done.code(), "FILE_NOT_FOUND", "{words:?}: {}", done.told());
        assert!(!home.path("service.db").exists(), "{words:?}");
    }
    store.call(&["user", "add", "ann"]).ok();
    store.call(&["user", "list"]).ok();
}

#[test]
fn refused_database_login_is_reported() {
    let (server, home) = (testkit::Postgres::shared(), home());
    let database = server.database();
    let wrong = home.write("wrong", "not it\n").display().to_string();
    let mut store = Store::postgres(&home, &database.url());
    let right = std::mem::replace(&mut store.flags[3], wrong);
    let done = store.call(&["user", "list", "-ojson"]).run().exit(8);
    assert_eq!(done.code(), "CREDENTIAL_REJECTED", "{}", done.told());
    store.flags[3] = right;
    store.flags[1].push_str("?sslmode=perhaps");
    let done = store.call(&["user", "list", "-ojson"]).run().exit(2);
    assert!(done.told().contains("sslmode cannot be"), "{}", done.told());
}

#[test]
fn store_problem_is_reported_once_with_a_hint() {
    let (server, home) = (testkit::Postgres::shared(), home());
    let database = server.database();
    let mut store = Store::postgres(&home, &database.url());
    let url = store.flags[1].clone();
    store.flags[1].push_str("?sslmode=require");
    let done = store.call(&["user", "list"]).run().exit(2);
    let expected = "error: --store: the database does not support TLS, but sslmode requires it: enable TLS there, or remove sslmode on \
                    a trusted network\n";
    assert_eq!(done.stderr(), expected);
    store.flags[1] = url;
    store.flags.truncate(2);
    let done = store.call(&["user", "list"]).run().exit(8);
    let expected = "error: the service's store requires a password\n\
                    hint: put the password into a file and pass --store-password-file FILE\n";
    assert_eq!(done.stderr(), expected);

    let store = Store::file(&home);
    let path = home.path("service.db").display().to_string();
    home.write("service.db", "name,age\nann,30\n");
    let done = store.call(&["user", "list"]).run().exit(2);
    assert_eq!(done.stderr(), format!("error: --store: {path} is not a store: not an SQLite database\n"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "name,age\nann,30\n");
    std::fs::remove_file(&path).unwrap();
    store.user("ann");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100..].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let done = store.call(&["user", "list"]).run().exit(1);
    let expected = format!("error: the service's store failed: {path} is damaged: ");
    assert!(
        done.stderr().starts_with(&expected) && !done.told().contains("state database"),
        "{}",
        done.told()
    );
    assert_eq!(store.call(&["user", "list", "-ojson"]).run().exit(1).code(), "STORE");
}

#[test]
fn store_files_contain_no_token() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let service = Service::start(&store);
    let ann = service.client(&token);
    ann.ok("POST", &format!("{}/messages", ann.session()), &serde_json::json!({ "messages": ["a canary"] }));
    let secret = token.strip_prefix("sst_").unwrap();
    let mut said = false;
    for (path, content) in home.tree() {
        let has = |text: &str| content.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(!has(secret), "{}", path.display());
        said |= has("a canary");
    }
    assert!(said, "the search covers the store's files");
}

#[test]
fn password_in_the_store_address_is_refused() {
    let home = home();
    for store in ["postgres://ann:hunter2@localhost/db", "postgres://localhost/db?user=ann&password=hunter2"]
    {
        for words in [&["user", "list"][..], &["serve", "--listen", "127.0.0.1:0"]] {
            let done = home.call(words).args(&["--store", store, "--output", "json"]).run();
            assert_eq!(done.code(), "SECRET_REFUSED", "{}", done.told());
            assert!(!done.told().contains("hunter2"), "{}", done.told());
        }
    }
}

#[test]
fn default_store_that_others_can_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;

    let home = home();
    home.call(&["user", "add", "ann"]).ok();
    let dir = home.path(".local/state/sessile/service");
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&dir, 0o777);
    assert_eq!(home.call(&["user", "list", "-ojson"]).run().exit(7).code(), "FILE_WRITABLE");
    mode(&dir, 0o700);
    home.call(&["user", "list"]).ok();
    let log = dir.join("service.db-wal");
    home.write(".local/state/sessile/service/service.db-wal", "");
    mode(&log, 0o666);
    assert_eq!(home.call(&["user", "list", "-ojson"]).run().exit(7).code(), "FILE_WRITABLE");
}
