//! Conversations outlive their session, and belong to the context they were held in.

use std::time::Duration;

use serde_json::Value;
use testkit::{Call, Home};

use super::{agent, conversations, sent};
use crate::{eventually, home};

/// A home with the contexts `staging` and `production`.
fn home_with_contexts() -> Home {
    let home = home();
    for name in ["staging", "production"] {
        home.call(&["context", "create", name]).ok();
    }
    home
}

/// Sends `context`, to which the agent answers with its id of the conversation and the number of messages.
fn ask(home: &Home, agent: &str, flags: &[&str]) -> Call {
    home.call(&["message", "send", agent, "context", "-ojson"]).args(flags)
}

fn text(reply: &Value) -> &str {
    reply["text"].as_str().unwrap()
}

/// Context id and number of messages in an answer to `context`.
fn count(reply: &Value) -> (String, u64) {
    let (id, count) = text(reply).split_once(' ').unwrap();
    (id.to_owned(), count.parse().unwrap())
}

#[test]
fn later_session_of_the_context_continues_the_last_conversation() {
    let (home, agent) = (home_with_contexts(), agent());
    let first = ask(&home, agent.url(), &["--session", "one", "--context", "staging"]).ok().json();
    home.call(&["session", "stop", "one"]).ok();
    let (id, _) = count(&first);
    // A session of another context has no part in it.
    let other = ["--session", "other", "--context", "production", "--continue"];
    assert_eq!(ask(&home, agent.url(), &other).run().exit(5).code(), "CONVERSATION_NOT_FOUND");
    let later = ["--session", "two", "--context", "staging"];
    let begun = ask(&home, agent.url(), &later).ok().json();
    assert_ne!(count(&begun).0, id, "a later session begins a new conversation");
    home.call(&["conversation", "clear", begun["conversation"].as_str().unwrap(), "--yes"]).ok();
    let continued = ask(&home, agent.url(), &later).args(&["--continue"]).ok().json();
    assert_eq!(count(&continued), (id.clone(), 2));
    assert_eq!(continued["conversation"], first["conversation"]);
    // From then on it is the conversation of this session.
    assert_eq!(count(&ask(&home, agent.url(), &later).ok().json()), (id, 3));
    assert_eq!(conversations(&home).len(), 1);
}

#[test]
fn conversation_outlives_its_expired_or_cleared_session() {
    let (home, agent) = (home_with_contexts(), agent());
    // Time enough to start a message on a busy machine.
    home.call(&["session", "start", "--name", "short", "--context", "staging", "--idle", "6s"]).ok();
    let first = ask(&home, agent.url(), &["--session", "short"]).ok().json();
    let is_live = || {
        let listed = home.call(&["session", "list", "-ojson"]).ok().json();
        listed.as_array().unwrap().iter().any(|one| one["name"] == "short")
    };
    eventually("the expiry", || !is_live());
    home.call(&["session", "gc"]).ok();
    home.call(&["session", "clear", first["session"].as_str().unwrap(), "--yes"]).ok();
    let all = conversations(&home);
    assert_eq!((all.len(), all[0]["context"].as_str()), (1, Some("staging")), "{all:?}");
    let later = ["--session", "later", "--context", "staging", "--continue"];
    assert_eq!(count(&ask(&home, agent.url(), &later).ok().json()).1, 2);
}

#[test]
fn conversation_of_an_ephemeral_run_is_kept() {
    let (home, agent) = (home_with_contexts(), agent());
    let program = home.program().to_str().unwrap().to_owned();
    let inner = [&program, "message", "send", agent.url(), "echo hi"];
    home.call(&["run", "--context", "staging", "--"]).args(&inner).ok();
    let all = conversations(&home);
    assert_eq!((all.len(), all[0]["context"].as_str()), (1, Some("staging")), "{all:?}");
}

#[test]
fn any_other_call_needs_the_id_and_the_context() {
    let (home, agent) = (home_with_contexts(), agent());
    let first = ask(&home, agent.url(), &["--session", "one", "--context", "staging"]).ok().json();
    let (id, _) = count(&first);
    let by_id = format!("--continue={}", first["conversation"].as_str().unwrap());
    assert_eq!(
        ask(&home, agent.url(), &["--context", "staging", "--continue"]).run().exit(5).code(),
        "CONVERSATION_NOT_FOUND"
    );
    for flags in [vec!["--context", "production"], vec![], vec!["--session", "p", "--context", "production"]]
    {
        let refused = ask(&home, agent.url(), &flags).args(&[&by_id]).run().exit(7);
        assert_eq!(refused.code(), "CONVERSATION_CONTEXT", "{flags:?}");
    }
    let continued = ask(&home, agent.url(), &["--context", "staging", &by_id]).ok().json();
    assert_eq!((count(&continued), &continued["conversation"]), ((id.clone(), 2), &first["conversation"]));
    // The agent follows from the conversation.
    let words = ["message", "send", &by_id, "--context", "staging", "context", "-ojson"];
    assert_eq!(count(&home.call(&words).ok().json()), (id.clone(), 3));
    assert_eq!(sent(&conversations(&home)[0]).len(), 3, "a message without a session is stored");
    // The session that has it lives, and keeps it.
    assert_eq!(count(&ask(&home, agent.url(), &["--session", "one"]).ok().json()), (id, 4));
    // The account is part of the binding.
    let other = ask(&home, agent.url(), &["--context", "staging", &by_id, "--credential", "bot"]).run();
    assert_eq!(other.exit(7).code(), "CONVERSATION_CONTEXT");
    let unknown = ["--continue=01890a5d-ac96-774b-bcce-b302099a8057"];
    assert_eq!(ask(&home, agent.url(), &unknown).run().exit(5).code(), "CONVERSATION_NOT_FOUND");
}

#[test]
fn worker_of_a_hooked_shell_continues_no_conversation_by_itself() {
    let (home, agent) = (home_with_contexts(), agent());
    let session = home.call(&["session", "start", "--context", "staging", "-q"]).ok().stdout();
    let worker = |flags: &[&str]| {
        let call = ask(&home, agent.url(), flags).env("SESSILE_SESSION", session.trim());
        call.env("SESSILE_HOOK", "terminal").ok().json()
    };
    let (one, two) = (worker(&[]), worker(&[]));
    assert_eq!((count(&one).1, count(&two).1), (1, 1));
    assert_eq!(count(&worker(&["--continue"])), (count(&two).0, 2));
    let by_id = format!("--continue={}", one["conversation"].as_str().unwrap());
    assert_eq!(count(&worker(&[&by_id])), (count(&one).0, 2));
}

#[test]
fn unused_conversation_is_deleted_after_its_retention() {
    let (home, agent) = (home(), agent());
    ask(&home, agent.url(), &["--session", "one"]).ok();
    let kept = home.call(&["session", "gc", "-ojson"]).ok().json();
    assert_eq!((kept["conversations"].as_i64(), conversations(&home).len()), (Some(0), 1));
    home.call(&["config", "set", "conversation.keep", "1s", "--global"]).ok();
    std::thread::sleep(Duration::from_millis(1100));
    let deleted = home.call(&["session", "gc", "-ojson"]).ok().json();
    assert_eq!((deleted["conversations"].as_i64(), conversations(&home).len()), (Some(1), 0));
}

#[test]
fn message_without_an_agent_goes_to_the_default_one() {
    let (home, agent) = (home(), agent());
    let refused = home.call(&["message", "send", "hi", "--session", "work"]).run().exit(5);
    assert!(refused.stderr().contains("\"hi\""), "{}", refused.told());
    home.call(&["agent", "add", "research", agent.url(), "--global"]).ok();
    home.call(&["session", "start", "--name", "work"]).ok();
    home.call(&["agent", "use", "research", "--session", "work"]).ok();
    let send = |words: &[&str]| home.call(&["message", "send", "--session", "work"]).args(words);
    assert_eq!(send(&["echo hi"]).ok().stdout(), "hi\n");
    // A misspelt agent must not send the text to another one.
    send(&["reserch", "echo hi"]).run().exit(5);
    assert_eq!(send(&["research", "echo there"]).ok().stdout(), "there\n");
    // Other sessions have none.
    let none = home.call(&["message", "send", "echo hi", "--session", "other"]).run().exit(2);
    assert!(none.stderr().contains("no agent selected"), "{}", none.told());
    home.call(&["agent", "use", "--none", "--session", "work"]).ok();
    send(&["echo hi"]).run().exit(2);
}

#[test]
fn message_that_is_not_remembered_says_how_to_continue() {
    let (home, agent) = (home(), agent());
    let send =
        |flags: &[&str]| home.call(&["message", "send", agent.url(), "echo hi"]).args(flags).ok().stderr();
    let said = send(&[]);
    assert!(
        said.contains("the conversation was not stored") && said.contains("--context-id context-"),
        "{said}"
    );
    assert!(said.contains("--session NAME"), "{said}");
    assert_eq!(send(&["-q"]), "");
    assert!(!send(&["--session", "work"]).contains("the conversation was not stored"));
}

#[test]
fn messages_are_found_by_their_text_and_exported_as_markdown() {
    let (home, agent) = (home(), agent());
    let send = |session: &str, text: &str| {
        home.call(&["message", "send", agent.url(), text, "--session", session]).ok()
    };
    send("one", "echo the Release notes");
    send("two", "echo # nothing\nhere");
    let found = home.call(&["conversation", "search", "release", "-ojson"]).ok().json();
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), 2, "the question and the answer: {found:?}");
    assert!(found.iter().all(|one| one["text"].as_str().unwrap().contains("Release notes")));
    let table = home.call(&["conversation", "search", "RELEASE", "--limit", "1"]).ok();
    assert!(
        table.stdout().contains("the Release notes") && table.stderr().contains("--limit"),
        "{}",
        table.told()
    );
    let inside = home.call(&["conversation", "search", "release", "--session", "two", "-ojson"]).ok().json();
    assert_eq!(inside.as_array().unwrap().len(), 0);
    let markdown = home.call(&["conversation", "export", "--session", "two", "--format", "md"]).ok().stdout();
    assert!(markdown.starts_with("# Conversation "), "{markdown}");
    assert!(
        markdown.contains("\n## 1 user (") && markdown.contains("\n> echo # nothing\n> here\n"),
        "{markdown}"
    );
}

#[test]
fn id_behind_continue_names_the_conversation() {
    let (home, agent) = (home(), agent());
    let send = |flags: &[&str]| home.call(&["message", "send", "-ojson", "--session", "work"]).args(flags);
    let first = send(&[agent.url(), "context"]).ok().json();
    let last = send(&[agent.url(), "context", "--new"]).ok().json();
    let id = first["conversation"].as_str().unwrap();
    for words in [
        vec![agent.url(), "--continue", id, "context"],
        vec![agent.url(), "-C", id, "context"],
        vec!["--continue", id, agent.url(), "context"],
        vec![agent.url(), "context", "--continue", id],
        vec!["--url", agent.url(), "--continue", id, "context"],
        vec!["--continue", id, "context"],
    ] {
        let reply = send(&words).ok().json();
        assert_eq!(count(&reply).0, count(&first).0, "{words:?}");
    }
    assert_eq!(send(&[agent.url(), "--continue", "context"]).ok().json()["context_id"], first["context_id"]);
    // An unknown id is not a text for the last conversation.
    let before = agent.seen().len();
    for id in ["01890a5d", "01890a5d-ac96-774b-bcce-b302099a8057"] {
        let refused = send(&[agent.url(), "--continue", id, "context"]).run().exit(5);
        assert_eq!(refused.code(), "CONVERSATION_NOT_FOUND");
    }
    assert_eq!(agent.seen().len(), before);
    let line =
        home.call(&["chat", "--continue", last["conversation"].as_str().unwrap(), "--session", "work"]);
    assert!(line.stdin("context\n").ok().stdout().contains(count(&last).0.as_str()));
}

#[test]
fn ended_session_is_reported_with_the_command_that_starts_one() {
    let (home, agent) = (home(), agent());
    let id = home.call(&["session", "start", "--name", "work", "-q"]).ok().stdout();
    home.call(&["session", "stop", "work"]).ok();
    let error = ask(&home, agent.url(), &["--session", id.trim()]).run().exit(4).json_error();
    let hint = error["hint"].as_str().unwrap();
    // `--new` of a message starts a conversation.
    assert!(hint.contains("sessile session start --name work") && !hint.contains("--new"), "{error}");
}
