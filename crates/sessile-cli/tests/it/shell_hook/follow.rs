//! A hooked shell is in step with each way to select, and the user's own values come back.

use super::*;
use crate::start;

fn assert_in_step(shell: &mut HookedTty, target: &str, mark: &str) {
    assert_eq!(shell.targets(), all(target), "{} {mark}", shell.program);
    let status = plain(&shell.run("sessile status"));
    assert!(status.contains(&format!("context   {target}")) && status.contains("in step"), "{status}");
    assert_eq!(shell.mark(), mark, "{}", shell.program);
}

fn assert_own(shell: &mut HookedTty) {
    assert_eq!(shell.targets(), OWN, "{}", shell.program);
    assert_eq!(shell.mark(), "", "{}", shell.program);
}

fn assert_context_use_is_followed(program: &'static str) {
    let home = home_with_tools();
    let mut shell = HookedTty::start(&home, program);
    assert_own(&mut shell);
    shell.run("sessile context use staging");
    assert_in_step(&mut shell, "staging", "(staging)");
    // A person at the prompt may switch.
    shell.run("sessile context use dev");
    assert_in_step(&mut shell, "dev", "(dev)");
    shell.run("sessile context use --none");
    assert_own(&mut shell);
    shell.exit();
}

#[test]
fn bash_follows_context_use() {
    assert_context_use_is_followed("bash");
}

#[test]
fn zsh_follows_context_use() {
    assert_context_use_is_followed("zsh");
}

#[test]
fn fish_follows_context_use() {
    assert_context_use_is_followed("fish");
}

fn assert_directory_is_followed(program: &'static str) {
    let home = home_with_tools();
    for (dir, context) in [("a", "staging"), ("b", "dev")] {
        home.write(format!("{dir}/file"), "");
        home.call(&["context", "use", context, "--dir"]).cwd(dir).ok();
    }
    let mut shell = HookedTty::start(&home, program);
    shell.run("cd a");
    assert_in_step(&mut shell, "staging", "(staging)");
    shell.run("cd ../b");
    assert_in_step(&mut shell, "dev", "(dev)");
    shell.run("cd ..");
    assert_own(&mut shell);
    shell.exit();
}

#[test]
fn bash_follows_the_directory() {
    assert_directory_is_followed("bash");
}

#[test]
fn zsh_follows_the_directory() {
    assert_directory_is_followed("zsh");
}

#[test]
fn fish_follows_the_directory() {
    assert_directory_is_followed("fish");
}

fn assert_sessions_are_followed(program: &'static str) {
    let home = home_with_tools();
    start(&home, &["--name", "other", "--context", "dev"]);
    let mut shell = HookedTty::start(&home, program);
    shell.run("sessile session start --name s1 --context staging");
    assert_in_step(&mut shell, "staging", "(s1:staging)");
    let told = shell.run("sessile session attach other");
    assert!(told.contains("session \"s1\" is still running"), "{told}");
    assert!(!told.contains("not affected"), "{told}");
    assert_in_step(&mut shell, "dev", "(other:dev)");
    shell.run("sessile session detach");
    assert_own(&mut shell);
    shell.run("sessile session attach s1");
    assert_in_step(&mut shell, "staging", "(s1:staging)");
    shell.run("sessile session stop s1");
    assert_own(&mut shell);
    shell.exit();
}

#[test]
fn bash_follows_sessions() {
    assert_sessions_are_followed("bash");
}

#[test]
fn zsh_follows_sessions() {
    assert_sessions_are_followed("zsh");
}

#[test]
fn fish_follows_sessions() {
    assert_sessions_are_followed("fish");
}

/// A line that exports a variable.
fn export(program: &str, name: &str, value: &str) -> String {
    if program == "fish" { format!("set -gx {name} {value}") } else { format!("export {name}={value}") }
}

fn assert_variable_is_followed(program: &'static str) {
    let home = home_with_tools();
    let mut shell = HookedTty::start(&home, program);
    shell.run("sessile context use dev");
    shell.run(&export(program, "SESSILE_CONTEXT", "staging"));
    assert_in_step(&mut shell, "staging", "(staging)");
    for number in 0..3 {
        // A write makes the hook look again.
        start(&home, &["--name", &format!("other{number}")]);
        assert_eq!(shell.kubectl(), "staging", "{program}: prompt {number}");
        assert_eq!(shell.mark(), "(staging)", "{program}: prompt {number}");
    }
    shell.tty.type_line(if program == "bash" { "bash --noediting -i" } else { program });
    assert_in_step(&mut shell, "staging", "(staging)");
    shell.tty.type_line("exit");
    let told = shell.run("sessile context use dev");
    assert!(told.contains("SESSILE_CONTEXT selects context \"staging\" here"), "{program}: {told}");
    assert!(!told.contains("from the next prompt on"), "{program}: {told}");
    assert_in_step(&mut shell, "staging", "(staging)");
    shell.run(if program == "fish" { "set -e SESSILE_CONTEXT" } else { "unset SESSILE_CONTEXT" });
    assert_in_step(&mut shell, "dev", "(dev)");
    shell.run(&export(program, "SESSILE_CONTEXT", "nosuch"));
    assert_eq!(shell.mark(), "(nosuch: not found)", "{program}");
    assert_none(&shell.targets(), program);
    shell.run(if program == "fish" { "set -e SESSILE_CONTEXT" } else { "unset SESSILE_CONTEXT" });
    shell.run("sessile context use --none");
    assert_own(&mut shell);
    shell.exit();
}

#[test]
fn bash_follows_the_variable_of_the_context() {
    assert_variable_is_followed("bash");
}

#[test]
fn zsh_follows_the_variable_of_the_context() {
    assert_variable_is_followed("zsh");
}

#[test]
fn fish_follows_the_variable_of_the_context() {
    assert_variable_is_followed("fish");
}

fn assert_previous_and_global_are_followed(program: &'static str) {
    let home = home_with_tools();
    let mut shell = HookedTty::start(&home, program);
    shell.run("sessile context use staging");
    shell.run("sessile context use dev");
    shell.run("sessile context use -");
    assert_in_step(&mut shell, "staging", "(staging)");
    shell.run("sessile context use --none");
    shell.run("sessile context use dev --global");
    assert_in_step(&mut shell, "dev", "(dev)");
    shell.run("sessile context use --none --global");
    assert_own(&mut shell);
    shell.exit();
}

#[test]
fn bash_follows_the_previous_and_the_global_context() {
    assert_previous_and_global_are_followed("bash");
}

#[test]
fn zsh_follows_the_previous_and_the_global_context() {
    assert_previous_and_global_are_followed("zsh");
}

#[test]
fn fish_follows_the_previous_and_the_global_context() {
    assert_previous_and_global_are_followed("fish");
}

#[test]
fn zsh_and_fish_follow_the_directory_within_a_line() {
    for program in ["zsh", "fish"] {
        let home = home_with_tools();
        home.write("a/file", "");
        home.call(&["context", "use", "staging", "--dir"]).cwd("a").ok();
        let mut shell = HookedTty::start(&home, program);
        let told = shell.run("cd a && kubectl config current-context");
        assert!(told.contains("staging\r\n"), "{program}: {told}");
        let told = shell.run("cd .. && kubectl config current-context");
        assert!(told.contains("own\r\n"), "{program}: {told}");
        shell.exit();
    }
}

#[test]
fn status_before_the_next_prompt_names_the_change() {
    for program in SHELLS {
        let home = home_with_tools();
        let mut shell = HookedTty::start(&home, program);
        let told =
            plain(&shell.run("sessile context use staging; sessile status; kubectl config current-context"));
        assert!(told.contains("(was none), from the next prompt on"), "{program}: {told}");
        assert!(told.contains("follows the selection from the next prompt on"), "{program}: {told}");
        assert!(!told.contains("in step") && told.contains("own"), "{program}: {told}");
        assert_in_step(&mut shell, "staging", "(staging)");
        let told = plain(&shell.run("sessile session detach; sessile status"));
        assert!(told.contains("follows the selection"), "{program}: {told}");
        assert_own(&mut shell);
        shell.exit();
    }
}

#[test]
fn status_of_nested_and_blocked_shells_is_in_step() {
    for program in SHELLS {
        let home = home_with_tools();
        start(&home, &["--name", "s1", "--context", "staging"]);
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile session attach s1");
        shell.tty.type_line(if program == "bash" { "bash --noediting -i" } else { program });
        assert_in_step(&mut shell, "staging", "(s1:staging)");
        shell.tty.type_line("exit");
        home.call(&["session", "stop", "s1"]).ok();
        assert_eq!(shell.mark(), "(s1: stopped)", "{program}");
        let told = plain(&shell.run("sessile status"));
        assert!(told.contains("in step") && !told.contains("context   staging"), "{program}: {told}");
        shell.exit();
    }
}
