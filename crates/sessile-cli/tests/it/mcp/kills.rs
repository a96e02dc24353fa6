//! A server that is killed takes nothing with it: every handle works with the next one. One that is told to end takes with
//! it what it runs.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Home, McpClient, quickest_within};

use super::{agent, code, result, serve, signal, still_answers};
use crate::{eventually, home, home_with, lives, start};

/// What writes its process id into a file, and lasts.
const LASTING: &str = "echo $$ > pid; exec sleep 600";

/// Begins a command that lasts; the id of its call and of its process.
fn lasting(home: &Home, client: &mut McpClient) -> (u64, String) {
    let call = client.call_async("run", json!({ "command": ["sh", "-c", LASTING] }));
    eventually("the command", || {
        std::fs::read_to_string(home.path("pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    (call, home.read("pid"))
}

#[test]
fn every_handle_outlives_the_server() {
    let (home, agent) = (home_with(&["dev"]), agent());
    let mut first = serve(&home, &[]);
    let session =
        result(&mut first, "start_session", json!({ "name": "work", "context": "dev" }))["id"].clone();
    let lock = result(&mut first, "acquire_lock", json!({ "name": "deploy", "session": session }));
    let said = json!({ "agent": agent.url(), "text": "ask", "session": session, "conversation": "talk" });
    let said = result(&mut first, "send_message", said);
    let set = json!({ "key": "step", "value": [1, null], "if_revision": 0, "session": session });
    let revision = result(&mut first, "set_state", set)["revision"].clone();
    first.kill();

    let mut next = serve(&home, &[]);
    for handle in [&session, &json!("work")] {
        let shown = result(&mut next, "show_session", json!({ "session": handle }));
        assert_eq!(
            (&shown["id"], &shown["state"], &shown["context"]),
            (&session, &json!("live"), &json!("dev"))
        );
    }
    let token = &lock["token"];
    let renewed = result(&mut next, "renew_lock", json!({ "name": "deploy", "token": token, "ttl": "1h" }));
    assert!(renewed["expires_at"].as_str() > lock["expires_at"].as_str(), "{renewed}");
    let values = result(&mut next, "get_state", json!({ "key": "step", "session": "work" }));
    assert_eq!(
        (&values["values"][0]["value"], &values["values"][0]["revision"]),
        (&json!([1, null]), &revision)
    );
    let set = json!({ "key": "step", "value": 2, "if_revision": revision, "session": "work" });
    result(&mut next, "set_state", set.clone());
    next.kill();

    let mut last = serve(&home, &[]);
    assert_eq!(code(&mut last, "set_state", set), "REVISION_CONFLICT");
    result(&mut last, "release_lock", json!({ "name": "deploy", "token": token }));
    assert_eq!(result(&mut last, "list_locks", json!({}))["count"], 0);
    let task = json!({ "task_id": said["task_id"], "session": "work" });
    assert_eq!(result(&mut last, "get_task", task)["state"], "input-required");
    let shown = result(&mut last, "show_conversation", json!({ "conversation": "talk", "session": "work" }));
    assert_eq!((&shown["context_id"], &shown["task_id"]), (&said["context_id"], &said["task_id"]));
    let answer = json!({ "agent": agent.url(), "text": "ann", "session": "work", "conversation": "talk" });
    assert_eq!(result(&mut last, "send_message", answer)["text"], "hello ann", "the task continues");
    result(&mut last, "stop_session", json!({ "session": session }));
    assert_eq!(result(&mut last, "list_sessions", json!({}))["count"], 0);
}

#[test]
fn a_kill_in_mid_call_loses_nothing_that_was_acknowledged() {
    let home = home();
    let id = start(&home, &["--name", "work"]);
    let (mut acknowledged, mut sent) = (0, 0);
    for round in 0..3 {
        let mut client = serve(&home, &["--allow-run", "--session", "work"]);
        let (_, pid) = lasting(&home, &mut client);
        std::fs::remove_file(home.path("pid")).unwrap();
        let calls: Vec<u64> = (0..40)
            .map(|number| {
                sent += 1;
                client.call_async("set_state", json!({ "key": format!("{round}-{number}"), "value": number }))
            })
            .collect();
        // Some are answered, some are under way, some have not begun.
        for call in &calls[..5 + 7 * round] {
            assert_eq!(client.answer(*call).unwrap()["isError"], false);
            acknowledged += 1;
        }
        client.kill();
        signal(pid.trim().parse().unwrap(), "KILL");
        let kept = home.call(&["session", "state", "list", "--session", &id, "-ojson"]).ok().json();
        let kept = kept.as_array().unwrap();
        for number in 0..5 + 7 * round {
            let key = format!("{round}-{number}");
            let found = kept.iter().find(|one| one["key"] == *key);
            assert_eq!(found.map(|one| &one["value"]), Some(&json!(number)), "{key}");
        }
        assert!(kept.len() <= sent && kept.len() >= acknowledged);
    }
    home.call(&["doctor"]).ok();
    still_answers(&mut serve(&home, &[]));
}

#[test]
fn a_signal_ends_the_server_and_what_it_runs() {
    for name in ["TERM", "INT", "HUP"] {
        // Clients kill a server two seconds after they told it to end.
        quickest_within(Duration::from_millis(1900), || {
            let home = home();
            let mut client = serve(&home, &["--allow-run"]);
            let (call, pid) = lasting(&home, &mut client);
            let waiting = client.call_async("acquire_lock", json!({ "name": "free", "wait": "1s" }));
            client.answer(waiting).unwrap();
            let begun = Instant::now();
            signal(client.pid(), name);
            assert_eq!(client.wait().code(), Some(0), "{name}");
            let took = begun.elapsed();
            assert!(!lives(&pid), "{name}");
            assert!(client.answer(call).is_err(), "{name}: the pending call fails");
            took
        });
    }
}

#[test]
fn signal_ends_a_server_before_initialize() {
    let home = home();
    let mut client = McpClient::start(home.call(&["mcp"]));
    client.request("ping", json!({}));
    signal(client.pid(), "TERM");
    assert_eq!(client.wait().code(), Some(0));
}

#[test]
fn the_end_of_input_ends_the_server_and_what_it_runs() {
    let home = home();
    let mut client = serve(&home, &["--allow-run"]);
    let (_, pid) = lasting(&home, &mut client);
    // What is nearly done is still answered.
    let nearly = client.call_async("run", json!({ "command": ["sh", "-c", "sleep 1; echo done"] }));
    let begun = Instant::now();
    assert_eq!(client.close().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(14), "{:?}", begun.elapsed());
    assert!(!lives(&pid));
    assert_eq!(client.answer(nearly).unwrap()["structuredContent"]["stdout"], "done\n");
}

#[test]
fn background_process_does_not_delay_the_result() {
    let home = home();
    let mut client = serve(&home, &["--allow-run"]);
    let begun = Instant::now();
    let ran = result(&mut client, "run", json!({ "command": ["sh", "-c", "sleep 60 & echo $!"] }));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let pid = ran["stdout"].as_str().unwrap().trim();
    assert!(lives(pid), "the background process survives");
    signal(pid.parse().unwrap(), "KILL");
}
