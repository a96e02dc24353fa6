//! Messages that the service replies to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use super::{Machine, Service, Store, ann};
use crate::home;

/// An upstream that says back how many messages it has seen and the last of them; in a stream it waits before the second
/// half, until it is told.
fn upstream(go_on: Receiver<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.unwrap(), &go_on);
        }
    });
    url
}

fn answer(stream: TcpStream, go_on: &Receiver<()>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let messages = asked["messages"].as_array().unwrap();
    let last = messages.last().unwrap()["content"].as_str().unwrap();
    let (first, second) = (format!("{} messages, ", messages.len()), format!("the last is {last}"));
    let mut stream = stream;
    let mut say = |text: String| stream.write_all(text.as_bytes()).unwrap();
    if asked["stream"] == true {
        let piece =
            |text: &str| format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": text } }] }));
        say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n".to_owned());
        say(piece(&first));
        go_on.recv().unwrap();
        say(piece(&second));
        say("data: [DONE]\n\n".to_owned());
    } else {
        let reply = json!({ "choices": [{ "message": { "content": first + &second } }] }).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            reply.len()
        );
        say(head + &reply);
    }
}

#[test]
fn remote_message_is_sent_and_its_reply_streamed() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let (go_on, waits) = channel();
    let url = upstream(waits);
    let service = Service::start_with(&store, &["--upstream", &url, "--upstream-model", "small"]);
    let machine = Machine::new(&service, &token);
    // The session is started by its name.
    let sent = machine.call(&["message", "send", "hello", "--session", "talk"]).ok();
    assert_eq!(sent.stdout(), "1 messages, the last is hello\n", "{}", sent.told());
    let told = machine.json(&["message", "send", "and again", "--session", "talk"]);
    assert_eq!(told["text"], "3 messages, the last is and again");
    assert_eq!((&told["source"], &told["agent_url"]), (&json!("agent"), &json!(machine.url)));
    assert_eq!(told["reply"]["number"], 4, "{told}");
    let members: Vec<&String> = told.as_object().unwrap().keys().collect();
    let here = [
        "source",
        "agent_url",
        "text",
        "state",
        "context_id",
        "task_id",
        "conversation",
        "artifacts",
        "saved",
        "reply",
        "session",
        "context",
        "context_origin",
    ];
    assert_eq!(members, here);

    let call = machine.call(&["message", "stream", "-", "--session", "talk"]);
    let mut child =
        call.command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"now slowly").unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut seen = vec![0; "5 messages, ".len()];
    stdout.read_exact(&mut seen).unwrap();
    assert_eq!(String::from_utf8_lossy(&seen), "5 messages, ", "the first tokens arrive before the rest");
    go_on.send(()).unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "the last is now slowly\n");
    assert!(child.wait().unwrap().success());
    go_on.send(()).unwrap();
    let lines =
        machine.call(&["message", "stream", "x", "--session", "talk", "--output", "jsonl"]).ok().stdout();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (whole, pieces) = lines.split_last().unwrap();
    let pieces: String = pieces.iter().map(|piece| piece["text"].as_str().unwrap()).collect();
    assert_eq!(
        (pieces.as_str(), &whole["text"]),
        ("7 messages, the last is x", &json!("7 messages, the last is x"))
    );
}

#[test]
fn remote_messages_are_read() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let service = Service::start(&store);
    let machine = Machine::new(&service, &token);
    let id = machine.json(&["session", "start", "--name", "talk"])["id"].as_str().unwrap().to_owned();
    let said = |messages: Value| {
        let path = format!("/v1/sessions/{id}/messages");
        service.client(&token).ok("POST", &path, &json!({ "messages": messages }))
    };
    said(
        json!([{ "role": "user", "content": "hello" }, { "role": "assistant", "content": "good\u{1b}[2Jday" }]),
    );
    said(json!(["plain", { "parts": [{ "text": "in parts" }] }, 7]));

    let shown = machine.json(&["conversation", "show", "talk"]);
    let members: Vec<&String> = shown.as_object().unwrap().keys().collect();
    let here = [
        "id",
        "name",
        "session",
        "context",
        "agent_url",
        "context_id",
        "task_id",
        "task_state",
        "started_at",
        "used_at",
        "items",
        "has_credentials",
        "messages",
    ];
    assert_eq!(members, here);
    assert_eq!((&shown["id"], &shown["items"]), (&json!(id), &json!(5)));
    let sources: Vec<&Value> =
        shown["messages"].as_array().unwrap().iter().map(|one| &one["source"]).collect();
    assert_eq!(sources, ["user", "agent", "agent", "agent", "agent"]);
    let text = machine.call(&["conversation", "show", "--session", "talk"]).ok().stdout();
    for part in ["hello", "plain", "in parts", "7", "5 agent", &machine.url] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
    let last = machine.json(&["conversation", "show", "talk", "--last", "2"]);
    let numbers: Vec<i64> =
        last["messages"].as_array().unwrap().iter().map(|one| one["number"].as_i64().unwrap()).collect();
    assert_eq!(numbers, [4, 5]);

    // More than a page, and more than one may hold.
    for _ in 0..6 {
        said(json!(vec![json!({ "role": "user", "content": "x".repeat(900) }); 1000]));
    }
    let all = machine.json(&["conversation", "export", "talk"]);
    assert_eq!(all["messages"].as_array().unwrap().len(), 6005);
    assert_eq!(all["messages"][6004]["number"], 6005);

    machine.call(&["conversation", "show", "nobody"]).run().exit(5);
    let unnamed = machine.call(&["conversation", "show", "--output", "json"]).run().exit(2);
    assert_eq!(unnamed.code(), "SESSION_REQUIRED");
    machine.home.call(&["conversation", "show", "talk"]).run().exit(5);
}

#[test]
fn remote_history_lists_changes() {
    let home = home();
    let (_service, machine) = ann(&home);
    let id = machine.json(&["session", "start", "--name", "one"])["id"].clone();
    machine.call(&["session", "state", "set", "k", "1", "--session", "one"]).ok();
    machine.call(&["session", "start", "--name", "two"]).ok();
    machine.json_here(&["session", "start", "--name", "here"]);
    let (there, here) = (machine.json(&["history"]), machine.json_here(&["history"]));
    let names = |json: &Value| json[0].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&there), names(&here));
    assert!(
        there.as_array().unwrap().iter().all(|one| one["user"] == "ann" && one["undoable"] == false),
        "{there}"
    );
    let of_one = machine.json(&["history", "--session", "one"]);
    assert!(of_one.as_array().unwrap().len() >= 2, "{of_one}");
    assert!(of_one.as_array().unwrap().iter().all(|one| one["session"] == id), "{of_one}");
    let first = machine.json(&["history", "--limit", "1"]);
    let next = machine.json(&["history", "--limit", "1", "--cursor", first[0]["id"].as_str().unwrap()]);
    assert_eq!((&first[0], &next[0]), (&there[0], &there[1]));
    let token = machine.json(&["lock", "acquire", "deploy"])["token"].to_string();
    machine.call(&["lock", "release", "deploy", "--token", &token]).ok();
    let all = machine.json(&["history"]);
    let told = all.as_array().unwrap().iter();
    let told: Vec<_> =
        told.map(|one| (one["command"].as_str().unwrap(), one["subject"].as_str().unwrap())).collect();
    let (one, two) = (id.as_str().unwrap(), there[0]["session"].as_str().unwrap());
    let expected = [
        ("lock release", "deploy"),
        ("lock acquire", "deploy"),
        ("session start", two),
        ("session state set", "k"),
        ("session start", one),
        ("user token create", ""),
        ("user add", ""),
    ];
    assert_eq!(told, expected);
    let text = machine.call(&["history"]).ok().stdout();
    assert!(text.starts_with("ID ") && text.contains("WHEN"), "{text}");
    machine.home.call(&["history", "--cursor", "x"]).run().exit(2);
}

#[test]
fn agent_and_server_together_are_refused() {
    let home = home();
    let (_service, machine) = ann(&home);
    machine.home.call(&["agent", "add", "research", "http://127.0.0.1:9", "--global"]).ok();
    for words in [
        &["message", "send", "research", "hello", "--session", "s"][..],
        &["message", "send", "http://127.0.0.1:9", "hello", "--session", "s"],
        &["message", "send", "nobody-knows", "and then", "--session", "s"],
        &["message", "stream", "hello", "my", "friend", "--session", "s"],
        &["message", "stream", "--url", "research", "hello", "--session", "s"],
        &["message", "send", "hello", "--new", "--session", "s"],
    ] {
        let done = machine.call(words).args(&["--output", "json"]).run().exit(2);
        assert!(done.json_error()["message"].as_str().unwrap().contains("--server ''"), "{}", done.told());
    }
    assert_eq!(machine.json(&["session", "list"]), serde_json::json!([]), "nothing was started");
    let done = machine.call(&["message", "send", "hello", "--output", "json"]).run().exit(2);
    assert_eq!(done.code(), "SESSION_REQUIRED");
}

#[test]
fn guard_of_a_remote_sessions_context_is_checked_locally() {
    let home = home();
    let store = Store::file(&home);
    let token = store.user("ann");
    let (_go_on, waits) = channel();
    let service = Service::start_with(&store, &["--upstream", &upstream(waits), "--upstream-model", "small"]);
    let machine = Machine::new(&service, &token);
    machine.home.call(&["context", "create", "stg", "--guard", "explicit"]).ok();
    machine.home.call(&["context", "create", "prod", "--guard", "approval"]).ok();
    // Another machine has started them.
    let client = service.client(&token);
    for context in ["stg", "prod", "gone"] {
        client.ok("POST", "/v1/sessions", &json!({ "name": context, "context": context }));
    }
    machine.call(&["message", "send", "hi", "--session", "stg"]).ok();
    for way in ["send", "stream"] {
        let refused =
            |session: &str| machine.call(&["message", way, "hi", "--session", session, "--output", "json"]);
        let error = refused("prod").run().exit(7).json_error();
        assert_eq!(
            (&error["code"], &error["context"]),
            (&json!("GUARD_APPROVAL"), &json!("prod")),
            "{error}"
        );
        let error = refused("gone").run().exit(5).json_error();
        assert_eq!(error["code"], "CONTEXT_NOT_FOUND", "{error}");
    }
    let prod = client.get("/v1/sessions/prod")["id"].as_str().unwrap().to_owned();
    assert!(client.texts(&format!("/v1/sessions/{prod}")).is_empty(), "nothing was sent");
    // As here, only what is done with the context asks for it.
    machine.call(&["session", "state", "set", "k", "1", "--session", "prod"]).ok();
    let mut tty = machine.home.call(&["context", "approve", "prod", "--for", "30m"]).tty();
    tty.expect("[y/N]");
    tty.type_line("y");
    assert_eq!(tty.finish().1, 0);
    let sent = machine.call(&["message", "send", "hi", "--session", "prod"]).ok();
    assert_eq!(sent.stdout(), "1 messages, the last is hi\n");
}

#[test]
fn session_started_for_a_refused_message_is_ended() {
    let home = home();
    let (_service, machine) = ann(&home);
    for way in ["send", "stream"] {
        let done =
            machine.call(&["message", way, "hi", "--session", "new", "--output", "json"]).run().exit(2);
        let error = done.json_error();
        assert!(error["message"].as_str().unwrap().contains("has no upstream"), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("serve --upstream"), "{error}");
        assert_eq!(machine.json(&["session", "list"]), json!([]), "none is left");
    }
    // One that was there already stays.
    machine.call(&["session", "start", "--name", "old"]).ok();
    machine.call(&["message", "send", "hi", "--session", "old"]).run().exit(2);
    assert_eq!(machine.json(&["session", "list"])[0]["name"], "old");
}
