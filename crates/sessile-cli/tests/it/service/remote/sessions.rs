//! Sessions and their values.

use serde_json::json;

use super::{Machine, Service, Store, ann, shape};
use crate::home;

/// The same calls, in an order in which each can succeed.
const CALLS: &[&[&str]] = &[
    &["session", "start", "--name", "deploy", "--label", "team=web", "--agent", "reviewer", "--idle", "30m"],
    &["session", "list"],
    &["session", "list", "--label", "team=web", "--newer-than", "1h", "--state", "all"],
    &["session", "show", "deploy"],
    &["session", "state", "set", "cursor", "42", "--session", "deploy"],
    &["session", "state", "set", "cursor", "43", "--if-revision", "1", "--session", "deploy"],
    &["session", "state", "set", "a key/with?signs", "{\"x\": [1]}", "--session", "deploy"],
    &["session", "state", "get", "cursor", "--session", "deploy"],
    &["session", "state", "list", "--session", "deploy"],
    &["session", "state", "unset", "a key/with?signs", "--session", "deploy"],
    &["session", "rename", "deploy", "release"],
    &["session", "stop", "release"],
];

#[test]
fn remote_command_prints_what_the_local_one_prints() {
    let home = home();
    let (_service, machine) = ann(&home);
    for words in CALLS {
        let (there, here) = (machine.json(words), machine.json_here(words));
        // Only here is a process behind an owner, and a room.
        let blank = |mut json: serde_json::Value| {
            if json["owner"].is_object() {
                json["owner"]["process"] = json!(null);
            }
            if json[0]["owner"].is_object() {
                json[0]["owner"]["process"] = json!(null);
            }
            shape(&json)
        };
        assert_eq!(blank(there.clone()), blank(here.clone()), "{words:?}\n{there:#}\n{here:#}");
        for key in [
            "key",
            "old",
            "new",
            "value",
            "revision",
            "name",
            "labels",
            "state",
            "was_over",
            "idle_limit_ms",
            "max_ms",
        ] {
            assert_eq!(there[key], here[key], "{words:?} {key}");
        }
    }
    let text = |call: testkit::Call| call.ok().stdout();
    let list = &["session", "state", "list", "--session", "s"];
    for place in [Some(machine.url.as_str()), None] {
        let call = |words: &[&str]| match place {
            Some(_) => machine.call(words),
            None => machine.home.call(words),
        };
        call(&["session", "start", "--name", "s"]).ok();
        assert_eq!(
            text(call(&["session", "state", "set", "k", "v", "--session", "s"])),
            "set k (revision 1)\n"
        );
        assert_eq!(text(call(list)), "KEY  REVISION  VALUE\nk    1         v\n");
        assert_eq!(text(call(&["session", "state", "unset", "k", "--session", "s"])), "removed k\n");
        assert_eq!(text(call(&["session", "stop", "s"])), "stopped session \"s\"\n");
    }
}

#[test]
fn remote_failure_has_the_local_code_and_status() {
    let home = home();
    let (_service, machine) = ann(&home);
    for call in [
        |machine: &Machine, words: &[&str]| machine.call(words),
        |machine: &Machine, words: &[&str]| machine.home.call(words),
    ] {
        call(&machine, &["session", "start", "--name", "s"]).ok();
        call(&machine, &["session", "state", "set", "k", "1", "--session", "s"]).ok();
        for (words, code, exit) in [
            (&["session", "start", "--name", "s"][..], "SESSION_EXISTS", 6),
            (&["session", "show", "nobody"], "SESSION_NOT_FOUND", 5),
            (&["session", "stop"], "SESSION_REQUIRED", 2),
            (&["session", "state", "get", "k"], "SESSION_REQUIRED", 2),
            (&["session", "state", "get", "none", "--session", "s"], "ENTRY_NOT_FOUND", 5),
            (&["session", "state", "unset", "none", "--session", "s"], "ENTRY_NOT_FOUND", 5),
            (
                &["session", "state", "set", "k", "2", "--if-revision", "7", "--session", "s"],
                "REVISION_CONFLICT",
                6,
            ),
            (
                &["session", "state", "set", "k", "2", "--if-revision", "0", "--session", "s"],
                "REVISION_CONFLICT",
                6,
            ),
            (&["session", "start", "--name", "a b"], "INVALID_NAME", 2),
            (&["lock", "release", "l", "--token", "9"], "LOCK_LOST", 6),
            (&["lock", "renew", "l", "--token", "9"], "LOCK_LOST", 6),
            (&["lock", "break", "l", "--holder", "9"], "LOCK_NOT_FOUND", 5),
        ] {
            let done = call(&machine, words).args(&["--output", "json"]).run().exit(exit);
            assert_eq!(done.code(), code, "{words:?}: {}", done.told());
        }
    }
}

#[test]
fn remote_session_of_another_user_is_not_found() {
    let home = home();
    let store = Store::file(&home);
    let (ann, bob) = (store.user("ann"), store.user("bob"));
    let service = Service::start(&store);
    let (ann, bob) = (Machine::new(&service, &ann), Machine::new(&service, &bob));
    let id = ann.json(&["session", "start", "--name", "secret"])["id"].as_str().unwrap().to_owned();
    for which in [id.as_str(), "secret"] {
        for words in [
            &["session", "show", which][..],
            &["session", "stop", which],
            &["session", "rename", which, "mine"],
            &["session", "state", "list", "--session", which],
            &["session", "state", "set", "k", "1", "--session", which],
        ] {
            let done = bob.call(words).args(&["--output", "json"]).run().exit(5);
            assert_eq!(done.code(), "SESSION_NOT_FOUND", "{words:?}");
        }
    }
    assert_eq!(bob.json(&["session", "list"]), json!([]));
    assert_eq!(ann.json(&["session", "show", "secret"])["state"], "live");
}

#[test]
fn local_session_id_is_not_found_on_the_server() {
    let home = home();
    let (_service, machine) = ann(&home);
    let here = machine.json_here(&["session", "start"])["id"].as_str().unwrap().to_owned();
    let set = ["session", "state", "set", "k", "1", "--output", "json"];
    let done = machine.call(&set).env("SESSILE_SESSION", &here).run().exit(5);
    let error = done.json_error();
    assert_eq!(error["code"], "SESSION_NOT_FOUND", "{error}");
    assert!(error["message"].as_str().unwrap().contains("SESSILE_SESSION"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("may be local"), "{error}");
    machine.call(&set).env("SESSILE_SESSION", &here).args(&["--server", ""]).ok();
    // One of the server's is found by the variable, too.
    let there = machine.json(&["session", "start"])["id"].as_str().unwrap().to_owned();
    machine.call(&set).env("SESSILE_SESSION", &there).ok();
}

#[test]
fn remote_list_continues_at_its_cursor() {
    let home = home();
    let (_service, machine) = ann(&home);
    for name in ["one", "two", "three"] {
        machine.call(&["session", "start", "--name", name]).ok();
    }
    let first = machine.json(&["session", "list", "--limit", "2"]);
    assert_eq!((&first[0]["name"], &first[1]["name"]), (&json!("three"), &json!("two")));
    let next = machine.json(&["session", "list", "--cursor", first[1]["id"].as_str().unwrap()]);
    assert_eq!(next.as_array().unwrap().len(), 1);
    assert_eq!(next[0]["name"], "one");
}

#[test]
fn context_of_a_remote_session_is_local_and_guarded() {
    let home = home();
    let (_service, machine) = ann(&home);
    machine.home.call(&["context", "create", "staging"]).ok();
    let started = machine.json(&["session", "start", "--name", "s", "--context", "staging"]);
    assert_eq!(
        (&started["context"], &started["context_origin"]["layer"]),
        (&json!("staging"), &json!("flag"))
    );
    let set = machine.json(&["session", "state", "set", "k", "1", "--session", "s"]);
    assert_eq!((&set["context"], &set["context_origin"]["layer"]), (&json!("staging"), &json!("session")));
    let start = ["session", "start", "--context", "nowhere", "--output", "json"];
    assert_eq!(machine.call(&start).run().exit(5).code(), "CONTEXT_NOT_FOUND");
}

#[test]
fn remote_session_keeps_its_context() {
    let home = home();
    let (_service, machine) = ann(&home);
    for context in ["stg", "other"] {
        machine.home.call(&["context", "create", context]).ok();
    }
    machine.home.call(&["context", "create", "prod", "--guard", "approval"]).ok();
    for call in [
        |machine: &Machine, words: &[&str]| machine.call(words),
        |machine: &Machine, words: &[&str]| machine.home.call(words),
    ] {
        call(&machine, &["session", "start", "--name", "g", "--context", "stg"]).ok();
        call(&machine, &["session", "start", "--name", "bare"]).ok();
        call(&machine, &["session", "state", "set", "k", "1", "--session", "g", "--context", "stg"]).ok();
        let state = [
            &["session", "state", "set", "k", "2"][..],
            &["session", "state", "get", "k"],
            &["session", "state", "list"],
            &["session", "state", "unset", "k"],
        ];
        for words in state {
            for asked in ["other", "prod"] {
                let pinned =
                    format!("session \"g\" is pinned to context \"stg\", but the call requests \"{asked}\"");
                let flags = [words, &["--session", "g", "--output", "json"]].concat();
                let by_flag = call(&machine, &flags).args(&["--context", asked]);
                let by_variable = call(&machine, &flags).env("SESSILE_CONTEXT", asked);
                for refused in [by_flag, by_variable] {
                    let error = refused.run().exit(7).json_error();
                    assert_eq!(
                        (&error["code"], &error["message"]),
                        (&json!("CONTEXT_FIXED"), &json!(pinned))
                    );
                }
            }
        }
        let nowhere = ["session", "state", "set", "k", "2", "--session", "g", "--context", "nowhere"];
        assert!([Some(5), Some(7)].contains(&call(&machine, &nowhere).run().status()));
        let bare = ["session", "state", "set", "k", "2", "--session", "bare", "--context", "stg"];
        assert!(call(&machine, &bare).run().exit(7).stderr().contains("is pinned to no context"));
        // Who looks, or says which one is meant, asks for no context.
        call(&machine, &["session", "show", "--session", "g", "--context", "other"]).ok();
        call(&machine, &["session", "rename", "g", "h", "--context", "other"]).ok();
        let kept = call(&machine, &["session", "state", "get", "k", "--session", "h"]).ok();
        assert_eq!(kept.stdout(), "1\n", "nothing was changed");
    }
    let send = ["message", "send", "hi", "--session", "h", "--context", "other", "--output", "json"];
    assert_eq!(machine.call(&send).run().exit(7).code(), "CONTEXT_FIXED");
}
