//! The demo agent, as a person starts it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use testkit::Home;

use crate::home;

/// A running `sessile agent demo`.
struct Demo {
    child: Child,
    lines: BufReader<ChildStdout>,
    url: String,
}

impl Demo {
    fn start(home: &Home) -> Self {
        let mut command = home.call(&["agent", "demo", "--port", "0"]).command();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        lines.read_line(&mut first).unwrap();
        let url =
            first.trim().strip_prefix("started the demo agent on ").unwrap_or_else(|| panic!("{first}"));
        Demo { url: url.to_owned(), child, lines }
    }

    /// Sends a signal, and returns the rest of the output and the exit status.
    fn stop(&mut self, signal: &str) -> (String, Option<i32>) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

#[test]
fn demo_agent_does_everything_that_it_prints() {
    let home = home();
    let mut demo = Demo::start(&home);
    let url = demo.url.clone();
    let send = |text: &str| home.call(&["message", "send", &url, text, "--session", "work"]).ok().stdout();
    assert_eq!(send("echo hello"), "hello\n");
    assert_eq!(send("slow 1s done"), "done\n");
    assert_eq!(send("ask"), "what is your name?\n");
    assert_eq!(send("Ann"), "hello Ann\n");
    let stream = home.call(&["message", "stream", &demo.url, "stream 2 10", "--session", "work"]).ok();
    assert_eq!(stream.stdout(), "chunk 1\nchunk 2\n");
    let files = ["message", "send", &demo.url, "files", "--session", "work", "--save-artifacts", "out"];
    let files = home.call(&files).ok().stdout();
    assert!(files.contains("https://a2a-protocol.org/") && files.contains("\"rows\": 2"), "{files}");
    assert_eq!(home.read("out/report.txt"), "A report of the demo agent.\n");
    home.call(&["agent", "validate", &demo.url]).ok();
    let (printed, status) = demo.stop("-INT");
    assert_eq!(status, Some(0));
    for example in ["echo hello", "slow 5s done", "ask", "stream 5 300", "files"] {
        assert!(printed.contains(&format!(" {url} \"{example}\"\n")), "{printed}");
    }
    home.call(&["message", "send", &url, "echo gone"]).run().exit(12);
}

#[test]
fn demo_agent_speaks_both_versions() {
    let home = home();
    let mut demo = Demo::start(&home);
    let card = home.call(&["agent", "card", &demo.url]).ok().json();
    let text = card.to_string();
    assert!(text.contains("\"1.0\"") && text.contains("\"0.3.0\""), "{text}");
    assert_eq!(demo.stop("-TERM").1, Some(0));
}

#[test]
fn demo_agent_on_a_port_in_use_fails() {
    let home = home();
    let demo = Demo::start(&home);
    let port = demo.url.rsplit(':').next().unwrap();
    let second = home.call(&["agent", "demo", "--port", port]).run().exit(1);
    assert!(second.stderr().contains(&format!("listen on 127.0.0.1:{port}")), "{}", second.told());
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
