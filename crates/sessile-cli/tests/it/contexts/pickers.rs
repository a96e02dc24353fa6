//! Pickers on a terminal: a list where a person left out a name. Scripts keep their errors.

use testkit::Home;

use crate::{home, home_with};

const DOWN: &str = "\u{1b}[B";
const ESCAPE: &str = "\u{1b}";

fn home_with_bindings() -> Home {
    let home = home_with(&["dev", "production", "staging"]);
    home.call(&["context", "edit", "staging", "--bind", "git.name=Stage Bot"]).ok();
    home.call(&["context", "edit", "production", "--guard", "approval"]).ok();
    home
}

#[test]
fn context_is_chosen_from_a_list_that_previews_bindings() {
    let home = home_with_bindings();
    let mut shell = home.shell();
    shell.type_line("sessile use; echo status=$?");
    shell.expect("Context to select:");
    shell.expect("production");
    shell.expect("(approval)");
    shell.expect("git.name=Stage Bot");
    // Typing filters.
    shell.type_line("stag");
    shell.expect("context \"staging\" selected");
    shell.expect("status=0");
    assert!(shell.run("sessile context current").0.contains("staging"));
}

#[test]
fn arrows_move_and_escape_changes_nothing() {
    let home = home_with_bindings();
    let mut shell = home.shell();
    shell.type_line("sessile use; echo status=$?");
    shell.expect("esc cancels");
    shell.type_line(DOWN);
    shell.expect("context \"production\" selected");
    shell.expect("status=0");
    shell.type_line("sessile use; echo status=$?");
    shell.expect("esc cancels");
    shell.type_keys(ESCAPE);
    shell.expect("status=1");
    assert!(shell.run("sessile context current").0.contains("production"));
}

#[test]
fn session_to_stop_is_chosen_from_a_list() {
    let home = home_with_bindings();
    home.call(&["session", "start", "--name", "web", "--context", "staging"]).ok();
    home.call(&["session", "start", "--name", "api", "--bind", "git.name=x"]).ok();
    let mut shell = home.shell();
    shell.type_line("sessile session stop; echo status=$?");
    shell.expect("Session to stop:");
    shell.expect("anonymous (git.name=x)");
    shell.type_line("web");
    shell.expect("stopped session \"web\"");
    shell.expect("status=0");
    let left = home.call(&["session", "list", "-ojson"]).ok().json();
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(left[0]["name"], "api");
}

#[test]
fn session_to_attach_is_chosen_from_a_list() {
    let home = home_with_bindings();
    home.call(&["session", "start", "--name", "web", "--context", "staging"]).ok();
    home.call(&["session", "start", "--name", "api"]).ok();
    let mut shell = home.shell();
    shell.type_line("sessile session attach; echo status=$?");
    shell.expect("Session to attach:");
    shell.type_line("web");
    shell.expect("attached to session \"web\"");
    shell.expect("status=0");
    home.call(&["session", "attach"]).run().exit(2);
}

#[test]
fn shell_without_a_context_offers_the_contexts_and_none() {
    let home = home_with_bindings();
    let mut shell = home.tty(&["shell", "--shell", "/bin/sh"]);
    shell.expect("Context of the shell:");
    shell.expect("(none)");
    shell.type_line("stag");
    shell.expect("staging");
    let (text, _) = shell.run("echo name=$GIT_AUTHOR_NAME.");
    assert!(text.contains("name=Stage Bot."), "{text}");
    let mut shell = home.tty(&["shell", "--shell", "/bin/sh"]);
    shell.expect("(none)");
    shell.type_line("none");
    let (text, _) = shell.run("sessile context current; echo name=$GIT_AUTHOR_NAME.");
    assert!(text.contains("name=."), "{text}");
}

#[test]
fn scripts_are_shown_no_list() {
    let home = home_with_bindings();
    home.call(&["session", "start", "--name", "web"]).ok();
    home.call(&["context", "use", "-ojson"]).run().exit(2);
    home.call(&["use"]).run().exit(2);
    home.call(&["session", "stop", "-ojson"]).run().exit(2);
    home.call(&["shell", "--shell", "/bin/true"]).ok();
    let mut shell = home.shell();
    for command in ["use", "session stop"] {
        let (text, status) = shell.run(&format!("sessile {command} --no-input"));
        assert_eq!(status, 2, "{text}");
        let (text, status) = shell.run(&format!("sessile {command} < /dev/null"));
        assert_eq!(status, 2, "{text}");
    }
}

#[test]
fn without_contexts_nothing_is_offered() {
    let home = home();
    let (text, status) = home.shell().run("sessile use");
    assert!(status == 2 && !text.contains("Context to select"), "{text}");
}
