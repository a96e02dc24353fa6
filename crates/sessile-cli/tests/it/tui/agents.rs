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
    pane.expect("nothing requires attention");
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
fn reply_streams_while_another_pane_is_visible() {
    let agent = agent();
    let home = home_with(&[]);
    home.call(&["agent", "add", "demo", agent.url(), "--global"]).ok();
    let pane = TmuxPane::with_tui(&home);
    pane.keys(&["5"]);
    pane.expect(">agent");
    pane.keys(&["Enter"]);
    pane.expect("a new conversation");
    pane.expect("Shift-Tab other panes");
    pane.line("stream 30 100");
    pane.expect("chunk 2");
    pane.keys(&["BTab"]);
    pane.expect("[5 Agents");
    pane.expect(" 6 Chat 1*");
    pane.keys(&["q"]);
    pane.expect("Quit while an agent replies?");
    pane.keys(&["n", "1"]);
    pane.expect("[1 Sessions");
    pane.expect(" 6 Chat 1+");
    pane.keys(&["6"]);
    pane.expect("chunk 30");
    pane.expect("[6 Chat 1]");
    pane.keys(&["Escape"]);
    pane.expect("[5 Agents");
    pane.keys(&["q"]);
    pane.expect("prompt:");
}

#[test]
fn conversations_of_two_contexts_are_open_at_once() {
    let agent = agent();
    let home = home_with(&["staging", "testing"]);
    for context in ["staging", "testing"] {
        start(&home, &["--name", context, "--context", context]);
        home.call(&["message", "send", agent.url(), "ask", "--session", context]).run();
    }
    let pane = TmuxPane::with_tui(&home);
    pane.keys(&["5"]);
    pane.wait("both conversations", |screen| screen.matches("input-required").count() == 2);
    for name in ["Ann", "Bob"] {
        pane.keys(&["Enter"]);
        pane.expect("answer>");
        pane.line(name);
        pane.expect(&format!("hello {name}"));
        pane.keys(&["C-d"]);
        pane.expect("[5 Agents");
        // The conversation that was used last is the first row.
        pane.keys(&["G"]);
        pane.wait("the other conversation", |screen| {
            screen
                .lines()
                .any(|line| line.starts_with('>') && (line.contains("input-required") || name == "Bob"))
        });
    }
    for context in ["staging", "testing"] {
        let shown = home.call(&["conversation", "show", "--session", context, "-ojson"]).ok().stdout();
        assert!(shown.contains("hello "), "{shown}");
    }
    assert_eq!(live(&home).len(), 2, "no session was started by the way");
}

#[test]
fn agent_that_never_answers_does_not_block_the_screen() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let home = home_with(&[]);
    let url = format!("http://{}", silent.local_addr().unwrap());
    home.call(&["agent", "add", "silent", &url, "--global"]).ok();
    let pane = TmuxPane::with_tui(&home);
    pane.keys(&["5"]);
    pane.expect(">agent");
    pane.keys(&["Enter"]);
    pane.expect("a new conversation");
    pane.line("hello");
    pane.expect("waiting for the agent");
    pane.keys(&["BTab", "4"]);
    pane.expect("[4 History");
    pane.expect(" 6 Chat 1*");
    pane.keys(&["q"]);
    pane.expect("Quit while an agent replies?");
    pane.keys(&["y"]);
    pane.expect("prompt:");
}

#[test]
fn locked_vault_is_reported_in_the_chat() {
    let agent = agent();
    let home = home_with(&[]);
    let runtime = home.private_dir("runtime");
    home.write("words", "correct horse battery\n");
    home.call(&["auth", "set", "bot", "--secret-stdin", "--site", agent.url()]).stdin("s3cret").ok();
    let rekey = ["auth", "rekey", "--to", "passphrase", "--passphrase-file", "words"];
    home.call(&rekey).env("XDG_RUNTIME_DIR", &runtime).ok();
    home.call(&["agent", "add", "demo", agent.url(), "--global", "--credential", "bot"]).ok();
    let pane = TmuxPane::with_tui(&home);
    pane.keys(&["5"]);
    pane.expect(">agent");
    pane.keys(&["Enter"]);
    pane.expect("a new conversation");
    pane.line("echo hello");
    let screen = pane.expect("hint: ");
    assert!(screen.contains("auth unlock") && !screen.contains("Passphrase of the vault"), "{screen}");
    pane.keys(&["BTab"]);
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
