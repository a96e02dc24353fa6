//! A hooked shell is in step with each way to select, and the user's own values come back.

use super::*;
use crate::start;

fn assert_in_step(shell: &mut HookedTty, target: &str, mark: &str) {
    assert_eq!(shell.targets(), format!("{target},{target},{target}@"), "{} {mark}", shell.program);
    assert_eq!(shell.mark(), mark, "{}", shell.program);
}

fn assert_own(shell: &mut HookedTty) {
    assert_eq!(shell.targets(), "own,,own@", "{}", shell.program);
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
