//! A chat that is killed while the agent talks.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use super::{agent, last};
use crate::home;

#[test]
fn killed_chat_is_continued_by_the_next() {
    let (home, agent) = (home(), agent());
    let mut command = home.call(&["chat", agent.url(), "--session", "work"]).command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"echo before\nstream 20 100\n").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for expected in ["before", "chunk 1", "chunk 2"] {
        assert_eq!(lines.next().unwrap().unwrap(), expected);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let found = last(&home);
    assert_eq!(found["task_state"], "working");
    assert!(found["messages"].to_string().contains("chunk 2"), "{found}");
    let next = home.call(&["chat", agent.url(), "--session", "work"]).stdin("/watch\ncontext\n").ok();
    assert!(next.stdout().contains("chunk 20"), "{}", next.told());
    let context = found["context_id"].as_str().unwrap();
    assert!(next.stdout().ends_with(&format!("{context} 3\n")), "{}", next.told());
    assert_eq!(last(&home)["id"], found["id"]);
}
