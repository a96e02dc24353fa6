//! The log: `-v`, `-vv`, `SESSILE_LOG` and `--log-file`.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use testkit::{AgentOptions, Protocol, ScriptedAgent};

use crate::{home, home_with};

#[test]
fn verbosity_shows_what_is_resolved_and_from_which_files() {
    let home = home_with(&["staging"]);
    let quiet = home.call(&["context", "current", "--context", "staging"]).ok();
    assert_eq!(quiet.stderr(), "");
    let once = home.call(&["context", "current", "--context", "staging", "-v"]).ok();
    assert!(once.stderr().contains("context staging (flag --context), no session\n"), "{}", once.stderr());
    assert!(!once.stderr().contains("read file"), "{}", once.stderr());
    let twice = home.call(&["context", "current", "--context", "staging", "-vv"]).ok();
    assert!(twice.stderr().contains("contexts/staging.toml"), "{}", twice.stderr());
    assert!(
        twice.stderr().contains("resolved context context=staging origin=flag --context"),
        "{}",
        twice.stderr()
    );
    assert_eq!(twice.stdout(), quiet.stdout());
}

#[test]
fn session_is_logged_with_its_origin() {
    let home = home_with(&["staging"]);
    let id = crate::start(&home, &["--context", "staging", "--name", "web"]);
    let shown = home.call(&["status", "-v"]).env("SESSILE_SESSION", &id).ok();
    assert!(shown.stderr().contains("session web ("), "{}", shown.stderr());
    assert!(shown.stderr().contains("SESSILE_SESSION"), "{}", shown.stderr());
}

#[test]
fn level_comes_from_the_variable() {
    let home = home_with(&["staging"]);
    let call =
        |level: &str| home.call(&["context", "current", "--context", "staging"]).env("SESSILE_LOG", level);
    assert!(call("debug").ok().stderr().contains("DEBUG"));
    assert_eq!(call("off").ok().stderr(), "");
    for invalid in ["loud", "3"] {
        let refused = call(invalid).run().exit(2);
        assert!(refused.stderr().contains("invalid SESSILE_LOG"), "{}", refused.stderr());
    }
}

#[test]
fn log_file_is_private_and_has_times() {
    let home = home_with(&["staging"]);
    for _ in 0..2 {
        let call = home.call(&["context", "current", "--context", "staging", "--log-file", "call.log"]).ok();
        assert_eq!(call.stderr(), "");
    }
    let log = std::fs::read_to_string(home.path("call.log")).unwrap();
    assert_eq!(log.matches("resolved context").count(), 2, "{log}");
    assert!(log.lines().all(|line| line.starts_with("20") && line[..11].ends_with('T')), "{log}");
    let mode = std::fs::metadata(home.path("call.log")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    home.call(&["status", "--log-file", "missing/call.log"]).run().exit(1);
}

#[test]
fn log_file_that_is_a_pipe_without_a_reader_is_an_error() {
    let home = home();
    assert!(Command::new("mkfifo").arg(home.path("pipe")).status().unwrap().success());
    let call = home.call(&["status", "--log-file", "pipe"]).run().exit(1);
    assert!(call.stderr().contains("cannot open") && call.stderr().contains("pipe"), "{}", call.told());
    let mut reader = Command::new("cat").arg(home.path("pipe")).stdout(Stdio::piped()).spawn().unwrap();
    crate::eventually("the reader", || {
        home.call(&["status", "--log-file", "pipe"]).run().status() == Some(0)
    });
    let mut log = String::new();
    reader.stdout.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(reader.wait().unwrap().success() && log.contains("DEBUG"), "{log}");
}

#[test]
fn exchanges_are_logged_without_secrets_and_bodies() {
    let home = home();
    let agent = ScriptedAgent::start(AgentOptions::of(Protocol::V1));
    home.write_private("token", "canary-token-7231");
    let sent = home
        .call(&["message", "send", agent.url(), "canary-text-9418", "--log-file", "call.log"])
        .env("SESSILE_LOG", "trace")
        .env("SESSILE_TOKEN_FILE", home.path("token").to_str().unwrap())
        .ok();
    let log = std::fs::read_to_string(home.path("call.log")).unwrap();
    assert!(log.contains("HTTP exchange") && log.contains("status=200"), "{log}");
    for secret in ["canary-token-7231", "canary-text-9418"] {
        assert!(!log.contains(secret) && !sent.stderr().contains(secret), "{log}");
    }
}
