//! The output contract: what stands on which stream, and the exit status.

use std::collections::BTreeSet;

use serde_json::Value;
use sessile_cli::effects::{CommandEffect, TABLE};
use testkit::{CallResult, Home};

use crate::{home, home_with};

/// A home in which every command has something to say.
fn furnished() -> Home {
    let home = home_with(&["prod", "staging", "old"]);
    home.write(".config/sessile/config.toml", "context = \"staging\"\nlock-timeout = \"9s\"\n");
    home.write("secret", "x\n");
    home.write("bundle.toml", "[contexts.fresh]\ndescription = \"taken in\"\n");
    home.write("project/.sessile/config.toml", "env.A = \"1\"\n");
    let shell = home.write("say", "#!/bin/sh\necho '{}'\n");
    std::fs::set_permissions(shell, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    home
}

/// The same, with what the command is about: an operation 1, a session "work" with a value, an exported one, a lock
/// with token 1, and a copy of the store.
pub(crate) fn furnished_for(path: &str) -> Home {
    let home = furnished();
    let word = path.split(' ').next().unwrap_or_default();
    let steps: &[&[&str]] = match word {
        "history" | "undo" => &[&["config", "set", "env.X", "1", "--global"]],
        "lock" => &[&["lock", "acquire", "held"]],
        "agent" => &[&["agent", "add", "known", "http://localhost:8", "--global"]],
        "backup" => &[&["backup", "copy"]],
        "serve" => &[&["user", "add", "bob"], &["serve", "backup", "copy"]],
        "session" => &[
            &["session", "start", "--name", "work"],
            &["session", "state", "set", "cursor", "1", "--session", "work"],
            &["session", "export", "work", "--file", "work.json"],
        ],
        "env" => &[&["session", "start", "--name", "work"]],
        "auth" => &[
            &["auth", "set", "bot", "--secret-file", "secret"],
            &["auth", "set", "asked", "--command", "echo answer", "--cache", "1h"],
        ],
        _ => &[],
    };
    for step in steps {
        home.call(step).ok();
    }
    home
}

/// A call of every command that can succeed without a terminal. The others are in [`ELSEWHERE`].
pub(crate) const CALLS: &[(&str, &[&str])] = &[
    ("agent add", &["agent", "add", "local", "http://localhost:9", "--global"]),
    ("agent list", &["agent", "list"]),
    ("agent remove", &["agent", "remove", "known", "--global"]),
    ("agent use", &["agent", "use", "known", "--global"]),
    ("auth check", &["auth", "check", "bot"]),
    ("auth clear", &["auth", "clear", "bot", "--yes"]),
    ("auth list", &["auth", "list"]),
    ("auth logout", &["auth", "logout", "bot", "--yes"]),
    ("auth refresh", &["auth", "refresh", "asked"]),
    ("auth rekey", &["auth", "rekey", "--to", "file"]),
    ("auth set", &["auth", "set", "new", "--secret-file", "secret"]),
    ("auth show", &["auth", "show", "bot"]),
    ("auth status", &["auth", "status"]),
    ("auth unlock", &["auth", "unlock", "--end"]),
    ("backup", &["backup"]),
    ("backup restore", &["backup", "restore", "copy", "--yes"]),
    ("completions", &["completions", "bash"]),
    ("config get", &["config", "get", "lock-timeout"]),
    ("config describe", &["config", "describe"]),
    ("config list", &["config", "list"]),
    ("config path", &["config", "path"]),
    ("config schema", &["config", "schema"]),
    ("config set", &["config", "set", "env.X", "1", "--global"]),
    ("config show", &["config", "show", "--effective", "--source"]),
    ("config unset", &["config", "unset", "lock-timeout", "--global"]),
    ("config validate", &["config", "validate"]),
    ("conversation list", &["conversation", "list"]),
    ("conversation search", &["conversation", "search", "x"]),
    ("context approve", &["context", "approve", "--list"]),
    ("context create", &["context", "create", "new"]),
    ("context current", &["context", "current"]),
    ("context delete", &["context", "delete", "old", "--yes"]),
    ("context edit", &["context", "edit", "staging", "--description", "x"]),
    ("context export", &["context", "export", "--all"]),
    ("context import", &["context", "import", "bundle.toml"]),
    ("context list", &["context", "list"]),
    ("context rename", &["context", "rename", "old", "older"]),
    ("context show", &["context", "show", "staging"]),
    ("context use", &["context", "use", "prod", "--global"]),
    ("demo", &["demo", "--tool", "git", "--agents", "2"]),
    ("doctor", &["doctor"]),
    ("env", &["env", "--session", "work"]),
    ("help", &["help", "run"]),
    ("history", &["history"]),
    ("history show", &["history", "show", "1"]),
    ("hook", &["hook", "bash"]),
    ("hook install", &["hook", "install", "bash", "--yes"]),
    ("hook remove", &["hook", "remove", "zsh", "--yes"]),
    ("import", &["import", "--yes"]),
    ("import apply", &["import", "apply", "bundle.toml"]),
    ("import scan", &["import", "scan"]),
    ("lock acquire", &["lock", "acquire", "free"]),
    ("lock break", &["lock", "break", "held", "--holder", "1"]),
    ("lock list", &["lock", "list"]),
    ("lock release", &["lock", "release", "held", "--token", "1"]),
    ("lock renew", &["lock", "renew", "held", "--token", "1"]),
    ("lock run", LOCK_RUN),
    ("man", &["man"]),
    ("manifest", &["manifest"]),
    ("mcp config", &["mcp", "config", "--client", "claude"]),
    ("prompt", &["prompt"]),
    ("run", &["run", "--", "echo", "{}"]),
    ("serve backup", &["serve", "backup", "made"]),
    ("serve restore", &["serve", "restore", "copy", "--yes"]),
    ("session clear", &["session", "clear"]),
    ("session export", &["session", "export", "work"]),
    ("session gc", &["session", "gc"]),
    ("session import", &["session", "import", "work.json", "--name", "copy"]),
    ("session list", &["session", "list"]),
    ("session rename", &["session", "rename", "work", "play"]),
    ("session log", &["session", "log", "work"]),
    ("session show", &["session", "show", "work"]),
    ("session start", &["session", "start"]),
    ("session state get", &["session", "state", "get", "cursor", "--session", "work"]),
    ("session state list", &["session", "state", "list", "--session", "work"]),
    ("session state set", &["session", "state", "set", "cursor", "2", "--session", "work"]),
    ("session state unset", &["session", "state", "unset", "cursor", "--session", "work"]),
    ("session stop", &["session", "stop", "work"]),
    ("setup", &["setup", "claude", "--yes"]),
    ("shell", &["shell", "--shell", "./say"]),
    ("skill", &["skill"]),
    ("status", &["status", "--show-state-files"]),
    ("tool check", &["tool", "check", "git"]),
    ("tool list", &["tool", "list"]),
    ("tool show", &["tool", "show", "kubectl"]),
    ("trust", &["trust", "project", "--yes"]),
    ("user add", &["user", "add", "ann"]),
    ("user audit", &["user", "audit"]),
    ("user list", &["user", "list"]),
    ("undo", &["undo", "1"]),
];

/// Output is the command's own; `--output` comes before the dashes.
const LOCK_RUN: &[&str] = &["lock", "run", "free", "--", "echo", "{}"];

/// They need an editor, a server or another vault: their own tests look at what they print.
const ELSEWHERE: &[&str] = &[
    "config edit",
    "auth login",
    "auth move",
    "agent card",
    "chat",
    "tui",
    "agent show",
    "agent demo",
    "agent listen",
    "agent validate",
    "conversation clear",
    "conversation export",
    "conversation rename",
    "conversation show",
    "mcp",
    "serve",
    "user approve",
    "user disable",
    "user token create",
    "user token list",
    "user token revoke",
    "message send",
    "message stream",
    "probe",
    "session attach",
    "session detach",
    "task cancel",
    "task download",
    "task get",
    "task list",
    "task notification get",
    "task notification list",
    "task notification remove",
    "task notification set",
    "task watch",
];

/// These print or list unless they are told to write; what `run`, `shell` and `lock run` print is their command's.
const PRINT_UNLESS_TOLD: &[&str] = &[
    "context approve",
    "context export",
    "doctor",
    "env",
    "lock run",
    "man",
    "run",
    "session export",
    "shell",
];

fn call(home: &Home, args: &[&str], format: &str) -> CallResult {
    home.call(&["--output", format]).args(args).run()
}

#[test]
fn the_bare_call_prints_help_and_succeeds() {
    let done = home().call(&[]).ok();
    assert!(done.stdout().contains("Usage: sessile"));
    assert_eq!(done.stderr(), "");
}

#[test]
fn every_command_is_called_here() {
    let called: BTreeSet<&str> =
        CALLS.iter().map(|(path, _)| *path).chain(ELSEWHERE.iter().copied()).collect();
    let known: BTreeSet<&str> = TABLE.iter().map(|entry| entry.path).collect();
    assert_eq!(called, known);
}

#[test]
fn json_is_exactly_one_document_on_standard_output() {
    for (path, args) in CALLS {
        let done = call(&furnished_for(path), args, "json").exit(0);
        assert!(done.json().is_object() || done.json().is_array(), "{path}: {}", done.told());
    }
}

#[test]
fn json_lines_hold_one_document_each() {
    for (path, args) in CALLS {
        let done = call(&furnished_for(path), args, "jsonl").exit(0);
        for line in done.stdout().lines() {
            let document: Result<Value, _> = serde_json::from_str(line);
            assert!(document.is_ok(), "{path}: {}", done.told());
        }
    }
}

#[test]
fn warnings_are_json_too() {
    let home = furnished();
    home.write(".config/sessile/config.toml", "lock-timout = \"9s\"\n");
    for (path, args) in CALLS {
        let done = call(&home, args, "json");
        for line in done.stderr().lines() {
            let beside: Result<Value, _> = serde_json::from_str(line);
            assert!(beside.is_ok_and(|beside| beside.is_object()), "{path}: {}", done.told());
        }
    }
}

#[test]
fn a_change_says_in_which_context_and_session_it_was_made() {
    for (path, args) in CALLS {
        let entry = TABLE.iter().find(|entry| entry.path == *path).unwrap();
        if entry.effect == CommandEffect::Read || PRINT_UNLESS_TOLD.contains(path) {
            continue;
        }
        let done = call(&furnished_for(path), args, "json").exit(0);
        let result = done.json();
        let selected = if *path == "context use" { "prod" } else { "staging" };
        assert_eq!(result["context"], selected, "{path}: {}", done.told());
        let layer = if args.contains(&"--session") { "session" } else { "user" };
        assert_eq!(result["context_origin"]["layer"], layer, "{path}: {}", done.told());
        assert!(result.as_object().unwrap().contains_key("session"), "{path}: {}", done.told());
    }
}

#[test]
fn a_change_inside_a_session_names_it() {
    let home = furnished();
    let id = home.call(&["session", "start", "--quiet"]).ok().stdout().trim().to_owned();
    let done = home.call(&["context", "create", "new", "--output", "json"]).env("SESSILE_SESSION", &id).ok();
    assert_eq!(done.json()["session"], id);
    assert_eq!(done.json()["context_origin"]["layer"], "session");
}

#[test]
fn no_escape_byte_reaches_a_pipe() {
    for (path, args) in CALLS {
        let done = furnished_for(path).call(args).run();
        assert!(!format!("{}{}", done.stdout(), done.stderr()).contains('\x1b'), "{path}");
    }
}

#[test]
fn a_failure_is_one_line_of_json_and_nothing_on_standard_output() {
    for format in ["json", "jsonl"] {
        let done = call(&home_with(&["prod"]), &["context", "show", "prdo"], format).exit(5);
        insta::allow_duplicates! {
            insta::assert_snapshot!(done.told(), @r#"
            exit 5
            --- stdout
            --- stderr
            {"error":{"code":"CONTEXT_NOT_FOUND","message":"context \"prdo\" not found","exit_code":5,"retryable":false,"retry_after_ms":null,"hint":"did you mean \"prod\"?","fix_command":null}}
            "#);
        }
    }
}

#[test]
fn a_failure_always_has_the_same_members() {
    let home = furnished();
    home.write("broken.toml", "context = \n");
    for args in [
        &["nonsense"][..],
        &["context"],
        &["status", "--nonsense"],
        &["config", "set", "x"],
        &["--output", "yaml", "status", "--output", "json"],
        &["context", "show", "nothing"],
        &["context", "use", "staging"],
        &["context", "delete", "staging"],
        &["context", "create", "../../x"],
        &["context", "create", "staging"],
        &["config", "get", "expect-context"],
        &["config", "set", "lock-timeout", "soon", "--global"],
        &["--config", "broken.toml", "status"],
        &["--config", "missing.toml", "status"],
        &["--session", "x", "status"],
        &["context", "approve", "prod"],
    ] {
        let done = call(&home, args, "json");
        let error = done.json_error();
        assert_eq!(done.stderr().lines().count(), 1, "{args:?}: {}", done.told());
        let members: Vec<&String> = error.as_object().unwrap().keys().collect();
        assert_eq!(
            members,
            ["code", "message", "exit_code", "retryable", "retry_after_ms", "hint", "fix_command"],
            "{args:?}"
        );
        assert_eq!(error["exit_code"], done.status().unwrap(), "{args:?}");
    }
}

#[test]
fn usage_errors_are_json_too() {
    let done = home().call(&["status", "--nonsense", "-ojson"]).run().exit(2);
    insta::assert_snapshot!(done.told(), @r#"
    exit 2
    --- stdout
    --- stderr
    {"error":{"code":"USAGE","message":"unexpected argument '--nonsense' found","exit_code":2,"retryable":false,"retry_after_ms":null,"hint":"Usage: sessile status [OPTIONS]; add --help for details","fix_command":null}}
    "#);
    let done = home().call(&["nonsense"]).env("SESSILE_OUTPUT", "json").run().exit(2);
    assert_eq!(done.code(), "USAGE");
}

#[test]
fn an_error_says_what_to_do_next() {
    let done = home_with(&["prod"]).call(&["context", "show", "prdo"]).run();
    insta::assert_snapshot!(done.told(), @r#"
    exit 5
    --- stdout
    --- stderr
    error: context "prdo" not found
    hint: did you mean "prod"?
    "#);
    let done = home().call(&["context", "current"]).run();
    insta::assert_snapshot!(done.told(), @"
    exit 5
    --- stdout
    --- stderr
    error: no context is selected
    hint: pass --context NAME, or select one: sessile context use NAME
    ");
    let done = home().call(&["nonsense"]).run();
    insta::assert_snapshot!(done.told(), @"
    exit 2
    --- stdout
    --- stderr
    error: unrecognized subcommand 'nonsense'
    hint: Usage: sessile [OPTIONS] [COMMAND]; add --help for details
    ");
}

#[test]
fn untrusted_project_error_has_the_trust_command() {
    let home = home();
    home.write("a project/.sessile/contexts/dev.toml", "");
    let done = home.call(&["context", "current", "--check", "--context", "dev", "-ojson"]);
    let error = done.cwd("a project").run().exit(4).json_error();
    let fix = error["fix_command"].as_str().unwrap();
    assert_eq!(fix, format!("sessile trust '{}'", home.path("a project").display()));
}

#[test]
fn quiet_leaves_nothing_but_the_result() {
    let home = furnished();
    home.write(".config/sessile/config.toml", "context = \"staging\"\nnonsense = 1\n");
    let loud = home.call(&["config", "set", "env.A", "1", "--global"]).ok();
    assert!(loud.stderr().contains("warning:"));
    assert!(loud.stderr().contains("in context staging"));
    for quiet in [
        home.call(&["config", "set", "env.A", "2", "--global", "--quiet"]),
        home.call(&["config", "set", "env.A", "3", "--global", "-q"]),
        home.call(&["config", "set", "env.A", "4", "--global"]).env("SESSILE_QUIET", "1"),
    ] {
        let done = quiet.ok();
        assert_eq!(done.stderr(), "");
        assert!(done.stdout().starts_with("set env.A to"));
    }
    let failed = home.call(&["config", "get", "nothing", "--quiet"]).run().exit(2);
    assert!(failed.stderr().starts_with("error:"), "an error is never too much");
}

#[test]
fn lists_are_paged_and_an_empty_one_is_empty() {
    let names = |args: &[&str]| -> Vec<String> {
        let done = furnished().call(args).arg("-ojson").ok();
        let names = done.json();
        names.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&["context", "list"]), ["old", "prod", "staging"]);
    assert_eq!(names(&["context", "list", "--limit", "1"]), ["old"]);
    assert_eq!(names(&["context", "list", "--limit", "1", "--cursor", "old"]), ["prod"]);
    assert_eq!(names(&["context", "list", "--cursor", "staging"]), [""; 0]);
    for args in [&["context", "list"][..], &["trust", "--list"], &["context", "approve", "--list"]] {
        assert_eq!(home().call(args).arg("-ojson").ok().stdout(), "[]\n");
        assert_eq!(home().call(args).arg("-ojsonl").ok().stdout(), "");
        assert!(home().call(args).ok().stdout().starts_with(['n', 't']), "text says it in words");
    }
}

#[test]
fn closed_output_pipe_is_not_an_error() {
    let home = home();
    let line = format!("{} manifest --output json | head -c 10", home.program().display());
    let mut command = std::process::Command::new("/bin/bash");
    let output = command.args(["-o", "pipefail", "-c", &line]).env("HOME", home.dir()).output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn names_with_escape_codes_are_written_out() {
    let done = home().call(&["context", "show", "a\x1b[31m\nb"]).run().exit(2);
    insta::assert_snapshot!(done.told(), @r#"
    exit 2
    --- stdout
    --- stderr
    error: "a\u{1b}[31m\nb" is not a valid context name: only letters, digits, '.', '_', '@' and '-' are allowed
    "#);
}
