//! A process that is killed while an agent talks: the task is remembered, and another process goes on with it.

use std::time::{Duration, Instant};

use testkit::Home;

use super::{StreamingCommand, agent, conversations, last, sent};
use crate::{eventually, home};

/// `task watch` with nothing but the session, which must see the end; the last line.
fn watched(home: &Home) -> serde_json::Value {
    let done = home.call(&["task", "watch", "--session", "work", "-ojsonl"]).ok();
    serde_json::from_str(done.stdout().lines().last().unwrap()).unwrap()
}

#[test]
fn killed_stream_is_resumed_to_its_end() {
    // After so many events, and so many milliseconds more.
    for (events, later) in [(1, 0), (1, 3), (2, 0), (2, 25), (4, 1), (9, 0)] {
        let (home, agent) = (home(), agent());
        let mut stream = StreamingCommand::start(&home, agent.url(), "stream 12 40", &[]);
        let mut ids = (serde_json::Value::Null, serde_json::Value::Null);
        for _ in 0..events {
            let event = stream.event().unwrap();
            ids = (event["context_id"].clone(), event["task_id"].clone());
        }
        std::thread::sleep(Duration::from_millis(later));
        stream.kill();
        let found = last(&home);
        assert_eq!((&found["context_id"], &found["task_id"]), (&ids.0, &ids.1));
        assert_eq!(sent(&found), ["stream 12 40"]);
        assert!(found["messages"].as_array().unwrap().len() > events, "{found}");
        assert_eq!(watched(&home)["state"], "completed");
        let found = last(&home);
        assert_eq!((&found["task_id"], found["task_state"].as_str()), (&ids.1, Some("completed")));
        assert!(found["messages"].to_string().contains("chunk 12"), "{found}");
        let next =
            home.call(&["message", "send", agent.url(), "context", "--session", "work", "-ojson"]).ok();
        assert_eq!(next.json()["text"], format!("{} 2", ids.0.as_str().unwrap()));
        assert_eq!(conversations(&home).len(), 1);
    }
}

#[test]
fn later_message_follows_a_running_task() {
    let (home, agent) = (home(), agent());
    let mut first = StreamingCommand::start(&home, agent.url(), "hold the end", &[]);
    let task = first.event().unwrap()["task_id"].clone();
    first.kill();
    let follower = std::thread::scope(|scope| {
        let follower = scope.spawn(|| watched(&home));
        eventually("the follower", || agent.count("SubscribeToTask") == 1);
        assert_eq!(last(&home)["task_id"], task);
        agent.release();
        follower.join().unwrap()
    });
    assert_eq!((&follower["task_id"], follower["state"].as_str()), (&task, Some("completed")));
    assert!(last(&home)["messages"].to_string().contains("the end"));
    // Who comes when all is over is told so.
    assert_eq!(watched(&home)["state"], "completed");
}

#[test]
fn stream_cut_by_the_agent_is_resumed_to_its_end() {
    let (home, agent) = (home(), agent());
    for word in ["send", "stream"] {
        let words = ["message", word, agent.url(), "cut 2 6 40", "--session", "work"];
        let done = home.call(&words).ok();
        assert_eq!(done.stdout(), "chunk 1\nchunk 2\nchunk 3\nchunk 4\nchunk 5\nchunk 6\n", "{word}");
        assert_eq!(last(&home)["task_state"], "completed");
    }
}

#[test]
fn store_is_consistent_after_a_kill_at_any_time() {
    let (home, agent) = (home(), agent());
    // The instants are spread over the time that a stream takes here and now.
    let begun = Instant::now();
    StreamingCommand::start(&home, agent.url(), "stream 3", &["--new"]).end();
    let whole = begun.elapsed();
    for step in 0..40 {
        let mut stream = StreamingCommand::start(&home, agent.url(), "stream 3", &["--new"]);
        match step {
            0 => drop(stream.event()),
            step => std::thread::sleep(whole * step / 40),
        }
        stream.kill();
    }
    let known = agent.contexts();
    let mut found = std::collections::BTreeSet::new();
    for one in conversations(&home) {
        assert_eq!(sent(&one), ["stream 3"]);
        // A message that was stored and perhaps never sent has no context.
        let Some(context) = one["context_id"].as_str() else { continue };
        assert!(known.contains_key(context), "{one}");
        found.insert(context.to_owned());
    }
    assert!(!found.is_empty(), "the kills came before the first event");
    // The last one may have been killed while its task went on, and is over by now without anybody knowing.
    watched(&home);
    let text = "echo it works";
    let done = home.call(&["message", "send", agent.url(), text, "--session", "work", "-ojson"]).ok();
    assert_eq!(done.json()["text"], "it works");
    home.call(&["doctor"]).run().exit(0);
}
