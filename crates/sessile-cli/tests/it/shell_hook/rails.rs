//! A hooked shell never returns to the user's own target by surprise, and what runs in it stays inside.

use super::*;
use crate::start;

fn own_after_detach(shell: &mut HookedTty) {
    shell.run("sessile session detach");
    assert_eq!(shell.kubectl(), "own", "{}", shell.program);
    assert_eq!(shell.mark(), "", "{}", shell.program);
}

#[test]
fn session_stopped_elsewhere_leaves_the_shell_without_a_target() {
    for program in SHELLS {
        let home = home_with_tools();
        start(&home, &["--name", "s1", "--context", "staging"]);
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile session attach s1");
        assert_eq!(shell.kubectl(), "staging", "{program}");
        home.call(&["session", "stop", "s1"]).ok();
        assert_eq!(shell.kubectl(), "", "{program}: before the next look");
        assert_eq!(shell.mark(), "(s1: stopped)", "{program}");
        shell.run("cd /");
        assert_eq!(shell.kubectl(), "", "{program}: in another directory");
        own_after_detach(&mut shell);
        shell.exit();
    }
}

#[test]
fn session_of_a_context_that_ends_is_renewed_only_by_the_person() {
    let home = home_with_tools();
    home.write(".config/sessile/config.toml", "session.max = \"4s\"\n");
    let mut shell = HookedTty::start(&home, "bash");
    shell.run("sessile context use staging");
    assert_eq!(shell.kubectl(), "staging");
    std::thread::sleep(std::time::Duration::from_secs(6));
    assert!(shell.mark().starts_with("(staging"));
    assert_eq!(shell.mark(), "(staging: expired)");
    assert_eq!(shell.kubectl(), "");
    home.write(".config/sessile/config.toml", "");
    assert_eq!(shell.kubectl(), "", "it does not come back by itself");
    shell.run("sessile context use staging");
    assert_eq!(shell.kubectl(), "staging");
    own_after_detach(&mut shell);
    shell.exit();
}

#[test]
fn hooked_shell_keeps_its_session_busy() {
    let home = home_with_tools();
    home.write(".config/sessile/config.toml", "session.idle = \"2s\"\n");
    let mut shell = HookedTty::start(&home, "bash");
    shell.run("sessile context use staging");
    assert_eq!(shell.kubectl(), "staging");
    std::thread::sleep(std::time::Duration::from_secs(4));
    home.call(&["session", "gc"]).ok();
    assert_eq!(shell.kubectl(), "staging");
    assert_eq!(shell.mark(), "(staging)");
    shell.exit();
}

#[test]
fn untrusted_directory_gives_an_emptied_room_until_it_is_left_or_trusted() {
    for program in SHELLS {
        let home = home_with_tools();
        home.write("p/.sessile/config.toml", "context = \"staging\"\n");
        let mut shell = HookedTty::start(&home, program);
        shell.run("cd p");
        assert_eq!(shell.mark(), "(staging: untrusted project)", "{program}");
        assert_eq!(shell.targets(), ",,own@".replace("own@", ""), "{program}");
        shell.run("cd ..");
        assert_eq!(shell.kubectl(), "own", "{program}");
        shell.run("cd p");
        // The person at the prompt trusts it, although the shell is in a session.
        let told = shell.run("sessile trust --yes");
        assert_eq!(shell.mark(), "(staging)", "{program}: {told}");
        assert_eq!(shell.kubectl(), "staging", "{program}");
        shell.run("cd ..");
        assert_eq!(shell.kubectl(), "own", "{program}");
        shell.exit();
    }
}

#[test]
fn guarded_context_of_a_directory_gives_an_emptied_room() {
    let home = home_with_tools();
    home.write(".config/sessile/contexts/production.toml", context("production", "guard = \"approval\""));
    home.write("p/file", "");
    home.call(&["context", "use", "production", "--dir"]).cwd("p").ok();
    let mut shell = HookedTty::start(&home, "bash");
    assert_eq!(shell.kubectl(), "own");
    shell.run("cd p");
    assert_eq!(shell.mark(), "(production: must be named)");
    assert_eq!(shell.kubectl(), "");
    shell.run("cd ..");
    assert_eq!(shell.kubectl(), "own");
    shell.exit();
}

#[test]
fn person_at_a_hooked_prompt_approves_and_an_agent_there_does_not() {
    let home = home_with_tools();
    home.write(".config/sessile/contexts/production.toml", context("production", "guard = \"approval\""));
    home.write("agent", "#!/bin/sh\n\"$@\"\n");
    for program in SHELLS {
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile context use staging");
        assert_eq!(shell.kubectl(), "staging", "{program}");
        for line in [
            "sessile context use dev",
            "sessile context approve production --for 1m",
            "sessile session detach",
        ] {
            let told = shell.run(&format!("sh agent {line}"));
            assert!(told.contains("refused inside a session"), "{program}: {line}: {told}");
        }
        assert_eq!(shell.kubectl(), "staging", "{program}");
        let told = shell.run("sessile context approve production --for 1m --yes");
        assert!(!told.contains("refused"), "{program}: {told}");
        // The approved context is entered by a session that names it.
        shell.run("sessile session start --name prod --context production");
        assert_eq!(shell.kubectl(), "production", "{program}");
        assert_eq!(shell.mark(), "(prod:production)", "{program}");
        shell.run("sessile context approve --revoke production");
        assert_eq!(shell.mark(), "(production: not approved)", "{program}");
        assert_eq!(shell.kubectl(), "", "{program}");
        shell.run("sessile session detach");
        assert_eq!(shell.mark(), "(staging)", "{program}: the terminal still has its context");
        own_after_detach(&mut shell);
        shell.run("sessile session stop prod --yes");
        shell.exit();
    }
}

#[test]
fn run_in_another_directory_than_the_hooks_is_refused() {
    let home = home_with_tools();
    for (dir, context) in [("a", "staging"), ("b", "dev")] {
        home.write(format!("{dir}/file"), "");
        home.call(&["context", "use", context, "--dir"]).cwd(dir).ok();
    }
    let mut shell = HookedTty::start(&home, "bash");
    shell.run("cd a");
    let told = shell.run("cd ../b && sessile run -- kubectl config current-context");
    assert!(told.contains("staging") && told.contains("dev") && told.contains("error"), "{told}");
    let told = shell.run("sessile run -- kubectl config current-context");
    assert!(told.contains("dev\r\n") && !told.contains("error"), "{told}");
    shell.exit();
}

#[test]
fn named_context_counts_at_a_hooked_prompt_and_not_inside() {
    let home = home_with_tools();
    home.write("agent", "#!/bin/sh\n\"$@\"\n");
    let mut shell = HookedTty::start(&home, "bash");
    shell.run("sessile context use staging");
    let line = "sessile run --context dev -- kubectl config current-context";
    let told = shell.run(line);
    assert!(told.contains("dev\r\n"), "{told}");
    let told = shell.run(&format!("sh agent {line}"));
    assert!(told.contains("error:"), "{told}");
    shell.exit();
}
