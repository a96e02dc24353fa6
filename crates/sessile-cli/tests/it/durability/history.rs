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
fn history_is_filtered_and_paged() {
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

/// What was done in a session, without the secrets in it: one line in the room for each command.
#[test]
fn history_of_a_session_lists_its_commands() {
    let home = home();
    start(&home, &["--name", "s"]);
    let run = |words: &[&str]| home.call(&["run", "--session", "s", "--"]).args(words).ok();
    run(&["sh", "-c", "exit 0", "two words"]);
    run(&["echo", "--password", CANARY]);
    home.call(&["shell", "--session", "s", "--shell", "/bin/sh"]).stdin("exit\n").ok();
    home.call(&["run", "--session", "s", "--lock", "l", "--", "true"]).ok();
    home.call(&["run", "--session", "s", "--env", "nonsense", "--", "echo", "refused"]).run();
    assert_no_canary(&home);
    let history = |more: &[&str]| home.call(&["history", "--session", "s", "-ojson"]).args(more).ok().json();
    let all = history(&[]);
    let done: Vec<(&str, &str)> = all
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["command"] == "run")
        .map(|one| (one["subject"].as_str().unwrap(), one["state"].as_str().unwrap()))
        .collect();
    assert_eq!(done.len(), 4, "{all:#}");
    assert_eq!(done[0], ("true", "started"));
    assert!(done[1].0.starts_with("/bin/sh"), "{done:?}");
    assert_eq!(done[2].0, "echo --password '[hidden]'");
    assert_eq!(done[3].0, "sh -c 'exit 0' 'two words'");
    // Page by page it is the same.
    let mut pages = history(&["--limit", "2"]).as_array().unwrap().clone();
    while let Some(last) = pages.last().filter(|_| pages.len() < all.as_array().unwrap().len()) {
        let cursor = last["id"].as_str().map_or_else(|| last["id"].to_string(), str::to_owned);
        let page = history(&["--limit", "2", "--cursor", &cursor]);
        assert!(!page.as_array().unwrap().is_empty());
        pages.extend(page.as_array().unwrap().iter().cloned());
    }
    assert_eq!(&pages, all.as_array().unwrap());
    let text = home.call(&["history", "--session", "s"]).ok().stdout();
    assert!(text.contains("sh -c 'exit 0' 'two words'"), "{text}");
    home.call(&["history", "--session", "s", "--cursor", "run-1-1"]).run().exit(2);
}

#[test]
fn log_of_commands_is_bounded() {
    let home = home();
    start(&home, &["--name", "s"]);
    home.call(&["run", "--session", "s", "--", "true"]).ok();
    let room = crate::room(&home, "s");
    let line = std::fs::read_to_string(room.join("commands.jsonl")).unwrap();
    for _ in 0..2 {
        std::fs::write(room.join("commands.jsonl"), line.repeat(200_000 / line.len())).unwrap();
        home.call(&["run", "--session", "s", "--", "echo", "last"]).ok();
    }
    let size = |name: &str| room.join(name).metadata().unwrap().len();
    assert!(size("commands.jsonl") < 1000 && size("commands.old.jsonl") < 300_000);
    let all = home.call(&["history", "--session", "s", "-ojson", "--limit", "1"]).ok().json();
    assert_eq!(all[0]["subject"], "echo last");
    std::fs::remove_file(room.join("commands.jsonl")).unwrap();
    std::os::unix::fs::symlink(home.path("elsewhere"), room.join("commands.jsonl")).unwrap();
    home.call(&["run", "--session", "s", "--", "true"]).ok();
    assert!(!home.path("elsewhere").exists(), "nothing is written through a link");
}
