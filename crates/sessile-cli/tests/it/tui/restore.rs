//! The terminal is as before after the end of the TUI, however it ends. A panic is covered beside `tui::terminal`.

use super::TmuxPane;
use crate::{home, start};

/// Waits for the shell, and checks that the terminal echoes and that the shell's own screen is back.
#[track_caller]
fn assert_restored(pane: &TmuxPane<'_>) {
    pane.wait("the shell's screen", |screen| {
        screen.contains("before-the-tui") && !screen.contains("Sessions")
    });
    pane.line("clear; stty -a | grep -c ' icanon' ; stty -a | grep -c ' echo ' ; echo 'mo'des");
    pane.wait("the modes of the terminal", |screen| screen.contains("1\n1\nmodes"));
    let flags = pane.tmux(&["display-message", "-p", "#{mouse_any_flag}#{alternate_on}"]);
    assert_eq!(flags.trim(), "00");
    pane.line("clear; echo before-the-tui");
}

fn pid_of_tui(pane: &TmuxPane<'_>) -> String {
    let shell = pane.tmux(&["display-message", "-p", "#{pane_pid}"]);
    let children = format!("/proc/{0}/task/{0}/children", shell.trim());
    std::fs::read_to_string(children).unwrap().trim().to_owned()
}

fn started(home: &testkit::Home) -> TmuxPane<'_> {
    start(home, &["--name", "web"]);
    let pane = TmuxPane::start(home);
    pane.line("echo before-the-tui");
    pane.expect("before-the-tui");
    pane.line("sessile tui");
    pane.expect(">web");
    pane
}

#[test]
fn quit_restores_the_terminal() {
    let home = home();
    let pane = started(&home);
    pane.keys(&["q"]);
    assert_restored(&pane);
}

#[test]
fn signals_that_end_it_restore_the_terminal() {
    for signal in ["TERM", "HUP", "INT"] {
        let home = home();
        let pane = started(&home);
        let pid = pid_of_tui(&pane);
        home.tool("kill", &["-s", signal, &pid]).ok();
        assert_restored(&pane);
    }
}

#[test]
fn suspended_tui_gives_the_terminal_back_and_continues() {
    let home = home();
    let pane = started(&home);
    pane.keys(&["C-z"]);
    assert_restored(&pane);
    pane.line("fg");
    pane.expect("[1 Sessions");
    pane.keys(&["?"]);
    pane.expect("Keys (Esc closes");
    pane.keys(&["Escape"]);
    pane.expect_gone("Keys (Esc closes");
    pane.keys(&["q"]);
    assert_restored(&pane);
}

#[test]
fn shell_in_a_session_gets_the_terminal_and_gives_it_back() {
    let home = home();
    let pane = started(&home);
    pane.keys(&["e"]);
    pane.wait("a shell", |screen| !screen.contains("Sessions"));
    pane.line("exit");
    pane.expect("[1 Sessions");
    pane.keys(&["q"]);
    assert_restored(&pane);
}
