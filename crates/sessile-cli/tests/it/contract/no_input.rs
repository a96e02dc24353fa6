//! Nothing ever waits for input: with no terminal, every command answers or fails.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::Home;

use crate::home;

/// Far more than any command takes; a command that waits takes for ever.
const LIMIT: Duration = Duration::from_secs(180);

/// The least that each command can be called with, and the exit status that answers it.
const CALLS: &[(&str, &[&str], i32)] = &[
    ("agent add", &["x", "http://localhost:9", "--global"], 0),
    ("agent card", &["http://127.0.0.1:9"], 12),
    ("agent demo", &["--port", "none"], 2),
    ("agent list", &[], 0),
    ("agent listen", &[], 2),
    ("agent remove", &["x", "--global"], 5),
    ("agent show", &["http://127.0.0.1:9"], 12),
    ("agent use", &["nobody", "--global"], 5),
    ("agent validate", &["http://127.0.0.1:9"], 12),
    ("auth check", &[], 2),
    ("auth clear", &["bot"], 2),
    ("auth list", &[], 0),
    ("auth login", &["corp", "--token-url", "http://127.0.0.1:9/t", "--client-id", "x"], 2),
    ("auth logout", &["bot"], 2),
    ("auth move", &["--to", "keychain"], 12),
    ("auth refresh", &["bot"], 8),
    ("auth rekey", &["--to", "passphrase"], 2),
    ("auth set", &["new"], 2),
    ("auth show", &["bot"], 0),
    ("auth status", &[], 0),
    ("auth unlock", &[], 2),
    ("backup", &[], 0),
    ("backup restore", &["copy"], 2),
    ("chat", &[], 2),
    ("completions", &["bash"], 0),
    ("config describe", &[], 0),
    ("config edit", &["--global"], 2),
    ("config get", &["output"], 0),
    ("config list", &[], 0),
    ("config path", &[], 0),
    ("config schema", &[], 0),
    ("config set", &["env.A", "1", "--global"], 0),
    ("config show", &[], 0),
    ("config unset", &["env.B", "--global"], 0),
    ("config validate", &[], 0),
    ("context approve", &["a"], 2),
    ("context create", &["new"], 0),
    ("context current", &[], 0),
    ("context delete", &["b"], 2),
    ("context edit", &["a"], 2),
    ("context export", &["a"], 0),
    ("context import", &["in.toml"], 0),
    ("context list", &[], 0),
    ("context rename", &["c", "d"], 0),
    ("context show", &["a"], 0),
    ("context use", &["a"], 2),
    ("conversation clear", &["--all"], 0),
    ("conversation export", &[], 5),
    ("conversation list", &[], 0),
    ("conversation rename", &["a", "b"], 5),
    ("conversation search", &["x"], 0),
    ("conversation show", &[], 5),
    ("demo", &["--agents", "2", "--tool", "git"], 0),
    ("doctor", &[], 0),
    ("env", &[], 2),
    ("help", &[], 0),
    ("history", &[], 0),
    ("history show", &["99"], 5),
    ("hook", &["bash"], 0),
    ("hook install", &["bash"], 2),
    ("hook remove", &["bash"], 0),
    ("import", &[], 0),
    ("import apply", &["in.toml"], 0),
    ("import scan", &[], 0),
    ("lock acquire", &["l"], 0),
    ("lock break", &["l", "--holder", "1"], 5),
    ("lock list", &[], 0),
    ("lock release", &["l", "--token", "1"], 6),
    ("lock renew", &["l", "--token", "1"], 6),
    ("lock run", &["l", "--", "true"], 0),
    ("man", &[], 0),
    ("manifest", &[], 0),
    ("mcp", &[], 0),
    ("mcp config", &[], 0),
    ("message send", &["http://127.0.0.1:9", "hello"], 12),
    ("message stream", &["http://127.0.0.1:9", "hello"], 12),
    ("probe", &["http://127.0.0.1:9", "--protocol", "a2a"], 12),
    ("prompt", &[], 0),
    ("run", &["--", "true"], 0),
    ("serve", &["--listen", "0.0.0.0:0"], 2),
    ("serve backup", &[], 5),
    ("serve restore", &["missing"], 5),
    ("session attach", &["work"], 2),
    ("session clear", &[], 0),
    ("session detach", &[], 2),
    ("session export", &[], 2),
    ("session gc", &[], 0),
    ("session import", &["missing.json"], 5),
    ("session list", &[], 0),
    ("session log", &[], 2),
    ("session rename", &["s", "t"], 5),
    ("session show", &[], 2),
    ("session start", &[], 0),
    ("session state get", &["k"], 2),
    ("session state list", &[], 2),
    ("session state set", &["k", "1"], 2),
    ("session state unset", &["k"], 2),
    ("session stop", &[], 2),
    ("setup", &["claude"], 2),
    ("shell", &["--shell", "/bin/true"], 0),
    ("skill", &[], 0),
    ("status", &[], 0),
    ("task cancel", &[], 2),
    ("task download", &[], 2),
    ("task get", &[], 2),
    ("task list", &[], 2),
    ("task notification get", &["t", "1", "--url", "http://127.0.0.1:9"], 12),
    ("task notification list", &["t", "--url", "http://127.0.0.1:9"], 12),
    ("task notification remove", &["t", "1", "--url", "http://127.0.0.1:9"], 12),
    ("task notification set", &["t", "https://h.example", "--url", "http://127.0.0.1:9"], 12),
    ("task watch", &[], 2),
    ("tool check", &["git"], 0),
    ("tool list", &[], 0),
    ("tool show", &["git"], 0),
    ("trust", &["p"], 2),
    ("tui", &[], 2),
    ("undo", &[], 2),
    ("user add", &["ann"], 0),
    ("user approve", &["BCDF-GHJK", "--user", "ann"], 5),
    ("user audit", &[], 0),
    ("user disable", &["ann"], 5),
    ("user list", &[], 0),
    ("user token create", &["ann"], 5),
    ("user token list", &["ann"], 5),
    ("user token revoke", &["x"], 5),
];

fn prepared() -> Home {
    let home = home();
    for name in ["a", "b", "c"] {
        home.write(format!(".config/sessile/contexts/{name}.toml"), "");
    }
    home.write(".config/sessile/config.toml", "context = 'a'\nenv.B = 'b'\n");
    home.write("in.toml", "[contexts.imported]\n");
    home.write("p/.sessile/config.toml", "env.A = 'x'\n");
    home.call(&["auth", "set", "bot", "--secret-stdin"]).stdin("x").ok();
    home.call(&["backup", "copy"]).ok();
    home
}

/// The exit status of a call in a session of its own, with no terminal to find, or a panic after the limit.
fn status_of(home: &Home, words: &[&str], stdin: &str) -> i32 {
    // A shell closes what a `Command` cannot; `setsid` takes the controlling terminal away.
    let script = format!("exec setsid \"$0\" \"$@\" {stdin}");
    let mut command = Command::new("/bin/sh");
    let call = home.call(&[]).command();
    command.arg("-c").arg(script).arg(home.program()).args(words).env_clear().current_dir(home.dir());
    for (name, value) in call.get_envs() {
        command.env(name, value.unwrap());
    }
    // An editor that answers would hide that it was asked.
    command.env("EDITOR", "sleep 100000 #").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // The other end stays open and silent.
    let _pipe = child.stdin.take();
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        if begun.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("{words:?} waits for something ({stdin})");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn every_command_answers(stdin: &str) {
    // A server waits for its client for as long as there may be one.
    for (path, args, expected) in CALLS.iter().filter(|(path, ..)| *path != "mcp" || !stdin.is_empty()) {
        let home = prepared();
        let words: Vec<&str> = path.split(' ').chain(args.iter().copied()).collect();
        assert_eq!(status_of(&home, &words, stdin), *expected, "{words:?} {stdin}");
    }
}

/// A new command needs an entry here; this is what asks for it.
#[test]
fn every_command_of_the_manifest_is_called() {
    let manifest = home().call(&["manifest", "--output", "json"]).ok().json();
    let mut commands: Vec<&str> = manifest["commands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|command| command["path"].as_str().unwrap())
        .collect();
    commands.sort_unstable();
    let called: Vec<&str> = CALLS.iter().map(|(path, ..)| *path).collect();
    assert_eq!(called, commands);
}

#[test]
fn with_standard_input_closed_every_command_answers() {
    every_command_answers("<&-");
}

#[test]
fn with_a_silent_pipe_as_input_every_command_answers() {
    every_command_answers("");
}

#[test]
fn an_import_from_closed_input_takes_nothing_in() {
    let home = prepared();
    let before = home.tree();
    assert_ne!(status_of(&home, &["context", "import", "-"], "<&-"), 0);
    assert_eq!(home.tree(), before);
}

#[test]
fn a_refusal_names_the_flag_that_would_have_answered() {
    let home = prepared();
    for (args, flag) in [
        (&["context", "delete", "a"][..], "--yes"),
        (&["trust", "p"], "--yes"),
        (&["context", "use", "a"], "--global"),
        (&["config", "set", "env.A", "1"], "--dir"),
    ] {
        let error = home.call(args).arg("--output=json").run().exit(2).json_error();
        assert!(error["hint"].as_str().unwrap().contains(flag), "{error}");
    }
}
