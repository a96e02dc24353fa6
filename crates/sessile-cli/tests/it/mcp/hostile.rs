//! Clients that mean harm, or cannot do better: the server outlives them, and says nothing but messages.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};
use testkit::{Home, McpClient, RESERVED_KEY, embedded_documents};

use super::{USUAL, code, content, refused, result, serve, signal, still_answers};
use crate::{eventually, home, home_with, live, lives, start};

const SOON: Duration = Duration::from_secs(30);

fn hello() -> Value {
    let who = json!({ "name": "x", "version": "1" });
    let params = json!({ "protocolVersion": USUAL, "capabilities": {}, "clientInfo": who });
    json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params })
}

fn call(id: usize, tool: &str, arguments: &Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

#[test]
fn invalid_message_gets_an_error_and_the_server_stays() {
    let home = home();
    let mut client = serve(&home, &[]);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_call =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"d\",\"method\":\"x\",\"params\":{{\"a\":{deep}}}}}");
    let cases: [(&[u8], i64); 14] = [
        (b"hello", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"pi", -32700),
        (deep.as_bytes(), -32700),
        (deep_call.as_bytes(), -32700),
        (b"\xff\xfe\x00\x01", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}", -32700),
        (b"\0", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"ping\"}\0", -32700),
        (b"{} {}", -32700),
        (b"{}", -32600),
        (b"7", -32600),
        (b"null", -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":\"x\",\"method\":\"ping\"}", -32600),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":7}", -32600),
    ];
    for (frame, expected) in cases {
        client.send_raw([frame, b"\n"].concat());
        let told = client.read_message(SOON).unwrap();
        let start = String::from_utf8_lossy(&frame[..frame.len().min(60)]).into_owned();
        assert_eq!(told["error"]["code"], expected, "{start}: {told}");
        assert!(told["error"]["message"].as_str().unwrap().len() < 500, "{start}");
    }
    // These are nothing, or mean what they would without it.
    client.send_raw("\n\r\n  \t \n");
    client.send_raw("  {\"jsonrpc\":\"2.0\",\"id\":\"crlf\",\"method\":\"ping\"}\r\n");
    let answer = client.read_message(SOON).unwrap();
    assert_eq!((&answer["id"], &answer["result"]), (&json!("crlf"), &json!({})));
    still_answers(&mut client);
    assert_eq!(client.stderr(), "");
    assert!(client.close().success());
}

#[test]
fn reserved_key_in_a_frame_is_refused() {
    let home = home();
    let mut client = serve(&home, &[]);
    let escaped = "{\"\\u0024serde_json::private::RawValue\":\"[1]\"}".to_owned();
    for value in [json!({ RESERVED_KEY: "[1]" }).to_string(), escaped, embedded_documents(16)] {
        for frame in [
            value.clone(),
            format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"ping\",\"params\":{{\"a\":[{value}]}}}}"
            ),
        ] {
            client.send_raw(format!("{frame}\n"));
            let told = client.read_message(SOON).unwrap();
            assert_eq!(told["error"]["code"], -32700, "{told}");
            let message = told["error"]["message"].as_str().unwrap();
            assert!(message.contains("key \"$serde_json::private::RawValue\" is reserved"), "{message}");
        }
    }
    still_answers(&mut client);
    assert!(client.close().success());
}

#[test]
fn a_line_that_is_too_long_is_skipped() {
    let home = home();
    let mut client = serve(&home, &[]);
    let mut line = vec![b'x'; 50 << 20];
    line.push(b'\n');
    client.send_raw(line);
    let told = client.read_message(SOON).unwrap();
    assert_eq!(told["error"]["code"], -32600, "{told}");
    still_answers(&mut client);
    client.send_raw(vec![b'{'; 1 << 20]);
    // It ends within that line.
    assert!(client.close().success());
    let last = client.strays().last().unwrap();
    assert_eq!(last["error"]["code"], -32700, "{last}");
}

#[test]
fn huge_arguments_are_passed_on_or_refused() {
    let (home, agent) = (home(), super::agent());
    start(&home, &["--name", "work"]);
    let mut client = serve(&home, &["--allow-run", "--session", "work"]);
    let (text, word) = ("x".repeat(10 << 20), "y".repeat(200_000));
    let counted = result(&mut client, "run", json!({ "command": ["wc", "-c"], "stdin": text }));
    assert_eq!(counted["stdout"].as_str().unwrap().trim(), text.len().to_string());
    assert!(
        ["FILE_TOO_LARGE", "INVALID_VALUE"]
            .contains(&code(&mut client, "set_state", json!({ "key": "k", "value": text })).as_str())
    );
    let sent = client.call("send_message", json!({ "agent": agent.url(), "text": text }));
    assert!(sent["isError"] == true || sent["structuredContent"]["text"].is_string());
    for (tool, arguments) in [
        ("run", json!({ "command": ["echo", word] })),
        ("show_session", json!({ "session": word })),
        ("set_setting", json!({ "key": "env.X", "value": word })),
        ("set_state", json!({ "key": word, "value": 1 })),
        ("send_message", json!({ "agent": word, "text": "x" })),
        ("acquire_lock", json!({ "name": "l", "ttl": word })),
    ] {
        let told = refused(&client.call(tool, arguments));
        assert_eq!(told["code"], "USAGE", "{tool}");
        assert!(told["message"].as_str().unwrap().len() < 500, "{tool} repeats it");
    }
    // Each is short enough; all of them are too much for the kernel.
    let many = vec!["z".repeat(100_000); 40];
    let told = refused(&client.call("run", json!({ "command": many })));
    assert!(told["message"].as_str().unwrap().len() < 500, "{told}");
    assert!(client.try_call(&word, json!({})).unwrap_err()["message"].as_str().unwrap().len() < 200);
    let arguments: Value = (0..20_000).map(|number| (format!("k{number}"), json!(1))).collect();
    assert_eq!(code(&mut client, "status", arguments), "USAGE");
    still_answers(&mut client);
}

/// Each argument of each tool, with its kind.
fn each_argument(client: &mut McpClient) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for tool in client.tools() {
        let name = tool["name"].as_str().unwrap();
        let properties = tool["inputSchema"]["properties"].as_object().cloned().unwrap_or_default();
        all.extend(properties.into_iter().map(|(argument, schema)| (name.to_owned(), argument, schema)));
    }
    all
}

#[test]
fn arguments_of_another_kind_are_refused() {
    let home = home_with(&["dev"]);
    start(&home, &["--name", "work"]);
    let mut client = serve(&home, &["--allow-run"]);
    let before = home.tree();
    let arguments = each_argument(&mut client);
    assert!(arguments.len() > 60);
    for (tool, argument, schema) in arguments {
        let wrong: &[Value] = match schema["type"].as_str() {
            Some("string") => &[json!(7), json!(true), json!(["x"]), json!({ "x": 1 })],
            Some("integer") => &[json!("7"), json!(1.5), json!(u64::MAX), json!([7])],
            Some("boolean") => &[json!("true"), json!(1)],
            Some("array") => &[json!("true"), json!([]), json!([7]), json!(["x", null]), json!({})],
            Some(other) => panic!("{tool} {argument}: {other}"),
            None if schema["enum"].is_array() => &[json!("--global"), json!(""), json!(7)],
            None => continue,
        };
        for value in wrong {
            let mut given = json!({});
            given[&argument] = value.clone();
            let told = refused(&client.call(&tool, given));
            assert_eq!(told["code"], "USAGE", "{tool} {argument} {value}: {told}");
        }
        let mut given = json!({});
        given[format!("{argument}x")] = json!("x");
        let told = refused(&client.call(&tool, given));
        assert!(told["message"].as_str().unwrap().contains("did you mean"), "{told}");
        let mut given = json!({});
        given[format!("--{argument}")] = json!("x");
        assert_eq!(code(&mut client, &tool, given), "USAGE");
    }
    assert!(home.tree() == before, "nothing of it was done");
}

#[test]
fn values_that_look_like_something_else_are_values() {
    let home = home_with(&["dev"]);
    let id = start(&home, &["--name", "work"]);
    let mut client = serve(&home, &[]);
    let people = home.tree_of_people();
    let mut asked = Vec::new();
    for value in [
        "--yes",
        "-",
        "",
        "--all",
        "../../sessile-was-here",
        "/",
        "a\nb",
        "\u{1b}[2J",
        "$(touch x)",
        "%00",
        "ü\u{202e}",
    ] {
        for tool in client.tools() {
            let mut given = json!({});
            for (argument, schema) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
                let is_needed = tool["inputSchema"]["required"]
                    .as_array()
                    .is_some_and(|all| all.contains(&json!(argument)));
                if schema["type"] == "string" && (is_needed || asked.len() % 2 == 0) {
                    given[argument] = json!(value);
                } else if is_needed {
                    given[argument] = json!(1);
                }
            }
            let name = tool["name"].as_str().unwrap().to_owned();
            asked.push((client.call_async(&name, given.clone()), name, given));
        }
    }
    for (call, name, given) in asked {
        let answer = client.answer(call).unwrap_or_else(|error| panic!("{name} {given}: {error}"));
        assert!(answer["content"][0]["text"].is_string(), "{name} {given}: {answer}");
        if answer["isError"] == true {
            let told = refused(&answer);
            assert!(told["code"] != "IO" && told["code"] != "INTERNAL", "{name} {given}: {told}");
        }
    }
    assert_eq!(live(&home).first(), Some(&id), "no session was stopped");
    assert!(home.tree_of_people() == people, "nothing was written among the user's files");
    assert!(
        !home.path("../../sessile-was-here").exists()
            && !home.path("../sessile-was-here").exists()
            && !home.path("x").exists()
    );
    still_answers(&mut client);
}

#[test]
fn setting_that_starts_a_program_or_sends_a_file_is_refused() {
    let home = home_with(&["dev"]);
    start(&home, &["--name", "work"]);
    let mut client = serve(&home, &["--session", "work"]);
    for (key, value) in [
        ("chat.opener", "/bin/sh"),
        ("vault.helper", "/bin/sh"),
        ("agents.a.headers", "X: @/etc/hostname"),
        ("\"chat\".'opener'", "/bin/sh"),
    ] {
        let code = code(&mut client, "set_setting", json!({ "key": key, "value": value }));
        assert_eq!(code, "IN_SESSION", "{key}");
    }
    result(&mut client, "set_setting", json!({ "key": "chat.theme", "value": "dark" }));
    still_answers(&mut client);
}

#[test]
fn a_word_that_looks_like_a_flag_reaches_the_command_as_a_word() {
    let home = home();
    let mut client = serve(&home, &["--allow-run"]);
    let words = ["--yes", "-", "", "--", "--session=x", "a b", "$HOME", "ü", "'\""];
    let mut command = vec!["printf", "%s|"];
    command.extend(words);
    let ran = result(&mut client, "run", json!({ "command": command }));
    assert_eq!(ran["stdout"], words.map(|word| format!("{word}|")).concat());
    let ran = client.call("run", json!({ "command": ["--help"] }));
    assert_eq!(refused(&ran)["code"], "FILE_NOT_FOUND", "a program of that name is looked for: {ran}");
}

#[test]
fn a_hundred_calls_at_once_are_all_answered() {
    let home = home_with(&["dev"]);
    start(&home, &["--name", "work"]);
    let mut client = serve(&home, &["--allow-run", "--session", "work"]);
    let calls: Vec<(u64, usize)> = (0..100)
        .map(|number| {
            let call = match number % 5 {
                0 => client.call_async("set_state", json!({ "key": format!("k{number}"), "value": number })),
                1 => client.call_async("run", json!({ "command": ["echo", number.to_string()] })),
                2 => client.call_async("list_sessions", json!({})),
                3 => client.call_async("show_context", json!({ "context": "none" })),
                _ => {
                    client.call_async("acquire_lock", json!({ "name": format!("l{number}"), "wait": "30s" }))
                }
            };
            (call, number)
        })
        .collect();
    for (call, number) in calls {
        let answer = client.answer(call).unwrap();
        match number % 5 {
            1 => assert_eq!(content(&answer)["stdout"], format!("{number}\n")),
            3 => assert_eq!(refused(&answer)["code"], "CONTEXT_NOT_FOUND"),
            _ => drop(content(&answer)),
        }
    }
    assert_eq!(result(&mut client, "get_state", json!({}))["count"], 20);
    assert_eq!(result(&mut client, "list_locks", json!({}))["count"], 20);
}

/// A server whose pipes the test has in its own hands.
fn bare(home: &Home, flags: &[&str]) -> Child {
    let mut command = home.call(&["mcp"]).args(flags).command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// How the server ended, if it does.
#[track_caller]
fn ended(server: &mut Child) -> ExitStatus {
    let until = Instant::now() + SOON;
    while server.try_wait().unwrap().is_none() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = server.kill();
    server.wait().unwrap()
}

#[test]
fn a_client_that_does_not_read_for_a_while_misses_nothing() {
    let home = home();
    let mut server = bare(&home, &[]);
    let (mut stdin, stdout) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    writeln!(stdin, "{}", hello()).unwrap();
    // Far more than a pipe holds.
    for number in 0..100 {
        writeln!(stdin, "{}", call(number, "status", &json!({}))).unwrap();
        writeln!(stdin, "{}", json!({ "jsonrpc": "2.0", "id": 1000 + number, "method": "tools/list" }))
            .unwrap();
    }
    std::thread::sleep(Duration::from_secs(2));
    let (read, lines) = std::sync::mpsc::channel();
    std::thread::spawn(move || BufReader::new(stdout).lines().try_for_each(|line| read.send(line.unwrap())));
    let mut ids: Vec<Value> = Vec::new();
    for _ in 0..201 {
        let line = lines.recv_timeout(SOON).unwrap_or_else(|error| panic!("{error} after {}", ids.len()));
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert!(answer["result"].is_object(), "{answer}");
        ids.push(answer["id"].clone());
    }
    let expected = (0..100).flat_map(|number| [json!(number), json!(1000 + number)]);
    assert!(expected.into_iter().chain([json!("hello")]).all(|id| ids.contains(&id)));
    drop(stdin);
    assert!(ended(&mut server).success());
}

#[test]
fn server_whose_client_stops_reading_ends_with_its_commands() {
    let home = home();
    let mut server = bare(&home, &["--allow-run"]);
    let (mut stdin, stdout) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    writeln!(stdin, "{}", hello()).unwrap();
    let command = json!({ "command": ["sh", "-c", "echo $$ > pid; exec sleep 600"] });
    writeln!(stdin, "{}", call(1, "run", &command)).unwrap();
    eventually("the command", || {
        std::fs::read_to_string(home.path("pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    drop(stdout);
    writeln!(stdin, "{}", call(2, "status", &json!({}))).unwrap();
    assert!(ended(&mut server).success());
    let pid = home.read("pid");
    eventually("the command's end", || !lives(&pid));
    // A pipe that is full, of one who neither reads nor goes, does not keep it from ending.
    let mut server = bare(&home, &[]);
    let mut stdin = server.stdin.take().unwrap();
    writeln!(stdin, "{}", hello()).unwrap();
    for number in 0..20 {
        writeln!(stdin, "{}", json!({ "jsonrpc": "2.0", "id": number, "method": "tools/list" })).unwrap();
    }
    std::thread::sleep(Duration::from_millis(200));
    signal(server.id(), "TERM");
    assert!(ended(&mut server).success());
}

/// A frame: any bytes, or a message in which something was changed.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let big = 1_000_000;
    let messages = [
        hello(),
        call(big, "status", &json!({})),
        call(big + 1, "start_session", &json!({ "name": "n" })),
        call(big + 2, "set_state", &json!({ "key": "k", "value": { "a": [1, 2.5, null, "x"] } })),
        json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": "l", "method": "tools/list", "params": { "cursor": "x" } }),
        json!({ "jsonrpc": "2.0", "id": "i", "method": "server/discover", "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": big } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 3, "result": { "action": "accept", "content": { "open_for": "2h" } } }),
        json!({ "jsonrpc": "2.0", "id": "e", "error": { "code": -1, "message": "m" } }),
    ];
    let message = proptest::sample::select(messages.map(|one| one.to_string().into_bytes()).to_vec());
    let changed =
        (message.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(mut bytes, at, byte)| {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        });
    let cut = (message.clone(), any::<prop::sample::Index>())
        .prop_map(|(bytes, at)| bytes[..at.index(bytes.len())].to_vec());
    let twice = (message.clone(), message.clone()).prop_map(|(one, two)| [one, two].concat());
    prop_oneof![
        2 => message,
        3 => changed,
        1 => cut,
        1 => twice,
        1 => proptest::collection::vec(any::<u8>(), 0..100),
        1 => "\\PC{0,60}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_input_gets_valid_messages(frames in proptest::collection::vec(frame(), 1..30), greet in any::<bool>()) {
        let home = home();
        let mut client = McpClient::start(home.call(&["mcp"]));
        if greet {
            client.initialize(USUAL);
        }
        for frame in frames {
            client.send_raw([&frame[..], b"\n"].concat());
        }
        // By then it may have been greeted or not; this is understood after both.
        client.speak(super::INLINE);
        still_answers(&mut client);
        prop_assert!(client.close().success());
        prop_assert_eq!(client.stderr(), "");
    }
}
