//! Main paths: start, filter, open, approve, revoke, break, stop, undo, resize, quit.

use super::TmuxPane;
use crate::{history, home, home_with, live, start};

fn guarded_home() -> testkit::Home {
    let home = home_with(&["staging"]);
    home.write(".config/sessile/contexts/production.toml", "guard = \"approval\"\n");
    home
}

#[test]
fn tui_without_a_terminal_is_an_error() {
    let failed = home().call(&["tui"]).run().exit(2);
    assert!(failed.stderr().contains("terminal"), "{}", failed.stderr());
}

#[test]
fn session_is_started_filtered_opened_and_stopped() {
    let home = guarded_home();
    start(&home, &["--name", "other"]);
    let pane = TmuxPane::with_tui(&home);
    pane.keys(&["n"]);
    pane.expect("Start a session");
    pane.line("web");
    pane.line("staging");
    pane.expect("started session \"web\"");
    pane.wait("both sessions", |screen| screen.contains("*web ") && screen.contains("other "));
    pane.text("/stag");
    pane.expect_gone("other ");
    pane.keys(&["Enter", "Enter"]);
    pane.expect("Session \"web\"");
    pane.keys(&["s"]);
    pane.expect("Stop session \"web\" in context \"staging\"?");
    pane.keys(&["n"]);
    pane.expect_gone("Confirm");
    assert_eq!(live(&home).len(), 2);
    pane.text("sy");
    pane.expect("stopped session \"web\"");
    assert_eq!(live(&home).len(), 1);
    assert_eq!(history(&home)[0]["command"], "session stop");
    pane.keys(&["q"]);
    pane.expect("prompt:");
}

#[test]
fn request_is_seen_approved_and_revoked() {
    let home = guarded_home();
    start(&home, &["--name", "web"]);
    let pane = TmuxPane::with_tui(&home);
    pane.expect("nothing requires attention");
    home.call(&["run", "--context", "production", "--", "true"]).run().exit(125);
    pane.expect("! approval of \"production\" requested");
    pane.keys(&["!"]);
    pane.expect("[2 Contexts");
    pane.keys(&["a"]);
    pane.expect("Approve context \"production\"");
    pane.keys(&["Enter"]);
    pane.expect("approved context \"production\" for 10 min");
    pane.expect(" left");
    home.call(&["run", "--context", "production", "--", "true"]).ok();
    pane.text("vy");
    pane.expect("revoked the approvals of context \"production\"");
    home.call(&["run", "--context", "production", "--", "true"]).run().exit(125);
}

#[test]
fn approval_requires_the_pin() {
    let home = guarded_home();
    let mut shell = home.tty(&["context", "approve", "--set-pin"]);
    shell.expect("New PIN");
    shell.type_line("4711");
    shell.expect("Again");
    shell.type_line("4711");
    assert_eq!(shell.finish().1, 0);
    let pane = TmuxPane::with_tui(&home);
    pane.keys(&["2"]);
    pane.expect("production");
    for (pin, words) in [("0000", "the PIN is wrong"), ("4711", "approved context \"production\"")] {
        pane.keys(&["a"]);
        pane.expect("PIN:");
        pane.keys(&["Enter"]);
        pane.text(pin);
        assert!(!pane.expect("****").contains(pin));
        pane.keys(&["Enter"]);
        pane.expect(words);
    }
}

#[test]
fn approval_is_refused_inside_a_session() {
    let home = guarded_home();
    start(&home, &["--name", "web"]);
    let pane = TmuxPane::start(&home);
    pane.line("sessile run --session web -- sessile tui");
    pane.expect("[1 Sessions");
    pane.keys(&["2"]);
    pane.expect("production");
    pane.keys(&["a"]);
    pane.expect("error: ");
    assert!(!pane.screen().contains("Approve context"));
}

#[test]
fn lock_is_broken_and_operation_undone() {
    let home = guarded_home();
    home.call(&["lock", "acquire", "deploy", "--ttl", "1h"]).ok();
    home.call(&["context", "create", "scratch"]).ok();
    let pane = TmuxPane::with_tui(&home);
    pane.keys(&["3"]);
    pane.expect(">deploy");
    pane.keys(&["b"]);
    pane.expect("Break lock \"deploy\"");
    pane.keys(&["y"]);
    pane.expect("broke lock \"deploy\"");
    pane.expect("no locks are held");
    pane.keys(&["4"]);
    pane.text("/create");
    pane.wait("the operation alone", |screen| screen.contains("scratch") && !screen.contains("lock break"));
    pane.keys(&["Enter", "Enter"]);
    pane.expect("u undo, Esc closes");
    pane.keys(&["u"]);
    pane.expect("context create scratch?");
    pane.keys(&["y"]);
    pane.expect("undid operation");
    assert!(!home.call(&["context", "list"]).ok().stdout().contains("scratch"));
}

#[test]
fn changes_made_elsewhere_are_followed() {
    let home = guarded_home();
    let id = start(&home, &["--name", "web"]);
    let pane = TmuxPane::with_tui(&home);
    pane.expect(">web");
    start(&home, &["--name", "later"]);
    pane.expect("later");
    // A command that starts in a session changes its room only.
    pane.tmux(&["new-window", "-d", "sessile run --session web -- sleep 600"]);
    pane.expect("sleep[");
    home.call(&["session", "stop", &id]).ok();
    pane.expect_gone("web ");
    home.write(".config/sessile/contexts/fresh.toml", "");
    pane.keys(&["2"]);
    pane.expect("fresh");
}

#[test]
fn screen_follows_the_size_and_has_help_and_palette() {
    let home = guarded_home();
    let pane = TmuxPane::with_tui(&home);
    pane.tmux(&["resize-window", "-x", "40", "-y", "10"]);
    pane.wait("a narrow screen", |screen| screen.lines().all(|line| line.chars().count() <= 40));
    pane.expect("[1 Sessions]");
    pane.tmux(&["resize-window", "-x", "120", "-y", "40"]);
    pane.expect("OWNER");
    pane.keys(&["?"]);
    pane.expect("Suspend; fg continues");
    pane.keys(&["Escape"]);
    pane.expect_gone("Suspend; fg continues");
    pane.keys(&[":"]);
    pane.expect("Command");
    pane.line("history");
    pane.expect("[4 History");
    pane.line(":quit");
    pane.expect("prompt:");
}
