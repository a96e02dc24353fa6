//! Completion in a real shell, of the names that exist now.

use std::process::Command;

use testkit::Home;

use crate::{home, home_with};

/// What bash offers for a command line whose last word is being typed.
fn bash(home: &Home, line: &str) -> Vec<String> {
    let mut words: Vec<&str> = line.split(' ').collect();
    let last = words.len() - 1;
    let quoted: Vec<String> = words.drain(..).map(|word| format!("'{word}'")).collect();
    let script = format!(
        "PATH={dir}:$PATH; source <(sessile completions bash); \
         registered=$(complete -p sessile) || exit 9; \
         [[ $registered =~ -F\\ ([^ ]+) ]] || exit 8; \
         COMP_WORDS=({words}); COMP_CWORD={last}; COMP_TYPE=9; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; \
         compopt() {{ :; }}; \
         \"${{BASH_REMATCH[1]}}\" sessile \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        dir = home.program().parent().unwrap().display(),
        words = quoted.join(" "),
    );
    let output = Command::new("/bin/bash")
        .args(["--norc", "-c", &script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", home.dir())
        .current_dir(home.dir())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn bash_completes_commands() {
    assert_eq!(bash(&home(), "sessile conf"), ["config"]);
    assert_eq!(bash(&home(), "sessile context re"), ["rename"]);
}

#[test]
fn bash_completes_the_contexts_that_exist() {
    let home = home_with(&["staging", "stable", "prod"]);
    assert_eq!(bash(&home, "sessile context use sta"), ["stable", "staging"]);
    assert_eq!(bash(&home, "sessile context delete p"), ["prod"]);
    assert_eq!(bash(&home, "sessile --context st"), ["stable", "staging"]);
    home.call(&["context", "create", "standby"]).ok();
    assert_eq!(bash(&home, "sessile context show stan"), ["standby"], "a new context is completed");
}

#[test]
fn bash_completes_settings() {
    assert_eq!(bash(&home(), "sessile config get lock"), ["lock-timeout", "lock-ttl"]);
    assert_eq!(
        bash(&home(), "sessile config set session."),
        ["session.idle", "session.max", "session.max-action"]
    );
}

#[test]
fn bash_completes_mcp_clients() {
    assert_eq!(bash(&home(), "sessile mcp config --client cla"), ["claude", "claude-desktop"]);
}

#[test]
fn a_broken_settings_file_does_not_break_completion() {
    let home = home_with(&["staging"]);
    home.write(".config/sessile/config.toml", "context = ");
    assert_eq!(bash(&home, "sessile context use st"), ["staging"]);
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "zsh", "fish"] {
        let done = home().call(&["completions", shell]).ok();
        assert!(done.stdout().contains("SESSILE_COMPLETE"), "{shell}");
        assert_eq!(done.stderr(), "");
    }
    let done = home().call(&["completions", "tcsh"]).run().exit(2);
    assert!(done.stderr().contains("bash, zsh, fish"), "{}", done.told());
}

#[test]
fn bash_completes_agents_to_set_up() {
    let offered = bash(&home(), "sessile setup ");
    assert!(offered.contains(&"claude".to_owned()) && offered.contains(&"codex".to_owned()), "{offered:?}");
}

#[test]
fn bash_completes_only_contexts_that_are_not_imported() {
    let home = home();
    home.write(".aws/config", "[profile staging]\nregion = x\n[profile dev]\nregion = x\n");
    assert_eq!(bash(&home, "sessile import --only "), ["staging", "dev"]);
    home.call(&["import", "--only", "dev", "--yes"]).ok();
    assert_eq!(bash(&home, "sessile import --only "), ["staging"]);
}

#[test]
fn bash_completes_no_session_of_a_hooked_shell() {
    let home = home();
    crate::start(&home, &["--name", "web"]);
    crate::start(&home, &["--label", "hook=terminal"]);
    assert_eq!(bash(&home, "sessile run --session "), ["web"]);
}
