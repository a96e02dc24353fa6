//! `sessile config validate`: every problem at once, with its place.

use crate::home;

#[test]
fn every_problem_in_every_file_is_reported() {
    let home = home();
    home.write(".config/sessile/config.toml", "lock-timeout = 5\ncolour = \"never\"\ncolor = 1\n");
    home.write(".config/sessile/contexts/a.toml", "guard = \"sometimes\"\n");
    home.write(".config/sessile/contexts/b.toml", "[env\n");
    insta::assert_snapshot!(home.call(&["config", "validate"]).run().told(), @r#"
    exit 1
    --- stdout
    ~/.config/sessile/config.toml:1:1: error: "lock-timeout" must be a duration such as 500ms, 30s, 10m, 2h, 1h30m or 7d, not 5
    ~/.config/sessile/config.toml:2:1: warning: unknown key "colour"
      hint: did you mean "color"?
    ~/.config/sessile/config.toml:3:1: error: "color" must be one of auto, always, never, not 1
    ~/.config/sessile/contexts/a.toml:1:1: error: "guard" must be one of none, explicit, approval, not "sometimes"
    ~/.config/sessile/contexts/b.toml:1:5: error: unclosed table, expected `]`
    3 files, 5 problems: not valid
    --- stderr
    "#);
    let json = home.call(&["config", "validate", "-ojson"]).run().exit(1).json();
    assert_eq!(json["valid"], false);
    assert_eq!(json["problems"][0]["line"], 1);
    assert_eq!(json["problems"].as_array().unwrap().len(), 5);
}

#[test]
fn file_with_warnings_is_valid() {
    let home = home();
    home.write(".config/sessile/config.toml", "colour = \"never\"\n");
    let done = home.call(&["config", "validate"]).ok();
    insta::assert_snapshot!(done.told(), @r#"
    exit 0
    --- stdout
    ~/.config/sessile/config.toml:1:1: warning: unknown key "colour"
      hint: did you mean "color"?
    1 file, 1 problem: valid
    --- stderr
    "#);
}

#[test]
fn one_file_is_checked_as_one_for_config() {
    let home = home();
    home.write("team.toml", "context = \"a\"\n[contexts.a]\nguard = \"explicit\"\n");
    home.call(&["config", "validate", "team.toml"]).ok();
    home.write("bad.json", "{\"context\": \"a\", \"contexts\": {\"a\": {\"guard\": true}}}");
    insta::assert_snapshot!(home.call(&["config", "validate", "bad.json"]).run().told(), @r#"
    exit 1
    --- stdout
    ~/bad.json:1:37: error: "guard" must be text, not true
    1 file, 1 problem: not valid
    --- stderr
    "#);
    home.call(&["config", "validate", "missing.toml"]).run().exit(1);
}
