//! The chat without a capable terminal.

use testkit::ScriptedAgent;

use super::{agent, last};
use crate::{eventually, home};

/// Lines to the chat of the session `work`.
fn chat(home: &testkit::Home, agent: &ScriptedAgent, lines: &str) -> testkit::CallResult {
    home.call(&["chat", agent.url(), "--session", "work"]).stdin(lines).run()
}

#[test]
fn lines_are_messages_of_one_conversation() {
    let (home, agent) = (home(), agent());
    let done = chat(&home, &agent, "echo hello\n\nask\nAnn\nstream 3 10\n//echo slash\n").exit(0);
    assert_eq!(
        done.stdout(),
        "hello\nwhat is your name?\nhello Ann\nchunk 1\nchunk 2\nchunk 3\n/echo slash\n"
    );
    let texts: Vec<String> = last(&home)["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["kind"] == "sent")
        .map(|item| item["body"]["parts"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["echo hello", "ask", "Ann", "stream 3 10", "/echo slash"]);
    let next = chat(&home, &agent, "context\n").exit(0);
    assert!(next.stdout().trim_end().ends_with(" 6"), "the next chat continues: {}", next.stdout());
    let new = home.call(&["chat", agent.url(), "--session", "work", "--new"]).stdin("context\n").ok();
    assert!(new.stdout().trim_end().ends_with(" 1"), "{}", new.stdout());
}

#[test]
fn chat_without_a_session_stores_nothing_and_keeps_its_context() {
    let (home, agent) = (home(), agent());
    let done = home.call(&["chat", agent.url()]).stdin("context\nask\nAnn\ncontext\n").ok();
    let lines: Vec<String> = done.stdout().lines().map(str::to_owned).collect();
    assert_eq!(lines[1..3], ["what is your name?", "hello Ann"]);
    let (first, fourth) = (lines[0].split_once(' ').unwrap(), lines[3].split_once(' ').unwrap());
    assert_eq!(first.0, fourth.0);
    let listed = home.call(&["conversation", "list", "--all", "-ojson"]).ok().json();
    assert_eq!(listed, serde_json::json!([]));
}

#[test]
fn failure_ends_a_script_with_its_status() {
    let (home, agent) = (home(), agent());
    let failed = chat(&home, &agent, "fail\necho unreachable\n").exit(1);
    assert_eq!(failed.stdout(), "it broke\n");
    let unknown = chat(&home, &agent, "/nope\necho unreachable\n").exit(2);
    assert_eq!(unknown.stdout(), "");
    assert!(unknown.stderr().contains("command \"/nope\" not found"), "{}", unknown.told());
    let gone = home.call(&["chat", "http://127.0.0.1:9", "--session", "work"]).stdin("hi\n").run().exit(12);
    assert!(gone.stderr().contains("127.0.0.1:9"), "{}", gone.told());
    home.call(&["chat"]).stdin("hi\n").run().exit(2);
    home.call(&["chat", agent.url(), "-ojson"]).stdin("hi\n").run().exit(2);
}

#[test]
fn artifacts_are_saved_under_safe_names() {
    let (home, agent) = (home(), agent());
    home.write("notes.txt", "some notes");
    let lines =
        "files\n/artifacts\n/save out\nfile\n/save 4 evil\n/attach notes.txt\n/data {\"n\": 1}\ngot\n";
    let done = chat(&home, &agent, lines).exit(0);
    assert_eq!(home.read("out/report.txt"), "A report of the demo agent.\n");
    assert!(home.path("out/table.json").exists() && home.path("out/protocol.url").exists());
    assert!(home.path("evil/evil.bin").exists(), "{}", done.told());
    assert!(done.stderr().contains("1 report (text/plain, 28 bytes)"), "{}", done.told());
    let got = done.stdout();
    assert!(got.contains("notes.txt") && got.contains("c29tZSBub3Rlcw"), "{got}");
    let missing = chat(&home, &agent, "/save 99\n").exit(2);
    assert!(missing.stderr().contains("artifact 99 not found"), "{}", missing.told());
}

#[test]
fn events_are_lines_of_json() {
    let (home, agent) = (home(), agent());
    let done = home.call(&["chat", agent.url(), "--session", "work", "-ojsonl"]).stdin("stream 2 10\n").ok();
    let events: Vec<serde_json::Value> =
        done.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().all(|event| event["source"] == "agent"), "{events:?}");
    assert_eq!(events.last().unwrap()["state"], "completed");
}

#[test]
fn hostile_reply_is_written_out() {
    let (home, agent) = (home(), agent());
    let done = chat(&home, &agent, "escapes\nescaped\nbig 1048576\n").exit(0);
    let text = done.stdout();
    assert!(!sessile::text::acts_on_terminals(&text) && text.contains("\\u{1b}"), "{}", &text[..200]);
    assert!(text.contains(&"x".repeat(1 << 20)));
}

#[test]
fn forget_requires_a_yes() {
    let (home, agent) = (home(), agent());
    chat(&home, &agent, "echo one\n/forget\n").exit(2);
    assert!(last(&home).to_string().contains("echo one"));
    home.call(&["chat", agent.url(), "--session", "work", "--yes"]).stdin("/forget\n").ok();
    let listed = home.call(&["conversation", "list", "--all", "-ojson"]).ok().json();
    assert_eq!(listed, serde_json::json!([]));
}

#[test]
fn guarded_context_is_not_reached() {
    let (home, agent) = (crate::home_with(&[]), agent());
    home.write(".config/sessile/contexts/production.toml", "guard = \"approval\"\n");
    let call = ["chat", agent.url(), "--context", "production", "--session", "work"];
    home.call(&call).stdin("echo no\n").run().exit(7);
    assert_eq!(agent.count("SendMessage") + agent.count("SendStreamingMessage"), 0);
}

#[test]
fn dumb_terminal_gets_the_line_mode() {
    let (home, agent) = (home(), agent());
    let mut tty = home.call(&["chat", agent.url()]).env("TERM", "dumb").tty();
    tty.expect("new conversation; /help lists commands");
    tty.expect("> ");
    tty.type_line("echo hello from a person");
    tty.expect("\nhello from a person");
    tty.type_line("/nope");
    tty.expect("not found; /help lists the commands");
    tty.type_line("ask");
    tty.expect("what is your name?");
    tty.expect("? ");
    tty.type_line("Ann");
    tty.expect("hello Ann");
    tty.type_line("/quit");
    assert_eq!(tty.finish().1, 0);
    eventually("the conversation", || {
        home.call(&["conversation", "list", "--all", "-ojson"]).ok().json().as_array().unwrap().len() == 1
    });
}
