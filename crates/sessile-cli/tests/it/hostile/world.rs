//! Variables, directories and streams that are missing or wrong.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use testkit::Home;

use super::{clean, refused, refused_call};
use crate::home;

fn not_text() -> OsString {
    OsString::from_vec(b"env.A=\xff\x1b[31m".to_vec())
}

#[test]
fn variables_that_are_not_text_are_refused_not_guessed_at() {
    let home = home();
    for variable in ["CONTEXT", "SET", "OUTPUT", "COLOR", "LOCK_TIMEOUT", "SESSION", "NO_INPUT", "QUIET"] {
        let variable = format!("SESSILE_{variable}");
        let error =
            refused_call(&home, || home.call(&["status"]).env(&variable, not_text()), "INVALID_VALUE");
        assert!(error["message"].as_str().unwrap().contains(&variable), "{error}");
    }
}

#[test]
fn arguments_that_are_not_text_are_refused() {
    let home = home();
    refused_call(&home, || home.call(&["context", "show"]).arg(not_text()), "USAGE");
    refused_call(&home, || home.call(&["status", "--config"]).arg(not_text()), "FILE_NOT_FOUND");
}

#[test]
fn hostile_variables_are_refused_by_name() {
    let home = home();
    for (variable, value) in [
        ("SESSILE_CONTEXT", "../../x"),
        ("SESSILE_CONTEXT", "a\nb\x1b[31m"),
        ("SESSILE_OUTPUT", "xml"),
        ("SESSILE_LOCK_TIMEOUT", "soon"),
        ("SESSILE_NO_CONFIG", "maybe"),
        ("SESSILE_SET", "no equals sign"),
        ("SESSILE_SET", "output=\x1b[31m"),
        ("SESSILE_STATE_DIR", "relative/dir"),
        ("SESSILE_CONFIG_DIR", "../x"),
    ] {
        let error = refused_call(&home, || home.call(&["status"]).env(variable, value), "INVALID_VALUE");
        assert!(error["message"].as_str().unwrap().contains(variable), "{error}");
    }
    refused_call(&home, || home.call(&["status"]).env("SESSILE_CONFIG", "missing.toml"), "FILE_NOT_FOUND");
}

/// XDG: "If an implementation encounters a relative path ... it should consider the path invalid and ignore it."
#[test]
fn relative_xdg_directories_are_ignored() {
    let home = home();
    let call = |args: &[&str]| {
        home.call(args)
            .env("XDG_CONFIG_HOME", "relative")
            .env("XDG_STATE_HOME", "./state")
            .env("XDG_CACHE_HOME", "../cache")
            .env("XDG_RUNTIME_DIR", "run")
    };
    call(&["context", "create", "a"]).ok();
    call(&["context", "use", "a", "--global"]).ok();
    assert!(home.path(".config/sessile/contexts/a.toml").exists());
    assert!(home.path(".local/state/sessile/state.db").exists());
    assert!(!home.path("relative").exists() && !home.path("state").exists());
}

#[test]
fn a_home_that_does_not_exist_is_made_only_by_a_write() {
    let home = home();
    let call = |args: &[&str]| home.call(args).env("HOME", home.path("new"));
    for args in
        [&["status", "--show-state-files"][..], &["context", "list"], &["config", "show"], &["doctor"]]
    {
        clean(call(args).ok());
    }
    assert!(!home.path("new").exists());
    call(&["context", "create", "a"]).ok();
    assert!(home.path("new/.config/sessile/contexts/a.toml").exists());
}

/// The shell around the program: for streams and directories that a `Command` cannot make.
fn shell(home: &Home, script: &str) -> testkit::CallResult {
    let program = home.program().to_owned();
    let inner = Home::new("/bin/sh");
    clean(inner.call(&["-c", script]).env("BIN", program).env("HOME", home.dir()).env("H", home.dir()).run())
}

#[test]
fn a_working_directory_that_was_removed_is_survived() {
    let home = home();
    let here = "mkdir -p \"$H/gone\" && cd \"$H/gone\" && rmdir \"$H/gone\" && \"$BIN\"";
    for args in
        ["status", "context list", "config show", "doctor", "config set env.A 1 --global", "config path"]
    {
        let _ = shell(&home, &format!("{here} {args}")).exit(0);
    }
    for args in ["config set env.A 1 --dir", "context create a --project", "trust", "config set env.A 1"] {
        let _ = shell(&home, &format!("{here} {args}")).exit(2);
    }
    let _ = shell(&home, &format!("{here} status --config c.toml")).exit(5);
    assert!(!home.path("gone").exists());
}

#[test]
fn a_full_device_as_output_is_an_error() {
    let home = home();
    for args in [
        "status",
        "--help",
        "manifest --output json",
        "context list",
        "config schema",
        "man",
        "completions bash",
    ] {
        let done = shell(&home, &format!("exec \"$BIN\" {args} > /dev/full")).exit(1);
        assert!(done.stderr().contains("cannot write the output"), "{}", done.told());
    }
    // Nobody can be told, and the status still says how it went.
    let _ = shell(&home, "exec \"$BIN\" status > /dev/null 2> /dev/full").exit(0);
    let _ = shell(&home, "exec \"$BIN\" context show no 2> /dev/full").exit(5);
}

#[test]
fn a_closed_pipe_is_quiet() {
    let home = home();
    for number in 0..200 {
        home.write(
            format!(".config/sessile/contexts/c{number}.toml"),
            "description = 'long enough to fill'\n",
        );
    }
    for args in ["context list", "manifest --output json", "config list", "man", "--help", "completions bash"]
    {
        let done = shell(&home, &format!("{{ \"$BIN\" {args}; echo $? >\"$H/status\"; }} | :"));
        assert_eq!(done.stderr(), "", "{args}: {}", done.told());
        assert_eq!(home.read("status"), "0\n", "{args}");
        let done = shell(&home, &format!("\"$BIN\" {args} | head -1"));
        assert_eq!(done.stderr(), "", "{args}: {}", done.told());
        assert_eq!(done.stdout().lines().count(), 1, "{args}");
    }
}

#[test]
fn closed_completion_pipe_does_not_panic() {
    let home = home();
    let ask =
        "SESSILE_COMPLETE=bash _CLAP_COMPLETE_INDEX=1 _CLAP_COMPLETE_COMP_TYPE=9 \"$BIN\" -- sessile ''";
    let done = shell(&home, &format!("{ask} | :"));
    assert_eq!(done.stderr(), "", "{}", done.told());
    let _ = shell(&home, &format!("{ask} > /dev/full"));
}

#[test]
fn completions_show_hostile_descriptions_harmless() {
    let home = home();
    home.write(".config/sessile/contexts/evil.toml", "description = \"a\\u001b[31m\\u009b2J\\nforged\"\n");
    let shells = ["bash", "zsh", "fish"];
    let lines = [(2, "--context ''"), (3, "context show ''")];
    for (shell_name, (index, line)) in
        shells.iter().flat_map(|name| lines.iter().map(move |line| (name, line)))
    {
        let ask = format!(
            "SESSILE_COMPLETE={shell_name} _CLAP_COMPLETE_INDEX={index} _CLAP_COMPLETE_COMP_TYPE=9 _CLAP_IFS='\n' \
             \"$BIN\" -- sessile {line}"
        );
        let done = shell(&home, &ask).exit(0);
        assert!(done.stdout().contains("evil"), "{}", done.told());
        assert!(!done.stdout().lines().any(|line| line.starts_with("forged")), "{}", done.told());
    }
}

/// A closed stream's number must not be given to the database, or a message would be written into it.
#[test]
fn closed_streams_do_no_harm() {
    let home = home();
    for number in 0..5 {
        let name = format!("c{number}");
        let _ = shell(&home, &format!("exec \"$BIN\" context create {name} >&- 2>&- <&-")).exit(0);
        let _ = shell(&home, &format!("exec \"$BIN\" context use {name} --global --verbose >&- 2>&- <&-"))
            .exit(0);
        let _ = shell(&home, "exec \"$BIN\" context show none >&- 2>&- <&-").exit(5);
    }
    home.call(&["doctor"]).ok();
    assert_eq!(home.call(&["context", "current"]).ok().stdout(), "c4\n");
}

#[test]
fn contradicting_flags_are_refused() {
    let home = home();
    home.write("c.toml", "");
    refused(&home, &["status", "--config", "c.toml", "--no-config"], "USAGE");
    refused(&home, &["config", "set", "env.A", "1", "--global", "--dir"], "USAGE");
    refused(&home, &["config", "set", "env.A", "1", "--global", "--no-config"], "USAGE");
    refused(&home, &["context", "create", "a", "--no-config"], "USAGE");
    refused(&home, &["context", "use", "a", "--global", "--no-config"], "USAGE");
    refused(&home, &["status", "--session", "none"], "SESSION_NOT_FOUND");
}

/// Without a home in the variables or the password database there is no place, and that is said.
#[test]
fn without_any_home_reading_works_and_writing_says_what_to_set() {
    assert!(Command::new("setpriv").arg("--version").output().is_ok(), "setpriv (util-linux) is needed");
    let home = super::system::UnprivilegedUser::new(54_321);
    for variable in [None, Some("relative")] {
        let call = |args: &[&str]| match variable {
            Some(value) => home.call(args).env("HOME", value),
            None => home.call(args).no_env("HOME"),
        };
        let _ = clean(call(&["status"]).run()).exit(0);
        let _ = clean(call(&["context", "list"]).run()).exit(0);
        for args in [&["context", "create", "a"][..], &["config", "set", "env.A", "1", "--global"]] {
            refused_call(home.home(), || call(args), "NO_HOME");
        }
        let own = |args: &[&str]| {
            let dir = |name: &str| home.home().path(name);
            call(args).env("SESSILE_CONFIG_DIR", dir("c")).env("SESSILE_STATE_DIR", dir("s"))
        };
        own(&["context", "create", "a", "--yes"]).ok();
        assert_eq!(own(&["context", "use", "a", "--global"]).ok().status(), Some(0));
    }
}
