//! A context, tool, key or target that does not exist: commands fail or warn, whatever they need it for.

use serde_json::json;

use crate::isolation::run::kubeconfig;
use crate::{home, home_with, start};

/// Commands that fail if `--context` names none, in a home with a context and a session.
const COMMANDS: &[&[&str]] = &[
    &["agent", "add", "a", "http://127.0.0.1:1", "--global"],
    &["agent", "list"],
    &["auth", "list"],
    &["auth", "status"],
    &["backup", "b.db"],
    &["config", "get", "output"],
    &["config", "list"],
    &["config", "set", "output", "json", "--global"],
    &["config", "show"],
    &["config", "unset", "output", "--global"],
    &["context", "create", "other"],
    &["context", "current"],
    &["context", "delete", "staging", "--yes"],
    &["context", "edit", "staging", "--guard", "explicit"],
    &["context", "export", "--all"],
    &["context", "list"],
    &["context", "rename", "staging", "other"],
    &["context", "use", "staging", "--global"],
    &["conversation", "list"],
    &["history"],
    &["lock", "acquire", "l"],
    &["lock", "list"],
    &["lock", "run", "l", "--", "true"],
    &["prompt"],
    &["run", "--", "true"],
    &["session", "clear"],
    &["session", "gc"],
    &["session", "list"],
    &["session", "start"],
    &["tool", "list"],
    &["undo", "1"],
];

#[test]
fn context_flag_that_names_none_fails_on_every_command() {
    let home = home_with(&["staging"]);
    start(&home, &["--name", "s"]);
    let before = home.tree();
    for command in COMMANDS {
        let done = home.call(&["--context", "nosuch", "--output", "json"]).args(command).run();
        assert_eq!(done.code(), "CONTEXT_NOT_FOUND", "{command:?}: {}", done.told());
        let is_child = matches!(command[..], ["run" | "lock", ..] if command.contains(&"--"));
        assert_eq!(done.status(), Some(if is_child { 125 } else { 5 }), "{command:?}");
        assert_eq!(done.stdout(), "", "{command:?}");
    }
    assert_eq!(home.tree(), before);
    let near = home.call(&["lock", "acquire", "l", "--context", "stagign"]).run().exit(5);
    assert!(near.stderr().contains("staging"), "{}", near.told());
}

#[test]
fn context_variable_that_names_none_fails_where_it_counts() {
    let home = home_with(&["staging"]);
    let call = |args: &[&str]| home.call(args).env("SESSILE_CONTEXT", "nosuch").run();
    call(&["config", "set", "output", "json", "--global"]).exit(5);
    call(&["lock", "acquire", "l"]).exit(5);
    call(&["context", "current"]).exit(5);
    // Otherwise nobody could create it.
    call(&["context", "create", "nosuch"]).exit(0);
    call(&["context", "current"]).exit(0);
}

#[test]
fn status_and_doctor_report_a_missing_context() {
    let home = home_with(&["staging"]);
    let status = home.call(&["status", "--context", "nosuch", "--output", "json"]).ok();
    assert_eq!(status.json()["context_exists"], false);
    assert!(status.stderr().contains("not found"), "{}", status.told());
    assert!(home.call(&["doctor", "--context", "nosuch"]).run().told().contains("nosuch"));
}

#[test]
fn selected_context_that_was_deleted_is_not_the_current_one() {
    let home = home_with(&["staging"]);
    home.call(&["context", "use", "staging", "--global"]).ok();
    std::fs::remove_file(home.path(".config/sessile/contexts/staging.toml")).unwrap();
    insta::assert_snapshot!(home.call(&["context", "current"]).run().told(), @r#"
    exit 5
    --- stdout
    --- stderr
    error: context "staging" not found
    hint: named by user ~/.config/sessile/config.toml:1; create it: sessile context create staging
    "#);
}

#[test]
fn binding_of_an_unknown_tool_or_key_is_refused() {
    let home = home_with(&["staging"]);
    let before = home.tree_of_people();
    for (tool, code) in [
        ("kubctl.context=x", "TOOL_NOT_FOUND"),
        ("kubectl.contxt=x", "BINDING_INVALID"),
        ("kubectl.namespace=x", "BINDING_INVALID"),
        ("kubectl.strict=maybe", "BINDING_INVALID"),
        ("claude.context=x", "BINDING_INVALID"),
    ] {
        for command in [&["context", "create", "new"][..], &["context", "edit", "staging"]] {
            let done = home.call(command).args(&["--bind", tool, "--output", "json"]).run();
            assert_eq!(done.code(), code, "{command:?} {tool}: {}", done.told());
        }
        let (name, rest) = tool.split_once('.').unwrap();
        let (key, value) = rest.split_once('=').unwrap();
        let file = json!({ "contexts": { "new": { "tools": { name: { key: value } } } } }).to_string();
        let import = ["context", "import", "-", "--output", "json"];
        assert_eq!(home.call(&import).stdin(file).run().code(), code, "{tool}");
    }
    assert_eq!(home.tree_of_people(), before);
    let done = home.call(&["context", "create", "new", "--bind", "kubctl.context=x"]).run();
    assert!(done.stderr().contains("kubectl"), "{}", done.told());
}

#[test]
fn binding_that_was_wrong_before_does_not_stop_another_change() {
    let home = home();
    home.write(".config/sessile/contexts/old.toml", "[tools.kubctl]\ncontext = \"x\"\n");
    home.call(&["context", "edit", "old", "--guard", "approval"]).ok();
    home.call(&["context", "edit", "old", "--bind", "kubctl.context=y"]).run().exit(5);
}

#[test]
fn binding_of_an_unknown_target_warns_with_near_matches() {
    let home = home();
    home.write(".kube/config", kubeconfig(&["dev", "staging", "production"]));
    home.write(".aws/config", "[default]\nregion = a\n[profile stage]\nregion = b\n");
    home.write(".aws/credentials", "[keys]\naws_access_key_id = a\n");
    let before = home.tree_of_people();
    let create = |name: &str, tool: &str| home.call(&["context", "create", name, "--bind", tool]).ok();
    insta::assert_snapshot!(create("a", "kubectl.context=stagign").stderr(), @r#"
    warning: context "a": tools.kubectl.context: "stagign" not found; no command will start in this context
    hint: did you mean "staging"?
    "#);
    insta::assert_snapshot!(create("b", "aws.profile=zzz").stderr(), @r#"
    warning: context "b": tools.aws.profile: "zzz" not found; no command will start in this context
    hint: known: default, keys, stage
    "#);
    for (name, tool) in [
        ("c", "kubectl.context=staging"),
        ("d", "aws.profile=stage"),
        ("e", "aws.profile=keys"),
        ("f", "aws.profile=default"),
        ("g", "docker.context=default"),
    ] {
        let done = create(name, tool);
        assert!(!done.stderr().contains("warning"), "{tool}: {}", done.told());
    }
    let edited = home.call(&["context", "edit", "c", "--bind", "kubectl.context=prodction"]).ok();
    assert!(edited.stderr().contains("production"), "{}", edited.told());
    let file = "[contexts.h.tools.kubectl]\ncontext = \"prodction\"\n";
    let imported = home.call(&["context", "import", "-"]).stdin(file).ok();
    assert!(imported.stderr().contains("production"), "{}", imported.told());
    let kept: Vec<_> = home.tree_of_people();
    assert!(before.iter().all(|file| kept.contains(file)), "the tools' files are only read");
}
