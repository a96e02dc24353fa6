//! A task that has ended without our knowing: it is told, nothing is sent by itself, and the next message begins another.

use super::agent;
use crate::home;

#[test]
fn task_that_ended_elsewhere_is_reported_once() {
    let (home, agent) = (home(), agent());
    for word in ["send", "stream"] {
        let say = |text: &str| {
            home.call(&["message", word, agent.url(), text, "--session", "work", "-ojsonl", "--quiet"])
        };
        let asked =
            home.call(&["message", "send", agent.url(), "ask", "--session", "work", "-ojson"]).ok().json();
        home.call(&["task", "cancel", asked["task_id"].as_str().unwrap(), "--url", agent.url()]).ok();
        let before = agent.seen().iter().filter(|seen| seen.path == "/rpc").count();
        assert_eq!(say("ann").run().exit(6).code(), "TASK_OVER");
        assert_eq!(
            agent.seen().iter().filter(|seen| seen.path == "/rpc").count(),
            before + 1,
            "nothing is sent again"
        );
        let next = say("task more").ok();
        let next: serde_json::Value = serde_json::from_str(next.stdout().lines().last().unwrap()).unwrap();
        assert_eq!(next["context_id"], asked["context_id"], "the conversation continues");
        assert_ne!(next["task_id"], asked["task_id"]);
        assert_eq!(next["state"], "completed");
    }
}

#[test]
fn invalid_conversation_name_is_refused_before_sending() {
    let (home, agent, other) = (home(), agent(), agent());
    let send = |url: &str, name: &str| {
        home.call(&["message", "send", url, "echo hi", "--session", "work", "-ojson", "--conversation", name])
    };
    send(agent.url(), "mine").ok();
    let before = agent.seen().len();
    assert_eq!(send(agent.url(), "no name").run().exit(2).code(), "INVALID_NAME");
    assert_eq!(send(other.url(), "mine").run().exit(6).code(), "CONVERSATION_EXISTS");
    assert_eq!((agent.seen().len(), other.seen().len()), (before, 0));
}
