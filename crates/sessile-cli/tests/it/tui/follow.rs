//! Changes that other processes make are followed, also off the screen and in directories that did not exist.

use super::TmuxPane;
use crate::{home, home_with, start};

#[test]
fn changes_of_sessions_off_the_page_are_seen() {
    let home = home_with(&["staging"]);
    for number in 0..12 {
        start(&home, &["--name", &format!("x{number}")]);
    }
    let pane = TmuxPane::with_tui_of_size(&home, 80, 8);
    pane.expect(">x11");
    assert!(!pane.screen().contains("x0 "));
    pane.text("/sleep");
    pane.expect("no rows match");
    pane.tmux(&["new-window", "-d", "sessile run --session x0 -- sleep 600"]);
    // The limit of the wait is below the time after which the TUI reads everything again anyway.
    pane.expect(">x0 ");
}

#[test]
fn contexts_in_directories_created_later_are_followed() {
    let home = home();
    start(&home, &["--name", "web"]);
    let pane = TmuxPane::with_tui(&home);
    pane.expect(">web");
    pane.keys(&["2"]);
    home.write(".config/sessile/contexts/fresh.toml", "");
    pane.expect("fresh");
    home.write(".config/sessile/contexts/second.toml", "guard = \"approval\"\n");
    pane.expect("approval");
    std::fs::remove_file(home.path(".config/sessile/contexts/second.toml")).unwrap();
    pane.expect_gone("second");
}

#[test]
fn contexts_of_the_project_are_followed() {
    let home = home();
    start(&home, &["--name", "web"]);
    let pane = TmuxPane::start(&home);
    pane.line("mkdir project; cd project; sessile tui");
    pane.expect(">web");
    pane.keys(&["2"]);
    home.write("project/.sessile/contexts/shared.toml", "");
    pane.expect("shared");
    home.write("project/.sessile/contexts/later.toml", "");
    pane.expect("later");
}
