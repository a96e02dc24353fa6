//! The global flags, and the variables that say the same.

use crate::{home, home_with};

#[test]
fn every_flag_has_its_variable() {
    let home = home_with(&["dev"]);
    let file = home.write("alone.toml", "lock-timeout = \"77s\"\n");
    let value = |variable: &str, value: &str, key: &str| {
        home.call(&["config", "get", key]).env(variable, value).ok().stdout().trim().to_owned()
    };
    assert_eq!(value("SESSILE_CONTEXT", "dev", "context"), "dev");
    assert_eq!(value("SESSILE_CONFIG", file.to_str().unwrap(), "lock-timeout"), "77s");
    assert_eq!(value("SESSILE_SET", "lock-timeout=8s", "lock-timeout"), "8s");
    assert_eq!(
        value("SESSILE_SET", "color=never\n\nlock-timeout=8s\n", "lock-timeout"),
        "8s",
        "one on each line"
    );
    assert_eq!(value("SESSILE_LOCK_TIMEOUT", "9s", "lock-timeout"), "9s");
    assert_eq!(value("SESSILE_COLOR", "never", "color"), "never");
    home.write(".config/sessile/config.toml", "lock-timeout = \"1s\"\n");
    assert_eq!(value("SESSILE_NO_CONFIG", "yes", "lock-timeout"), "5s");
    home.call(&["session", "start", "--name", "s1"]).ok();
    let json = home.call(&["status"]).env("SESSILE_OUTPUT", "json").env("SESSILE_SESSION", "s1").ok().json();
    assert_eq!(json["session_details"]["name"], "s1");
    assert_eq!(
        home.call(&["config", "set", "color", "auto", "--global"]).env("SESSILE_QUIET", "1").ok().stderr(),
        ""
    );
    home.call(&["status"]).env("SESSILE_VERBOSE", "1").ok();
}

#[test]
fn no_input_asks_nothing_even_on_a_terminal() {
    let home = home_with(&["old"]);
    for call in [
        home.call(&["context", "delete", "old", "--no-input"]),
        home.call(&["context", "delete", "old"]).env("SESSILE_NO_INPUT", "1"),
        home.call(&["context", "delete", "old"]).env("CI", "true"),
    ] {
        let (text, status) = call.tty().finish();
        assert_eq!(status, 2, "{text}");
        assert!(text.contains("the call is not interactive") && text.contains("--yes"), "{text}");
    }
    home.call(&["context", "show", "old"]).ok();
}

#[test]
fn nothing_in_the_environment_says_yes() {
    let home = home_with(&["old"]);
    for variable in ["SESSILE_YES", "SESSILE_ASSUME_YES", "YES"] {
        let done = home.call(&["context", "delete", "old"]).env(variable, "true").run().exit(2);
        assert!(done.stderr().contains("--yes"), "{}", done.told());
    }
    home.call(&["context", "show", "old"]).ok();
}

#[test]
fn a_flag_wins_over_its_variable() {
    let home = home();
    let done = home
        .call(&["config", "get", "lock-timeout", "--lock-timeout", "1s"])
        .env("SESSILE_LOCK_TIMEOUT", "2s");
    assert_eq!(done.ok().stdout(), "1000ms\n");
    let done = home.call(&["status", "--output", "text"]).env("SESSILE_OUTPUT", "json");
    assert!(done.ok().stdout().starts_with("context"));
    home.write(".config/sessile/config.toml", "lock-timeout = \"1s\"\n");
    let file = home.write("alone.toml", "lock-timeout = \"2s\"\n");
    let done = home.call(&["config", "get", "lock-timeout", "--no-config"]).env("SESSILE_CONFIG", file);
    assert_eq!(done.ok().stdout(), "5s\n");
}

#[test]
fn a_variable_that_is_set_to_nothing_is_not_set() {
    let home = home();
    let call = home.call(&["config", "get", "lock-timeout"]);
    assert_eq!(call.env("SESSILE_LOCK_TIMEOUT", "").env("SESSILE_CONFIG", "").ok().stdout(), "5s\n");
}

#[test]
fn invalid_flag_value_is_reported_with_its_name() {
    let home = home();
    let told = |variable: &str, value: &str| home.call(&["status"]).env(variable, value).run().exit(2).told();
    insta::assert_snapshot!(told("SESSILE_QUIET", "maybe"), @r#"
    exit 2
    --- stdout
    --- stderr
    error: SESSILE_QUIET: "maybe" is not true or false
    "#);
    insta::assert_snapshot!(told("SESSILE_LOCK_TIMEOUT", "5"), @r#"
    exit 2
    --- stdout
    --- stderr
    error: SESSILE_LOCK_TIMEOUT: "5" is not a duration such as 500ms, 30s, 10m, 2h, 1h30m or 7d
    "#);
    insta::assert_snapshot!(told("SESSILE_SET", "lock-timeout"), @r#"
    exit 2
    --- stdout
    --- stderr
    error: SESSILE_SET: "lock-timeout" is not KEY=VALUE
    "#);
    insta::assert_snapshot!(told("SESSILE_SET", "lock-timout=5s"), @r#"
    exit 2
    --- stdout
    --- stderr
    error: setting "lock-timout" not found
    hint: did you mean "lock-timeout"?
    "#);
    insta::assert_snapshot!(told("SESSILE_SET", "token=abc"), @"
    exit 2
    --- stdout
    --- stderr
    error: SESSILE_SET token: secrets are not allowed here
    hint: arguments and variables are seen by other programs; use a file given with --config
    ");
    insta::assert_snapshot!(home.call(&["status", "--set", "color=pink"]).run().exit(2).told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: --set color: "pink" is not one of auto, always, never
    "#);
    insta::assert_snapshot!(home.call(&["status", "--lock-timeout", "5"]).run().exit(2).told(), @"
    exit 2
    --- stdout
    --- stderr
    error: invalid value '5' for '--lock-timeout <DURATION>': expected a duration such as 500ms, 30s, 10m, 2h, 1h30m or 7d
    hint: add --help for details
    ");
    insta::assert_snapshot!(home.call(&["status", "--config", "a.toml", "--no-config"]).run().exit(2).told(), @"
    exit 2
    --- stdout
    --- stderr
    error: the argument '--config <FILE>' cannot be used with '--no-config'
    hint: Usage: sessile status --config <FILE>; add --help for details
    ");
    let both = home.call(&["status"]).env("SESSILE_CONFIG", "a.toml").env("SESSILE_NO_CONFIG", "1").run();
    insta::assert_snapshot!(both.exit(2).told(), @"
    exit 2
    --- stdout
    --- stderr
    error: SESSILE_CONFIG and SESSILE_NO_CONFIG contradict each other
    ");
}

#[test]
fn a_session_that_does_not_exist_is_not_found() {
    insta::assert_snapshot!(home().call(&["status", "--session", "nothing"]).run().exit(5).told(), @r#"
    exit 5
    --- stdout
    --- stderr
    error: session "nothing" not found
    hint: list the sessions: sessile session list
    "#);
}

#[test]
fn every_directory_can_be_put_elsewhere() {
    let home = home();
    home.call(&["config", "set", "color", "never", "--global"])
        .env("SESSILE_CONFIG_DIR", home.path("a"))
        .ok();
    assert_eq!(home.read("a/config.toml"), "color = \"never\"\n");
    home.call(&["config", "set", "color", "never", "--global"]).env("XDG_CONFIG_HOME", home.path("b")).ok();
    assert_eq!(home.read("b/sessile/config.toml"), "color = \"never\"\n");
    let home = home_with(&["dev"]);
    home.call(&["context", "use", "dev", "--global"]).env("SESSILE_STATE_DIR", home.path("c")).ok();
    assert!(home.path("c/state.db").exists());
    home.call(&["context", "use", "dev", "--global"]).env("XDG_STATE_HOME", home.path("d")).ok();
    assert!(home.path("d/sessile/state.db").exists());
    assert!(!home.path(".local").exists());
}
