//! `sessile config get`.

use crate::{home, home_with};

#[test]
fn the_value_alone_is_printed_and_on_request_its_origin() {
    let home = home();
    home.write(
        ".config/sessile/config.toml",
        "# mine\nlock-timeout = \"9s\"\ntools.only = [\"git\", \"aws\"]\n",
    );
    assert_eq!(home.call(&["config", "get", "lock-timeout"]).ok().stdout(), "9s\n");
    assert_eq!(home.call(&["config", "get", "tools.only"]).ok().stdout(), "git,aws\n");
    insta::assert_snapshot!(home.call(&["config", "get", "lock-timeout", "--source"]).ok().told(), @"
    exit 0
    --- stdout
    9s	user ~/.config/sessile/config.toml:2
    --- stderr
    ");
    let json = home.call(&["config", "get", "tools.only", "-ojson"]).ok().json();
    assert_eq!(json["value"], serde_json::json!(["git", "aws"]));
    assert_eq!(json["origin"]["line"], 3);
}

#[test]
fn a_built_in_value_is_a_value() {
    let json = home().call(&["config", "get", "session.max", "-ojson"]).ok().json();
    assert_eq!(json["value"], "8h");
    assert_eq!(json["origin"]["layer"], "default");
}

#[test]
fn unset_and_unknown_settings_differ() {
    let home = home_with(&["staging"]);
    insta::assert_snapshot!(home.call(&["config", "get", "expect-context"]).run().told(), @"
    exit 5
    --- stdout
    --- stderr
    error: expect-context is not set
    hint: set it: sessile config set expect-context VALUE
    ");
    insta::assert_snapshot!(home.call(&["config", "get", "lock-timout"]).run().told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: setting "lock-timout" not found
    hint: did you mean "lock-timeout"?
    "#);
    insta::assert_snapshot!(home.call(&["config", "get", "a = b"]).run().told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: "a = b" is not a valid setting name: expected a key such as lock-timeout or session.idle
    "#);
}
