//! Escape codes wherever an agent can put them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};
use testkit::{AgentOptions, Home, Protocol, ScriptedAgent};

use super::{agent, clean};
use crate::home;

fn evil(what: &str) -> String {
    format!("{what}{}", ScriptedAgent::ESCAPES)
}

/// An agent that has escapes in every text there is: its card and all its ids. A message that says `fail` is refused.
fn escaping() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let base = url.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let base = base.clone();
            std::thread::spawn(move || answer(stream.unwrap(), &base));
        }
    });
    url
}

fn answer(mut stream: TcpStream, base: &str) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut first, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        first = if first.is_empty() { line } else { first };
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    let body = String::from_utf8_lossy(&body).into_owned();
    let said = if first.starts_with("GET") { card(base) } else { reply(&body) }.to_string();
    let streams = body.contains("SendStreamingMessage") || body.contains("SubscribeToTask");
    let (kind, said) = match streams {
        true => ("text/event-stream", format!("data: {said}\n\n")),
        false => ("application/json", said),
    };
    let _ = write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{said}",
        said.len()
    );
}

fn card(base: &str) -> Value {
    json!({
        "name": evil("name"), "description": evil("description"), "version": evil("version"),
        "capabilities": {"streaming": true, "extensions": [{"uri": evil("uri"), "description": evil("what")}]},
        "defaultInputModes": [evil("mode")], "defaultOutputModes": [evil("mode")],
        "provider": {"organization": evil("who"), "url": evil("where")},
        "skills": [{"id": evil("id"), "name": evil("skill"), "description": evil("what"), "tags": [evil("tag")]}],
        "securitySchemes": {evil("scheme"): {"apiKeySecurityScheme": {"location": "header", "name": evil("key")}}},
        "supportedInterfaces": [
            {"url": evil("nowhere"), "protocolBinding": evil("GRPC"), "protocolVersion": evil("9")},
            {"url": format!("{base}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        ],
    })
}

fn reply(body: &str) -> Value {
    let request: Value = serde_json::from_str(body).unwrap_or_default();
    if body.contains("fail") {
        let error = json!({"code": -32603, "message": evil("why"), "data": [{"reason": evil("because")}]});
        return json!({"jsonrpc": "2.0", "id": request["id"], "error": error});
    }
    let message = json!({
        "messageId": evil("m"), "role": "ROLE_AGENT", "contextId": evil("context"), "taskId": evil("task"),
        "parts": [{"text": evil("text")}, {"data": {evil("key"): evil("value")}}],
    });
    let task = json!({
        "id": evil("task"), "contextId": evil("context"), "history": [message],
        "status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": message, "timestamp": evil("now")},
        "artifacts": [{
            "artifactId": evil("artifact"), "name": evil("name"), "description": evil("description"),
            "parts": [{"raw": "eA==", "filename": evil("file"), "mediaType": evil("media")}, {"url": evil("url")}],
        }],
    });
    let asks_for_it = request["method"] == "GetTask";
    json!({"jsonrpc": "2.0", "id": request["id"], "result": if asks_for_it { task } else { json!({"task": task}) }})
}

/// In every form of output nothing acts on a terminal, and JSON says what the agent said. Returns what JSON says.
#[track_caller]
fn safe(home: &Home, args: &[&str], exit: i32) -> Value {
    clean(home.call(args).run().exit(exit));
    clean(home.call(args).arg("--verbose").run().exit(exit));
    let lines = clean(home.call(args).arg("-ojsonl").run().exit(exit));
    for line in lines.stdout().lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    let json = clean(home.call(args).arg("-ojson").run().exit(exit));
    if json.stdout().is_empty() { json.json_error() } else { json.json() }
}

#[test]
fn agent_text_is_sanitized_for_the_terminal() {
    let (home, url) = (home(), escaping());
    let url = url.as_str();
    assert_eq!(safe(&home, &["agent", "card", url], 0)["name"], evil("name"));
    let shown = safe(&home, &["agent", "show", url], 0);
    assert_eq!((&shown["description"], &shown["source"]), (&evil("description").into(), &"agent".into()));
    assert_eq!(safe(&home, &["agent", "validate", url], 1)["source"], "agent");
    for word in ["send", "stream"] {
        let said =
            safe(&home, &["message", word, url, "hi", "--session", "work", "--save-artifacts", "out"], 0);
        assert_eq!((&said["context_id"], &said["source"]), (&evil("context").into(), &"agent".into()));
        safe(&home, &["message", word, url, "hi"], 0);
        safe(&home, &["message", word, url, "fail"], 1);
    }
    for words in [["conversation", "show"], ["conversation", "list"], ["conversation", "export"]] {
        let said = safe(&home, &[words[0], words[1], "--session", "work"], 0);
        let one = if words[1] == "list" { &said[0] } else { &said };
        assert_eq!((&one["context_id"], &one["task_id"]), (&evil("context").into(), &evil("task").into()));
        if words[1] != "list" {
            assert_eq!(one["messages"][1]["source"], "agent");
        }
    }
    assert_eq!(safe(&home, &["task", "get", "--session", "work"], 0)["source"], "agent");
    safe(&home, &["task", "watch", "--session", "work"], 0);
    safe(&home, &["status", "--session", "work"], 0);
    safe(&home, &["history"], 0);
    // Also where there is a terminal, and a command to go on with is shown.
    let mut shell = home.shell();
    let program = home.program().display().to_string();
    for flags in ["--session work", ""] {
        let (said, _) =
            shell.run(&format!("{program} message send {url} hi --color never {flags} 2>&1 | cat"));
        assert!(said.contains("text") && !said.contains('\u{1b}') && !said.contains('\u{9b}'), "{said:?}");
        let (said, _) = shell.run(&format!("{program} message send {url} hi --color never {flags}"));
        assert!(
            said.contains("continue:") && !said.contains("\u{1b}]0") && !said.contains("\u{1b}[2J"),
            "{said:?}"
        );
    }
}

#[test]
fn text_of_the_scripted_agent_is_sanitized() {
    let options = AgentOptions { name: evil("name"), ..AgentOptions::of(Protocol::V1) };
    for agent in [agent(), ScriptedAgent::start(options)] {
        let home = home();
        safe(&home, &["agent", "show", agent.url()], 0);
        for word in ["send", "stream"] {
            let said = safe(&home, &["message", word, agent.url(), "escapes"], 0);
            assert_eq!(said["text"], format!("before{}after", ScriptedAgent::ESCAPES));
            safe(&home, &["message", word, agent.url(), "escaped"], 0);
        }
    }
}
