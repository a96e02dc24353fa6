//! What `--debug` prints, and what errors repeat, when an agent repeats the credential that it got.

use serde_json::json;
use testkit::{AgentAuth, AgentOptions, Home, Protocol, PythonAgent};

use super::fixed::{Answer, FixedAgent, FixedRequest, card, message, rpc};
use crate::home;

const SECRET: &str = "tok-wxyz\"kmnp";

/// Agent whose answers begin with the credential of the request.
fn parrot(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> FixedAgent {
    FixedAgent::start(move |seen: &FixedRequest, base| match seen.head.starts_with("get") {
        true => {
            let mut card = card(base);
            card["capabilities"]["streaming"] = true.into();
            (200, "", card.to_string())
        }
        false => {
            let header = seen.head.lines().find_map(|line| line.strip_prefix("authorization: bearer "));
            answer(header.unwrap_or_default())
        }
    })
}

fn send(home: &Home, agent: &FixedAgent, flags: &[&str]) -> testkit::CallResult {
    let url = agent.url();
    let words = ["message", "send", url.as_str(), "hi", "--bearer-env", "AGENT_SECRET"];
    home.call(&words).args(flags).env("AGENT_SECRET", SECRET).run()
}

fn event(text: &str) -> String {
    let artifact = json!({"artifactId": "a", "parts": [{"text": text}]});
    let update =
        json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "append": true, "artifact": artifact}});
    format!("data: {}\n\n", rpc(&update))
}

#[test]
fn credential_that_an_agent_repeats_is_not_logged() {
    let home = home();
    let escaped = |text: &str| text.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect::<String>();
    let agents: [(&str, FixedAgent); 5] = [
        (
            "a text",
            parrot(|secret| (200, "", rpc(&json!({"message": message(&format!("you sent {secret}."))})))),
        ),
        (
            "escapes",
            parrot(move |secret| {
                let answer = rpc(&json!({"message": message("PLACE")}));
                (200, "", answer.replace("PLACE", &escaped(secret)))
            }),
        ),
        (
            "lines",
            parrot(|secret| {
                let answer = json!({"jsonrpc": "2.0", "id": "1", "result": {"message": message(secret)}});
                (200, "", format!("{answer:#}"))
            }),
        ),
        (
            "an event",
            parrot(|secret| {
                let answer = rpc(&json!({"message": message(&format!("{secret} {secret}"))}));
                (200, "Content-Type: text/event-stream\r\n", format!("data: {answer}\n\n"))
            }),
        ),
        (
            "pieces",
            parrot(|secret| {
                let pieces: String = secret.split_inclusive(['-', '"']).map(event).collect();
                let end = json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}});
                (200, "Content-Type: text/event-stream\r\n", format!("{pieces}data: {}\n\n", rpc(&end)))
            }),
        ),
    ];
    for (name, agent) in agents {
        let done = send(&home, &agent, &["--debug", "-vv"]);
        assert_eq!(done.status(), Some(0), "{name} {}", done.told());
        // The reply itself is the agent's, and printed as it is.
        assert!(done.stdout().contains(SECRET), "{name} {}", done.told());
        let log = done.stderr();
        assert!(log.contains("[redacted]") && log.contains("< status 200"), "{name} {log}");
        for part in ["wxyz", "kmnp", "\\u0"] {
            assert!(!log.contains(part), "{name}: {part} in {log}");
        }
    }
}

#[test]
fn credential_that_an_agent_repeats_is_not_in_the_error() {
    let home = home();
    let agents: [FixedAgent; 4] = [
        parrot(|secret| (500, "", format!("Traceback: Authorization: Bearer {secret}"))),
        parrot(|secret| {
            let error = json!({"code": -32603, "message": format!("bad token {secret}")});
            (200, "", json!({"jsonrpc": "2.0", "id": "1", "error": error}).to_string())
        }),
        parrot(|secret| (200, "", format!("<html>{secret}</html>"))),
        // Cut in the middle of the secret.
        parrot(|secret| (200, "", format!("{}{secret}", "x".repeat(73)))),
    ];
    for agent in agents {
        for flags in [&[][..], &["-ojson"], &["--debug"]] {
            let done = send(&home, &agent, flags);
            assert_ne!(done.status(), Some(0), "{}", done.told());
            assert!(done.stderr().contains("[redacted]"), "{}", done.told());
            assert!(!done.told().contains("wxyz") && !done.told().contains("kmnp"), "{}", done.told());
        }
    }
}

#[test]
fn credential_in_streamed_pieces_is_not_logged() {
    let home = home();
    let options = AgentOptions::of(Protocol::V1).guarded(AgentAuth::Basic, "ann:hunter2-hunter3", "ann");
    let agent = PythonAgent::start(Protocol::V1, &options);
    let secret = home.write_private("password", "hunter2-hunter3");
    let set =
        ["auth", "set", "--url", agent.url(), "--basic", "ann", "--secret-file", secret.to_str().unwrap()];
    home.call(&set).ok();
    for word in ["send", "stream"] {
        let done = home.call(&["message", word, agent.url(), "header authorization", "--debug"]).ok();
        let value = done.stdout().trim().strip_prefix("Basic ").unwrap().to_owned();
        let log = done.stderr();
        assert!(log.contains("[redacted]"), "{log}");
        let pieces: Vec<&str> = (0..value.len()).step_by(3).filter_map(|at| value.get(at..at + 3)).collect();
        let shown = pieces.iter().filter(|piece| log.contains(&format!("\"text\":\"{piece}\""))).count();
        assert_eq!(shown, 0, "{pieces:?} {log}");
    }
}
