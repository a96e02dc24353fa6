//! Numbers, names and paths in a backup that was edited.

use testkit::Home;

use super::backup::sql;
use super::{clean, kept};
use crate::{home, live, start};

pub(super) const STORE: &str = ".local/state/sessile/state.db";

/// A home with a session `web` that has the value `k`, one operation to undo, and a backup `copy`.
pub(super) fn backed_up() -> Home {
    let home = home();
    start(&home, &["--name", "web"]);
    home.call(&["session", "state", "set", "k", "1", "--session", "web"]).ok();
    home.call(&["context", "create", "a"]).ok();
    home.call(&["backup", "copy"]).ok();
    home
}

/// The backup is refused as damaged, and nothing is replaced.
#[track_caller]
fn restore_is_refused(home: &Home) {
    let before = kept(home);
    let done = clean(home.call(&["backup", "restore", "copy", "--yes", "-ojson"]).run());
    assert_eq!(done.code(), "STORE_CORRUPT", "{}", done.told());
    assert!(kept(home) == before, "something was changed: {}", done.told());
}

/// The store is reported as damaged and repaired; writing works afterwards.
#[track_caller]
fn store_is_repaired(home: &Home) {
    let done = clean(home.call(&["doctor"]).run()).exit(1);
    assert!(done.stdout().contains("state.db"), "{}", done.told());
    clean(home.call(&["doctor", "--repair", "--yes"]).run());
    clean(home.call(&["session", "start", "--name", "after"]).ok());
    home.call(&["config", "set", "output", "text", "--global"]).ok();
    let done = clean(home.call(&["doctor"]).run());
    assert!(
        !done.stdout().contains("STORE_CORRUPT") && !done.stdout().contains("state.db:"),
        "{}",
        done.told()
    );
}

#[test]
fn exhausted_number_is_damage() {
    for statement in [
        "UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'operation'",
        "UPDATE sqlite_sequence SET seq = 9223372036854770000 WHERE name = 'operation'",
        "UPDATE sqlite_sequence SET seq = -5 WHERE name = 'operation'",
        "INSERT INTO sqlite_sequence VALUES ('ticket', 9223372036854775807)",
        "UPDATE sqlite_sequence SET seq = 'many' WHERE name = 'operation'",
        "UPDATE operation SET id = 9223372036854775807 WHERE id = (SELECT max(id) FROM operation)",
        "UPDATE entry SET revision = 9223372036854775807",
        "UPDATE session SET next_message = 9223372036854775807",
    ] {
        let home = backed_up();
        sql(home.path("copy"), &[statement]);
        restore_is_refused(&home);
        sql(home.path(STORE), &[statement]);
        store_is_repaired(&home);
    }
}

#[test]
fn exhausted_number_is_not_reported_as_a_full_disk() {
    let home = backed_up();
    sql(home.path(STORE), &["UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'operation'"]);
    let done = clean(home.call(&["session", "start", "--name", "b", "-ojson"]).run());
    assert_eq!(done.code(), "STORE_CORRUPT", "{}", done.told());
    // The damaged store was moved aside, and what it held was saved.
    home.call(&["session", "start", "--name", "c"]).ok();
    assert_eq!(live(&home).len(), 2);
}

#[test]
fn session_id_that_is_not_one_is_damage() {
    for id in ["..", "", "web", "../../x", "0199C1D2-7A52-7F31-8A52-6F1F2A9D3B10"] {
        let home = backed_up();
        sql(home.path("copy"), &[&format!("UPDATE session SET id = '{id}'")]);
        restore_is_refused(&home);
    }
}

#[test]
fn column_name_that_is_not_utf8_is_damage() {
    for column in
        ["fingerprint", "trusted_ms", "next_message", "undone_by", "check_ms", "context_id", "revision"]
    {
        let home = backed_up();
        let mut bytes = std::fs::read(home.path("copy")).unwrap();
        let places: Vec<usize> = (0..bytes.len() - column.len())
            .filter(|at| bytes[*at..].starts_with(column.as_bytes()))
            .collect();
        assert!(!places.is_empty(), "{column}");
        places.into_iter().for_each(|at| bytes[at + 2] = 0xff);
        std::fs::write(home.path("copy"), &bytes).unwrap();
        restore_is_refused(&home);
        home.write(STORE, &bytes);
        for args in [&["session", "list"][..], &["trust", "--list"], &["history"]] {
            clean(home.call(args).run());
        }
        store_is_repaired(&home);
    }
}

#[test]
fn extreme_times_of_a_session_do_not_panic() {
    for column in ["started_boot_ms", "started_awake_ms", "started_ms", "idle_ms", "max_ms", "check_ms"] {
        for value in ["-9223372036854775808", "9223372036854775807"] {
            let home = backed_up();
            sql(home.path("copy"), &[&format!("UPDATE session SET {column} = {value}")]);
            home.call(&["backup", "restore", "copy", "--yes"]).ok();
            for args in [
                &["session", "list", "--state=all"][..],
                &["session", "show", "web"],
                &["session", "gc"],
                &["session", "export", "web"],
                &["status", "--session", "web"],
                &["session", "start", "--name", "n"],
                &["doctor"],
                &["session", "stop", "web"],
                &["session", "clear", "--all", "--yes"],
            ] {
                clean(home.call(args).run());
            }
        }
    }
}

#[test]
fn extreme_numbers_in_the_store_do_not_panic() {
    let home = home();
    home.write(".config/sessile/contexts/prod.toml", "guard = \"approval\"\n");
    start(&home, &["--name", "web"]);
    home.call(&["session", "state", "set", "k", "1", "--session", "web"]).ok();
    home.call(&["lock", "acquire", "l", "--session", "web"]).run();
    for value in ["-9223372036854775808", "9223372036854775807"] {
        for statement in [
            format!("UPDATE entry SET revision = {value}"),
            format!("UPDATE session SET next_message = {value}"),
            format!("UPDATE operation SET at_ms = {value}"),
            format!("UPDATE ticket SET asked_ms = {value}, held_ms = {value}, expires_ms = {value}, expires_boot_ms = {value}"),
            format!(
                "INSERT INTO approval (context, granted_ms, expires_ms, boot, expires_boot_ms, granted_by, terminal, with_pin)
                 VALUES ('prod', {value}, {value}, '', {value}, 'ann', '', 0)"
            ),
            format!(
                "INSERT OR REPLACE INTO pin (id, hash, failures, failed_ms, boot, failed_boot_ms)
                 VALUES (1, 'x', {value}, {value}, '', {value})"
            ),
        ] {
            sql(home.path(STORE), &[&statement]);
            for args in [
                &["session", "state", "set", "k", "2", "--session", "web"][..],
                &["session", "state", "list", "--session", "web"],
                &["session", "show", "web"],
                &["history"],
                &["lock", "list"],
                &["lock", "acquire", "l", "--timeout", "0", "--session", "web"],
                &["context", "approve", "--list"],
                &["context", "current", "--check", "--context", "prod"],
                &["conversation", "list"],
            ] {
                clean(home.call(args).run());
            }
        }
    }
}

#[test]
fn undo_writes_only_settings_and_context_files() {
    let home = backed_up();
    home.write(".bashrc", "# mine\n");
    home.write(".config/sessile/tools/x.toml", "# mine\n");
    home.write(".config/other.toml", "# mine\n");
    for dir in [".ssh", "repository"] {
        std::fs::create_dir(home.path(dir)).unwrap();
    }
    let id = crate::history(&home)[0]["id"].to_string();
    for (path, after) in [
        (".bashrc", "\"# mine\\n\""),
        (".ssh/authorized_keys", "null"),
        (".config/sessile/contexts/../../../.bashrc", "\"# mine\\n\""),
        (".config/sessile/../other.toml", "\"# mine\\n\""),
        (".config/sessile/tools/x.toml", "\"# mine\\n\""),
        (".sessile/../.bashrc", "\"# mine\\n\""),
        (".sessile/hooks/x.toml", "null"),
        // The directories are not projects.
        ("repository/.sessile/config.toml", "null"),
        ("repository/.sessile/contexts/x.toml", "null"),
        ("missing/.sessile/local.toml", "null"),
    ] {
        let before = home.tree_of_people();
        let path = home.path(path).display().to_string();
        let effect = format!(
            "[{{\"kind\":\"text\",\"path\":\"{path}\",\"before\":\"evil = 1\\n\",\"after\":{after}}}]"
        );
        sql(home.path(STORE), &[&format!("UPDATE operation SET effects = '{effect}' WHERE id = {id}")]);
        let done = clean(home.call(&["undo", &id, "-ojson"]).run());
        assert_eq!(done.code(), "UNDO_REFUSED", "{path}: {}", done.told());
        assert!(home.tree_of_people() == before, "{path} was written");

        // The same as an operation that its process left half done.
        let half = format!(
            "[{{\"kind\":\"text\",\"path\":\"{path}\",\"before\":\"evil = 1\\n\",\"after\":{after}}},\
              {{\"kind\":\"session_name\",\"session\":\"gone\",\"before\":null,\"after\":\"x\"}}]"
        );
        let leave = format!(
            "UPDATE operation SET effects = '{half}', state = 'intent', process = 'null' WHERE id = {id}"
        );
        sql(home.path(STORE), &[&leave]);
        home.write(format!(".local/state/sessile/intents/{id}"), "");
        clean(home.call(&["config", "set", "env.A", "1", "--session", "web"]).ok());
        assert!(home.tree_of_people() == before, "{path} was written");
        let state = sql(home.path(STORE), &[&format!("SELECT state FROM operation WHERE id = {id}")]);
        assert_eq!(state, ["unknown"]);
    }
}

#[test]
fn undo_writes_through_no_link_out_of_a_project() {
    let home = backed_up();
    for dir in ["linked", "target"] {
        std::fs::create_dir(home.path(dir)).unwrap();
    }
    std::os::unix::fs::symlink("../target", home.path("linked/.sessile")).unwrap();
    let id = crate::history(&home)[0]["id"].to_string();
    let path = home.path("linked/.sessile/config.toml").display().to_string();
    let effect =
        format!("[{{\"kind\":\"text\",\"path\":\"{path}\",\"before\":\"evil = 1\\n\",\"after\":null}}]");
    sql(home.path(STORE), &[&format!("UPDATE operation SET effects = '{effect}' WHERE id = {id}")]);
    let done = clean(home.call(&["undo", &id, "-ojson"]).run());
    assert_eq!(done.code(), "PROJECT_FILE_UNSAFE", "{}", done.told());
    assert_eq!(std::fs::read_dir(home.path("target")).unwrap().count(), 0);
}

#[test]
fn undo_in_a_project_that_exists_makes_its_files_again() {
    let home = home();
    home.write("p/.sessile/config.toml", "output = \"text\"\n");
    home.call(&["context", "create", "a", "--project"]).cwd("p").ok();
    home.call(&["context", "delete", "a", "--yes"]).cwd("p").ok();
    let deleted = crate::history(&home)[0]["id"].to_string();
    std::fs::remove_dir_all(home.path("p/.sessile/contexts")).unwrap();
    home.call(&["undo", &deleted]).ok();
    assert!(home.path("p/.sessile/contexts/a.toml").exists());
}

#[test]
fn undo_with_a_config_file_finds_it_by_any_path() {
    let home = home();
    home.write("d/ci.toml", "");
    home.call(&["config", "set", "env.A", "1", "--config", "d/ci.toml"]).ok();
    let listed = home.call(&["history", "--config", "d/ci.toml", "-ojson"]).ok().json();
    let id = listed[0]["id"].to_string();
    home.call(&["undo", &id, "--config", "./ci.toml"]).cwd("d").ok();
    assert!(!home.read("d/ci.toml").contains("A"));
    let redo = (id.parse::<i64>().unwrap() + 1).to_string();
    home.call(&["undo", &redo, "--config", home.path("d/ci.toml").to_str().unwrap()]).ok();
    assert!(home.read("d/ci.toml").contains("A"));
}

/// Plants an operation in a backup, and restores it. Returns the operation's id.
fn restored_operation(home: &Home, effects: &serde_json::Value) -> String {
    home.call(&["backup", "copy"]).ok();
    let plant = format!(
        "INSERT INTO operation (at_ms, user, command, subject, effects, state, process) \
         SELECT at_ms, user, 'trust', 'p', '{effects}', 'done', '' FROM operation LIMIT 1"
    );
    let id = sql(home.path("copy"), &[&plant, "SELECT max(id) FROM operation"]).remove(0);
    home.call(&["backup", "restore", "copy", "--yes"]).ok();
    id
}

/// A home with a project that sets a variable, and that was trusted at least once.
fn project() -> Home {
    let home = home();
    home.write("p/.sessile/config.toml", "env.A = \"1\"\n");
    home.call(&["trust", "--yes"]).cwd("p").ok();
    home
}

/// What a command in the project has in a variable that the project sets.
fn variable_in_project(home: &Home) -> String {
    home.call(&["run", "--", "sh", "-c", "echo $A"]).cwd("p").run().stdout().trim().to_owned()
}

#[test]
fn undo_of_a_restored_operation_grants_no_trust() {
    let home = project();
    assert_eq!(variable_in_project(&home), "1");
    let fingerprint = sql(home.path(STORE), &["SELECT fingerprint FROM trusted"]).remove(0);
    home.call(&["trust", "--revoke"]).cwd("p").ok();
    let path = home.path("p/.sessile/config.toml").canonicalize().unwrap();
    let effects =
        serde_json::json!([{ "kind": "trust", "path": path, "before": [fingerprint], "after": [] }]);
    let id = restored_operation(&home, &effects);
    let done = clean(home.call(&["undo", &id, "-ojson"]).run());
    assert_eq!(done.code(), "UNDO_REFUSED", "{}", done.told());
    assert_eq!(variable_in_project(&home), "");
}

#[test]
fn undo_of_an_operation_that_both_sides_have_grants_its_trust() {
    let home = project();
    home.call(&["trust", "--revoke"]).cwd("p").ok();
    let revoked = crate::history(&home)[0]["id"].to_string();
    home.call(&["backup", "copy"]).ok();
    home.call(&["backup", "restore", "copy", "--yes"]).ok();
    home.call(&["undo", &revoked]).ok();
    assert_eq!(variable_in_project(&home), "1");
}

#[test]
fn undo_of_a_restored_operation_writes_untrusted_content() {
    let home = project();
    let path = home.path("p/.sessile/config.toml");
    let effects = serde_json::json!([{
        "kind": "text", "path": path, "before": "env.A = \"evil\"\n", "after": "env.A = \"1\"\n",
    }]);
    let id = restored_operation(&home, &effects);
    assert_eq!(variable_in_project(&home), "1");
    home.call(&["undo", &id]).ok();
    assert_eq!(home.read("p/.sessile/config.toml"), "env.A = \"evil\"\n");
    assert_eq!(variable_in_project(&home), "");
}

#[test]
fn forgotten_or_removed_session_stays_ended() {
    let home = home();
    home.call(&["backup", "empty"]).run();
    start(&home, &["--name", "first"]);
    home.call(&["backup", "before"]).ok();
    let id = start(&home, &["--name", "web"]);
    home.call(&["backup", "live"]).ok();
    home.call(&["session", "stop", "web"]).ok();
    // The store forgets it, once by a restore of what was before it, and once by a command.
    home.call(&["backup", "restore", "before", "--yes"]).ok();
    home.call(&["backup", "restore", "live", "--yes"]).ok();
    assert!(!live(&home).contains(&id));
    home.call(&["session", "clear", &id, "--yes"]).ok();
    home.call(&["backup", "restore", "live", "--yes"]).ok();
    assert!(!live(&home).contains(&id));
    assert_eq!(live(&home).len(), 1, "the first session has its room and stays live");
}

#[test]
fn revisions_grow_across_two_restores() {
    let home = home();
    start(&home, &["--name", "first"]);
    home.call(&["backup", "before"]).ok();
    start(&home, &["--name", "web"]);
    let set = |key: &str, value: &str| {
        let done =
            home.call(&["session", "state", "set", key, value, "--session", "web", "-ojson"]).ok().json();
        done["revision"].as_i64().unwrap()
    };
    set("k", "1");
    home.call(&["backup", "live"]).ok();
    let (known, new) = (set("k", "2").max(set("k", "3")), set("later", "1").max(set("later", "2")));
    home.call(&["backup", "restore", "before", "--yes"]).ok();
    home.call(&["backup", "restore", "live", "--yes"]).ok();
    assert!(set("k", "4") > known, "a revision came twice");
    assert!(set("later", "3") > new, "a revision came twice");
}

#[test]
fn undo_in_a_history_with_a_circle_is_refused() {
    let home = home();
    for context in ["one", "two"] {
        home.call(&["context", "create", context]).ok();
    }
    home.call(&["backup", "copy"]).ok();
    for circle in ["UPDATE operation SET undone_by = id", "UPDATE operation SET undone_by = 3 - id"] {
        sql(home.path("copy"), &[circle]);
        home.call(&["backup", "restore", "copy", "--yes"]).ok();
        let done = clean(home.call(&["undo", "2", "-ojson"]).run());
        assert_eq!(done.code(), "UNDO_REFUSED", "{circle}: {}", done.told());
    }
}
