//! What an agent got and said is in the conversation, and every message gets its own answer.

use std::process::Stdio;
use std::time::{Duration, Instant};

use testkit::{AgentOptions, Home, Misbehaviour, MisbehaviourPoint, Protocol, PythonAgent, ScriptedAgent};

use super::{CROWD, agent, conversations, last, sent, together};
use crate::{eventually, home};

fn send(home: &Home, agent: &str, text: &str, flags: &[&str]) -> testkit::Call {
    home.call(&["message", "send", agent, text, "--session", "work"]).args(flags)
}

#[test]
fn message_beside_a_running_task_gets_its_own_answer() {
    let (home, agent) = (home(), PythonAgent::shared(Protocol::V1));
    let slow = send(&home, agent.url(), "slow 4000 first", &["--no-wait", "-ojson"]).ok().json();
    assert_ne!(slow["state"], "completed");
    let answer = send(&home, agent.url(), "task second", &["-ojson"]).ok().json();
    assert_eq!((&answer["text"], &answer["context_id"]), (&"second".into(), &slow["context_id"]));
    assert_ne!(answer["task_id"], slow["task_id"]);
}

/// Ends a send that waits for its task by a signal, and follows the task with another process.
fn assert_followed_after(signal: &str) {
    let (home, agent) = (home(), agent());
    let mut command = send(&home, agent.url(), "hold the end", &[]).command();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    eventually("the task", || conversations(&home).iter().any(|one| one["task_id"].is_string()));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
    assert!(!child.wait().unwrap().success(), "{signal}");
    assert_eq!(sent(&last(&home)), ["hold the end"], "{signal}");
    agent.release();
    let watched = home.call(&["task", "watch", "--session", "work"]).ok();
    assert_eq!(watched.stdout(), "the end\n", "{signal}");
}

#[test]
fn command_that_continues_works_as_printed() {
    let (home, agent) = (home(), PythonAgent::shared(Protocol::V1));
    for (text, next, answer) in
        [("task done", "task more", "more"), ("ask", "Ann", "hello Ann"), ("fail", "task x", "x")]
    {
        let note = home.call(&["message", "send", agent.url(), text]).run().stderr();
        let command = note.split("continue: sessile ").nth(1).unwrap_or_else(|| panic!("{note}"));
        let words = command.trim().replace("\"...\"", "");
        let words: Vec<&str> = words.split_whitespace().collect();
        let done = home.call(&words).args(&[next, "-ojson"]).ok().json();
        assert_eq!(done["text"], answer, "{command}");
        assert_eq!(
            Some(done["context_id"].as_str().unwrap()),
            words.iter().position(|word| *word == "--context-id").map(|at| words[at + 1])
        );
    }
}

#[test]
fn killed_send_leaves_a_task_that_watch_follows() {
    assert_followed_after("-KILL");
}

#[test]
fn interrupted_send_leaves_a_task_that_watch_follows() {
    assert_followed_after("-INT");
}

#[test]
fn send_that_times_out_names_the_command_that_follows() {
    let (home, agent) = (home(), agent());
    // Without a session the error is all that is left of the task. The time is enough for a busy machine to begin it.
    let alone = home.call(&["message", "send", agent.url(), "hold the end", "--timeout", "3s", "-qojson"]);
    let error = alone.run().exit(10).json_error();
    let command = error["fix_command"].as_str().unwrap_or_else(|| panic!("{error}"));
    assert!(command.starts_with("sessile task watch ") && command.ends_with(agent.url()), "{error}");
    assert!(error["hint"].as_str().unwrap().contains(command), "{error}");
    assert_eq!(error["retryable"], false, "the same call would send the message twice");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let done = send(&home, agent.url(), "hold the end", &["--timeout", "3s", "-q"]).run().exit(10);
    assert!(done.stderr().contains("sessile task watch"), "{}", done.told());
    assert_eq!(last(&home)["task_state"], "working");
    agent.release();
    assert_eq!(home.call(&["task", "watch", "--session", "work"]).ok().stdout(), "the end\n");
    assert_eq!(home.call(&words).ok().stdout(), "the end\n");
}

#[test]
fn agent_that_does_not_stream_is_polled() {
    let (home, agent) =
        (home(), ScriptedAgent::start(AgentOptions { streaming: false, ..AgentOptions::of(Protocol::V1) }));
    let done = send(&home, agent.url(), "slow 200 done", &[]).ok();
    assert_eq!(done.stdout(), "done\n");
    assert_eq!(agent.count("SendMessage"), 1);
    assert!(agent.count("GetTask") >= 1);
}

#[test]
fn message_is_stored_before_it_is_sent() {
    let (home, agent) = (home(), agent());
    send(&home, agent.url(), "echo one", &[]).ok();
    agent.misbehave(MisbehaviourPoint::Calls, Some(Misbehaviour::HangUp));
    send(&home, agent.url(), "echo two", &[]).run().exit(12);
    let found = last(&home);
    assert_eq!(sent(&found), ["echo one", "echo two"]);
    let failed = &found["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((failed["kind"].as_str(), failed["source"].as_str()), (Some("failed"), Some("client")));
}

#[test]
fn reply_that_cannot_be_stored_is_printed() {
    let (home, agent) = (home(), agent());
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| send(&home, agent.url(), "hold the end", &[]).run());
        eventually("the task", || conversations(&home).iter().any(|one| one["task_id"].is_string()));
        home.call(&["conversation", "clear", "--all", "--session", "work", "--yes"]).ok();
        agent.release();
        let done = sending.join().unwrap().exit(3);
        assert_eq!(done.stdout(), "the end\n", "{}", done.told());
        assert!(done.stderr().contains("delivered, but the conversation was not saved"), "{}", done.told());
    });
}

#[test]
fn reply_whose_files_cannot_be_saved_is_printed() {
    let (home, agent) = (home(), agent());
    // Every name that the file of the reply could get is taken.
    home.write("out/report.txt", "");
    for number in 2..1000 {
        home.write(format!("out/report-{number}.txt"), "");
    }
    for word in ["send", "stream"] {
        let words = ["message", word, agent.url(), "files", "--session", "work", "--save-artifacts", "out"];
        let done = home.call(&words).run().exit(3);
        assert!(done.stdout().contains("\"rows\": 2"), "{}", done.told());
        assert!(done.stderr().contains("delivered, but its files were not saved"), "{}", done.told());
        assert!(done.stderr().contains("sessile task get "), "{}", done.told());
        let printed = home.call(&words).arg("-ojson").run().exit(3);
        assert!(printed.stdout().contains("\"rows\""), "{}", printed.told());
    }
}

#[test]
fn unusable_artifact_directory_is_refused_before_sending() {
    let (home, agent) = (home(), agent());
    home.write("file", "");
    for dir in ["file", "file/below"] {
        let done = send(&home, agent.url(), "files", &["--save-artifacts", dir]).run().exit(1);
        assert!(done.stderr().contains("cannot save files in"), "{}", done.told());
    }
    assert_eq!(agent.seen().len(), 0, "nothing reaches the agent");
}

#[test]
fn parallel_messages_are_stored_in_the_order_of_the_agent() {
    let (home, agent) = (home(), agent());
    together(CROWD, |number| {
        send(&home, agent.url(), &format!("echo {number}"), &["--lock-timeout", "60s"]).ok();
    });
    let all = conversations(&home);
    assert_eq!(all.len(), 1, "the first message starts the conversation of all");
    let received: Vec<String> = agent
        .seen()
        .iter()
        .filter(|seen| seen.body.contains("SendStreamingMessage"))
        .map(|seen| {
            let body: serde_json::Value = serde_json::from_str(&seen.body).unwrap();
            body["params"]["message"]["parts"][0]["text"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(sent(&all[0]), received);
}

#[test]
fn every_part_of_a_reply_is_printed() {
    let (home, agent) = (home(), agent());
    let data = send(&home, agent.url(), "data", &[]).ok();
    assert!(data.stdout().contains("\"answer\": 42"), "{}", data.told());
    for word in ["send", "stream"] {
        let file = home.call(&["message", word, agent.url(), "file", "--session", "work"]).ok();
        assert!(
            file.stdout().contains("[file ../../evil (application/octet-stream, 14 bytes)]"),
            "{}",
            file.told()
        );
        assert!(file.stderr().contains("--save-artifacts DIR"), "{}", file.told());
    }
}

/// Number of kills: 20, or as many as `SESSILE_TEST_KILLS` says.
fn kill_count() -> usize {
    std::env::var("SESSILE_TEST_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(20)
}

/// A random part of a time.
fn random_part(whole: Duration) -> Duration {
    // Each `RandomState` has random keys, which saves a dependency for random numbers.
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    Duration::from_micros(random % u64::try_from(whole.as_micros()).unwrap().max(1))
}

#[test]
fn kill_at_any_time_loses_no_message_of_the_agent() {
    let (home, agent) = (home(), agent());
    // The instants are spread over the time that a message takes here and now, and a little more.
    let begun = Instant::now();
    send(&home, agent.url(), "stream 3 5 first", &[]).ok();
    let whole = begun.elapsed() * 5 / 4;
    for step in 0..kill_count() {
        let word = if step % 2 == 0 { "send" } else { "stream" };
        let text = format!("stream 3 5 {step}");
        let mut command = home.call(&["message", word, agent.url(), &text, "--session", "work"]).command();
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        match step {
            // Whatever the machine does beside, two of the kills come when the agent has the message.
            0 | 1 => eventually("the message", || agent.heard(&text)),
            _ => std::thread::sleep(random_part(whole)),
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let stored: Vec<String> = conversations(&home).iter().flat_map(sent).collect();
    let received = agent.seen().into_iter().filter(|seen| seen.body.contains("messageId"));
    let mut count = 0;
    for seen in received {
        let body: serde_json::Value = serde_json::from_str(&seen.body).unwrap();
        let text = body["params"]["message"]["parts"][0]["text"].as_str().unwrap();
        assert!(stored.iter().any(|one| one == text), "{text} is missing from {stored:?}");
        count += 1;
    }
    assert!(count >= 3, "{count}");
    // The last kill left nothing that stops the next message.
    send(&home, agent.url(), "echo it works", &["--new"]).ok();
}

#[test]
fn canceled_task_can_be_canceled_again() {
    let (home, agent) = (home(), agent());
    send(&home, agent.url(), "hold the end", &["--no-wait"]).ok();
    for _ in 0..2 {
        let done = home.call(&["task", "cancel", "--session", "work", "-ojson"]).ok();
        assert_eq!(done.json()["state"], "canceled");
    }
    send(&home, agent.url(), "task done", &[]).ok();
    home.call(&["task", "cancel", "--session", "work"]).run().exit(6);
}

#[test]
fn body_of_a_failed_server_is_printed() {
    let (home, agent) = (home(), agent());
    agent.misbehave(MisbehaviourPoint::Calls, Some(Misbehaviour::Status(503)));
    let done = send(&home, agent.url(), "echo x", &[]).run().exit(12);
    assert!(done.stderr().contains("status 503: <h1>no</h1>"), "{}", done.told());
}

#[test]
fn truncated_list_reports_further_conversations() {
    let (home, agent) = (home(), agent());
    for number in 0..3 {
        send(&home, agent.url(), &format!("echo {number}"), &["--new"]).ok();
    }
    let page = home.call(&["conversation", "list", "--limit", "2"]).ok();
    assert!(page.stderr().contains("more than 2 entries: continue with --cursor "), "{}", page.told());
    let whole = home.call(&["conversation", "list", "--limit", "3"]).ok();
    assert!(!whole.stderr().contains("--cursor"), "{}", whole.told());
    let history = home.call(&["history", "--limit", "1"]).ok();
    assert!(!history.stderr().contains("--cursor") || history.stdout().lines().count() == 2);
}
