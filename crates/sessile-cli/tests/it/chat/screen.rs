//! The full-screen chat on a terminal of tmux, through the main paths.

use testkit::{Home, ScriptedAgent};

use super::agent;
use crate::{eventually, home};

/// A chat in a tmux of its own, in a shell that reports how it ended.
struct ChatScreen<'a> {
    home: &'a Home,
    socket: String,
}

impl<'a> ChatScreen<'a> {
    fn start(home: &'a Home, agent: &ScriptedAgent, flags: &str) -> Self {
        let socket = home.path("tmux.sock").display().to_string();
        let screen = ChatScreen { home, socket };
        screen.tmux(&["-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh"]);
        screen.run(agent, flags);
        screen
    }

    fn run(&self, agent: &ScriptedAgent, flags: &str) {
        let program = self.home.program().display();
        self.type_line(&format!("clear; {program} chat {} {flags}; echo ended with $?", agent.url()));
    }

    fn tmux(&self, args: &[&str]) -> String {
        let call = self.home.tool("tmux", &["-S", &self.socket]).args(args);
        call.env("PATH", testkit::tool_path()).env("TERM", "xterm").env("LANG", "C.UTF-8").ok().stdout()
    }

    fn keys(&self, keys: &[&str]) {
        let mut args = vec!["send-keys"];
        args.extend(keys);
        self.tmux(&args);
    }

    fn type_line(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.keys(&["Enter"]);
    }

    fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        let mut seen = String::new();
        let begun = std::time::Instant::now();
        loop {
            if seen.contains(text) {
                return;
            }
            assert!(
                begun.elapsed() < std::time::Duration::from_secs(40),
                "{text:?} did not appear in\n{seen}"
            );
            std::thread::sleep(std::time::Duration::from_millis(50));
            seen = self.text();
        }
    }

    /// Process id of the chat.
    fn pid(&self) -> String {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        let mut found = String::new();
        eventually("the chat", || {
            std::fs::read_to_string(&children).unwrap_or_default().trim().clone_into(&mut found);
            !found.is_empty()
        });
        found
    }
}

impl Drop for ChatScreen<'_> {
    fn drop(&mut self) {
        let _ = self
            .home
            .tool("tmux", &["-S", &self.socket, "kill-server"])
            .env("PATH", testkit::tool_path())
            .run();
    }
}

#[test]
fn conversation_streams_asks_saves_and_is_resumed() {
    let (home, agent) = (home(), agent());
    let screen = ChatScreen::start(&home, &agent, "--session work");
    screen.shows("a new conversation");
    screen.type_line("echo **hello** there");
    screen.shows("\nhello there");
    screen.type_line("ask");
    screen.shows("answer>");
    screen.type_line("Ann");
    screen.shows("hello Ann");
    screen.type_line("stream 4 50");
    screen.shows("chunk 4");
    screen.shows("task completed");
    screen.type_line("files");
    screen.shows("three artifacts");
    screen.keys(&["F2"]);
    screen.shows("3 report");
    screen.tmux(&["send-keys", "-l", "report"]);
    screen.shows("› 3 report");
    screen.keys(&["Enter"]);
    screen.shows("saved ");
    assert_eq!(home.read("report.txt"), "A report of the demo agent.\n");
    screen.keys(&["C-d"]);
    screen.shows("ended with 0");
    screen.run(&agent, "--session work");
    screen.shows("three artifacts");
    screen.type_line("context");
    screen.shows(" 6\n");
}

#[test]
fn tabs_picker_and_views_are_reached_by_keys() {
    let (home, agent) = (home(), agent());
    let screen = ChatScreen::start(&home, &agent, "--session work");
    screen.shows("a new conversation");
    screen.type_line("echo first");
    screen.shows("\nfirst");
    screen.keys(&["C-t"]);
    screen.shows(" 2 127.0.0.1");
    screen.type_line("echo second");
    screen.shows("\nsecond");
    screen.keys(&["M-1"]);
    screen.shows("\nfirst");
    screen.keys(&["F3"]);
    screen.shows("agent card");
    screen.keys(&["Escape"]);
    screen.shows("\nfirst");
    screen.keys(&["F4"]);
    screen.shows("< status 200");
    screen.keys(&["Escape"]);
    screen.shows("\nfirst");
    screen.keys(&["C-o"]);
    screen.shows("new conversation, http://127.0.0.1");
    screen.keys(&["Escape"]);
    screen.shows("\nfirst");
    screen.type_line("/quit");
    screen.shows("ended with 0");
}

#[test]
fn interrupt_cancels_and_the_chat_goes_on() {
    let (home, agent) = (home(), agent());
    let screen = ChatScreen::start(&home, &agent, "--session work");
    screen.shows("a new conversation");
    screen.type_line("stream 1000 100");
    screen.shows("chunk 2");
    screen.keys(&["C-c"]);
    screen.shows("task canceled");
    screen.type_line("echo after");
    screen.shows("\nafter");
}

#[test]
fn hostile_reply_neither_breaks_the_display_nor_runs() {
    let (home, agent) = (home(), agent());
    let screen = ChatScreen::start(&home, &agent, "--session work");
    screen.shows("a new conversation");
    screen.type_line("escapes");
    screen.shows("before\\u{1b}");
    screen.type_line("big 1000000");
    screen.shows("bytes left out");
    screen.type_line("echo still here");
    screen.shows("\nstill here");
}

#[test]
fn terminal_is_restored_by_signals_and_stops() {
    let (home, agent) = (home(), agent());
    let screen = ChatScreen::start(&home, &agent, "--session work");
    screen.shows("a new conversation");
    screen.tmux(&["send-keys", "-l", "draft"]);
    screen.shows("> draft");
    screen.keys(&["C-z"]);
    screen.shows("Stopped");
    screen.type_line("fg");
    screen.shows("> draft");
    let pid = screen.pid();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    screen.shows("Terminated");
    screen.type_line("stty -a | grep -o ' -*icanon'");
    screen.shows("\n icanon");
}
