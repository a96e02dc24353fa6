//! `sessile demo`: what parallel processes do to shared state, without Sessile and with it.

use crate::home;

#[test]
fn sessile_loses_nothing_and_mixes_nothing_up() {
    let home = home();
    let before = home.tree();
    let done = home.call(&["demo", "--tool", "git", "--agents", "4", "--output", "json"]).ok();
    let result = done.json();
    assert_eq!(result["agents"], 4);
    assert_eq!(result["without"][0]["tool"], "git");
    let with = &result["with"][0];
    assert_eq!(with["tool"], "git");
    assert_eq!(with["error"], serde_json::Value::Null);
    for count in ["mixed_up", "lost", "refused"] {
        assert_eq!(with[count], 0, "{count}: {with}");
    }
    assert!(with["reads"].as_u64().unwrap() >= 4 && with["writes"].as_u64().unwrap() >= 4, "{with}");
    assert_eq!(home.tree(), before, "the user's own files are not touched");
}

#[test]
fn missing_tool_is_reported() {
    let done = home().call(&["demo", "--tool", "nonsense"]).run().exit(2);
    insta::assert_snapshot!(done.told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: the demo does not support "nonsense"; try docker, gh, git, kubectl, npm, pip, terraform
    "#);
    home().call(&["demo", "--agents", "1"]).run().exit(2);
}
