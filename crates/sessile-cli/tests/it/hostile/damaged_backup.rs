//! Backups that were cut off or damaged on the way: refused as a whole, and blamed on the backup.

use testkit::Home;

use super::backup::sql;
use super::edited_backup::{STORE, backed_up};
use super::{clean, kept};
/// The backup is refused as damaged, the message names the backup, and nothing is replaced or left behind.
#[track_caller]
fn restore_is_refused(home: &Home, what: &str) {
    let before = kept(home);
    let done = clean(home.call(&["backup", "restore", "copy", "--yes", "-ojson"]).run());
    assert_eq!(done.code(), "STORE_CORRUPT", "{what}: {}", done.told());
    let error = done.json_error();
    assert!(error["message"].as_str().unwrap().starts_with("cannot restore "), "{what}: {error}");
    assert!(error["hint"].as_str().unwrap().contains("nothing was changed"), "{what}: {error}");
    assert!(kept(home) == before, "{what}: something was changed: {}", done.told());
}

#[test]
fn truncated_backup_is_refused() {
    let home = backed_up();
    let whole = std::fs::read(home.path("copy")).unwrap();
    for cut in [1, 10, 100, 4000, 4096, 5000] {
        std::fs::write(home.path("copy"), &whole[..whole.len() - cut]).unwrap();
        restore_is_refused(&home, &format!("{cut} bytes less"));
    }
    std::fs::write(home.path("copy"), &whole).unwrap();
    home.call(&["backup", "restore", "copy", "--yes"]).ok();
}

#[test]
fn truncated_store_is_reported() {
    let home = backed_up();
    // Without its log, as after a copy.
    for log in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(home.path(format!("{STORE}{log}")));
    }
    let bytes = std::fs::read(home.path("copy")).unwrap();
    home.write(STORE, &bytes[..bytes.len() - 10]);
    let done = clean(home.call(&["doctor"]).run()).exit(1);
    assert!(done.stdout().contains("cut off"), "{}", done.told());
}

#[test]
fn json_that_does_not_parse_is_damage() {
    for statement in [
        "UPDATE entry SET value = '{oops'",
        "UPDATE entry SET value = ''",
        "UPDATE session SET labels = 'x'",
        "UPDATE session SET owner = 'x'",
        "UPDATE operation SET effects = '['",
    ] {
        let home = backed_up();
        sql(home.path("copy"), &[statement]);
        restore_is_refused(&home, statement);
        sql(home.path(STORE), &[statement]);
        let done = clean(home.call(&["doctor"]).run()).exit(1);
        assert!(done.stdout().contains("not valid JSON"), "{statement}: {}", done.told());
        clean(home.call(&["doctor", "--repair", "--yes"]).run());
        let done = clean(home.call(&["doctor"]).run());
        assert!(!done.stdout().contains("not valid JSON"), "{statement}: {}", done.told());
        let sessions = home.call(&["session", "list", "-ojson"]).ok().json();
        assert_eq!(sessions[0]["name"], "web", "{statement}");
    }
}

#[test]
fn damaged_value_is_an_error_and_not_null() {
    let home = backed_up();
    sql(home.path(STORE), &["UPDATE entry SET value = '{oops'"]);
    for args in [&["session", "state", "get", "k"][..], &["session", "state", "list"]] {
        let done = clean(home.call(args).args(&["--session", "web", "-ojson"]).run());
        assert_eq!(done.code(), "STORE_CORRUPT", "{}", done.told());
    }
}

#[test]
fn renamed_column_is_damage_of_the_backup() {
    for (column, other) in [
        ("fingerprint", "fingerqrint"),
        ("trusted_ms", "trusted_mt"),
        ("next_message", "next_messagf"),
        ("undone_by", "undone_bz"),
        ("context_id", "context_ie"),
        ("revision   INTEGER", "revision   INTEGES"),
    ] {
        let home = backed_up();
        let mut bytes = std::fs::read(home.path("copy")).unwrap();
        let places: Vec<usize> = (0..bytes.len() - column.len())
            .filter(|at| bytes[*at..].starts_with(column.as_bytes()))
            .collect();
        assert!(!places.is_empty(), "{column}");
        for at in places {
            bytes[at..at + other.len()].copy_from_slice(other.as_bytes());
        }
        std::fs::write(home.path("copy"), &bytes).unwrap();
        restore_is_refused(&home, column);
    }
}

#[test]
fn sequence_of_another_type_is_damage() {
    for statement in [
        "UPDATE sqlite_sequence SET name = x'00ff' WHERE name = 'operation'",
        "UPDATE sqlite_sequence SET name = NULL WHERE name = 'operation'",
        "UPDATE sqlite_sequence SET name = 7 WHERE name = 'operation'",
        "UPDATE sqlite_sequence SET seq = NULL WHERE name = 'operation'",
    ] {
        let home = backed_up();
        sql(home.path("copy"), &[statement]);
        restore_is_refused(&home, statement);
    }
}

#[test]
fn row_that_does_not_fit_is_damage_of_the_backup() {
    let home = backed_up();
    // Two live sessions of one name, in a schema without the index that forbids them.
    sql(
        home.path("copy"),
        &[
            "DROP INDEX session_live_name",
            "CREATE TEMP TABLE twin AS SELECT * FROM session",
            "UPDATE temp.twin SET id = '0199c1d2-7a52-7f31-8a52-6f1f2a9d3b10'",
            "INSERT INTO session SELECT * FROM temp.twin",
        ],
    );
    // A live session of a backup needs its room.
    std::fs::create_dir(home.path(".local/state/sessile/rooms/0199c1d2-7a52-7f31-8a52-6f1f2a9d3b10"))
        .unwrap();
    restore_is_refused(&home, "duplicate name");
}
