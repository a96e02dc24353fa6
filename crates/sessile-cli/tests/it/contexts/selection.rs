//! `sessile context use`: the narrowest scope is the default, and `-` goes back.

use crate::home_with;

#[test]
fn a_script_must_say_where() {
    let home = home_with(&["dev"]);
    let before = home.tree();
    insta::assert_snapshot!(home.call(&["context", "use", "dev"]).run().told(), @"
    exit 2
    --- stdout
    --- stderr
    error: context use: standard input is not a terminal: choose a scope
    hint: pass --context NAME to each command; or pass --dir for this directory or --global for this user
    ");
    assert_eq!(home.tree(), before);
}

#[test]
fn global_and_dir_write_the_files_they_name() {
    let home = home_with(&["dev", "prod"]);
    home.write(".config/sessile/config.toml", "# mine\ncolor = \"never\"\n");
    insta::assert_snapshot!(home.call(&["context", "use", "dev", "--global"]).ok().told(), @r#"
    exit 0
    --- stdout
    selected context "dev" for this user, ~/.config/sessile/config.toml (was none)
    --- stderr
    "#);
    assert_eq!(home.read(".config/sessile/config.toml"), "# mine\ncolor = \"never\"\ncontext = \"dev\"\n");
    home.write("a/x", "");
    home.call(&["context", "use", "prod", "--dir"]).cwd("a").ok();
    assert_eq!(home.read("a/.sessile/local.toml"), "context = \"prod\"\n");
    assert_eq!(home.call(&["context", "current"]).cwd("a").ok().stdout(), "prod\n");
    assert_eq!(home.call(&["context", "current"]).ok().stdout(), "dev\n");
}

#[test]
fn in_json_it_says_scope_place_old_and_new() {
    let home = home_with(&["dev", "prod"]);
    home.call(&["context", "use", "dev", "--global"]).ok();
    let json = home.call(&["context", "use", "prod", "--global", "-ojson"]).ok().json();
    assert_eq!(json["scope"], "global");
    assert_eq!(json["place"], home.path(".config/sessile/config.toml").to_str().unwrap());
    assert_eq!(json["old"], "dev");
    assert_eq!(json["new"], "prod");
    assert_eq!(json["context"], "prod", "the context after the switch");
}

#[test]
fn a_dash_goes_back_and_forth() {
    let home = home_with(&["a", "b", "c"]);
    let switch =
        |name: &str| home.call(&["context", "use", name, "--global", "-ojson"]).ok().json()["new"].clone();
    let nothing = home.call(&["context", "use", "-", "--global"]).run().exit(5);
    insta::assert_snapshot!(nothing.told(), @"
    exit 5
    --- stdout
    --- stderr
    error: no other context was selected here before
    hint: select one by name: sessile context use NAME
    ");
    for name in ["a", "b", "c", "c"] {
        assert_eq!(switch(name), name);
    }
    assert_eq!(switch("-"), "b", "the same one twice is one");
    assert_eq!(switch("-"), "c");
    home.write("dir/x", "");
    home.call(&["context", "use", "-", "--dir"]).cwd("dir").run().exit(5);
}

#[test]
fn missing_context_cannot_be_selected() {
    let home = home_with(&["dev"]);
    insta::assert_snapshot!(home.call(&["context", "use", "dve", "--global"]).run().told(), @r#"
    exit 5
    --- stdout
    --- stderr
    error: context "dve" not found
    hint: did you mean "dev"?
    "#);
    assert!(!home.path(".config/sessile/config.toml").exists());
    home.write("project/.sessile/contexts/theirs.toml", "");
    let done = home.call(&["context", "use", "theirs", "--dir", "-ojson"]).cwd("project").run().exit(4);
    assert_eq!(done.code(), "UNTRUSTED_PROJECT");
}

#[test]
fn a_session_keeps_its_context() {
    let home = home_with(&["dev"]);
    home.call(&["session", "start", "--name", "s1"]).ok();
    let before = (home.tree_of_people(), crate::history(&home));
    for scope in ["--dir", "--global"] {
        let done =
            home.call(&["context", "use", "dev", scope, "-ojson"]).env("SESSILE_SESSION", "s1").run().exit(7);
        assert_eq!(done.code(), "IN_SESSION");
    }
    let (text, status) = home.call(&["context", "use", "dev"]).env("SESSILE_SESSION", "s1").tty().finish();
    assert_eq!(status, 7, "{text}");
    assert!(text.contains("the context of a session never changes"), "{text}");
    assert_eq!((home.tree_of_people(), crate::history(&home)), before);
}

#[test]
fn scopes_exclude_each_other() {
    home_with(&["dev"]).call(&["context", "use", "dev", "--dir", "--global"]).run().exit(2);
}
