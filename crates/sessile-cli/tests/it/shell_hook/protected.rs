//! Protected targets in hooked shells: what a guarded context alone binds is in no other session's reach.

use super::*;

fn guarded() -> Home {
    let home = home_with_tools();
    home.write(".config/sessile/contexts/production.toml", context("production", "guard = \"approval\""));
    home
}

#[test]
fn hooked_shells_do_not_have_the_targets_of_a_guarded_context() {
    for program in SHELLS {
        let home = guarded();
        let mut shell = HookedTty::start(&home, program);
        // A session without a context, and one with another context.
        for select in
            ["sessile session start --name s1", "sessile session detach; sessile context use staging"]
        {
            shell.run(select);
            let printed =
                shell.run("cat \"$KUBECONFIG\" \"$AWS_CONFIG_FILE\" \"$AWS_SHARED_CREDENTIALS_FILE\"");
            assert!(printed.contains("t-staging"), "{program}: {printed}");
            assert!(!printed.contains("production"), "{program}: {printed}");
            let printed = shell.run("kubectl --context production get pods");
            assert!(printed.contains("context was not found"), "{program}: {printed}");
        }
        shell.exit();
    }
}

#[test]
fn hooked_shell_clears_variables_of_protected_targets() {
    for program in SHELLS {
        let home = guarded();
        let mut shell = HookedTty::start(&home, program);
        let set = if program == "fish" {
            "set -gx AWS_PROFILE production"
        } else {
            "export AWS_PROFILE=production"
        };
        shell.run(set);
        shell.run("sessile session start --name s1");
        let printed = shell.run("printf '[[%s]]' \"$AWS_PROFILE\"");
        assert!(printed.contains("[[]]"), "{program}: {printed}");
        shell.exit();
    }
}
