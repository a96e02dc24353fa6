//! `sessile undo`: what was done is undone whole, done again by undoing that, and refused where it was changed since.

use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::Value;
use testkit::{Call, Home};

use crate::{home, shown, start};

fn furnished() -> Home {
    let home = home();
    home.write(".config/sessile/config.toml", "# mine\ncontext = \"a\"\nenv.X = \"x\" # why\n");
    for name in ["a", "b"] {
        home.write(format!(".config/sessile/contexts/{name}.toml"), "# kept\n[env]\nA = \"1\"\n");
    }
    home.write("in.toml", "[contexts.imported]\n[contexts.b]\ndescription = \"other\"\n");
    home.write("p/.sessile/config.toml", "env.P = \"p\"\n");
    home.call(&["trust", "p", "--yes"]).ok();
    home.write("q/.sessile/config.toml", "env.Q = \"q\"\n");
    std::fs::create_dir(home.path("d")).unwrap();
    start(&home, &["--name", "work"]);
    home.call(&["session", "state", "set", "k", "1", "--session", "work"]).ok();
    home.call(&["config", "set", "env.S", "s", "--session", "work"]).ok();
    home
}

/// What people see: their files, and what the program says about its state.
fn logical(home: &Home) -> (Vec<Value>, Vec<(PathBuf, Vec<u8>)>) {
    let mut said = Vec::new();
    for dir in ["", "p", "q", "d"] {
        said.push(home.call(&["config", "show", "--source", "-ojson"]).cwd(dir).ok().json());
    }
    said.push(home.call(&["status", "-ojson"]).ok().json());
    said.push(home.call(&["context", "list", "-ojson"]).ok().json());
    for name in ["a", "b", "c", "imported"] {
        let shown = home.call(&["context", "show", name, "-ojson"]).run();
        said.push(if shown.status() == Some(0) { shown.json() } else { Value::Null });
    }
    let sessions = home.call(&["session", "list", "--state=all", "-ojson"]).ok().json();
    let id = sessions[0]["id"].as_str().unwrap();
    said.push(sessions[0]["name"].clone());
    said.push(shown(home, id)["settings"].clone());
    let state = home.call(&["session", "state", "list", "--session", id, "-ojson"]).ok().json();
    let values = state.as_array().unwrap().iter().map(|one| (one["key"].clone(), one["value"].clone()));
    said.extend(values.map(|(key, value)| serde_json::json!([key, value])));
    said.iter_mut().for_each(without_lines);
    // Settings files are changed key by key: what they say is above, and how they say it may differ. A file that was
    // made for the change may be left with nothing in it.
    let whole = |(path, bytes): &(PathBuf, Vec<u8>)| {
        let by_key = ["config.toml", "local.toml", ".gitignore"].iter().any(|name| path.ends_with(name));
        path.is_file() && !by_key && !bytes.is_empty()
    };
    (said, home.tree_of_people().into_iter().filter(whole).collect())
}

/// The number of a line says nothing about what the line says.
fn without_lines(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("line");
            members.values_mut().for_each(without_lines);
        }
        Value::Array(items) => items.iter_mut().for_each(without_lines),
        _ => {}
    }
}

fn last_operation(home: &Home) -> Value {
    home.call(&["history", "--limit", "1", "-ojson"]).ok().json()[0].clone()
}

/// Every command whose operation can be undone, and where it is called.
const UNDOABLE: &[(&str, &[&str])] = &[
    ("", &["config", "set", "env.X", "y", "--global"]),
    ("", &["config", "set", "env.NEW", "y", "--global"]),
    ("", &["config", "set", "lock-timeout", "9s", "--global"]),
    ("p", &["config", "set", "env.L", "y"]),
    ("p", &["config", "set", "env.P", "y", "--project"]),
    ("", &["config", "set", "env.S", "t", "--session", "work"]),
    ("", &["config", "set", "env.T", "t", "--session", "work"]),
    ("", &["config", "unset", "env.X", "--global"]),
    ("", &["config", "unset", "env.S", "--session", "work"]),
    ("", &["context", "create", "c", "--env", "A=1"]),
    ("", &["context", "edit", "b", "--description", "x"]),
    ("", &["context", "rename", "b", "c"]),
    ("", &["context", "rename", "b", "c"]),
    ("", &["context", "delete", "a", "--yes"]),
    ("", &["context", "delete", "b", "--yes"]),
    ("", &["context", "use", "b", "--global"]),
    ("d", &["context", "use", "b", "--dir"]),
    ("q", &["trust", ".", "--yes"]),
    ("p", &["trust", "--revoke", "."]),
    ("", &["session", "rename", "work", "play"]),
    ("", &["session", "state", "set", "k", "2", "--session", "work"]),
    ("", &["session", "state", "set", "new", "2", "--session", "work"]),
    ("", &["session", "state", "unset", "k", "--session", "work"]),
];

fn call(home: &Home, (dir, args): (&str, &[&str])) -> Call {
    home.call(args).cwd(dir)
}

#[test]
fn each_can_be_undone_and_done_again() {
    for one in UNDOABLE {
        let home = furnished();
        let before = logical(&home);
        call(&home, *one).ok();
        let after = logical(&home);
        assert_ne!(before, after, "{one:?} changes something");
        let operation = last_operation(&home);
        assert_eq!(operation["undoable"], true, "{one:?}: {operation}");
        let id = operation["id"].to_string();
        home.call(&["undo", &id]).cwd(one.0).ok();
        assert_eq!(logical(&home), before, "{one:?}");
        home.call(&["undo", &id]).run().exit(6);
        let redo = last_operation(&home)["id"].to_string();
        home.call(&["undo", &redo]).cwd(one.0).ok();
        assert_eq!(logical(&home), after, "{one:?}, done again");
        home.call(&["doctor"]).ok();
    }
}

#[test]
fn later_changed_value_is_not_undone() {
    for (then, what) in [
        (&["config", "set", "env.X", "z", "--global"][..], "env.X"),
        (&["config", "unset", "env.X", "--global"], "env.X"),
    ] {
        let home = furnished();
        home.call(&["config", "set", "env.X", "y", "--global"]).ok();
        let id = last_operation(&home)["id"].to_string();
        home.call(then).ok();
        let before = logical(&home);
        let error = home.call(&["undo", &id, "-ojson"]).run().exit(6).json_error();
        assert_eq!(error["code"], "UNDO_REFUSED");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(what) && message.contains("changed later"), "{message}");
        assert_eq!(logical(&home), before);
    }
    let home = furnished();
    home.call(&["context", "edit", "b", "--description", "x"]).ok();
    let id = last_operation(&home)["id"].to_string();
    home.write(".config/sessile/contexts/b.toml", "# by hand\n");
    home.call(&["undo", &id]).run().exit(6);
    assert_eq!(home.read(".config/sessile/contexts/b.toml"), "# by hand\n");
}

/// A neighbour's line is not in the way, and is not undone with it.
#[test]
fn undo_keeps_other_changes_of_the_file() {
    let home = furnished();
    home.call(&["config", "set", "env.X", "y", "--global"]).ok();
    let id = last_operation(&home)["id"].to_string();
    home.call(&["config", "set", "env.Z", "z", "--global"]).ok();
    home.call(&["undo", &id]).ok();
    assert_eq!(home.call(&["config", "get", "env.X"]).ok().stdout(), "x\n");
    assert_eq!(home.call(&["config", "get", "env.Z"]).ok().stdout(), "z\n");
}

#[test]
fn rename_to_a_reused_name_is_not_undone() {
    let home = furnished();
    home.call(&["session", "rename", "work", "play"]).ok();
    let id = last_operation(&home)["id"].to_string();
    start(&home, &["--name", "work"]);
    home.call(&["undo", &id]).run().exit(6);
    assert_eq!(shown(&home, "play")["state"], "live");
}

#[test]
fn a_value_of_a_session_that_has_ended_is_not_undone() {
    let home = furnished();
    home.call(&["session", "state", "set", "k", "2", "--session", "work"]).ok();
    let id = last_operation(&home)["id"].to_string();
    home.call(&["session", "stop", "work"]).ok();
    let done = home.call(&["undo", &id]).run();
    assert_ne!(done.status(), Some(0));
    assert_eq!(
        home.call(&["history", "-ojson"]).ok().json()[0]["command"],
        "session stop",
        "nothing was recorded"
    );
}

#[test]
fn outside_a_session_and_a_terminal_a_number_is_needed() {
    let home = furnished();
    home.call(&["config", "set", "env.X", "y", "--global"]).ok();
    let error = home.call(&["undo", "-ojson"]).run().exit(2).json_error();
    assert!(error["message"].as_str().unwrap().contains("id"), "{error}");
    home.call(&["undo", "9999"]).run().exit(5);
    assert_eq!(home.call(&["config", "get", "env.X"]).ok().stdout(), "y\n");
}

#[test]
fn undo_in_a_session_selects_its_last_operation() {
    let home = furnished();
    start(&home, &["--name", "other"]);
    let set = |session: &str, value: &str| {
        home.call(&["session", "state", "set", "k", value, "--session", session]).ok();
    };
    set("work", "2");
    set("work", "3");
    set("other", "9");
    let value = |session: &str| {
        home.call(&["session", "state", "get", "k", "--session", session]).ok().stdout().trim().to_owned()
    };
    home.call(&["undo", "--session", "work"]).ok();
    assert_eq!((value("work").as_str(), value("other").as_str()), ("2", "9"));
    home.call(&["undo", "--session", "work"]).ok();
    assert_eq!(value("work"), "1", "one further back");
}

#[test]
fn undo_on_a_terminal_selects_its_last_operation() {
    let home = furnished();
    let (mut one, mut two) = (home.shell(), home.shell());
    one.run("sessile context use a");
    one.run("sessile context use b");
    two.run("sessile context use b");
    assert_eq!(one.run("sessile undo").1, 0);
    assert!(one.run("echo \"[$(sessile context current)]\"").0.contains("[a]"));
    assert!(two.run("echo \"[$(sessile context current)]\"").0.contains("[b]"));
}

#[test]
fn irreversible_operation_has_a_reason() {
    let home = furnished();
    for args in [&["session", "start"][..], &["lock", "acquire", "l"], &["session", "stop", "work"]] {
        home.call(args).ok();
        let operation = last_operation(&home);
        assert_eq!(operation["undoable"], false, "{operation}");
        let error = home.call(&["undo", &operation["id"].to_string(), "-ojson"]).run().exit(6).json_error();
        assert_eq!(error["code"], "UNDO_REFUSED");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever was done, undone in reverse, leaves what there was.
    #[test]
    fn undoing_everything_in_reverse_leads_back_to_the_start(
        steps in proptest::collection::vec(0..UNDOABLE.len(), 1..7)
    ) {
        let home = furnished();
        let before = logical(&home);
        let first = last_operation(&home)["id"].as_i64().unwrap();
        for step in &steps {
            // What an earlier one has made impossible is left out.
            call(&home, UNDOABLE[*step]).run();
        }
        let done = home.call(&["history", "--limit", "100", "-ojson"]).ok().json();
        for operation in done.as_array().unwrap().iter().filter(|one| one["id"].as_i64().unwrap() > first) {
            home.call(&["undo", &operation["id"].to_string()]).ok();
        }
        prop_assert_eq!(logical(&home), before);
    }
}

#[test]
fn undo_of_an_irreversible_operation_picks_no_older_one() {
    let home = furnished();
    let inside = |args: &[&str]| home.call(args).env("SESSILE_SESSION", "work");
    inside(&["session", "state", "set", "z", "5"]).ok();
    inside(&["session", "state", "set", "api_token", "again"]).ok();
    assert_eq!(inside(&["undo", "-ojson"]).run().exit(6).code(), "UNDO_REFUSED");
    assert_eq!(inside(&["session", "state", "get", "z"]).ok().stdout(), "5\n");
}

#[test]
fn value_changed_and_reverted_since_is_not_undone() {
    let home = furnished();
    home.call(&["config", "set", "lock-timeout", "1s", "--global"]).ok();
    let id = last_operation(&home)["id"].to_string();
    home.call(&["config", "set", "lock-timeout", "2s", "--global"]).ok();
    home.call(&["config", "set", "lock-timeout", "1s", "--global"]).ok();
    assert_eq!(home.call(&["undo", &id, "-ojson"]).run().exit(6).code(), "UNDO_REFUSED");
}

#[test]
fn a_session_does_not_undo_what_was_done_outside_it() {
    let home = furnished();
    home.call(&["config", "set", "lock-timeout", "1s", "--global"]).ok();
    let id = last_operation(&home)["id"].to_string();
    let refused = home.call(&["undo", &id, "-ojson"]).env("SESSILE_SESSION", "work").run().exit(7);
    assert_eq!(refused.code(), "IN_SESSION");
    home.call(&["undo", &id]).ok();
}
