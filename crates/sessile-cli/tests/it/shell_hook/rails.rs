//! A hooked shell never returns to the user's own target by surprise, and what runs in it stays inside.

use super::*;
use crate::{live, room, start};

fn own_after_detach(shell: &mut HookedTty) {
    shell.run("sessile session detach");
    assert_eq!(shell.targets(), OWN, "{}", shell.program);
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
        assert_none(&shell.targets(), &format!("{program}: before the next look"));
        assert_eq!(shell.mark(), "(s1: stopped)", "{program}");
        shell.run("cd /");
        assert_eq!(shell.kubectl(), "", "{program}: in another directory");
        own_after_detach(&mut shell);
        shell.exit();
    }
}

/// Lets every session have started longer ago than its maximum lifetime.
fn make_sessions_old(home: &Home) {
    let script = "import sqlite3, sys\n\
                  db = sqlite3.connect(sys.argv[1], timeout=30)\n\
                  age = ', '.join(f'{name} = {name} - 40000000' for name in ('started_ms', 'started_boot_ms', 'started_awake_ms'))\n\
                  db.execute('UPDATE session SET ' + age)\n\
                  db.commit()\n";
    let db = home.path(".local/state/sessile/state.db");
    home.tool("python3", &["-c", script, db.to_str().unwrap()]).ok();
}

#[test]
fn detach_leaves_a_context_that_may_not_be_used() {
    for program in SHELLS {
        let home = home_with_tools();
        home.write(".config/sessile/contexts/production.toml", context("production", "guard = \"approval\""));
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile context use production");
        assert_eq!(shell.mark(), "(production: must be named)", "{program}");
        let told = shell.run("sessile session detach");
        assert!(told.contains("detached from \"production\""), "{program}: {told}");
        assert_eq!(shell.targets(), OWN, "{program}");
        assert_eq!(shell.mark(), "", "{program}");
        shell.run("sessile context use dev");
        std::fs::remove_file(home.path(".config/sessile/contexts/dev.toml")).unwrap();
        shell.run("true");
        assert_eq!(shell.mark(), "(dev: not found)", "{program}");
        own_after_detach(&mut shell);
        // A directory is left by leaving it.
        home.write("p/.sessile/config.toml", "context = \"staging\"\n");
        shell.run("cd p");
        let told = shell.run("sessile session detach");
        assert!(told.contains("error:") && !told.contains("detached"), "{program}: {told}");
        assert_eq!(shell.mark(), "(staging: untrusted project)", "{program}");
        shell.exit();
    }
}

#[test]
fn session_of_a_context_that_ends_is_renewed_only_by_the_person() {
    for program in SHELLS {
        let home = home_with_tools();
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile context use staging");
        assert_eq!(shell.kubectl(), "staging", "{program}");
        make_sessions_old(&home);
        shell.run("true");
        assert_eq!(shell.mark(), "(staging: expired)", "{program}");
        assert_none(&shell.targets(), program);
        let told = plain(&shell.run("sessile status"));
        assert!(told.contains("in step"), "{program}: {told}");
        assert_eq!(shell.kubectl(), "", "{program}: the target does not return by itself");
        shell.run("sessile context use staging");
        assert_eq!(shell.targets(), all("staging"), "{program}");
        own_after_detach(&mut shell);
        shell.exit();
    }
}

#[test]
fn hooked_shell_keeps_its_session_busy() {
    for program in SHELLS {
        let home = home_with_tools();
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile context use staging");
        assert_eq!(shell.kubectl(), "staging");
        let id = live(&home).remove(0);
        let lock = room(&home, &id).join("lock");
        let collect = || {
            // Idle since 1970, in another boot.
            std::fs::write(&lock, format!("{0:020} {0:020} another\n", 0)).unwrap();
            home.call(&["session", "gc"]).ok();
            live(&home)
        };
        assert_eq!(collect(), [id], "{program}");
        assert_eq!(shell.kubectl(), "staging");
        assert_eq!(shell.mark(), "(staging)");
        shell.exit();
        assert!(collect().is_empty(), "{program}: without the shell it expires");
    }
}

#[test]
fn untrusted_directory_gives_an_empty_room_until_trusted() {
    for program in SHELLS {
        let home = home_with_tools();
        home.write("p/.sessile/config.toml", "context = \"staging\"\n");
        let mut shell = HookedTty::start(&home, program);
        let told = plain(&(shell.run("cd p") + &shell.run("true")));
        assert_eq!(told.matches("is not trusted").count(), 1, "{program}: {told}");
        assert_eq!(shell.mark(), "(staging: untrusted project)", "{program}");
        assert_none(&shell.targets(), program);
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
    for program in SHELLS {
        let home = home_with_tools();
        home.write(".config/sessile/contexts/production.toml", context("production", "guard = \"approval\""));
        home.write("p/file", "");
        home.call(&["context", "use", "production", "--dir"]).cwd("p").ok();
        let mut shell = HookedTty::start(&home, program);
        assert_eq!(shell.kubectl(), "own");
        shell.run("cd p");
        assert_eq!(shell.mark(), "(production: must be named)");
        assert_eq!(shell.kubectl(), "");
        shell.run("cd ..");
        assert_eq!(shell.kubectl(), "own");
        shell.exit();
    }
}

#[test]
fn only_a_person_at_a_hooked_prompt_approves() {
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

/// The shell itself does nothing between the approval's end and the next command.
#[test]
fn lapsed_approval_withdraws_the_target_at_an_idle_prompt() {
    let home = home_with_tools();
    home.write(".config/sessile/contexts/production.toml", context("production", "guard = \"approval\""));
    let mut shell = HookedTty::start(&home, "bash");
    shell.run("sessile context approve production --for 10s --yes");
    shell.run("sessile session start --name prod --context production");
    assert_eq!(shell.kubectl(), "production");
    let copy = room(&home, "prod").join("kube/config");
    let has_target = || std::fs::read_to_string(&copy).is_ok_and(|text| text.contains("production"));
    assert!(has_target(), "the approval opened it");
    crate::eventually("the withdrawal", || !has_target());
    assert_eq!(shell.kubectl(), "", "the first command after it");
    assert_eq!(shell.mark(), "(production: not approved)", "the first prompt after it");
    own_after_detach(&mut shell);
    shell.exit();
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
    for program in SHELLS {
        let home = home_with_tools();
        home.write("agent", "#!/bin/sh\n\"$@\"\n");
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile context use staging");
        let line = "sessile run --context dev -- kubectl config current-context";
        let told = shell.run(line);
        assert!(told.contains("dev\r\n"), "{told}");
        let told = shell.run(&format!("sh agent {line}"));
        assert!(told.contains("error:"), "{told}");
        shell.exit();
    }
}
