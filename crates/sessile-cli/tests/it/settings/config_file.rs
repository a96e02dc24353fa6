//! `--config FILE` stands for everything; `--no-config` leaves everything out.

use std::os::unix::fs::MetadataExt;

use serde_json::json;
use testkit::Home;

use crate::{home, home_with};

const TOKEN: &str = "t0psecret-4711";

/// A home with things of the user's that must not be seen.
fn lived_in() -> Home {
    let home = home_with(&["mine"]);
    home.write(".config/sessile/config.toml", "context = \"mine\"\nlock-timeout = \"1s\"\n");
    home.write("etc/config.toml", "lock-timeout = \"2s\"\n");
    home.write("project/.sessile/local.toml", "lock-timeout = \"3s\"\n");
    home
}

/// The files of a home that are not beside the isolated one.
fn usual_files(home: &Home) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let alone = home.path("alone");
    home.tree().into_iter().filter(|(path, _)| !path.starts_with(&alone)).collect()
}

#[test]
fn the_seeds_file_is_valid_and_its_token_goes_nowhere() {
    let home = lived_in();
    home.write_private("alone/c.json", json!({ "context": "production", "token": TOKEN }).to_string());
    let status = home.call(&["--config", "alone/c.json", "status", "-ojson"]).ok();
    assert_eq!(status.stderr(), "");
    let status = status.json();
    assert_eq!(status["current_context"], "production");
    assert_eq!(status["context_origin"]["layer"], "file");
    assert_eq!(status["context_exists"], true);
    assert_eq!(status["logged_in"], true);
    assert_eq!(status["config"], home.path("alone/c.json").to_str().unwrap());
}

#[test]
fn the_token_never_appears_in_any_output_or_file() {
    let home = lived_in();
    let text =
        json!({ "context": "production", "token": TOKEN, "contexts": { "production": {} } }).to_string();
    let file = home.write_private("alone/c.json", &text);
    for args in [
        &["status", "--show-state-files"][..],
        &["config", "show", "--effective", "--source"],
        &["config", "get", "token"],
        &["config", "get", "token", "--source"],
        &["config", "list"],
        &["config", "validate"],
        &["config", "set", "token", "x"],
        &["config", "unset", "token"],
        &["context", "create", "other"],
        &["context", "use", "other", "--global"],
        &["context", "show", "production"],
        &["context", "export", "--all"],
        &["context", "rename", "other", "another"],
        &["doctor"],
        &["manifest"],
    ] {
        for format in ["text", "json"] {
            let done = home.call(&["--config", "alone/c.json", "--verbose", "--output", format]);
            let done = args.iter().fold(done, |call, arg| call.arg(arg)).run();
            assert!(!done.told().contains(TOKEN), "{args:?}: {}", done.told());
        }
    }
    for (path, content) in home.tree() {
        let found = String::from_utf8_lossy(&content).contains(TOKEN);
        assert_eq!(found, path == file, "{}", path.display());
    }
}

#[test]
fn a_broken_file_does_not_show_its_token() {
    let home = home();
    for (name, text) in [
        ("a.json", format!("{{\"token\": \"{TOKEN}\" \"context\": 1}}")),
        ("a.toml", format!("token = \"{TOKEN}\" context = 1\n")),
        ("b.toml", format!("token = {TOKEN}\n")),
        ("c.toml", format!("token = [\"{TOKEN}\"]\n")),
        ("d.toml", format!("lock-timeout = 5\ntoken = \"{TOKEN}\"\n")),
    ] {
        home.write(name, text);
        for args in [&["status"][..], &["config", "get", "token"], &["config", "validate"], &["doctor"]] {
            for format in ["text", "json"] {
                let done = home.call(&["--config", name, "--output", format]);
                let done = args.iter().fold(done, |call, arg| call.arg(arg)).run();
                assert!(!done.told().contains(TOKEN), "{name} {args:?}: {}", done.told());
            }
        }
    }
}

#[test]
fn a_toml_file_holds_settings_and_contexts() {
    let home = lived_in();
    home.write(
        "alone/c.toml",
        "context = \"a\" # the one\nlock-timeout = \"9s\"\n\n[contexts.a]\ndescription = \"inline\"\nsettings.color = \"never\"\n",
    );
    let call =
        |args: &[&str]| home.call(args).env("SESSILE_CONFIG", home.path("alone/c.toml")).cwd("project");
    insta::assert_snapshot!(call(&["config", "show", "--source"]).ok().told(), @"
    exit 0
    --- stdout
    KEY           VALUE  ORIGIN
    color         never  context a ~/alone/c.toml:6
                  auto   default (shadowed)
    context       a      file ~/alone/c.toml:1
    lock-timeout  9s     file ~/alone/c.toml:2
                  5s     default (shadowed)
    --- stderr
    ");
    insta::assert_snapshot!(call(&["context", "list"]).ok().told(), @"
    exit 0
    --- stdout
       NAME  FROM  DESCRIPTION
    *  a     file  inline (current: file ~/alone/c.toml:1)
    --- stderr
    ");
}

#[test]
fn nothing_of_the_users_is_read_or_written() {
    let home = lived_in();
    home.write("alone/c.toml", "# alone\n");
    let before = usual_files(&home);
    let call = |args: &[&str]| {
        args.iter()
            .fold(home.call(&["--config", "../alone/c.toml"]).cwd("project"), |call, arg| call.arg(arg))
    };
    assert_eq!(call(&["config", "get", "lock-timeout"]).ok().stdout(), "5s\n");
    assert_eq!(call(&["context", "list", "-ojson"]).ok().json(), json!([]));
    call(&["context", "create", "a", "--description", "first"]).ok();
    call(&["context", "create", "b"]).ok();
    call(&["context", "use", "a", "--global"]).ok();
    call(&["context", "use", "b", "--global"]).ok();
    assert_eq!(call(&["context", "use", "-", "--global", "-ojson"]).ok().json()["new"], "a");
    call(&["config", "set", "lock-timeout", "9s"]).ok();
    call(&["context", "rename", "a", "c"]).ok();
    call(&["context", "delete", "b", "--yes"]).ok();
    insta::assert_snapshot!(home.read("alone/c.toml"), @r#"
    # alone

    context = "c"
    lock-timeout = "9s"
    [contexts.c]
    description = "first"
    "#);
    assert_eq!(usual_files(&home), before);
    let state = home.path("alone/c.toml.state");
    assert_eq!(state.metadata().unwrap().mode() & 0o777, 0o700);
    assert_eq!(state.join("state.db").metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn json_is_edited_in_place_too() {
    let home = home();
    home.write("alone/c.json", "{\n  \"lock-timeout\": \"1s\",\n  \"color\": \"never\"\n}\n");
    let call = |args: &[&str]| {
        args.iter().fold(home.call(&["--config", "alone/c.json"]), |call, arg| call.arg(arg)).ok()
    };
    call(&["config", "set", "lock-timeout", "9s"]);
    call(&["context", "create", "a", "--guard", "explicit"]);
    call(&["config", "unset", "color"]);
    insta::assert_snapshot!(home.read("alone/c.json"), @r#"
    {
      "lock-timeout": "9s",
      "contexts": {
        "a": {
          "guard": "explicit"
        }
      }
    }
    "#);
}

#[test]
fn reading_makes_no_state_directory() {
    let home = home();
    home.write("alone/c.toml", "context = \"a\"\n");
    home.call(&["--config", "alone/c.toml", "status", "--show-state-files"]).ok();
    home.call(&["--config", "alone/c.toml", "context", "current"]).ok();
    assert!(!home.path("alone/c.toml.state").exists());
}

#[test]
fn a_terminals_selection_outside_does_not_count_inside() {
    let home = lived_in();
    home.write("alone/c.toml", "[contexts.a]\n");
    let mut shell = home.shell();
    assert_eq!(shell.run("sessile context use mine").1, 0);
    let (text, status) = shell.run("sessile --config alone/c.toml context current");
    assert_eq!(status, 5, "{text}");
    assert_eq!(shell.run("sessile --config alone/c.toml context use a").1, 0);
    assert!(shell.run("sessile context current").0.contains("mine"));
}

#[test]
fn invalid_config_file_is_refused_before_a_write() {
    let home = home();
    home.write("alone/c.toml", "# alone\n");
    let before = home.tree();
    let done =
        home.call(&["--config", "alone/c.toml", "context", "create", "a", "--env", "A B=1"]).run().exit(1);
    assert!(done.stderr().contains("named like a variable"), "{}", done.told());
    assert_eq!(home.tree(), before);
}

#[test]
fn missing_config_file_is_not_created() {
    let home = home();
    insta::assert_snapshot!(home.call(&["--config", "nothing.toml", "status"]).run().told(), @"
    exit 5
    --- stdout
    --- stderr
    error: ~/nothing.toml does not exist
    hint: check the path
    ");
    home.call(&["--config", "nothing.toml", "config", "set", "color", "never"]).run().exit(5);
    assert!(!home.path("nothing.toml").exists());
}

#[test]
fn no_config_ignores_every_file_and_changes_none() {
    let home = lived_in();
    let call = |args: &[&str]| {
        args.iter().fold(home.call(&["--no-config"]).cwd("project"), |call, arg| call.arg(arg))
    };
    let before = home.tree();
    assert_eq!(call(&["config", "get", "lock-timeout"]).ok().stdout(), "5s\n");
    assert_eq!(call(&["context", "list", "-ojson"]).ok().json(), json!([]));
    assert_eq!(call(&["status", "-ojson"]).ok().json()["current_context"], json!(null));
    assert_eq!(call(&["status", "--show-state-files", "-ojson"]).ok().json()["state_files"], json!([]));
    insta::assert_snapshot!(call(&["config", "set", "color", "never", "--global"]).run().told(), @"
    exit 2
    --- stdout
    --- stderr
    error: --no-config excludes every settings file; remove the flag
    ");
    insta::assert_snapshot!(call(&["context", "create", "a"]).run().told(), @"
    exit 2
    --- stdout
    --- stderr
    error: contexts cannot be written with --no-config; remove the flag
    ");
    call(&["context", "use", "mine", "--global"]).run().exit(2);
    assert_eq!(home.tree(), before);
}

#[test]
fn config_file_in_yaml_is_refused_by_its_format() {
    let home = home();
    for (name, text) in [
        ("c.yml", "context: production\n"),
        ("c.yaml", "a:\n  - b\n"),
        ("empty.yml", ""),
        ("c.ini", "[a]\nb : c\n"),
    ] {
        home.write(name, text);
        let done = home.call(&["--config", name, "status"]).run();
        assert_ne!(done.status(), Some(0), "{name}");
        assert!(done.stderr().contains("not TOML or JSON"), "{name}: {}", done.told());
    }
    home.write("sessilerc", "color = \"never\"\n");
    home.call(&["--config", "sessilerc", "status"]).ok();
}

mod state_directory {
    use super::*;

    fn lone() -> Home {
        let home = lived_in();
        home.write("alone/c.toml", "[contexts.staging]\n");
        home
    }

    fn call(home: &Home, args: &[&str]) -> testkit::Call {
        home.call(&["--config", "alone/c.toml"]).args(args)
    }

    fn exists(home: &Home) -> bool {
        home.path("alone/c.toml.state").exists()
    }

    #[test]
    fn last_session_takes_the_state_directory_along() {
        let home = lone();
        call(&home, &["run", "--", "true"]).ok();
        assert!(!exists(&home), "after a session for one command");
        call(&home, &["run", "--", "false"]).run().exit(1);
        assert!(!exists(&home), "after a command that failed");
        for name in ["a", "b"] {
            call(&home, &["run", "--session", name, "--context", "staging", "--", "true"]).ok();
        }
        call(&home, &["session", "stop", "a"]).ok();
        call(&home, &["run", "--", "true"]).ok();
        assert!(exists(&home), "session b lives");
        call(&home, &["session", "show", "b"]).ok();
        call(&home, &["session", "stop", "b"]).ok();
        assert!(!exists(&home), "after the last session");
        call(&home, &["session", "start", "--idle", "1s", "-q"]).ok();
        std::thread::sleep(std::time::Duration::from_millis(1100));
        call(&home, &["session", "gc"]).ok();
        assert!(!exists(&home), "after an expired session");
    }

    #[test]
    fn state_directory_with_something_else_in_it_stays() {
        let things: [&[&str]; 4] = [
            &["lock", "run", "deploy", "true"],
            &["config", "set", "lock-timeout", "3s", "--global"],
            &["context", "create", "other"],
            &["session", "start", "-q"],
        ];
        for args in things {
            let home = lone();
            call(&home, args).ok();
            call(&home, &["run", "--", "true"]).ok();
            assert!(exists(&home), "{args:?}");
        }
        let home = lone();
        call(&home, &["auth", "set", "bot", "--secret-stdin"]).stdin("s3cret").ok();
        call(&home, &["run", "--", "true"]).ok();
        assert!(exists(&home), "a vault");
        assert!(call(&home, &["auth", "list"]).ok().stdout().contains("bot"));
    }

    #[test]
    fn parallel_calls_lose_no_session_and_leave_no_directory() {
        let home = lone();
        let rounds = 12;
        std::thread::scope(|scope| {
            for agent in 0..6 {
                let home = &home;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let name = format!("s{agent}-{round}");
                        call(home, &["run", "--", "true"]).ok();
                        call(home, &["session", "start", "--name", &name, "-q"]).ok();
                        // Acknowledged, so it is there.
                        call(home, &["session", "show", &name]).ok();
                        call(home, &["session", "stop", &name]).ok();
                    }
                });
            }
        });
        assert!(!exists(&home), "{:?}", home.tree());
    }
}
