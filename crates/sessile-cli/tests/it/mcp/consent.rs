//! `run` without `--allow-run`: the client prompts the person, and only that answer allows the command.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use testkit::{Home, McpClient, PythonMcpClient, Revision};

use super::{INLINE, USUAL, content, names, refused, result, serve};
use crate::{home, home_with};

/// A client behind which somebody answers so; and what they were asked.
fn with_person(
    home: &Home,
    flags: &[&str],
    version: &str,
    answers: &[Value],
) -> (McpClient, Arc<Mutex<Vec<String>>>) {
    let mut client = McpClient::start(home.call(&["mcp"]).args(flags));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (seen, answers) = (Arc::clone(&asked), answers.to_vec());
    client.on_elicitation(move |params| {
        let mut seen = seen.lock().unwrap();
        seen.push(params["message"].as_str().unwrap().to_owned());
        answers[(seen.len() - 1).min(answers.len() - 1)].clone()
    });
    if version == INLINE {
        client.speak(version);
    } else {
        client.initialize(version);
    }
    (client, asked)
}

fn allow(choice: &str) -> Value {
    json!({ "action": "accept", "content": { "allow": choice } })
}

fn touch(file: &str) -> Value {
    json!({ "command": ["touch", file] })
}

#[test]
fn client_prompts_before_each_command() {
    for version in [USUAL, INLINE] {
        let home = home_with(&["staging"]);
        let (mut client, asked) = with_person(&home, &[], version, &[allow("once")]);
        assert!(names(&mut client).contains(&"run".to_owned()), "{version}");
        let given = json!({ "command": ["touch", "a b"], "context": "staging" });
        assert_eq!(result(&mut client, "run", given)["exit_code"], 0, "{version}");
        assert!(home.path("a b").exists());
        let question = asked.lock().unwrap()[0].clone();
        for part in ["testkit", "context \"staging\"", "touch 'a b'", "Allow it?"] {
            assert!(question.contains(part), "{version}: {question}");
        }
        result(&mut client, "run", touch("c"));
        assert_eq!(asked.lock().unwrap().len(), 2, "{version}: once is once");
    }
}

#[test]
fn person_can_allow_a_client_for_a_time() {
    for version in [USUAL, INLINE] {
        let home = home();
        let (mut client, asked) = with_person(&home, &[], version, &[allow("10m")]);
        for file in ["a", "b"] {
            result(&mut client, "run", touch(file));
            assert!(home.path(file).exists());
        }
        assert_eq!(asked.lock().unwrap().len(), 1, "{version}");
    }
}

#[test]
fn any_other_answer_runs_nothing() {
    let home = home();
    let answers = [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "decline", "content": { "allow": "once" } }),
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": { "allow": "always" } }),
        json!({ "action": "accept", "content": { "allow": true } }),
        json!({ "action": "accept", "content": { "open_for": "10m" } }),
    ];
    for version in [USUAL, INLINE] {
        for answer in &answers {
            let (mut client, asked) = with_person(&home, &[], version, std::slice::from_ref(answer));
            assert_eq!(refused(&client.call("run", touch("ran")))["code"], "DECLINED", "{version} {answer}");
            assert_eq!(asked.lock().unwrap().len(), 1);
        }
    }
    assert!(!home.path("ran").exists());
}

#[test]
fn without_somebody_to_ask_run_is_refused_with_the_reason() {
    let home = home();
    let mut client = serve(&home, &[]);
    assert!(!names(&mut client).contains(&"run".to_owned()));
    let told = refused(&client.call("run", touch("ran")));
    assert_eq!(told["code"], "CONFIRMATION_REQUIRED");
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("--allow-run") && message.contains("elicitation"), "{message}");
    // A read-only server never prompts.
    let (mut client, asked) = with_person(&home, &["--read-only"], USUAL, &[allow("once")]);
    assert!(!names(&mut client).contains(&"run".to_owned()));
    assert!(client.try_call("run", touch("ran")).is_err());
    assert!(asked.lock().unwrap().is_empty());
    assert!(!home.path("ran").exists());
    // Nor where it is allowed already.
    let (mut client, asked) = with_person(&home, &["--allow-run"], USUAL, &[allow("once")]);
    result(&mut client, "run", touch("ran"));
    assert!(asked.lock().unwrap().is_empty() && home.path("ran").exists());
}

#[test]
fn consent_is_for_one_command_and_does_not_open_a_guard() {
    for version in [USUAL, INLINE] {
        let home = home();
        home.write(".config/sessile/contexts/prod.toml", "guard = \"approval\"\n");
        let open = json!({ "action": "accept", "content": { "open_for": "10m" } });
        let given = json!({ "command": ["touch", "ran"], "context": "prod" });
        // The first question is about the command, the second about the context.
        let (mut client, asked) =
            with_person(&home, &[], version, &[allow("once"), json!({ "action": "decline" })]);
        assert_eq!(refused(&client.call("run", given.clone()))["code"], "GUARD_APPROVAL", "{version}");
        assert_eq!(asked.lock().unwrap().len(), 2, "{version}");
        assert!(!home.path("ran").exists());
        let (mut client, asked) = with_person(&home, &[], version, &[allow("once"), open]);
        assert_eq!(result(&mut client, "run", given)["exit_code"], 0, "{version}");
        let questions = asked.lock().unwrap().clone();
        assert!(questions[0].contains("Allow it?") && questions[1].contains("Approve it?"), "{questions:?}");
        assert_eq!(questions.len(), 2, "{version}");
    }
}

#[test]
fn answer_for_one_command_runs_no_other() {
    let home = home();
    let mut client = McpClient::start(home.call(&["mcp"]));
    client.capabilities(json!({ "elicitation": { "form": {} } }));
    client.speak(INLINE);
    let question = client.request("tools/call", json!({ "name": "run", "arguments": touch("one") }));
    assert_eq!(question["resultType"], "input_required", "{question}");
    let mut answered = |file: &str| {
        let params = json!({
            "name": "run", "arguments": touch(file), "inputResponses": { "run": allow("once") },
            "requestState": question["requestState"],
        });
        client.request("tools/call", params)["resultType"] == "input_required"
    };
    assert!(answered("two"), "another command");
    assert!(!answered("one"));
    assert!(answered("one"), "a second time");
    assert!(home.path("one").exists() && !home.path("two").exists());
}

#[test]
fn official_client_asks_before_a_command() {
    for revision in [Revision::Auto, Revision::Handshake("2025-06-18")] {
        let home = home();
        let report = PythonMcpClient::new(revision)
            .answer(json!({ "action": "decline" }))
            .answer(allow("once"))
            .run(&home.call(&["mcp"]), &[("run", touch("no")), ("run", touch("yes"))]);
        assert_eq!(refused(&report["results"][0])["code"], "DECLINED", "{revision:?}");
        assert_eq!(content(&report["results"][1])["exit_code"], 0, "{revision:?}");
        assert!(home.path("yes").exists() && !home.path("no").exists());
    }
}
