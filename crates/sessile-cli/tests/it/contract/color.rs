//! Colour: on terminals only, and only if nobody says no.

use testkit::Call;

use crate::home_with;

fn on_a_terminal(call: Call) -> String {
    call.tty().finish().0
}

#[test]
fn a_terminal_gets_colour_unless_the_environment_says_no() {
    let home = home_with(&["dev"]);
    let status = || home.call(&["status", "--context", "dev"]).env("TERM", "xterm");
    assert!(on_a_terminal(status()).contains("\x1b["));
    assert!(on_a_terminal(status().env("CI", "false")).contains("\x1b["));
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb"), ("CI", "true"), ("SESSILE_COLOR", "never")] {
        let text = on_a_terminal(status().env(name, value));
        assert!(!text.contains('\x1b'), "{name}={value}: {text:?}");
    }
    assert!(!on_a_terminal(status().arg("--color").arg("never")).contains('\x1b'));
}

#[test]
fn colour_can_be_forced_into_a_pipe_but_never_into_json() {
    let home = home_with(&["dev"]);
    let status = |args: &[&str]| {
        home.call(&["status", "--context", "dev", "--color", "always"]).arg(args[0]).ok().stdout()
    };
    assert!(status(&["--quiet"]).contains("\x1b["));
    assert!(
        home.call(&["status", "--color", "always", "--context", "dev"])
            .env("NO_COLOR", "1")
            .ok()
            .stdout()
            .contains("\x1b[")
    );
    assert!(!status(&["--output=json"]).contains('\x1b'));
    let failed = home.call(&["context", "show", "x", "--color", "always"]).run();
    assert!(failed.stderr().contains("\x1b["), "errors too");
}

#[test]
fn errors_in_the_arguments_heed_it_too() {
    let home = home_with(&[]);
    let wrong = |args: &[&str]| on_a_terminal(home.call(args).env("TERM", "xterm"));
    assert!(wrong(&["nonsense"]).contains("\x1b["));
    assert!(!wrong(&["nonsense", "--color", "never"]).contains('\x1b'));
    assert!(!wrong(&["nonsense", "--color=never"]).contains('\x1b'));
    assert!(home.call(&["nonsense", "--color", "always"]).run().stderr().contains("\x1b["));
}

#[test]
fn colour_is_never_the_only_mark() {
    let home = home_with(&["dev", "prod"]);
    let plain = home.call(&["context", "list", "--context", "dev"]).ok().stdout();
    let marked: Vec<&str> = plain.lines().filter(|line| line.starts_with('*')).collect();
    assert_eq!(marked.len(), 1, "{plain}");
    assert!(marked[0].contains("dev") && marked[0].contains("current: flag --context"), "{plain}");
}
