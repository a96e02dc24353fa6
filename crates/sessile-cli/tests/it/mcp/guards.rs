//! A guard is opened by a person, and a client can only ask one: what a model says opens nothing.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use testkit::{Home, McpClient, PythonMcpClient, Revision};

use super::{INLINE, USUAL, code, content, refused, result, serve};
use crate::{history, home, live};

/// The revisions that can ask: by a request of the server, and by a result that is a question.
const ASKING: [&str; 3] = ["2025-06-18", USUAL, INLINE];

fn guarded() -> Home {
    let home = home();
    for (name, guard) in
        [("prod", "approval"), ("vault", "approval"), ("named", "explicit"), ("free", "none")]
    {
        home.write(format!(".config/sessile/contexts/{name}.toml"), format!("guard = \"{guard}\"\n"));
    }
    home
}

/// A client behind which somebody answers so; and what they were asked.
fn with_person(home: &Home, version: &str, answer: &Value) -> (McpClient, Arc<Mutex<Vec<Value>>>) {
    with_person_behind(home.call(&["mcp", "--allow-run"]), version, answer)
}

fn with_person_behind(
    server: testkit::Call,
    version: &str,
    answer: &Value,
) -> (McpClient, Arc<Mutex<Vec<Value>>>) {
    let mut client = McpClient::start(server);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (seen, answer) = (Arc::clone(&asked), answer.clone());
    client.on_elicitation(move |params| {
        seen.lock().unwrap().push(params.clone());
        answer.clone()
    });
    if version == INLINE {
        client.speak(version);
    } else {
        client.initialize(version);
    }
    (client, asked)
}

fn approvals(home: &Home) -> Vec<Value> {
    home.call(&["context", "approve", "--list", "-ojson"]).ok().json().as_array().unwrap().clone()
}

fn touch(context: &str) -> Value {
    json!({ "command": ["touch", "ran"], "context": context })
}

/// The context is shut, and nothing has happened in it.
#[track_caller]
fn assert_shut(home: &Home) {
    assert!(!home.path("ran").exists());
    assert!(live(home).is_empty());
    assert!(approvals(home).is_empty());
    home.call(&["context", "current", "--check", "--context", "prod"]).run().exit(7);
}

#[test]
fn without_somebody_to_ask_it_stays_shut() {
    let home = guarded();
    let mut client = serve(&home, &["--allow-run"]);
    for (tool, given) in [("run", touch("prod")), ("start_session", json!({ "context": "prod" }))] {
        let told = refused(&client.call(tool, given));
        assert_eq!((&told["code"], &told["context"]), (&json!("GUARD_APPROVAL"), &json!("prod")));
        assert!(told["hint"].as_str().unwrap().contains("only a person can approve it"), "{told}");
    }
    assert!(client.asked().is_empty());
    // One who can only be sent to a page is not asked by a form.
    let mut client = McpClient::start(home.call(&["mcp", "--allow-run"]));
    client.capabilities(json!({ "elicitation": { "url": {} } }));
    client.initialize(USUAL);
    assert_eq!(code(&mut client, "run", touch("prod")), "GUARD_APPROVAL");
    assert!(client.asked().is_empty());
    // Looking is free.
    assert_eq!(result(&mut client, "show_context", json!({ "context": "prod" }))["guard"], "approval");
    assert_shut(&home);
}

#[test]
fn context_changed_during_the_prompt_is_not_approved() {
    for version in ASKING {
        let home = guarded();
        let file = home.path(".config/sessile/contexts/prod.toml");
        let mut client = McpClient::start(home.call(&["mcp", "--allow-run"]));
        let asked = Arc::new(Mutex::new(0));
        let count = Arc::clone(&asked);
        client.on_elicitation(move |_| {
            *count.lock().unwrap() += 1;
            std::fs::write(&file, "guard = \"approval\"\n[env]\nTARGET = \"other\"\n").unwrap();
            json!({ "action": "accept", "content": { "open_for": "10m" } })
        });
        if version == INLINE {
            client.speak(version);
            // The answer is to a question that nobody asks any more.
            assert_eq!(result(&mut client, "run", touch("prod"))["exit_code"], 0);
            assert_eq!(*asked.lock().unwrap(), 2);
        } else {
            client.initialize(version);
            assert_eq!(code(&mut client, "run", touch("prod")), "GUARD_APPROVAL");
            assert_eq!(*asked.lock().unwrap(), 1);
            assert_shut(&home);
        }
    }
}

#[test]
fn somebody_who_says_yes_opens_it_and_the_call_goes_on() {
    for version in ASKING {
        let home = guarded();
        let (mut client, asked) =
            with_person(&home, version, &json!({ "action": "accept", "content": { "open_for": "10m" } }));
        assert_eq!(result(&mut client, "run", touch("prod"))["exit_code"], 0, "{version}");
        assert!(home.path("ran").exists());
        let questions = asked.lock().unwrap().clone();
        assert_eq!(questions.len(), 1, "{version}");
        let question = questions[0]["message"].as_str().unwrap();
        for part in ["testkit", "\"prod\"", "touch", "Approve it?"] {
            assert!(question.contains(part), "{version}: {question}");
        }
        assert_eq!(questions[0]["requestedSchema"]["required"], json!(["open_for"]));
        assert_eq!(
            questions[0]["requestedSchema"]["properties"]["open_for"]["enum"],
            json!(["10m", "30m", "2h"])
        );
        let given = approvals(&home);
        assert_eq!(given.len(), 1);
        assert_eq!((&given[0]["context"], &given[0]["terminal"]), (&json!("prod"), &json!("via testkit")));
        assert_eq!(given[0]["with_pin"], false);
        let told = history(&home).to_string();
        assert!(told.contains("prod for 10 min via testkit"), "{told}");
        // It is open now, for all, and nobody is asked again; the other one is not.
        let session = result(&mut client, "start_session", json!({ "context": "prod" }))["id"].clone();
        result(&mut serve(&home, &["--allow-run"]), "run", touch("prod"));
        assert_eq!(code(&mut serve(&home, &["--allow-run"]), "run", touch("vault")), "GUARD_APPROVAL");
        // Shut again, those who are in it are asked again.
        home.call(&["context", "approve", "prod", "--revoke"]).ok();
        result(&mut client, "run", json!({ "command": ["true"], "session": session }));
        assert_eq!(asked.lock().unwrap().len(), 2, "{version}");
    }
}

#[test]
fn any_other_answer_leaves_it_shut() {
    let answers = [
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "decline", "content": { "open_for": "2h" } }),
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": {} }),
        json!({ "action": "accept", "content": { "open_for": "24h" } }),
        json!({ "action": "accept", "content": { "open_for": "" } }),
        json!({ "action": "accept", "content": { "open_for": null } }),
        json!({ "action": "accept", "content": { "open_for": ["10m"] } }),
        json!({ "action": "accept", "content": { "for": "10m" } }),
        json!({ "action": "accept", "content": "10m" }),
        json!({ "action": "yes", "content": { "open_for": "10m" } }),
        json!({}),
    ];
    let home = guarded();
    for version in ["2025-06-18", INLINE] {
        for answer in &answers {
            let (mut client, asked) = with_person(&home, version, answer);
            assert_eq!(code(&mut client, "run", touch("prod")), "GUARD_APPROVAL", "{version} {answer}");
            assert_eq!(asked.lock().unwrap().len(), 1, "once, and not again: {version} {answer}");
        }
    }
    let mut client = McpClient::start(home.call(&["mcp", "--allow-run"]));
    client.capabilities(json!({ "elicitation": {} }));
    client.on_request(|_, _| Err(json!({ "code": -32603, "message": "nobody is there" })));
    client.initialize(USUAL);
    assert_eq!(code(&mut client, "run", touch("prod")), "GUARD_APPROVAL");
    assert_shut(&home);
}

#[test]
fn an_answer_to_another_question_opens_nothing() {
    let home = guarded();
    let yes = json!({ "action": "accept", "content": { "open_for": "10m" } });
    let mut client = McpClient::start(home.call(&["mcp", "--allow-run"]));
    client.capabilities(json!({ "elicitation": { "form": {} } }));
    client.speak(INLINE);
    let mut ask = |responses: Value, state: &Value| {
        let mut params = json!({ "name": "run", "arguments": touch("prod"), "inputResponses": responses });
        if state.is_string() {
            params["requestState"] = state.clone();
        }
        client.request("tools/call", params)
    };
    let question = ask(json!({}), &Value::Null);
    assert_eq!(question["resultType"], "input_required");
    let keys: Vec<String> = question["inputRequests"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys.len(), 1);
    assert!(keys[0].contains("prod"));
    for responses in [
        json!({ keys[0].replace("prod", "vault"): yes }),
        json!({ "": yes, "prod": yes, "open": yes }),
        json!({ keys[0].clone(): [yes] }),
        json!({ keys[0].clone(): null }),
    ] {
        let question = ask(json!({}), &Value::Null);
        let answer = ask(responses.clone(), &question["requestState"]);
        let is_asked_again = answer["resultType"] == "input_required";
        assert!(is_asked_again || refused(&answer)["code"] == "GUARD_APPROVAL", "{responses}: {answer}");
    }
    // One that cannot ask anybody, and answers all the same.
    let mut client = McpClient::start(home.call(&["mcp", "--allow-run"]));
    client.speak(INLINE);
    let params =
        json!({ "name": "run", "arguments": touch("prod"), "inputResponses": { keys[0].clone(): yes } });
    assert_eq!(refused(&client.request("tools/call", params.clone()))["code"], "GUARD_APPROVAL");
    // Nor is it an argument, nor an answer where the server asks by itself.
    let mut client = McpClient::start(home.call(&["mcp", "--allow-run"]));
    client.on_elicitation(|_| json!({ "action": "decline" }));
    client.initialize(USUAL);
    assert_eq!(refused(&client.request("tools/call", params))["code"], "GUARD_APPROVAL");
    let mut given = touch("prod");
    given["open_for"] = json!("10m");
    assert_eq!(code(&mut client, "run", given), "USAGE");
    assert_shut(&home);
}

#[test]
fn answer_opens_a_context_once() {
    let home = guarded();
    let yes = json!({ "action": "accept", "content": { "open_for": "10m" } });
    let mut client = McpClient::start(home.call(&["mcp", "--allow-run"]));
    client.capabilities(json!({ "elicitation": { "form": {} } }));
    client.speak(INLINE);
    let mut ask = |responses: Value, state: &Value| {
        let mut params = json!({ "name": "run", "arguments": touch("prod"), "inputResponses": responses });
        if state.is_string() {
            params["requestState"] = state.clone();
        }
        client.request("tools/call", params)
    };
    let question = ask(json!({}), &Value::Null);
    let key = question["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answered = json!({ key: yes });
    assert_ne!(
        ask(answered.clone(), &question["requestState"])["resultType"],
        "input_required",
        "the context is approved now"
    );
    home.call(&["context", "approve", "prod", "--revoke"]).ok();
    assert_eq!(
        ask(answered, &question["requestState"])["resultType"],
        "input_required",
        "the server prompts again"
    );
}

#[test]
fn answer_is_valid_for_its_own_call_only() {
    let home = guarded();
    let yes = json!({ "action": "accept", "content": { "open_for": "10m" } });
    let client = || {
        let mut client = McpClient::start(home.call(&["mcp", "--allow-run"]));
        client.capabilities(json!({ "elicitation": { "form": {} } }));
        client.speak(INLINE);
        client
    };
    let (mut one, mut two) = (client(), client());
    let params = |tool: &str, arguments: &Value| json!({ "name": tool, "arguments": arguments });
    let question = one.request("tools/call", params("run", &touch("prod")));
    let key = question["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answered = |mut params: Value| {
        params["inputResponses"] = json!({ key.clone(): yes });
        params["requestState"] = question["requestState"].clone();
        params
    };
    assert!(question["requestState"].is_string(), "{question}");
    let mut other = touch("prod");
    other["command"] = json!(["touch", "ran", "more"]);
    for (tool, arguments) in [("run", &other), ("start_session", &json!({ "context": "prod" }))] {
        let again = one.request("tools/call", answered(params(tool, arguments)));
        assert_eq!(again["resultType"], "input_required", "{tool} {arguments}: {again}");
    }
    let again = two.request("tools/call", answered(params("run", &touch("prod"))));
    assert_eq!(again["resultType"], "input_required", "another server: {again}");
    let mut without_state = answered(params("run", &touch("prod")));
    without_state.as_object_mut().unwrap().remove("requestState");
    assert_eq!(one.request("tools/call", without_state)["resultType"], "input_required");
    assert_shut(&home);
    assert_ne!(
        one.request("tools/call", answered(params("run", &touch("prod"))))["resultType"],
        "input_required"
    );
    assert!(home.path("ran").exists());
    home.call(&["context", "approve", "prod", "--revoke"]).ok();
    let again = one.request("tools/call", answered(params("run", &touch("prod"))));
    assert_eq!(again["resultType"], "input_required", "after the revocation: {again}");
}

#[test]
fn command_output_triggers_no_prompt() {
    let home = guarded();
    let text = r#"{"error":{"code":"GUARD_APPROVAL","message":"m","context":"prod"}}"#;
    let given = |context: &str| {
        let script = format!("echo x >> ran; echo '{text}' >&2; exit 125");
        json!({ "command": ["sh", "-c", script], "context": context, "timeout": "1m" })
    };
    for version in ASKING {
        let (mut client, asked) =
            with_person(&home, version, &json!({ "action": "accept", "content": { "open_for": "10m" } }));
        let answer = result(&mut client, "run", given("free"));
        assert_eq!((&answer["exit_code"], &answer["stderr"]), (&json!(125), &json!(format!("{text}\n"))));
        assert!(asked.lock().unwrap().is_empty(), "{version}");
    }
    assert_eq!(home.read("ran"), "x\n".repeat(ASKING.len()), "nor is it run again");
    std::fs::remove_file(home.path("ran")).unwrap();
    assert_shut(&home);
}

#[test]
fn pin_disables_prompts_through_the_client() {
    let home = guarded();
    let mut tty = home.tty(&["context", "approve", "--set-pin"]);
    for prompt in ["New PIN: ", "Again: "] {
        tty.expect(prompt);
        tty.type_line("4711");
    }
    assert_eq!(tty.finish().1, 0);
    for version in ASKING {
        let (mut client, asked) =
            with_person(&home, version, &json!({ "action": "accept", "content": { "open_for": "10m" } }));
        let answer = client.call("run", touch("prod"));
        assert_eq!(refused(&answer)["code"], "GUARD_APPROVAL");
        assert!(answer["content"][1]["text"].as_str().unwrap().contains("PIN"), "{answer}");
        assert!(asked.lock().unwrap().is_empty(), "a PIN goes through no program");
    }
    assert_shut(&home);
}

#[test]
fn an_explicit_guard_wants_the_context_named() {
    let home = guarded();
    home.write(".config/sessile/config.toml", "context = \"named\"\n");
    let mut client = serve(&home, &["--allow-run"]);
    assert_eq!(code(&mut client, "run", json!({ "command": ["touch", "ran"] })), "GUARD_EXPLICIT");
    assert!(!home.path("ran").exists());
    assert_eq!(result(&mut client, "run", touch("named"))["exit_code"], 0);
    assert!(home.path("ran").exists());
    let session = result(&mut client, "start_session", json!({ "context": "named" }))["id"].clone();
    let inside = json!({ "command": ["true"], "session": session });
    assert_eq!(
        result(&mut client, "run", inside)["exit_code"],
        0,
        "the session is pinned to the named context"
    );
}

#[test]
fn the_official_client_asks_and_is_answered() {
    for revision in [Revision::Auto, Revision::Handshake("2025-06-18")] {
        let home = guarded();
        let report = PythonMcpClient::new(revision)
            .answer(json!({ "action": "decline" }))
            .answer(json!({ "action": "accept", "content": { "open_for": "30m" } }))
            .run(&home.call(&["mcp", "--allow-run"]), &[("run", touch("prod")), ("run", touch("prod"))]);
        assert_eq!(report["elicitations"].as_array().unwrap().len(), 2, "{revision:?}");
        assert_eq!(refused(&report["results"][0])["code"], "GUARD_APPROVAL", "{revision:?}");
        assert_eq!(content(&report["results"][1])["exit_code"], 0, "{revision:?}");
        assert!(approvals(&home)[0]["terminal"].as_str().unwrap().starts_with("via "));
    }
}

#[test]
fn server_in_a_session_never_prompts() {
    let home = guarded();
    let session = crate::start(&home, &[]);
    crate::start(&home, &["--name", "web"]);
    for version in ASKING {
        let server = || home.call(&["mcp", "--allow-run"]);
        for server in [
            server().env("SESSILE_SESSION", &session),
            server().env("SESSILE_SESSION", &session).args(&["--session", "web"]),
            server().args(&["--session", "web"]),
            server().args(&["--session", "later"]),
        ] {
            let yes = json!({ "action": "accept", "content": { "open_for": "2h" } });
            let (mut client, asked) = with_person_behind(server, version, &yes);
            let told = code(&mut client, "start_session", json!({ "context": "prod" }));
            assert_eq!((told.as_str(), asked.lock().unwrap().len()), ("GUARD_APPROVAL", 0), "{version}");
        }
    }
    assert!(approvals(&home).is_empty());
}

#[test]
fn answer_with_another_id_than_the_question_opens_nothing() {
    let home = guarded();
    let mut command = home.call(&["mcp", "--allow-run"]).command();
    let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut say = |message: Value| writeln!(input, "{message}").unwrap();
    let mut hear = |wanted: &dyn Fn(&Value) -> bool| loop {
        let message: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        if wanted(&message) {
            break message;
        }
    };
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": { "elicitation": {} },
        "clientInfo": { "name": "x", "version": "1" },
    });
    say(json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params }));
    hear(&|message| message["id"] == "hello");
    say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let params = json!({ "name": "run", "arguments": touch("prod") });
    say(json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": params }));
    let id = hear(&|message| message["method"] == "elicitation/create")["id"].clone();
    let yes = json!({ "action": "accept", "content": { "open_for": "10m" } });
    for other in
        [json!(id.to_string()), json!(format!("0{id}")), json!(format!(" {id}")), json!([id]), json!(null)]
    {
        say(json!({ "jsonrpc": "2.0", "id": other, "result": yes }));
    }
    say(json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "decline" } }));
    let told = hear(&|message| message["id"] == "call");
    assert_eq!(refused(&told["result"])["code"], "GUARD_APPROVAL", "{told}");
    assert_shut(&home);
    drop(input);
    assert!(server.wait().unwrap().success());
}
