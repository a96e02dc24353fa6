//! A long process and many short ones on one store: they see what the others change at once, and erase none of it.

use super::{StreamingCommand, agent, conversations, last, sent, together};
use crate::home;

#[test]
fn concurrent_change_during_a_stream_is_kept() {
    let (home, agent) = (home(), agent());
    let call = |args: &[&str]| home.call(args).args(&["--session", "work", "-ojson"]);
    let named = |name: &str, text: &str| {
        call(&["message", "send", agent.url(), text, "--conversation", name]).ok().json()
    };
    named("to-clear", "echo forget me");
    let mut stream = StreamingCommand::start(&home, agent.url(), "hold the end", &["--new"]);
    let context = stream.event().unwrap()["context_id"].as_str().unwrap().to_owned();
    // Short ones see it at once: it is the last one, and can be named.
    let found = last(&home);
    assert_eq!(found["context_id"], context);
    call(&["conversation", "rename", found["id"].as_str().unwrap(), "long"]).ok();
    together(10, |number| {
        let text = format!("echo {number}");
        named(&format!("n{number}"), &text);
        // Another task of the same conversation, said to it and not to the one that is held.
        call(&["message", "send", agent.url(), &text, "--context-id", &context]).ok();
    });
    call(&["conversation", "clear", "to-clear", "--yes"]).ok();
    let listed = call(&["conversation", "list"]).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 11);

    agent.release();
    let (end, status) = stream.end();
    assert_eq!((status, end["state"].as_str()), (Some(0), Some("completed")));
    let all = conversations(&home);
    assert_eq!(all.len(), 11, "only the cleared conversation is deleted");
    let long = all.iter().find(|one| one["name"] == "long").expect("the conversation keeps its name");
    assert_eq!((&long["id"], &long["context_id"]), (&found["id"], &context.as_str().into()));
    assert_eq!(long["task_state"], "completed");
    let mut said = sent(long);
    assert_eq!(said.remove(0), "hold the end");
    said.sort();
    assert_eq!(said, (0..10).map(|number| format!("echo {number}")).collect::<Vec<_>>());
    assert!(long["messages"].to_string().contains("the end"));
    for number in 0..10 {
        let one = all.iter().find(|one| one["name"] == format!("n{number}")).unwrap();
        assert_eq!(sent(one), [format!("echo {number}")]);
    }
}

#[test]
fn conversation_cleared_during_a_stream_stays_cleared() {
    let (home, agent) = (home(), agent());
    let mut stream = StreamingCommand::start(&home, agent.url(), "hold the end", &[]);
    stream.event().unwrap();
    home.call(&["conversation", "clear", "--all", "--session", "work", "--yes"]).ok();
    assert!(conversations(&home).is_empty());
    agent.release();
    let (_, status) = stream.end();
    assert_eq!(status, Some(3), "delivered, not saved");
    assert!(conversations(&home).is_empty());
}

#[test]
fn unknown_session_has_no_conversations() {
    let (home, agent) = (home(), agent());
    home.call(&["message", "send", agent.url(), "echo hi", "--session", "work"]).ok();
    let _ = home.call(&["conversation", "clear", "--all", "--session", "wrok", "--yes"]).run();
    assert_eq!(conversations(&home).len(), 1, "conversations of other sessions stay");
    let listed = home.call(&["conversation", "list", "--session", "wrok", "-ojson"]).run();
    assert!(!listed.stdout().contains(agent.url()), "{}", listed.told());
}
