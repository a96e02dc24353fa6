//! Pipelines, background jobs, nested shells and terminal multiplexers of a hooked shell.

use super::*;

#[test]
fn status_jobs_and_pipelines_are_those_of_the_shell() {
    for program in SHELLS {
        let home = home_with_tools();
        home.write("file", "x\n");
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile context use staging");
        shell.tty.type_line("false");
        let status = if program == "fish" { "$status" } else { "$?" };
        let told = shell.run(&format!("printf '%s-%s;' status {status}"));
        assert!(told.contains("status-1;"), "{program}: {told}");
        let told = shell.run("cat file | sessile run -- sh -c 'cat; sh look'");
        assert!(told.contains(&all("staging")), "{program}: {told}");
        let told = shell.run("cat file | sh look");
        assert!(told.contains(&all("staging")), "{program}: {told}");
        let told = shell.run("sh look > out & wait");
        assert_eq!(home.read("out"), format!("[[{}]]\n", all("staging")), "{program}: {told}");
        shell.exit();
    }
}

#[test]
fn login_shell_of_an_agent_stays_in_the_session_of_the_hook() {
    let home = home_with_tools();
    home.write(".bash_profile", "export KUBECONFIG=$HOME/.kube/config\n");
    home.write(".zprofile", "export KUBECONFIG=$HOME/.kube/config\n");
    let mut shell = HookedTty::start(&home, "bash");
    shell.run("sessile context use staging");
    for line in ["bash -lc 'kubectl config current-context'", "zsh -lc 'kubectl config current-context'"] {
        let told = shell.run(line);
        assert!(told.contains("staging\r\n"), "{line}: {told}");
    }
    shell.exit();
}

#[test]
fn nested_shell_leaves_with_the_users_own_values() {
    for program in SHELLS {
        let home = home_with_tools();
        home.write("p/file", "");
        home.call(&["context", "use", "staging", "--dir"]).cwd("p").ok();
        let mut shell = HookedTty::start(&home, program);
        load_hooks(
            &home,
            if program == "fish" { "set -gx AWS_PAGER mine\n" } else { "export AWS_PAGER=mine\n" },
        );
        shell.run("cd p");
        assert_eq!(shell.kubectl(), "staging", "{program}");
        shell.tty.type_line(&format!("{program} -i"));
        assert_eq!(shell.targets(), all("staging"), "{program}");
        assert_eq!(shell.mark(), "(staging)", "{program}");
        shell.run("cd ..");
        assert_eq!(shell.targets(), OWN, "{program}");
        assert_eq!(shell.mark(), "", "{program}");
        shell.tty.type_line("exit");
        assert_eq!(shell.kubectl(), "staging", "{program}: the outer shell is where it was");
        shell.exit();
    }
}

#[test]
fn shell_that_replaces_another_keeps_its_session() {
    let home = home_with_tools();
    let mut shell = HookedTty::start(&home, "bash");
    shell.run("sessile context use staging");
    shell.tty.type_line("exec zsh -i +Z");
    assert_eq!(shell.kubectl(), "staging");
    assert_eq!(shell.mark(), "(staging)");
    shell.run("sessile context use --none");
    assert_eq!(shell.kubectl(), "own");
    shell.exit();
}

#[test]
fn cleared_variables_come_back_with_the_users_own_values() {
    for program in SHELLS {
        let home = home_with_tools();
        let mut shell = HookedTty::start(&home, program);
        for pair in [("AWS_PROFILE", "own"), ("AWS_SESSION_TOKEN", "s3cret")] {
            let set = if program == "fish" {
                format!("set -gx {} {}", pair.0, pair.1)
            } else {
                format!("export {}={}", pair.0, pair.1)
            };
            shell.run(&set);
        }
        shell.run("sessile context use staging");
        let told = shell.run("printf '<%s>' \"$AWS_PROFILE\" \"$AWS_SESSION_TOKEN\"");
        assert!(told.contains("<staging><>"), "{program}: {told}");
        let told = shell.run("env | grep -c s3cret");
        assert!(told.contains('0'), "{program}: {told}");
        shell.run("sessile context use --none");
        let told = shell.run("printf '<%s>' \"$AWS_PROFILE\" \"$AWS_SESSION_TOKEN\"");
        assert!(told.contains("<own><s3cret>"), "{program}: {told}");
        shell.exit();
    }
}
