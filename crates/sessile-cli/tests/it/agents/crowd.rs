//! Fifty processes that talk to agents at once: every conversation is found again, and none is mixed with another.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use testkit::{Home, ScriptedAgent};

use super::{CROWD, agent, conversations, sent, together};
use crate::home;

/// Sends, which must succeed.
fn send(home: &Home, agent: &str, session: &str, text: &str, flags: &[&str]) -> Value {
    let call = home.call(&["message", "send", agent, text, "--session", session, "-ojson"]);
    // Other tests may have their crowds at the same time.
    call.args(flags).args(&["--lock-timeout", "60s"]).ok().json()
}

/// What the agents know of is what is remembered: the same contexts, as many messages in each as were sent in its
/// conversation, and nothing in one that is of another. Returns all that was sent, sorted.
fn nothing_is_lost_or_mixed(home: &Home, agents: &[ScriptedAgent]) -> Vec<String> {
    let all = conversations(home);
    let known: HashMap<String, u64> = agents.iter().flat_map(|agent| agent.contexts()).collect();
    let mut remembered = BTreeMap::new();
    for one in &all {
        let context = one["context_id"].as_str().unwrap_or_else(|| panic!("no context: {one}"));
        let before = remembered.insert(context.to_owned(), u64::try_from(sent(one).len()).unwrap());
        assert!(before.is_none(), "{context} is in two conversations");
        let items = one["messages"].as_array().unwrap();
        let numbers: Vec<i64> = items.iter().map(|item| item["number"].as_i64().unwrap()).collect();
        assert!(numbers.iter().copied().eq(1..=i64::try_from(items.len()).unwrap()), "{numbers:?}");
        for item in items.iter().filter(|item| item["kind"] != "sent") {
            assert_eq!(item["body"]["contextId"].as_str(), Some(context), "{one}");
        }
        if let Some(id) = one["task_id"].as_str() {
            let task = agents.iter().find_map(|agent| agent.task(id)).unwrap();
            assert_eq!(task["contextId"], context, "a task of another conversation");
        }
    }
    assert_eq!(remembered, known.into_iter().collect());
    let mut all: Vec<String> = all.iter().flat_map(sent).collect();
    all.sort();
    all
}

fn texts(what: impl Fn(usize) -> Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = (0..CROWD).flat_map(what).collect();
    all.sort();
    all
}

#[test]
fn fifty_sessions_with_five_agents_keep_conversations_apart() {
    let (home, agents) = (home(), [(); 5].map(|()| agent()));
    together(CROWD, |number| {
        let (url, session) = (agents[number % agents.len()].url(), format!("s{number}"));
        let first = send(&home, url, &session, &format!("task first {number}"), &[]);
        let second = send(&home, url, &session, &format!("echo second {number}"), &[]);
        assert_eq!(first["context_id"], second["context_id"]);
        assert_eq!(first["conversation"], second["conversation"]);
        assert_eq!(second["text"], format!("second {number}"));
    });
    let all = nothing_is_lost_or_mixed(&home, &agents);
    assert_eq!(all, texts(|number| vec![format!("task first {number}"), format!("echo second {number}")]));
    let sessions: BTreeSet<String> =
        conversations(&home).iter().map(|one| one["session"].as_str().unwrap().to_owned()).collect();
    assert_eq!(sessions.len(), CROWD);
}

#[test]
fn fifty_named_conversations_of_one_session_stay_apart() {
    let (home, agents) = (home(), [agent()]);
    let url = agents[0].url();
    together(CROWD, |number| {
        let (name, text) = (format!("n{number}"), format!("task {number}"));
        let first = send(&home, url, "work", &text, &["--new", "--conversation", &name]);
        let second = send(&home, url, "work", &format!("echo {number}"), &["--conversation", &name]);
        assert_eq!(first["context_id"], second["context_id"]);
    });
    let all = nothing_is_lost_or_mixed(&home, &agents);
    assert_eq!(all, texts(|number| vec![format!("task {number}"), format!("echo {number}")]));
    for one in conversations(&home) {
        let number = one["name"].as_str().unwrap().strip_prefix('n').unwrap().to_owned();
        assert_eq!(sent(&one), [format!("task {number}"), format!("echo {number}")]);
    }
}

#[test]
fn fifty_unnamed_messages_share_one_conversation_each() {
    let (home, agents) = (home(), [agent()]);
    let url = agents[0].url();
    // The first time there is nothing to go on with, the second time there is.
    for round in 0..2 {
        together(CROWD, |number| {
            let word = ["task", "echo", "slow 20", "late 20"][number % 4];
            send(&home, url, "work", &format!("{word} {round} {number}"), &[]);
        });
    }
    let all = nothing_is_lost_or_mixed(&home, &agents);
    assert_eq!(all.len(), 2 * CROWD);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 2 * CROWD, "one was remembered twice");
}

#[test]
fn fifty_messages_to_one_conversation_are_all_stored() {
    let (home, agents) = (home(), [agent()]);
    let url = agents[0].url();
    together(CROWD, |number| {
        send(&home, url, "work", &format!("echo {number}"), &["--conversation", "same"]);
    });
    assert_eq!(nothing_is_lost_or_mixed(&home, &agents), texts(|number| vec![format!("echo {number}")]));
    let all = conversations(&home);
    assert_eq!(all.iter().filter(|one| one["name"] == "same").count(), 1);
}
