//! `sessile context rename`: what pointed to the old name points to the new one.

use crate::{home, home_with};

#[test]
fn terminals_directories_and_the_user_follow() {
    let home = home_with(&["old", "other"]);
    home.write(".config/sessile/contexts/old.toml", "# kept\ndescription = \"d\"\n");
    home.write("a/x", "");
    home.call(&["context", "use", "old", "--global"]).ok();
    home.call(&["context", "use", "old", "--dir"]).cwd("a").ok();
    let mut shell = home.shell();
    shell.run("sessile context use old");
    insta::assert_snapshot!(home.call(&["context", "rename", "old", "new"]).ok().told(), @r#"
    exit 0
    --- stdout
    renamed context "old" to "new" (~/.config/sessile/contexts/new.toml)
    --- stderr
    "#);
    assert_eq!(home.read(".config/sessile/contexts/new.toml"), "# kept\ndescription = \"d\"\n");
    assert!(!home.path(".config/sessile/contexts/old.toml").exists());
    assert_eq!(home.read(".config/sessile/config.toml"), "context = \"new\"\n");
    assert_eq!(home.read("a/.sessile/local.toml"), "context = \"new\"\n");
    let done = home.call(&["context", "current"]).cwd("a").ok();
    assert_eq!((done.stdout().as_str(), done.stderr().as_str()), ("new\n", ""), "still trusted");
    assert!(shell.run("echo \"[$(sessile context current)]\"").0.contains("[new]"));
}

#[test]
fn the_way_back_follows_too() {
    let home = home_with(&["a", "b"]);
    home.call(&["context", "use", "a", "--global"]).ok();
    home.call(&["context", "use", "b", "--global"]).ok();
    home.call(&["context", "rename", "a", "z"]).ok();
    assert_eq!(home.call(&["context", "use", "-", "--global", "-ojson"]).ok().json()["new"], "z");
}

#[test]
fn a_name_that_is_taken_is_refused() {
    let home = home_with(&["a", "b"]);
    let before = home.tree();
    let done = home.call(&["context", "rename", "a", "b"]).run().exit(6);
    insta::assert_snapshot!(done.told(), @r#"
    exit 6
    --- stdout
    --- stderr
    error: context "b" already exists (~/.config/sessile/contexts/b.toml)
    hint: choose another name, or delete it first: sessile context delete b
    "#);
    home.call(&["context", "rename", "a", "b", "--yes"]).run().exit(6);
    home.call(&["context", "rename", "a", "../x"]).run().exit(2);
    home.call(&["context", "rename", "c", "d"]).run().exit(5);
    assert_eq!(home.tree(), before);
}

#[test]
fn a_projects_context_stays_trusted_under_its_new_name() {
    let home = home();
    home.write("project/.sessile/contexts/dev.toml", "");
    home.call(&["trust", "project", "--yes"]).ok();
    home.call(&["context", "rename", "dev", "test"]).cwd("project").ok();
    home.call(&["context", "current", "--check", "--context", "test"]).cwd("project").ok();
}

#[test]
fn a_context_that_a_live_session_is_pinned_to_keeps_its_name() {
    let home = home_with(&["a"]);
    home.call(&["session", "start", "--name", "s", "--context", "a"]).ok();
    let refused = home.call(&["context", "rename", "a", "b", "-ojson"]).run().exit(6);
    assert_eq!(refused.code(), "CONTEXT_PINNED");
    let asked = home.call(&["context", "delete", "a", "-ojson"]).run().exit(2).json_error();
    assert!(asked["message"].as_str().unwrap().contains("session s"), "{asked}");
    home.call(&["session", "stop", "s"]).ok();
    home.call(&["context", "rename", "a", "b"]).ok();
}
