//! `sessile context export` and `import`: out of one home and into another, without secrets.

use serde_json::Value;
use testkit::Home;

use crate::{home, home_with};

const STAGING: &str = r#"description = "the \"test\" cluster"
guard = "explicit"

[settings]
lock-timeout = "9s"
session.idle = "1h"

[env]
REGION = "eu-1"
GH_TOKEN = "t0psecret"
BOT_TOKEN = { credential = "bot" }

[tools.kubectl]
context = "stage"
depth = 3
strict = true

[tools.npm]
auth-token = "t0psecret"

[agents."https://a.example/x"]
credential = "a"
"#;

fn furnished() -> Home {
    let home = home_with(&["empty"]);
    home.write(".config/sessile/contexts/staging.toml", STAGING);
    home
}

/// What a context is, without where it stands.
fn shown(home: &Home, name: &str) -> Value {
    let mut json = home.call(&["context", "show", name, "-ojson"]).ok().json();
    json.as_object_mut().unwrap().shift_remove("path");
    json
}

#[test]
fn an_export_is_one_file_without_a_secret() {
    insta::assert_snapshot!(furnished().call(&["context", "export", "--all"]).ok().told(), @r#"
    exit 0
    --- stdout
    [contexts.empty]
    guard = "none"

    [contexts.staging]
    description = 'the "test" cluster'
    guard = "explicit"

    [contexts.staging.settings]
    lock-timeout = "9s"

    [contexts.staging.settings.session]
    idle = "1h"

    [contexts.staging.env]
    REGION = "eu-1"

    [contexts.staging.env.BOT_TOKEN]
    credential = "bot"

    [contexts.staging.tools.kubectl]
    context = "stage"
    depth = 3
    strict = true

    [contexts.staging.agents."https://a.example/x"]
    credential = "a"
    --- stderr
    warning: left out env.GH_TOKEN of context staging: it looks like a secret
    hint: put the secret into the vault and refer to it: { credential = "NAME" }
    warning: left out tools.npm.auth-token of context staging: it looks like a secret
    hint: put the secret into the vault and refer to it: { credential = "NAME" }
    "#);
}

#[test]
fn exported_context_is_imported_unchanged_in_every_format() {
    let from = furnished();
    let file = from.read(".config/sessile/contexts/staging.toml");
    // Without what stays behind the two must be equal.
    from.write(
        ".config/sessile/contexts/staging.toml",
        file.replace("GH_TOKEN = \"t0psecret\"\n", "")
            .replace("[tools.npm]\nauth-token = \"t0psecret\"\n", "")
            .replace("depth = 3\n", ""),
    );
    for (name, args) in [
        ("a.toml", &["context", "export", "staging", "empty", "--file", "a.toml"][..]),
        ("b.json", &["context", "export", "staging", "empty", "--file", "b.json"]),
    ] {
        from.call(args).ok();
        let to = home();
        to.write(name, from.read(name));
        to.call(&["context", "import", name]).ok();
        assert_eq!(shown(&to, "staging"), shown(&from, "staging"), "{name}");
        assert_eq!(shown(&to, "empty"), shown(&from, "empty"), "{name}");
    }
    for format in ["text", "json", "jsonl"] {
        let exported = from.call(&["context", "export", "--all", "--output", format]).ok().stdout();
        let to = home();
        to.call(&["context", "import", "-"]).stdin(exported).ok();
        assert_eq!(shown(&to, "staging"), shown(&from, "staging"), "{format}");
    }
}

#[test]
fn no_format_carries_a_secret() {
    let home = furnished();
    for args in [
        &["context", "export", "--all"][..],
        &["context", "export", "--all", "-ojson"],
        &["context", "export", "--all", "--file", "a.toml"],
        &["context", "export", "--all", "--file", "b.json"],
    ] {
        let done = home.call(args).ok();
        assert!(!done.told().contains("t0psecret"), "{args:?}");
        assert!(
            done.stderr().contains("GH_TOKEN") && done.stderr().contains("auth-token"),
            "{}",
            done.told()
        );
    }
    for file in ["a.toml", "b.json"] {
        assert!(!home.read(file).contains("t0psecret") && home.read(file).contains("bot"), "{file}");
    }
}

#[test]
fn existing_file_is_replaced_only_after_confirmation() {
    let home = furnished();
    home.write("out.toml", "precious\n");
    insta::assert_snapshot!(home.call(&["context", "export", "empty", "--file", "out.toml"]).run().told(), @"
    exit 2
    --- stdout
    --- stderr
    error: replace ~/out.toml: confirmation required, but the call is not interactive
    hint: pass --yes to confirm
    ");
    assert_eq!(home.read("out.toml"), "precious\n");
    insta::assert_snapshot!(home.call(&["context", "export", "empty", "--file", "out.toml", "--yes"]).ok().told(), @"
    exit 0
    --- stdout
    exported 1 context to ~/out.toml
    --- stderr
    ");
    assert_eq!(home.read("out.toml"), "[contexts.empty]\nguard = \"none\"\n");
}

#[test]
fn import_is_atomic_and_replaces_only_after_confirmation() {
    let home = furnished();
    home.write("in.toml", "[contexts.brand-new]\n[contexts.staging]\ndescription = \"other\"\n");
    let before = home.tree();
    insta::assert_snapshot!(home.call(&["context", "import", "in.toml"]).run().told(), @r#"
    exit 6
    --- stdout
    --- stderr
    error: context "staging" already exists (~/.config/sessile/contexts/staging.toml)
    hint: choose another name, or pass --yes to replace it
    "#);
    assert_eq!(home.tree(), before);
    insta::assert_snapshot!(home.call(&["context", "import", "in.toml", "--yes"]).ok().told(), @"
    exit 0
    --- stdout
    imported context brand-new
    imported context staging
    --- stderr
    ");
    assert_eq!(shown(&home, "staging")["description"], "other");
    assert_eq!(shown(&home, "staging")["guard"], "none");
}

#[test]
fn invalid_file_is_reported_and_not_imported() {
    let home = home();
    let before = home.tree();
    let import = |text: &str| home.call(&["context", "import", "-"]).stdin(text).run();
    insta::assert_snapshot!(import("[contexts.a]\n[contexts.b]\nguard = 1\n").told(), @r#"
    exit 1
    --- stdout
    --- stderr
    error: standard input:3:1: "guard" must be text, not a number
    "#);
    insta::assert_snapshot!(import("[contexts.a]\n[contexts.'../x']\n").told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: "[hidden]" is not a valid context name: must begin with a letter or a digit (standard input:2:11)
    "#);
    insta::assert_snapshot!(import("description = \"x\"\n").told(), @r#"
    exit 1
    --- stdout
    --- stderr
    error: standard input:1:1: no [contexts.NAME] table found; `context export` writes an example
    hint: context import reads files of context export; for the files of your tools: sessile import
    "#);
    insta::assert_snapshot!(import("contexts = \"x\"\n").told(), @r#"
    exit 1
    --- stdout
    --- stderr
    error: standard input:1:1: "contexts" must be a table with a table for each context, not the text in the file
    "#);
    insta::assert_snapshot!(import("").told(), @"
    exit 1
    --- stdout
    --- stderr
    error: standard input:1:1: no [contexts.NAME] table found; `context export` writes an example
    hint: context import reads files of context export; for the files of your tools: sessile import
    ");
    home.call(&["context", "import", "missing.toml"]).run().exit(5);
    assert_eq!(home.tree(), before);
}

#[test]
fn a_project_can_take_them_in() {
    let home = home();
    home.write("project/in.toml", "[contexts.dev]\n");
    home.call(&["context", "import", "in.toml", "--project"]).cwd("project").ok();
    assert!(home.path("project/.sessile/contexts/dev.toml").exists());
    home.call(&["context", "current", "--check", "--context", "dev"]).cwd("project").ok();
}

#[test]
fn a_terminal_is_not_read_as_a_file() {
    let (text, status) = home().tty(&["context", "import", "-"]).finish();
    assert_eq!(status, 2, "{text}");
    assert!(text.contains("it is a terminal; pass a file, or redirect one"), "{text}");
}
