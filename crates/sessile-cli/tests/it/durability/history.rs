//! `sessile history`: every change, by whom and where, and never a secret.

use serde_json::Value;
use testkit::Home;

use crate::{home, home_with, start};

const CANARY: &str = "c4n4ry-7f3a9";

fn history(home: &Home, flags: &[&str]) -> Vec<Value> {
    home.call(&["history", "-ojson"]).args(flags).ok().json().as_array().unwrap().clone()
}

#[test]
fn every_change_is_an_operation_and_a_look_is_none() {
    let home = home_with(&["a", "b"]);
    home.write("p/.sessile/config.toml", "env.A = \"1\"\n");
    let calls: &[(&str, &[&str])] = &[
        ("config set", &["config", "set", "env.A", "1", "--global"]),
        ("config unset", &["config", "unset", "env.A", "--global"]),
        ("context create", &["context", "create", "c"]),
        ("context edit", &["context", "edit", "c", "--description", "x"]),
        ("context use", &["context", "use", "c", "--global"]),
        ("context rename", &["context", "rename", "c", "d"]),
        ("context delete", &["context", "delete", "d", "--yes"]),
        ("trust", &["trust", "p", "--yes"]),
        ("session start", &["session", "start", "--name", "s"]),
        ("session state set", &["session", "state", "set", "k", "1", "--session", "s"]),
        ("session state unset", &["session", "state", "unset", "k", "--session", "s"]),
        ("session rename", &["session", "rename", "s", "t"]),
        ("session stop", &["session", "stop", "t"]),
        ("session clear", &["session", "clear"]),
        ("lock acquire", &["lock", "acquire", "l"]),
        ("lock renew", &["lock", "renew", "l", "--token", "1"]),
        ("lock release", &["lock", "release", "l", "--token", "1"]),
    ];
    for (command, args) in calls {
        let before = history(&home, &[]).len();
        home.call(args).ok();
        let now = history(&home, &["--limit", "1000"]);
        assert_eq!(now.len(), before + 1, "{command}: {:?}", now.first());
        assert!(now[0]["command"].as_str().unwrap().starts_with(command), "{command}: {}", now[0]);
        assert_eq!(now[0]["state"], "done");
        let id = now[0]["id"].to_string();
        assert_eq!(home.call(&["history", "show", &id, "-ojson"]).ok().json(), now[0]);
    }
    let before = history(&home, &[]);
    for args in [&["status"][..], &["config", "show"], &["session", "list"], &["lock", "list"], &["doctor"]] {
        home.call(args).ok();
    }
    home.call(&["context", "create", "a"]).run().exit(6);
    home.call(&["context", "delete", "nowhere", "--yes"]).run().exit(5);
    assert_eq!(history(&home, &[]), before, "nor is what failed");
}

#[test]
fn it_is_filtered_and_paged() {
    let home = home();
    let (a, b) = (start(&home, &["--name", "a"]), start(&home, &["--name", "b"]));
    for number in 0..5 {
        let value = number.to_string();
        home.call(&["session", "state", "set", "k", &value, "--session", "a"]).ok();
    }
    home.call(&["session", "state", "set", "k", "1", "--session", "b"]).ok();
    let of = |flags: &[&str]| history(&home, flags);
    assert_eq!(of(&["--session", "a"]).len(), 5);
    assert!(of(&["--session", "a"]).iter().all(|one| one["session"] == a.as_str()));
    assert!(of(&["--session", "b"]).iter().all(|one| one["session"] == b.as_str()));
    let all: Vec<i64> = of(&[]).iter().map(|one| one["id"].as_i64().unwrap()).collect();
    let mut paged = Vec::new();
    let mut cursor = i64::MAX.to_string();
    loop {
        let page = of(&["--limit", "3", "--cursor", &cursor]);
        let Some(last) = page.last() else { break };
        cursor = last["id"].to_string();
        paged.extend(page.iter().map(|one| one["id"].as_i64().unwrap()));
    }
    assert_eq!(paged, all);
    assert_eq!(of(&["--since", "1h"]).len(), all.len());
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    assert!(of(&["--since", "1s"]).is_empty());
    home.call(&["history", "show", "9999"]).run().exit(5);
}

/// Searches every file of the state directory, the write-ahead log too.
fn assert_no_canary(home: &Home) {
    for (path, bytes) in home.tree().into_iter().filter(|(path, _)| path.starts_with(home.path(".local"))) {
        let found = bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes());
        assert!(!found, "a secret is in {}", path.display());
    }
}

#[test]
fn no_secret_gets_into_the_state_directory() {
    let home = home();
    let assignment = format!("GH_TOKEN={CANARY}");
    home.call(&["context", "create", "c", "--env", &assignment]).run();
    home.write(".config/sessile/contexts/c.toml", format!("[env]\nGH_TOKEN = \"{CANARY}\"\n"));
    home.call(&["context", "edit", "c", "--description", "x"]).ok();
    home.call(&["context", "rename", "c", "d"]).ok();
    home.call(&["config", "set", "env.API_TOKEN", CANARY, "--global"]).run();
    home.write(".config/sessile/config.toml", format!("[env]\nAPI_TOKEN = \"{CANARY}\"\n"));
    home.call(&["config", "set", "env.A", "1", "--global"]).ok();
    home.call(&["config", "unset", "env.API_TOKEN", "--global"]).ok();
    home.call(&["context", "use", "d", "--global"]).ok();
    home.call(&["context", "delete", "d", "--yes"]).ok();
    start(&home, &["--name", "s"]);
    home.call(&["lock", "run", "l", "--session", "s", "--", "/bin/echo", CANARY]).ok();
    home.call(&["history"]).ok();
    assert_no_canary(&home);
    let told = home.call(&["history", "-ojson", "--limit", "100"]).ok().stdout();
    assert!(!told.contains(CANARY));
}

#[test]
fn a_secret_is_not_kept_in_a_sessions_settings() {
    let home = home();
    start(&home, &["--name", "s"]);
    home.call(&["config", "set", "env.API_TOKEN", CANARY, "--session", "s"]).run();
    assert_no_canary(&home);
}
