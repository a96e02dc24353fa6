//! Which context is meant: every layer in turn, and the warning when it is an unexpected one.

use serde_json::json;

use crate::{home, home_with};

const ALL: &[&str] = &["flagged", "varied", "local", "shared", "mine", "system"];

#[test]
fn the_strongest_layer_that_names_a_context_wins() {
    let home = home_with(ALL);
    home.write("etc/config.toml", "context = \"system\"\n");
    let current = |args: &[&str], variable: &str| {
        let call =
            home.call(&["context", "current", "-ojson"]).cwd("project").env("SESSILE_CONTEXT", variable);
        let done = args.iter().fold(call, |call, arg| call.arg(arg)).ok().json();
        (done["context"].as_str().unwrap().to_owned(), done["context_origin"]["layer"].clone())
    };
    let is = |found: (String, serde_json::Value), name: &str, layer: &str| {
        assert_eq!(found, (name.to_owned(), json!(layer)));
    };
    std::fs::create_dir(home.path("project")).unwrap();
    is(current(&[], ""), "system", "system");
    home.write(".config/sessile/config.toml", "context = \"mine\"\n");
    is(current(&[], ""), "mine", "user");
    home.write("project/.sessile/config.toml", "context = \"shared\"\n");
    is(current(&[], ""), "mine", "user");
    home.call(&["trust", "--yes"]).cwd("project").ok();
    is(current(&[], ""), "shared", "directory");
    home.call(&["context", "use", "local", "--dir"]).cwd("project").ok();
    is(current(&[], ""), "local", "directory");
    is(current(&[], "varied"), "varied", "environment");
    is(current(&["--set", "context=flagged"], "varied"), "flagged", "flag");
    is(current(&["--context", "flagged", "--set", "context=mine"], "varied"), "flagged", "flag");
}

#[test]
fn the_nearest_project_above_counts() {
    let home = home_with(&["outer", "inner"]);
    home.write("a/b/c/x", "");
    home.call(&["context", "use", "outer", "--dir"]).cwd("a").ok();
    let current = |dir: &str| home.call(&["context", "current"]).cwd(dir).ok().stdout();
    assert_eq!(current("a/b/c"), "outer\n");
    home.write("a/b/.sessile/config.toml", "");
    home.call(&["context", "use", "inner", "--dir"]).cwd("a/b/c").ok();
    assert_eq!(current("a/b/c"), "inner\n");
    assert_eq!(current("a"), "outer\n");
    assert!(!home.path("a/b/c/.sessile").exists(), "--dir uses the existing project");
}

#[test]
fn a_context_that_is_not_expected_is_warned_of() {
    let home = home_with(&["dev", "prod"]);
    home.write("project/.sessile/config.toml", "\nexpect-context = \"dev\"\n");
    let call = |args: &[&str]| home.call(args).cwd("project").ok();
    insta::assert_snapshot!(call(&["context", "current", "--context", "prod"]).told(), @r#"
    exit 0
    --- stdout
    prod
    --- stderr
    warning: context "prod" is in use (flag --context), but "dev" is expected (directory ~/project/.sessile/config.toml:2)
    hint: name it: --context dev
    "#);
    assert_eq!(call(&["context", "current", "--context", "dev"]).stderr(), "");
    let run = call(&["run", "--", "true"]);
    assert_eq!(
        run.stderr().matches("warning:").count(),
        1,
        "a started session repeats no warning: {}",
        run.told()
    );
    let none = call(&["config", "list"]);
    assert!(none.stderr().contains("no context is in use, but \"dev\" is expected"), "{}", none.told());
}

#[test]
fn the_settings_of_the_selected_context_count_and_of_no_other() {
    let home = home();
    home.write(".config/sessile/contexts/slow.toml", "[settings]\nlock-timeout = \"60s\"\n");
    home.write(".config/sessile/contexts/fast.toml", "[settings]\nlock-timeout = \"1s\"\n");
    for (context, time) in [("slow", "60s\n"), ("fast", "1s\n")] {
        assert_eq!(home.call(&["config", "get", "lock-timeout", "--context", context]).ok().stdout(), time);
    }
    assert_eq!(home.call(&["config", "get", "lock-timeout"]).ok().stdout(), "5s\n");
}
