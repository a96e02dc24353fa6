//! Guards: what a context demands before it is used, as `context current --check` tells.

use testkit::{CallResult, Home};

use crate::home;

fn guarded() -> Home {
    let home = home();
    home.write(".config/sessile/contexts/free.toml", "");
    home.write(".config/sessile/contexts/named.toml", "guard = \"explicit\"\n");
    home.write(".config/sessile/contexts/prod.toml", "guard = \"approval\"\n");
    home
}

fn check(home: &Home, args: &[&str]) -> CallResult {
    args.iter().fold(home.call(&["context", "current", "--check"]), |call, arg| call.arg(arg)).run()
}

#[test]
fn no_guard_lets_everyone_through() {
    let home = guarded();
    home.write(".config/sessile/config.toml", "context = \"free\"\n");
    check(&home, &[]).exit(0);
    check(&home, &["--context", "free"]).exit(0);
}

#[test]
fn explicit_wants_the_context_named_by_flag_or_variable() {
    let home = guarded();
    home.write(".config/sessile/config.toml", "context = \"named\"\n");
    insta::assert_snapshot!(check(&home, &[]).exit(7).told(), @r#"
    exit 7
    --- stdout
    --- stderr
    error: context "named" must be named explicitly, but comes from user ~/.config/sessile/config.toml:1
    hint: pass --context named, or set SESSILE_CONTEXT=named
    "#);
    check(&home, &["--context", "named"]).exit(0);
    home.call(&["context", "current", "--check"]).env("SESSILE_CONTEXT", "named").ok();
    home.write("a/x", "");
    home.call(&["context", "use", "named", "--dir"]).cwd("a").ok();
    home.call(&["context", "current", "--check"]).cwd("a").run().exit(7);
}

#[test]
fn explicit_is_not_satisfied_by_a_terminals_selection() {
    let home = guarded();
    let mut shell = home.shell();
    assert_eq!(shell.run("sessile context use named").1, 0);
    let (text, status) = shell.run("sessile context current --check");
    assert_eq!(status, 7, "{text}");
    assert!(text.contains("but comes from terminal /dev/"), "{text}");
}

#[test]
fn approval_wants_a_person_even_when_it_is_named() {
    let home = guarded();
    insta::assert_snapshot!(check(&home, &["--context", "prod"]).exit(7).told(), @r#"
    exit 7
    --- stdout
    --- stderr
    error: context "prod" requires approval
    hint: approve it on a terminal, outside any session: sessile context approve prod --for 30m
    "#);
    let error = check(&home, &["--context", "prod", "-ojson"]).exit(7).json_error();
    assert_eq!(error["code"], "GUARD_APPROVAL");
    assert_eq!(error["fix_command"], "sessile context approve prod --for 30m");
    assert_eq!(error["context"], "prod");
    home.write(".config/sessile/config.toml", "context = \"named\"\n");
    let error = check(&home, &["-ojson"]).exit(7).json_error();
    assert_eq!((&error["code"], &error["context"]), (&"GUARD_EXPLICIT".into(), &"named".into()));
}

#[test]
fn looking_is_free_whatever_the_guard() {
    let home = guarded();
    for args in
        [&["context", "show", "prod"][..], &["context", "list"], &["context", "current", "--context", "prod"]]
    {
        home.call(args).ok();
    }
}

#[test]
fn lock_run_needs_what_the_guard_requires() {
    let home = guarded();
    let secret = |args: &[&str]| home.call(args).env("SESSILE_CREDENTIAL_PRODTOK", "S");
    let done =
        secret(&["--context", "prod", "lock", "run", "l", "--", "sh", "-c", "touch started"]).run().exit(125);
    assert!(done.stderr().contains("context approve prod"), "{}", done.told());
    assert!(!home.path("started").exists());
    secret(&["lock", "run", "l", "--", "true"]).ok();
}
