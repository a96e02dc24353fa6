//! What is selected in one terminal is not seen in another, nor by what has no terminal.

use crate::home_with;

#[test]
fn a_selection_holds_in_its_own_terminal_alone() {
    let home = home_with(&["staging", "prod"]);
    let (mut a, mut b) = (home.shell(), home.shell());
    let (text, status) = a.run("sessile context use staging");
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("for this terminal, /dev/"), "{text}");
    assert!(a.run("sessile context current").0.contains("staging"));
    assert!(a.run("sessile context list").0.contains("(current: terminal /dev/"));
    let (text, status) = b.run("sessile context current");
    assert_eq!(status, 5, "{text}");
    assert_eq!(b.run("sessile context use prod").1, 0);
    assert!(b.run("sessile context current").0.contains("prod"));
    assert!(a.run("sessile context current").0.contains("staging"), "and stays where it was");
    home.call(&["context", "current"]).run().exit(5);
}

#[test]
fn a_process_without_a_terminal_sees_no_selection() {
    let home = home_with(&["staging"]);
    let mut shell = home.shell();
    shell.run("sessile context use staging");
    let (text, status) = shell.run("setsid -w sessile context current </dev/null 2>&1 | cat");
    assert!(!text.contains("staging"), "{status}: {text}");
    assert!(text.contains("no context is selected"), "{text}");
}

#[test]
fn a_pipe_in_the_terminal_is_still_that_terminal() {
    let home = home_with(&["staging"]);
    let mut shell = home.shell();
    shell.run("sessile context use staging");
    assert!(shell.run("echo \"[$(sessile context current)]\"").0.contains("[staging]"));
    assert!(shell.run("bash -c 'sessile context current'").0.contains("staging"), "a shell below it too");
}

#[test]
fn a_dash_goes_back_in_the_terminal() {
    let home = home_with(&["a", "b"]);
    let mut shell = home.shell();
    shell.run("sessile context use a");
    shell.run("sessile context use b");
    assert_eq!(shell.run("sessile context use -").1, 0);
    assert!(shell.run("echo \"[$(sessile context current)]\"").0.contains("[a]"));
    let (text, status) = home.shell().run("sessile context use -");
    assert_eq!(status, 5, "{text}");
    assert!(text.contains("no other context was selected here before"), "{text}");
}

#[test]
fn terminal_selection_overrides_files_and_not_flags() {
    let home = home_with(&["here", "file", "said"]);
    home.write(".config/sessile/config.toml", "context = \"file\"\n");
    let mut shell = home.shell();
    let mut current = |line: &str| shell.run(line).0;
    assert!(current("sessile context current").contains("file"));
    current("sessile context use here");
    assert!(current("sessile context current").contains("here"));
    assert!(current("sessile context current --context said").contains("said"));
    assert!(current("SESSILE_CONTEXT=said sessile context current").contains("said"));
    let shown = current("sessile config show context --source");
    assert!(shown.contains("terminal /dev/") && shown.contains("(shadowed)"), "{shown}");
}

#[test]
fn a_session_in_the_terminal_does_not_see_its_selection() {
    let home = home_with(&["staging"]);
    home.call(&["session", "start", "--name", "s1"]).ok();
    let mut shell = home.shell();
    shell.run("sessile context use staging");
    let (text, status) = shell.run("SESSILE_SESSION=s1 sessile context current");
    assert_eq!(status, 5, "{text}");
}

#[test]
fn a_recycled_terminal_does_not_inherit() {
    let home = home_with(&["staging"]);
    let mut first = home.shell();
    first.run("sessile context use staging");
    assert_eq!(first.run("sessile context current").1, 0);
    let device = first.run("tty").0.trim().to_owned();
    first.type_line("exit");
    first.finish();
    // The system hands the device out again sooner or later; whichever comes, nothing is inherited.
    let mut open = Vec::new();
    for _ in 0..16 {
        let mut next = home.shell();
        let again = next.run("tty").0.trim() == device;
        let (text, status) = next.run("sessile context current");
        assert_eq!(status, 5, "{text}");
        open.push(next);
        if again {
            break;
        }
    }
}

#[test]
fn selection_of_a_closed_terminal_is_dropped() {
    let home = home_with(&["staging", "prod"]);
    let mut first = home.shell();
    first.run("sessile context use staging");
    first.type_line("exit");
    first.finish();
    let done = home.call(&["context", "delete", "staging", "--yes", "-ojson"]).ok();
    assert_eq!(done.json()["was_selected_by"], serde_json::json!([]));
}
