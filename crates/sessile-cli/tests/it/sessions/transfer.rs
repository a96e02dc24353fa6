//! `sessile session export` and `import`: one file, whole or not at all.

use serde_json::json;

use crate::{home, home_with, live, shown, start};

#[test]
fn exported_session_is_imported_on_another_machine() {
    let (here, there) = (home_with(&["staging"]), home_with(&["staging"]));
    let id =
        start(&here, &["--name", "work", "--context", "staging", "--label", "team=web", "--idle", "30m"]);
    here.call(&["session", "state", "set", "k", "{\"a\":1}", "--session", "work"]).ok();
    here.call(&["config", "set", "env.A", "x", "--session", "work"]).ok();
    let exported = here.call(&["session", "export", "work"]).ok().stdout();
    let done = there.call(&["session", "import", "-", "-ojson"]).stdin(exported.clone()).ok().json();
    assert_eq!(done["from"], id.as_str());
    assert_ne!(done["id"], id.as_str());
    let (old, new) = (shown(&here, "work"), shown(&there, "work"));
    for key in ["name", "context", "labels", "idle_limit_ms", "max_ms", "settings", "state_values"] {
        assert_eq!(old[key], new[key], "{key}");
    }
    let again = there.call(&["session", "export", "work", "-ojson"]).ok().json();
    assert_eq!(again["state"], json!({ "k": { "a": 1 } }));
    assert_eq!(again["settings"], json!({ "env.A": "x" }));
    let taken = there.call(&["session", "import", "-", "-ojson"]).stdin(exported.clone()).run().exit(6);
    assert_eq!(taken.code(), "SESSION_EXISTS");
    there.call(&["session", "import", "-", "--name", "copy"]).stdin(exported).ok();
    assert_eq!(live(&there).len(), 2);
}

#[test]
fn an_import_that_fails_leaves_no_session() {
    let home = home_with(&["staging"]);
    home.write(".config/sessile/contexts/shut.toml", "guard = \"approval\"\n");
    let id = start(&home, &["--name", "model"]);
    let model = home.call(&["session", "export", &id, "-ojson"]).ok().json();
    let with = |key: &str, value: serde_json::Value| {
        let mut file = model.clone();
        file["name"] = json!("imported");
        file[key] = value;
        file.to_string()
    };
    for (file, status) in [
        (with("context", json!("nowhere")), 5),
        (with("context", json!("shut")), 7),
        (with("context", json!("../x")), 2),
        (with("name", json!("../x")), 2),
        (with("state", json!({ "": 1 })), 2),
        (with("state", json!({ "a": 1, "b\n": 1 })), 2),
        (with("state", json!({ "a": 1, "big": "x".repeat(70_000) })), 2),
        (with("version", json!(2)), 1),
        (with("format", json!("other")), 1),
        ("{".to_owned(), 1),
    ] {
        let done = home.call(&["session", "import", "-"]).stdin(file.clone()).run();
        assert_ne!(done.status(), Some(0), "{file}");
        if status != 1 {
            assert_eq!(done.status(), Some(status), "{}", done.told());
        }
        assert_eq!(live(&home), std::slice::from_ref(&id), "{}", done.told());
        assert_eq!(std::fs::read_dir(home.path(".local/state/sessile/rooms")).unwrap().count(), 1);
    }
}

#[test]
fn an_export_asks_before_it_replaces_a_file_and_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = home();
    let id = start(&home, &[]);
    home.call(&["session", "export", &id, "--file", "out.json"]).ok();
    assert_eq!(home.path("out.json").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let before = home.read("out.json");
    home.call(&["session", "state", "set", "k", "1", "--session", &id]).ok();
    home.call(&["session", "export", &id, "--file", "out.json"]).run().exit(2);
    assert_eq!(home.read("out.json"), before);
    home.call(&["session", "export", &id, "--file", "out.json", "--yes"]).ok();
    assert_ne!(home.read("out.json"), before);
}

#[test]
fn an_ended_session_can_still_be_exported() {
    let home = home();
    let id = start(&home, &[]);
    home.call(&["session", "state", "set", "k", "1", "--session", &id]).ok();
    home.call(&["session", "stop", &id]).ok();
    let exported = home.call(&["session", "export", &id, "-ojson"]).ok().json();
    assert_eq!(exported["state"], json!({ "k": 1 }));
}

#[test]
fn reserved_key_in_a_file_is_refused() {
    let home = home();
    let id = start(&home, &["--name", "model"]);
    let model = home.call(&["session", "export", &id, "-ojson"]).ok().json();
    let (state, embedded) = (json!({ "k": "HERE" }), testkit::embedded_documents(16));
    let mut file = model;
    file["name"] = json!("imported");
    file["state"] = state;
    let file = file.to_string().replace("\"HERE\"", &embedded);
    let refused = home.call(&["session", "import", "-", "-ojson"]).stdin(file).run().exit(1);
    assert!(refused.stderr().contains("is reserved"), "{}", refused.told());
    assert_eq!(live(&home).len(), 1);
    // State values and settings files are JSON of the same origin.
    home.write("embedded.json", &embedded);
    let set = ["session", "state", "set", "k", "--file", "embedded.json", "--session", "model"];
    let refused = home.call(&set).run().exit(2);
    assert!(refused.stderr().contains("is reserved"), "{}", refused.told());
    let set = ["session", "state", "set", testkit::RESERVED_KEY, "1", "--session", "model"];
    let refused = home.call(&set).run().exit(2);
    assert!(refused.stderr().contains("is reserved"), "{}", refused.told());
    home.write("settings.json", format!("{{\"env\":{embedded}}}"));
    let refused = home.call(&["--config", "settings.json", "status"]).run().exit(1);
    assert!(refused.stderr().contains("is reserved"), "{}", refused.told());
}
