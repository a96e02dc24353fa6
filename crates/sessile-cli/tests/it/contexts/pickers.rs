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
    shell.expect("selected context \"staging\"");
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
    shell.expect("selected context \"production\"");
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
    // Keys that arrive while the list is open belong to the list.
    shell.expect(") $ ");
    let (text, _) = shell.run("echo name=$GIT_AUTHOR_NAME.");
    assert!(text.contains("name=Stage Bot."), "{text}");
    let mut shell = home.tty(&["shell", "--shell", "/bin/sh"]);
    shell.expect("(none)");
    shell.type_line("none");
    shell.expect(") $ ");
    let (text, _) = shell.run("sessile context current; echo name=$GIT_AUTHOR_NAME.");
    assert!(text.contains("name=."), "{text}");
}

#[test]
fn scripts_get_an_error_without_a_list() {
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

#[test]
fn use_without_contexts_names_the_import() {
    let home = home();
    let (told, status) = home.shell().run("sessile use");
    assert_eq!(status, 2, "{told}");
    assert!(told.contains("no context exists") && told.contains("sessile import"), "{told}");
    assert!(!home.call(&["context", "use"]).run().exit(2).stderr().contains("sessile import"));
}

#[test]
fn sessions_of_hooked_shells_are_not_offered() {
    let home = home_with_bindings();
    home.call(&["session", "start", "--label", "hook=terminal"]).ok();
    let (told, status) = home.shell().run("sessile session stop");
    assert_eq!(status, 2, "{told}");
    assert!(!told.contains("Session to stop"), "{told}");
}

#[test]
fn context_and_session_to_show_are_chosen_from_a_list() {
    let home = home_with_bindings();
    home.call(&["session", "start", "--name", "web", "--context", "staging"]).ok();
    let mut shell = home.shell();
    shell.type_line("sessile context show; echo status=$?");
    shell.expect("Context to show:");
    shell.type_line("stag");
    shell.expect("Stage Bot");
    shell.expect("status=0");
    shell.type_line("sessile session show; echo status=$?");
    shell.expect("Session to show:");
    shell.type_line("web");
    shell.expect("status=0");
    home.call(&["context", "show"]).run().exit(5);
    assert_ne!(home.call(&["session", "show"]).run().status(), Some(0));
}

#[test]
fn scope_of_an_agent_is_chosen_from_a_list() {
    let home = home();
    let mut shell = home.shell();
    shell.type_line("sessile agent add bot http://127.0.0.1:1; echo status=$?");
    shell.expect("Scope of the name:");
    shell.expect("this directory");
    shell.type_keys(ESCAPE);
    shell.expect("status=1");
    assert!(shell.run("sessile agent list").0.contains("no agents"), "escape adds nothing");
    shell.type_line("sessile agent add bot http://127.0.0.1:1; echo status=$?");
    shell.expect("everywhere (--global)");
    shell.type_line("user");
    shell.expect("added agent bot");
    shell.expect("status=0");
    assert!(home.read(".config/sessile/config.toml").contains("http://127.0.0.1:1"));
    // A call without a person keeps its error.
    assert_eq!(
        home.call(&["agent", "add", "b", "http://127.0.0.1:1", "-ojson"]).run().exit(2).code(),
        "SCOPE_REQUIRED"
    );
}

#[test]
fn contexts_to_change_are_chosen_from_a_list() {
    let home = home_with_bindings();
    let mut shell = home.shell();
    let mut choose = |command: &str, question: &str, keys: &str, done: &str| {
        shell.type_line(&format!("sessile context {command}; echo status=$?"));
        shell.expect(question);
        shell.expect("esc cancels");
        shell.type_line(keys);
        shell.expect(done);
    };
    choose("edit --description mine", "Context to change:", "stag", "changed context \"staging\"");
    choose("export > staging.toml", "Context to export:", "stag", "status=0");
    choose("approve --yes --for 1m", "Context to approve:", "", "approved context \"production\"");
    choose("approve --revoke", "Approvals to revoke", "", "revoked the approvals of context \"production\"");
    choose("delete --yes", "Context to delete:", "dev", "deleted context \"dev\"");
    assert!(home.read("staging.toml").contains("Stage Bot"));
}

#[test]
fn rename_prompts_for_the_new_name() {
    let home = home_with_bindings();
    home.call(&["session", "start", "--name", "web"]).ok();
    let mut shell = home.shell();
    for (command, question, name) in
        [("context rename", "Context to rename:", "dev"), ("session rename", "Session to rename:", "web")]
    {
        shell.type_line(&format!("sessile {command}; echo status=$?"));
        shell.expect(question);
        shell.expect("esc cancels");
        shell.type_line(name);
        shell.expect("New name:");
        shell.type_line("fresh");
        shell.expect("renamed");
        shell.expect("status=0");
        // Escape renames nothing.
        shell.type_line(&format!("sessile {command} fresh; echo status=$?"));
        shell.expect("New name:");
        shell.type_keys(ESCAPE);
        shell.expect("status=1");
    }
    home.call(&["context", "show", "fresh"]).ok();
    home.call(&["session", "show", "fresh"]).ok();
}

#[test]
fn session_to_export_and_to_log_is_chosen_from_a_list() {
    let home = home();
    home.call(&["session", "start", "--name", "web"]).ok();
    home.call(&["run", "--session", "web", "--log", "--", "echo", "kept-line"]).ok();
    let mut shell = home.shell();
    for (command, question) in
        [("export > web.json", "Session to export:"), ("log > web.log", "Session of the output:")]
    {
        shell.type_line(&format!("sessile session {command}; echo status=$?"));
        shell.expect(question);
        shell.type_line("web");
        shell.expect("status=0");
    }
    assert!(home.read("web.json").contains("\"web\""));
    assert!(home.read("web.log").contains("kept-line"));
}

#[test]
fn scripts_must_name_a_context_or_session() {
    let home = home_with_bindings();
    home.call(&["session", "start", "--name", "web"]).ok();
    for command in ["edit", "delete", "approve", "export", "rename"] {
        home.call(&["context", command]).run().exit(2);
        let (text, status) = home.shell().run(&format!("sessile context {command} --no-input"));
        assert!(status == 2 && !text.contains("esc cancels"), "{text}");
    }
    home.call(&["context", "rename", "dev"]).run().exit(2);
    home.call(&["session", "rename"]).run().exit(2);
    home.call(&["session", "rename", "web"]).run().exit(2);
    assert_ne!(home.call(&["session", "export"]).run().status(), Some(0));
}

#[test]
fn only_guarded_contexts_are_offered_for_approval() {
    let home = home_with(&["dev"]);
    let (text, status) = home.shell().run("sessile context approve");
    assert!(status == 2 && text.contains("requires a CONTEXT"), "{text}");
}
