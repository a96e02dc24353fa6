//! The TUI in tmux: main paths, changes made elsewhere, and the terminal afterwards.

mod agents;
mod attention;
mod follow;
mod models;
mod paths;
mod restore;
mod tasks;

use std::ffi::OsString;
use std::time::{Duration, Instant};

use testkit::Home;

/// A terminal of tmux with a shell in it.
struct TmuxPane<'a> {
    home: &'a Home,
    socket: String,
}

impl<'a> TmuxPane<'a> {
    /// A terminal of 80 columns and 24 lines, at the prompt of a shell.
    fn start(home: &'a Home) -> Self {
        home.write(".tmux.conf", "set -g default-command 'PS1=prompt: sh -i'\n");
        let socket = home.path("tui.sock").display().to_string();
        let pane = TmuxPane { home, socket };
        pane.tmux(&["new-session", "-d", "-x", "80", "-y", "24"]);
        pane.expect("prompt:");
        pane
    }

    /// The same with the TUI in it.
    fn with_tui(home: &'a Home) -> Self {
        TmuxPane::with_tui_of_size(home, 80, 24)
    }

    /// The same with the TUI on a screen of a size.
    fn with_tui_of_size(home: &'a Home, width: u16, height: u16) -> Self {
        let pane = TmuxPane::start(home);
        pane.tmux(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
        pane.line("sessile tui");
        pane.expect("[1 Sessions");
        pane
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut path = OsString::from(self.home.program().parent().unwrap());
        path.push(":");
        path.push(testkit::tool_path());
        let call = self.home.tool("tmux", &["-u", "-S", &self.socket]).args(args);
        call.env("PATH", path).env("TERM", "xterm").env("LANG", "C.UTF-8").ok().stdout().to_owned()
    }

    /// Types keys, by their names in tmux.
    fn keys(&self, keys: &[&str]) {
        let mut args = vec!["send-keys"];
        args.extend(keys);
        self.tmux(&args);
    }

    /// Types text as it is.
    fn text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Types a line.
    fn line(&self, line: &str) {
        self.text(line);
        self.keys(&["Enter"]);
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen satisfies a condition; returns it.
    #[track_caller]
    fn wait(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < Duration::from_secs(40), "{what} did not appear:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until a text is on the screen.
    #[track_caller]
    fn expect(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Waits until a text is not on the screen.
    #[track_caller]
    fn expect_gone(&self, text: &str) {
        self.wait(&format!("a screen without {text}"), |screen| !screen.contains(text));
    }
}

impl Drop for TmuxPane<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.tmux(&["kill-server"]);
        }
    }
}
