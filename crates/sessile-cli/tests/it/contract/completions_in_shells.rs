//! Completion in bash, zsh and fish on a terminal: what the line holds after Tab.

use testkit::{Home, Tty};

use crate::{home, home_with};

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

/// An interactive shell that has loaded the completions.
fn shell(home: &Home, program: &str) -> Tty {
    let args: &[&str] = match program {
        "bash" => &["--norc", "-i"],
        "zsh" => &["-f", "-i"],
        _ => &["-i"],
    };
    home.write(
        ".config/fish/config.fish",
        "set -g fish_greeting\nfunction fish_prompt\n  printf '$ '\nend\n",
    );
    let dir = home.program().parent().unwrap().display().to_string();
    let mut shell = home
        .tool(program, args)
        .env("TERM", "xterm")
        .env("PATH", format!("{dir}:/usr/local/bin:/usr/bin:/bin"))
        .tty();
    shell.type_line(match program {
        "bash" => "source <(sessile completions bash); bind 'set bell-style none'",
        "zsh" => "bindkey -e; autoload -Uz compinit; compinit -u -D; source <(sessile completions zsh)",
        _ => "sessile completions fish | source",
    });
    shell.type_line("echo re''ady");
    shell.expect("ready");
    shell
}

/// Asserts that Tab completes the last word of a line to this one.
#[track_caller]
fn assert_completes(shell: &mut Tty, line: &str, word: &str) {
    // Ctrl-A goes to the beginning, where the line becomes arguments that are printed.
    shell.type_line(&format!("{line}\t\u{1}printf '<%s>' "));
    shell.expect(&format!("<{word}>"));
    shell.type_line("echo do''ne");
    shell.expect("done");
}

fn home_with_targets() -> Home {
    let home = home_with(&["staging", "production"]);
    home.write(
        ".kube/config",
        "apiVersion: v1\nkind: Config\nclusters: []\nusers: []\ncontexts:\n\
         - {name: kube-eu, context: {}}\n- {name: 'arn:aws:eks:eu', context: {}}\n- {name: 'b c', context: {}}\n",
    );
    home.write(".aws/config", "[profile web]\nregion = x\n");
    home
}

#[test]
fn bindings_and_their_values_are_completed_in_every_shell() {
    let home = home_with_targets();
    for program in SHELLS {
        let mut shell = shell(&home, program);
        assert_completes(&mut shell, "sessile run --bind kubectl.cont", "kubectl.context=");
        assert_completes(&mut shell, "sessile run --bind kubectl.context=kub", "kubectl.context=kube-eu");
        assert_completes(
            &mut shell,
            "sessile run --bind kubectl.context=arn:",
            "kubectl.context=arn:aws:eks:eu",
        );
        assert_completes(&mut shell, "sessile run --bind kubectl.context=b", "kubectl.context=b c");
        assert_completes(&mut shell, "sessile session start --bind aws.profile=", "aws.profile=web");
        assert_completes(&mut shell, "sessile context create x --bind aws.profile=w", "aws.profile=web");
    }
}

#[test]
fn names_are_completed_in_every_shell() {
    let home = home_with_targets();
    home.call(&["session", "start", "--name", "deploying"]).ok();
    home.call(&["agent", "add", "reviewer", "https://agent.invalid", "--global"]).ok();
    home.call(&["lock", "acquire", "release-lock"]).ok();
    home.call(&["auth", "set", "gh-robot", "--bearer-token-stdin"]).stdin("s3cret-token").ok();
    for program in SHELLS {
        let mut shell = shell(&home, program);
        assert_completes(&mut shell, "sessile use st", "staging");
        assert_completes(&mut shell, "sessile run --context prod", "production");
        assert_completes(&mut shell, "sessile run --session dep", "deploying");
        assert_completes(&mut shell, "sessile session stop dep", "deploying");
        assert_completes(&mut shell, "sessile agent show rev", "reviewer");
        assert_completes(&mut shell, "sessile lock release rel", "release-lock");
        assert_completes(&mut shell, "sessile run --credential gh-", "gh-robot");
        assert_completes(&mut shell, "sessile run --env-credential TOKEN=gh-", "TOKEN=gh-robot");
    }
}

#[test]
fn settings_and_their_values_are_completed_in_every_shell() {
    let home = home_with(&["staging"]);
    for program in SHELLS {
        let mut shell = shell(&home, program);
        assert_completes(&mut shell, "sessile config set session.id", "session.idle");
        assert_completes(&mut shell, "sessile config set session.max-action w", "warn");
        assert_completes(&mut shell, "sessile config set context st", "staging");
        assert_completes(&mut shell, "sessile status --set isol", "isolate=");
        assert_completes(&mut shell, "sessile status --set isolate=ho", "isolate=home");
    }
}

#[test]
fn wrapped_command_completes_itself() {
    let home = home();
    home.write("file-of-mine", "");
    for program in SHELLS {
        let mut shell = shell(&home, program);
        shell.type_line(match program {
            "bash" => "_wrapme() { COMPREPLY=(\"forty-${COMP_WORDS[1]}-$COMP_CWORD\"); }; complete -F _wrapme wrapme",
            "zsh" => "_wrapme() { compadd \"forty-${words[2]}-$((CURRENT - 1))\" }; compdef _wrapme wrapme",
            _ => "complete -c wrapme -f -a '(echo forty-(commandline -opc)[2]-(count (commandline -opc)))'",
        });
        assert_completes(&mut shell, "sessile run --context x -- wrapme two for", "forty-two-2");
        assert_completes(&mut shell, "sessile run -- cat file-of", "file-of-mine");
        assert_completes(&mut shell, "sessile run -- kubect", "kubectl");
    }
}

#[test]
fn real_completion_of_a_wrapped_tool_is_used() {
    let home = home();
    for program in SHELLS {
        let mut shell = shell(&home, program);
        if program == "bash" {
            // What kubectl prints for bash builds on this package, as most completions do.
            shell.type_line("source /usr/share/bash-completion/bash_completion");
        }
        shell.type_line(&format!("kubectl completion {program} > k; source k"));
        assert_completes(&mut shell, "sessile run --session s -- kubectl config use-c", "use-context");
    }
}

/// The package loads the completion of a tool when the tool is completed first.
#[test]
fn completion_that_bash_loads_on_demand_is_used() {
    let home = home();
    let mut shell = shell(&home, "bash");
    shell.type_line("source /usr/share/bash-completion/bash_completion");
    assert_completes(&mut shell, "sessile run --session s -- git --no-pag", "--no-pager");
}
