//! Chatting from the TUI: an agent's question is answered in its session, and a named agent is reached.

use testkit::{AgentOptions, Home, Protocol, ScriptedAgent};

use super::TmuxPane;
use crate::{home_with, live, start};

fn agent() -> ScriptedAgent {
    ScriptedAgent::start(AgentOptions::of(Protocol::V1))
}

fn asked(agent: &ScriptedAgent) -> Home {
    let home = home_with(&["staging"]);
    start(&home, &["--name", "reviewer", "--context", "staging"]);
    home.call(&["message", "send", agent.url(), "ask", "--session", "reviewer"]).run();
    home
}

#[test]
fn question_of_an_agent_is_answered_in_its_session() {
    let agent = agent();
    let home = asked(&agent);
    let pane = TmuxPane::with_tui(&home);
    pane.expect("requires input (press !)");
    pane.keys(&["!"]);
    pane.expect("[5 Agents");
    pane.keys(&["Enter"]);
    pane.expect("what is your name?");
    pane.expect("answer>");
    pane.line("Ann");
    pane.expect("hello Ann");
    pane.keys(&["C-d"]);
    pane.expect("[5 Agents");
    pane.expect("nothing needs you");
    assert_eq!(live(&home).len(), 1, "no session was started by the way");
}

#[test]
fn conversation_of_a_stopped_session_continues_in_its_context() {
    let agent = agent();
    let home = asked(&agent);
    home.call(&["session", "stop", "reviewer", "--yes"]).ok();
    let pane = TmuxPane::with_tui(&home);
    pane.keys(&["5"]);
    pane.expect("input-required");
    pane.keys(&["Enter"]);
    pane.expect("what is your name?");
    pane.line("Ann");
    pane.expect("hello Ann");
    pane.keys(&["C-d"]);
    pane.expect("[5 Agents");
}

#[test]
fn named_agent_is_reached_and_its_conversation_is_listed() {
    let agent = agent();
    let home = home_with(&[]);
    home.call(&["agent", "add", "demo", agent.url(), "--global"]).ok();
    let pane = TmuxPane::with_tui(&home);
    pane.keys(&["5"]);
    pane.expect("demo");
    pane.keys(&["Enter"]);
    pane.expect("a new conversation");
    pane.line("echo hello there");
    pane.expect("\nhello there");
    pane.keys(&["C-d"]);
    pane.expect("[5 Agents");
    pane.wait("the conversation", |screen| screen.contains("conversation "));
}
