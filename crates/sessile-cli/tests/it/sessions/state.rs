//! `sessile session state`: small values with revisions that never go back.

use serde_json::{Value, json};
use testkit::{CallResult, Home};

use crate::{home, start};

fn state(home: &Home, id: &str, args: &[&str]) -> CallResult {
    home.call(&["session", "state"]).args(args).args(&["--session", id, "-ojson"]).run()
}

#[test]
fn values_are_set_read_listed_and_removed() {
    let home = home();
    let id = start(&home, &[]);
    assert_eq!(state(&home, &id, &["list"]).exit(0).stdout(), "[]\n");
    for (key, text, value) in [
        ("number", "7", json!(7)),
        ("text", "seven", json!("seven")),
        ("object", "{\"a\":[1,null]}", json!({ "a": [1, null] })),
        ("null", "null", Value::Null),
        ("with spaces and ü", "\"7\"", json!("7")),
    ] {
        assert_eq!(state(&home, &id, &["set", key, text]).exit(0).json()["new"], value);
        assert_eq!(state(&home, &id, &["get", key]).exit(0).json()["value"], value);
    }
    let listed = state(&home, &id, &["list"]).exit(0).json();
    let keys: Vec<&str> = listed.as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["null", "number", "object", "text", "with spaces and ü"]);
    let some = state(&home, &id, &["list", "text", "missing", "number"]).exit(0).json();
    assert_eq!(
        (&some[0]["key"], &some[1]["key"], &some[2]),
        (&json!("number"), &json!("text"), &Value::Null)
    );
    assert_eq!(state(&home, &id, &["unset", "text"]).exit(0).json()["old"], "seven");
    assert_eq!(state(&home, &id, &["get", "text"]).exit(5).code(), "ENTRY_NOT_FOUND");
    state(&home, &id, &["unset", "text"]).exit(5);
}

#[test]
fn a_value_comes_from_a_file_or_standard_input_as_it_is() {
    let home = home();
    let id = start(&home, &[]);
    let set = |key: &str, file: &str, stdin: &str| {
        let call = home.call(&["session", "state", "set", key, "--file", file, "--session", &id]);
        call.args(&["--output", "json"]).stdin(stdin).run()
    };
    // With its layout it is larger than what is kept of it.
    home.write("plan.json", format!("{{\n \"step\": {}2 }}\n", " ".repeat(70 * 1024)));
    home.write("notes.txt", " two\nlines \n");
    assert_eq!(set("plan", "plan.json", "").exit(0).json()["new"], json!({ "step": 2 }));
    assert_eq!(set("notes", "notes.txt", "").exit(0).json()["new"], " two\nlines \n");
    assert_eq!(set("piped", "-", "[1, 2]\n").exit(0).json()["new"], json!([1, 2]));
    assert_eq!(set("piped", "-", "-1 x").exit(0).json()["new"], "-1 x");
    assert_eq!(set("empty", "-", "").exit(0).json()["new"], "");
    let largest = "x".repeat(64 * 1024 - 2);
    assert_eq!(set("large", "-", &largest).exit(0).json()["new"], largest.as_str());
    assert_eq!(set("large", "-", &format!("{largest}x")).exit(2).code(), "INVALID_VALUE");
    assert_eq!(set("large", "-", &"x".repeat(2 << 20)).exit(1).code(), "FILE_TOO_LARGE");
    assert_eq!(set("none", "missing.json", "").exit(5).code(), "FILE_NOT_FOUND");
    assert_eq!(set("none", ".", "").code(), "NOT_A_FILE");
    state(&home, &id, &["get", "none"]).exit(5);
}

#[test]
fn value_comes_from_one_source_only() {
    let home = home();
    let id = start(&home, &[]);
    home.write("value", "1");
    for args in [&["k"][..], &["k", "1", "--file", "value"], &["k", "--file", "value", "1"]] {
        let call = home.call(&["--output", "json", "--session", &id, "session", "state", "set"]);
        assert_eq!(call.args(args).run().exit(2).code(), "USAGE", "{args:?}");
    }
    assert_eq!(state(&home, &id, &["list"]).stdout(), "[]\n");
}

#[test]
fn a_revision_never_goes_back() {
    let home = home();
    let id = start(&home, &[]);
    let set = |value: &str| state(&home, &id, &["set", "k", value]).exit(0).json()["revision"].clone();
    assert_eq!((set("a"), set("b")), (json!(1), json!(2)));
    state(&home, &id, &["unset", "k"]).exit(0);
    assert_eq!(set("c"), json!(4), "the removal counted");
    state(&home, &id, &["unset", "k"]).exit(0);
    let made = state(&home, &id, &["set", "k", "d", "--if-revision", "0"]).exit(0).json();
    assert_eq!(made["revision"], 6);
}

#[test]
fn unexpected_revision_is_a_conflict() {
    let home = home();
    let id = start(&home, &[]);
    state(&home, &id, &["set", "k", "1", "--if-revision", "0"]).exit(0);
    for args in [
        &["set", "k", "2", "--if-revision", "0"][..],
        &["set", "k", "2", "--if-revision", "2"],
        &["unset", "k", "--if-revision", "7"],
        &["set", "new", "2", "--if-revision", "1"],
        &["set", "k", "2", "--if-revision=-1"],
    ] {
        assert_eq!(state(&home, &id, args).exit(6).code(), "REVISION_CONFLICT", "{args:?}");
    }
    assert_eq!(state(&home, &id, &["list"]).json(), json!([{ "key": "k", "value": 1, "revision": 1 }]));
    state(&home, &id, &["unset", "k", "--if-revision", "1"]).exit(0);
}

#[test]
fn of_many_that_expect_the_same_revision_one_succeeds() {
    let home = home();
    let id = start(&home, &[]);
    let statuses: Vec<Option<i32>> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..10)
            .map(|number| {
                let (home, id) = (&home, &id);
                scope.spawn(move || {
                    state(home, id, &["set", "k", &number.to_string(), "--if-revision", "0"]).status()
                })
            })
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == Some(0)).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == Some(6)).count(), 9, "{statuses:?}");
}

#[test]
fn oversized_value_or_invalid_key_is_refused() {
    let home = home();
    let id = start(&home, &[]);
    let large = "x".repeat(64 * 1024);
    state(&home, &id, &["set", "k", &large]).exit(2);
    state(&home, &id, &["set", "", "1"]).exit(2);
    state(&home, &id, &["set", "a\nb", "1"]).exit(2);
    state(&home, &id, &["set", &"k".repeat(257), "1"]).exit(2);
    assert_eq!(state(&home, &id, &["list"]).stdout(), "[]\n");
}

#[test]
fn sessions_do_not_see_each_others_values_or_settings() {
    let home = home();
    let (a, b) = (start(&home, &[]), start(&home, &[]));
    state(&home, &a, &["set", "k", "1"]).exit(0);
    home.call(&["config", "set", "env.A", "in a"]).env("SESSILE_SESSION", &a).ok();
    state(&home, &b, &["get", "k"]).exit(5);
    let value = |id: &str| home.call(&["config", "get", "env.A"]).env("SESSILE_SESSION", id).run();
    assert_eq!(value(&a).exit(0).stdout(), "in a\n");
    value(&b).exit(5);
    home.call(&["config", "get", "env.A"]).run().exit(5);
    assert!(!home.path(".config/sessile/config.toml").exists(), "the setting stays in the session");
}

#[test]
fn state_needs_a_session() {
    let home = home();
    for args in [&["list"][..], &["get", "k"], &["set", "k", "1"], &["unset", "k"]] {
        let done = home.call(&["session", "state"]).args(args).arg("-ojson").run().exit(2);
        assert_eq!(done.code(), "SESSION_REQUIRED");
    }
}
