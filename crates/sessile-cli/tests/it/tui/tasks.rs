//! Ten tasks of a new user, with the keys that the screen names. Each is here or in the file that is named:
//!
//! | task | test |
//! |---|---|
//! | find the session in production | `session_in_production_is_found` |
//! | approve for ten minutes | `paths::request_is_seen_approved_and_revoked` |
//! | stop the idle one | `idle_session_is_found_by_order_and_stopped` |
//! | answer the agent's question | `agents::question_of_an_agent_is_answered_in_its_session` |
//! | undo the last change | `last_change_that_can_be_undone_is_found` |
//! | see what a session changed | `changes_of_a_session_have_their_difference` |
//! | break a lock | `paths::lock_is_broken_and_operation_undone` |
//! | start a session in staging | `session_is_started_in_the_selected_context` |
//! | attach to one | `session_is_attached_to_this_terminal` |
//! | revoke the approval | `paths::request_is_seen_approved_and_revoked` |
//! | see the output of a command | `output_of_a_command_is_read` |
//! | chat and save an artifact | `artifact_of_a_chat_is_saved` |

use super::TmuxPane;
use crate::{home_with, live, shown, start};

fn guarded_home() -> testkit::Home {
    let home = home_with(&["staging"]);
    home.write(".config/sessile/contexts/production.toml", "guard = \"approval\"\n");
    home
}

#[test]
fn session_in_production_is_found() {
    let home = home_with(&["staging", "production"]);
    start(&home, &["--name", "web", "--context", "staging"]);
    start(&home, &["--name", "deploy", "--context", "production"]);
    let pane = TmuxPane::with_tui(&home);
    pane.expect("/ filter");
    pane.text("/production");
    pane.expect_gone("web ");
    pane.expect(">deploy");
    pane.keys(&["Enter", "Enter"]);
    pane.expect("Session \"deploy\"");
}

#[test]
fn idle_session_is_found_by_order_and_stopped() {
    let home = guarded_home();
    start(&home, &["--name", "idler"]);
    start(&home, &["--name", "worker"]);
    let pane = TmuxPane::with_tui(&home);
    pane.tmux(&["new-window", "-d", "sessile run --session worker -- sleep 600"]);
    pane.expect("sleep[");
    pane.expect("o sort");
    pane.expect(">worker");
    pane.keys(&["o", "o", "o"]);
    pane.expect("sorted by idle time");
    pane.expect(">idler");
    pane.keys(&["s"]);
    pane.expect("Stop session \"idler\"");
    pane.keys(&["y"]);
    pane.expect("stopped session \"idler\"");
    assert_eq!(live(&home).len(), 1);
}

#[test]
fn last_change_that_can_be_undone_is_found() {
    let home = guarded_home();
    home.call(&["context", "create", "scratch"]).ok();
    start(&home, &["--name", "web"]);
    let pane = TmuxPane::with_tui(&home);
    pane.keys(&["4"]);
    pane.expect("u undo");
    pane.keys(&["u"]);
    pane.expect("cannot be undone");
    pane.expect("can be undone is operation");
    pane.keys(&["Enter", "u"]);
    pane.expect("context create scratch?");
    pane.keys(&["y"]);
    pane.expect("undid operation");
    assert!(!home.call(&["context", "list"]).ok().stdout().contains("scratch"));
}

#[test]
fn changes_of_a_session_have_their_difference() {
    let home = guarded_home();
    start(&home, &["--name", "web", "--context", "staging"]);
    home.call(&["session", "state", "set", "color", "green", "--session", "web"]).ok();
    home.call(&["session", "state", "set", "color", "blue", "--session", "web"]).ok();
    let pane = TmuxPane::with_tui(&home);
    pane.expect("Enter open");
    pane.keys(&["Enter"]);
    pane.expect("Changes, the newest first");
    pane.expect("session state set");
    pane.keys(&["Escape"]);
    pane.expect_gone("Changes, the newest first");
    pane.keys(&["4", "Enter"]);
    pane.expect("color in session");
    pane.expect("- green");
    pane.expect("+ blue");
}

#[test]
fn output_of_a_command_is_read() {
    let home = guarded_home();
    start(&home, &["--name", "web"]);
    home.call(&["run", "--session", "web", "--log", "--", "echo", "built 42 files"]).ok();
    let pane = TmuxPane::with_tui(&home);
    pane.expect("Enter open");
    pane.keys(&["Enter"]);
    pane.expect("Output of echo 'built 42 files'");
}

#[test]
fn artifact_of_a_chat_is_saved() {
    let agent = testkit::ScriptedAgent::start(testkit::AgentOptions::of(testkit::Protocol::V1));
    let home = guarded_home();
    home.call(&["agent", "add", "demo", agent.url(), "--global"]).ok();
    let pane = TmuxPane::with_tui(&home);
    pane.expect(" 6 Chat ");
    pane.keys(&["6"]);
    pane.expect("agents and conversations");
    pane.expect("› demo");
    pane.keys(&["Enter"]);
    pane.expect("F1 help");
    pane.line("files");
    pane.expect("three artifacts");
    pane.keys(&["F1"]);
    pane.expect("artifacts, card, wire log");
    pane.keys(&["Escape"]);
    pane.expect_gone("artifacts, card, wire log");
    pane.keys(&["F2"]);
    pane.expect("artifacts: Enter saves");
    pane.text("report");
    pane.expect("› 1 report");
    pane.keys(&["Enter"]);
    pane.expect("saved ");
    assert_eq!(home.read("report.txt"), "A report of the demo agent.\n");
}

#[test]
fn session_is_started_in_the_selected_context() {
    let home = guarded_home();
    let pane = TmuxPane::with_tui(&home);
    pane.keys(&["2"]);
    pane.expect("n start");
    pane.expect(">production");
    pane.keys(&["G"]);
    pane.expect(">staging");
    pane.keys(&["n"]);
    pane.expect("Start a session in context \"staging\"");
    pane.line("web");
    pane.expect("started session \"web\"");
    assert_eq!(shown(&home, "web")["context"], "staging");
}

#[test]
fn session_is_attached_to_this_terminal() {
    let home = guarded_home();
    start(&home, &["--name", "web"]);
    let pane = TmuxPane::with_tui(&home);
    pane.expect(">web");
    pane.expect("a attach");
    pane.keys(&["a"]);
    pane.expect("attached to session \"web\"");
    pane.expect(">*web");
    pane.keys(&["q"]);
    pane.expect("prompt:");
    pane.line("sessile status");
    pane.expect("web");
}
