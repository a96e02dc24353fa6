//! `sessile context approve`: a person opens a guarded context for a while.

use testkit::{Home, Tty};

use crate::home;

fn guarded() -> Home {
    let home = home();
    home.write(".config/sessile/contexts/prod.toml", "guard = \"approval\"\n");
    home
}

/// Whether the guarded context is open.
fn is_open(home: &Home) -> bool {
    let done = home.call(&["context", "current", "--check", "--context", "prod"]).run();
    match done.status() {
        Some(0) => true,
        Some(7) => false,
        _ => panic!("{}", done.told()),
    }
}

fn approve(home: &Home, args: &[&str]) -> Tty {
    args.iter().fold(home.call(&["context", "approve"]), |call, arg| call.arg(arg)).tty()
}

fn approved(home: &Home, time: &str) {
    let mut tty = approve(home, &["prod", "--for", time]);
    tty.expect("[y/N]");
    tty.type_line("y");
    let (text, status) = tty.finish();
    assert_eq!(status, 0, "{text}");
}

fn set_pin(home: &Home, pin: &str) {
    let mut tty = approve(home, &["--set-pin"]);
    tty.expect("New PIN: ");
    tty.type_line(pin);
    tty.expect("Again: ");
    tty.type_line(pin);
    let (text, status) = tty.finish();
    assert_eq!(status, 0, "{text}");
    assert!(!text.contains(pin), "the typed PIN is not echoed: {text}");
}

/// Tries to approve with a PIN.
fn with_pin(home: &Home, pin: &str) -> (String, i32) {
    let mut tty = approve(home, &["prod"]);
    tty.expect("PIN: ");
    tty.type_line(pin);
    let (text, status) = tty.finish();
    assert!(!text.contains(pin), "the typed PIN is not echoed: {text}");
    (text, status)
}

#[test]
fn invalid_duration_is_refused_before_the_prompt() {
    let home = guarded();
    for has_pin in [false, true] {
        if has_pin {
            set_pin(&home, "2468");
        }
        for time in ["25h", "0"] {
            let (text, status) = approve(&home, &["prod", "--for", time]).finish();
            assert_eq!(status, 2, "{text}");
            assert!(text.contains("between a second and 24 hours"), "{text}");
            assert!(!text.contains("[y/N]") && !text.contains("PIN"), "{text}");
        }
    }
}

#[test]
fn a_person_opens_it_for_a_while() {
    let home = guarded();
    assert!(!is_open(&home));
    let mut tty = approve(&home, &["prod", "--for", "30m"]);
    let question = tty.expect("? [y/N]");
    assert!(question.contains("Approve context \"prod\" for 30 min"), "{question}");
    tty.type_line("yes");
    let (text, status) = tty.finish();
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("approved context \"prod\" until 20"), "{text}");
    assert!(is_open(&home));
    home.write(".config/sessile/config.toml", "context = \"prod\"\n");
    home.call(&["context", "current", "--check"]).run().exit(7);
    let status = home.call(&["status", "--context", "prod", "-ojson"]).ok().json();
    assert_eq!(status["guard"]["satisfied"], true);
    assert!(status["guard"]["approved_until"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn unanswered_prompt_does_not_approve() {
    let home = guarded();
    let mut tty = approve(&home, &["prod"]);
    tty.expect("[y/N]");
    tty.end_input();
    assert_eq!(tty.finish().1, 1);
    let mut tty = approve(&home, &["prod"]);
    tty.expect("[y/N]");
    tty.type_line("n");
    assert_eq!(tty.finish().1, 1);
    assert!(!is_open(&home));
}

#[test]
fn approvals_are_listed_with_who_when_and_where() {
    let home = guarded();
    assert_eq!(home.call(&["context", "approve", "--list"]).ok().stdout(), "no active approvals\n");
    approved(&home, "30m");
    let json = home.call(&["context", "approve", "--list", "-ojson"]).ok().json();
    let members: Vec<&String> = json[0].as_object().unwrap().keys().collect();
    assert_eq!(
        members,
        ["id", "context", "path", "granted_at", "expires_at", "granted_by", "terminal", "with_pin"]
    );
    assert_eq!(json[0]["context"], "prod");
    assert!(json[0]["terminal"].as_str().unwrap().starts_with("/dev/"));
    let text = home.call(&["context", "approve", "--list"]).ok().stdout();
    assert!(text.starts_with("CONTEXT") && text.contains("prod"), "{text}");
}

#[test]
fn revoked_approval_stays_on_record() {
    let home = guarded();
    approved(&home, "30m");
    insta::assert_snapshot!(home.call(&["context", "approve", "prod", "--revoke"]).ok().told(), @r#"
    exit 0
    --- stdout
    revoked the approvals of context "prod"
    --- stderr
    "#);
    assert!(!is_open(&home));
    insta::assert_snapshot!(home.call(&["context", "approve", "prod", "--revoke"]).run().exit(5).told(), @r#"
    exit 5
    --- stdout
    --- stderr
    error: context "prod" has no active approval
    hint: list the approvals: sessile context approve --list
    "#);
    assert_eq!(home.call(&["context", "approve", "--list", "-ojson"]).ok().json(), serde_json::json!([]));
    let all = home.call(&["context", "approve", "--list", "--all", "-ojson"]).ok().json();
    assert!(all[0]["revoked_at"].is_string());
}

#[test]
fn shutting_is_allowed_inside_a_session_and_opening_is_not() {
    let home = guarded();
    approved(&home, "30m");
    home.call(&["session", "start", "--name", "s1"]).ok();
    home.call(&["context", "approve", "prod", "--revoke"]).env("SESSILE_SESSION", "s1").ok();
    for args in [
        &["context", "approve", "prod"][..],
        &["context", "approve", "--set-pin"],
        &["context", "approve", "--remove-pin"],
    ] {
        let (text, status) = home.call(args).env("SESSILE_SESSION", "s1").tty().finish();
        assert_eq!(status, 7, "{text}");
        assert!(text.contains("refused inside a session") && text.contains("outside the session"), "{text}");
    }
    assert!(!is_open(&home));
}

#[test]
fn yes_without_a_terminal_does_not_approve() {
    let home = guarded();
    insta::assert_snapshot!(home.call(&["context", "approve", "prod", "--yes"]).stdin("y\n").run().exit(2).told(), @"
    exit 2
    --- stdout
    --- stderr
    error: approving a context requires an interactive terminal
    hint: ask a person to run the command on a terminal
    ");
    let (_, status) = home.call(&["context", "approve", "prod"]).env("CI", "1").tty().finish();
    assert_eq!(status, 2);
    let (_, status) = approve(&home, &["prod", "--no-input"]).finish();
    assert_eq!(status, 2);
    assert!(!is_open(&home));
}

#[test]
fn an_approval_ends() {
    let home = guarded();
    approved(&home, "1ms");
    assert!(!is_open(&home));
}

#[test]
fn an_approval_is_for_one_context_and_one_name() {
    let home = guarded();
    home.write(".config/sessile/contexts/other.toml", "guard = \"approval\"\n");
    approved(&home, "30m");
    home.call(&["context", "current", "--check", "--context", "other"]).run().exit(7);
    home.call(&["context", "rename", "prod", "renamed"]).ok();
    home.call(&["context", "current", "--check", "--context", "renamed"]).run().exit(7);
}

#[test]
fn a_deleted_contexts_approval_does_not_open_its_successor() {
    let home = guarded();
    approved(&home, "30m");
    home.call(&["context", "edit", "prod", "--guard", "none"]).ok();
    home.call(&["context", "delete", "prod", "--yes"]).ok();
    home.call(&["context", "create", "prod", "--guard", "approval"]).ok();
    assert!(!is_open(&home));
}

#[test]
fn with_a_pin_set_it_must_be_the_right_one() {
    let home = guarded();
    set_pin(&home, "4711");
    let (text, status) = with_pin(&home, "4712");
    assert_eq!(status, 7, "{text}");
    assert!(text.contains("the PIN is wrong; 4 tries are left"), "{text}");
    assert!(!is_open(&home));
    let (text, status) = with_pin(&home, "4711");
    assert_eq!(status, 0, "{text}");
    assert!(is_open(&home));
    let list = home.call(&["context", "approve", "--list", "-ojson"]).ok().json();
    assert_eq!(list[0]["with_pin"], true);
}

#[test]
fn yes_does_not_replace_the_pin() {
    let home = guarded();
    set_pin(&home, "4711");
    let mut tty = approve(&home, &["prod", "--yes"]);
    tty.expect("PIN: ");
    tty.end_input();
    let (text, status) = tty.finish();
    assert_eq!(status, 7, "{text}");
    assert!(text.contains("PIN required"), "{text}");
    assert!(!text.contains("[y/N]"), "no other prompt appears: {text}");
    assert!(!is_open(&home));
}

#[test]
fn five_wrong_tries_shut_the_right_one_out_too() {
    let home = guarded();
    set_pin(&home, "4711");
    for left in
        ["4 tries are left", "3 tries are left", "2 tries are left", "1 try is left", "no try is left"]
    {
        let (text, status) = with_pin(&home, "0000");
        assert_eq!(status, 7, "{text}");
        assert!(text.contains(left), "{text}");
    }
    let (text, status) = with_pin(&home, "4711");
    assert_eq!(status, 7, "{text}");
    assert!(text.contains("wrong 5 times; try again in"), "{text}");
    assert!(!is_open(&home));
}

#[test]
fn a_right_try_forgets_the_wrong_ones() {
    let home = guarded();
    set_pin(&home, "4711");
    for _ in 0..2 {
        for _ in 0..3 {
            assert_eq!(with_pin(&home, "0000").1, 7);
        }
        assert_eq!(with_pin(&home, "4711").1, 0);
    }
}

#[test]
fn the_pin_is_changed_and_removed_only_by_who_knows_it() {
    let home = guarded();
    set_pin(&home, "4711");
    let mut tty = approve(&home, &["--remove-pin"]);
    tty.expect("Old PIN: ");
    tty.type_line("9999");
    assert_eq!(tty.finish().1, 7);
    let mut tty = approve(&home, &["--set-pin"]);
    tty.expect("Old PIN: ");
    tty.type_line("4711");
    tty.expect("New PIN: ");
    tty.type_line("0815");
    tty.expect("Again: ");
    tty.type_line("0815");
    assert_eq!(tty.finish().1, 0);
    assert_eq!(with_pin(&home, "4711").1, 7);
    let mut tty = approve(&home, &["--remove-pin"]);
    tty.expect("Old PIN: ");
    tty.type_line("0815");
    assert_eq!(tty.finish().1, 0);
    approved(&home, "30m");
}

#[test]
fn a_pin_that_is_too_short_or_mistyped_is_not_set() {
    let home = guarded();
    for (first, second, why) in [("123", "123", "at least 4 characters"), ("1234", "1243", "the PINs differ")]
    {
        let mut tty = approve(&home, &["--set-pin"]);
        tty.expect("New PIN: ");
        tty.type_line(first);
        tty.expect("Again: ");
        tty.type_line(second);
        let (text, status) = tty.finish();
        assert_eq!(status, 7, "{text}");
        assert!(text.contains(why), "{text}");
    }
    approved(&home, "30m");
}

#[test]
fn the_pin_stands_nowhere_in_plain_text() {
    let home = guarded();
    set_pin(&home, "correct-horse-4711");
    for (path, content) in home.tree() {
        let text = String::from_utf8_lossy(&content).into_owned();
        assert!(!text.contains("correct-horse"), "{}", path.display());
    }
}

/// Whoever could take the guard away would need nobody's approval.
mod weakening_the_guard {
    use super::*;

    const EDIT: &[&str] = &["context", "edit", "prod", "--guard", "none"];

    #[test]
    fn needs_a_person_or_an_approval() {
        let home = guarded();
        home.write("bundle.toml", "[contexts.prod]\n");
        for args in
            [EDIT, &["context", "create", "prod", "--yes"], &["context", "import", "bundle.toml", "--yes"]]
        {
            let done = home.call(args).arg("-ojson").run().exit(7);
            assert_eq!(done.code(), "GUARD_APPROVAL", "{args:?}");
        }
        assert!(!is_open(&home));
        home.call(&["context", "edit", "prod", "--description", "the real one"]).ok();
        approved(&home, "30m");
        home.call(EDIT).ok();
    }

    #[test]
    fn at_a_terminal_needs_an_approval_once_a_pin_is_set() {
        let home = guarded();
        let (text, status) = home.tty(EDIT).finish();
        assert_eq!(status, 0, "{text}");
        home.write(".config/sessile/contexts/prod.toml", "guard = \"approval\"\n");
        set_pin(&home, "4711");
        let (text, status) = home.tty(EDIT).finish();
        assert_eq!(status, 7, "{text}");
        assert!(!is_open(&home));
    }
}
