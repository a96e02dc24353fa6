//! Values of a context: free keys, kept by every command that reads or writes contexts.

use serde_json::json;

use crate::home;

/// A file with contexts of another tool.
const FOREIGN: &str = r#"{
  "current_context": "development",
  "contexts": {
    "development": { "workspace": "/home/user/project-dev", "branch": "feature/new-feature" },
    "production": { "workspace": "/home/user/project-prod", "branch": "main" }
  }
}"#;

#[test]
fn values_are_set_shown_exported_and_removed() {
    let home = home();
    let create = ["context", "create", "dev", "--value", "workspace=/src/dev", "--value", "branch=main"];
    home.call(&create).ok();
    let shown = || home.call(&["context", "show", "dev", "--output", "json"]).ok().json();
    assert_eq!(shown()["values"], json!({ "workspace": "/src/dev", "branch": "main" }));
    let text = home.call(&["context", "show", "dev"]).ok().stdout();
    assert!(text.contains("workspace = \"/src/dev\""), "{text}");
    insta::assert_snapshot!(home.call(&["context", "export", "dev"]).ok().stdout(), @r#"
    [contexts.dev]
    guard = "none"

    [contexts.dev.values]
    workspace = "/src/dev"
    branch = "main"
    "#);
    home.call(&["context", "edit", "dev", "--remove", "values.branch", "--value", "depth=3"]).ok();
    assert_eq!(shown()["values"], json!({ "workspace": "/src/dev", "depth": "3" }));
}

#[test]
fn every_kind_of_value_survives_export_and_import() {
    let from = home();
    let file =
        "[values]\ntext = \"a b\"\nnumber = 3\nflag = true\nlist = [\"a\", \"b\"]\n\"odd key\" = \"x\"\n";
    from.write(".config/sessile/contexts/dev.toml", file);
    let shown = from.call(&["context", "show", "dev", "--output", "json"]).ok().json()["values"].clone();
    let whole = json!({ "text": "a b", "number": 3, "flag": true, "list": ["a", "b"], "odd key": "x" });
    assert_eq!(shown, whole);
    for format in ["text", "json"] {
        let exported = from.call(&["context", "export", "dev", "--output", format]).ok().stdout();
        let to = home();
        to.call(&["context", "import", "-"]).stdin(exported).ok();
        assert_eq!(to.call(&["context", "show", "dev", "--output", "json"]).ok().json()["values"], whole);
    }
}

#[test]
fn foreign_contexts_file_is_imported_whole() {
    let home = home();
    home.write("contexts.json", FOREIGN);
    insta::assert_snapshot!(home.call(&["context", "import", "contexts.json"]).ok().told(), @r#"
    exit 0
    --- stdout
    imported context development
    imported context production
    --- stderr
    the file selects context "development"; select it: sessile context use development
    "#);
    let show = |name: &str| home.call(&["context", "show", name, "--output", "json"]).ok().json();
    assert_eq!(
        show("development")["values"],
        json!({ "workspace": "/home/user/project-dev", "branch": "feature/new-feature" })
    );
    assert_eq!(show("production")["values"]["branch"], "main");
    let again = home.call(&["context", "import", "contexts.json", "--yes", "--output", "json"]).ok().json();
    assert_eq!(again["current_context"], "development");
    assert_eq!(again["contexts"], json!(["development", "production"]));
}

#[test]
fn import_refuses_keys_that_it_could_not_keep() {
    let home = home();
    for (file, named) in [
        // A misspelt guard would guard nothing.
        ("[contexts.a]\ngard = \"approval\"\n", "gard"),
        ("[contexts.a]\ndepth = 1.5\n", "depth"),
        ("[contexts.a.server]\nurl = \"x\"\n", "server"),
        ("[contexts.a.settings]\nlock-timeoot = \"1s\"\n", "lock-timeoot"),
        ("[contexts.a.agents.\"https://a.example\"]\ncredential = \"a\"\nheader = \"x\"\n", "header"),
        ("[contexts.a]\nworkspace = \"x\"\nvalues.workspace = \"y\"\n", "workspace"),
        ("[contexts.a.values]\nnested = { a = 1 }\n", "nested"),
        ("[contexts.a]\n[servers.b]\nurl = \"x\"\n", "servers"),
    ] {
        let done = home.call(&["context", "import", "-"]).stdin(file).run();
        assert_ne!(done.status(), Some(0), "{file}");
        assert!(done.stderr().contains(named), "{file}: {}", done.told());
    }
    assert_eq!(home.call(&["context", "list", "--output", "json"]).ok().json(), json!([]));
}

#[test]
fn secrets_are_refused_as_values() {
    let home = home();
    let create = ["context", "create", "dev", "--value", "api-token=t0psecret", "--output", "json"];
    assert_eq!(home.call(&create).run().code(), "SECRET_REFUSED");
    let file = "[contexts.a.values]\napi-token = \"t0psecret\"\n";
    let import = ["context", "import", "-", "--output", "json"];
    assert_eq!(home.call(&import).stdin(file).run().code(), "SECRET_REFUSED");
    let foreign = "[contexts.a]\napi-token = \"t0psecret\"\n";
    assert_eq!(home.call(&import).stdin(foreign).run().code(), "SECRET_REFUSED");
    home.write(".config/sessile/contexts/b.toml", "[values]\napi-token = \"t0psecret\"\n");
    for args in [&["context", "show", "b"][..], &["context", "export", "b"]] {
        let done = home.call(args).ok();
        assert!(!done.told().contains("t0psecret"), "{}", done.told());
    }
}
