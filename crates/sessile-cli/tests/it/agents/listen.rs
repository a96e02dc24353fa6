//! Receiver of push notifications: what the official SDK sends is verified, everything else is refused.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use testkit::{AgentOptions, Home, Protocol, PythonAgent};

use super::agent;
use crate::{eventually, home};

const TOKEN: &str = "t0ken-of-the-receiver";

/// A running `sessile agent listen`.
struct Receiver {
    child: Child,
    lines: BufReader<ChildStdout>,
    url: String,
    /// Standard error so far.
    notes: Arc<Mutex<String>>,
}

impl Receiver {
    fn start(home: &Home, flags: &[&str]) -> Self {
        let call = home.call(&["agent", "listen", "--listen", "127.0.0.1:0"]).args(flags);
        let mut command = call.command();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (lines, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let mut stderr = BufReader::new(stderr);
        let mut first = String::new();
        stderr.read_line(&mut first).unwrap();
        // A note is text or a line of JSON, as the output is.
        let url = first.split_once("listening on ").and_then(|(_, rest)| rest.split(';').next());
        let url = url.unwrap_or_else(|| panic!("{first}")).to_owned();
        // A full pipe would stop the receiver.
        let notes = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&notes);
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| *kept.lock().unwrap() += &line);
        });
        Receiver { child, lines: BufReader::new(lines), url, notes }
    }

    fn event(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Stops it by Ctrl-C. Returns the rest of its output and the exit status.
    fn stop(&mut self) -> (String, Option<i32>) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request without TLS: the status.
fn request(method: &str, url: &str, headers: &str, body: &str) -> u16 {
    let rest = url.strip_prefix("http://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(authority).unwrap();
    let length = body.len();
    let head = format!("{method} /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
    let sent = write!(stream, "{head}Content-Length: {length}\r\n{headers}\r\n{body}");
    let mut answer = String::new();
    // Who refuses a body need not read it.
    let _ = sent.and_then(|()| stream.read_to_string(&mut answer).map(drop));
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

/// Has an agent work on a text, and notify a URL with the token.
fn ask(agent: &str, text: &str, hook: &str) {
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]});
    let push = json!({"url": hook, "token": TOKEN});
    let configuration = json!({"returnImmediately": true, "taskPushNotificationConfig": push});
    let params = json!({"message": message, "configuration": configuration});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
    let headers = "Content-Type: application/json\r\nA2A-Version: 1.0\r\n";
    assert_eq!(request("POST", &format!("{agent}/rpc"), headers, &body.to_string()), 200);
}

fn home_with_token() -> Home {
    let home = home();
    home.write_private("push.token", format!("{TOKEN}\n"));
    home
}

#[test]
fn notifications_of_the_official_sdk_are_verified_and_printed() {
    let home = home_with_token();
    let agent = PythonAgent::start(Protocol::V1, &AgentOptions::of(Protocol::V1));
    let mut receiver = Receiver::start(&home, &["--token", "@push.token", "-ojsonl"]);
    ask(agent.url(), "slow 200 done", &receiver.url);
    let mut events = vec![receiver.event()];
    while events.last().unwrap()["state"] != "completed" {
        events.push(receiver.event());
    }
    let task = &events[0]["task_id"];
    assert!(task.is_string() && events.iter().all(|event| event["task_id"] == *task), "{events:?}");
    assert!(events.iter().all(|event| event["source"] == "agent"), "{events:?}");
    assert!(events.iter().any(|event| event["text"] == "done"), "{events:?}");
    assert_eq!(receiver.stop(), (String::new(), Some(0)));
}

#[test]
fn notifications_signed_with_the_official_sdk_are_verified() {
    let home = home();
    let (agent, other) = (PythonAgent::start_signing(), PythonAgent::start_signing());
    let keys = format!("{}/.well-known/jwks.json", agent.url());
    let mut receiver = Receiver::start(&home, &["--jwks", &keys, "-ojsonl"]);
    let url = receiver.url.clone();
    // With another key, and with no JWT at all.
    ask(other.url(), "task forged", &url);
    ask(PythonAgent::shared(Protocol::V1).url(), "task unsigned", &url);
    let noted = |receiver: &Receiver, text: &str| receiver.notes.lock().unwrap().contains(text);
    eventually("the refusals", || {
        noted(&receiver, "no key of the JWK set signed the JWT") && noted(&receiver, "the JWT is missing")
    });
    ask(agent.url(), "slow 200 done", &url);
    let mut events = vec![receiver.event()];
    while events.last().unwrap()["state"] != "completed" {
        events.push(receiver.event());
    }
    assert!(events.iter().all(|event| event["task_id"] == events[0]["task_id"]), "{events:?}");
    assert!(events.iter().any(|event| event["text"] == "done"), "{events:?}");
    assert_eq!(receiver.stop(), (String::new(), Some(0)));
}

#[test]
fn signed_notification_for_another_audience_or_body_is_refused() {
    let (home, agent) = (home(), PythonAgent::start_signing());
    let keys = format!("{}/.well-known/jwks.json", agent.url());
    let mut elsewhere =
        Receiver::start(&home, &["--jwks", &keys, "--audience", "https://hook.example/", "-ojsonl"]);
    ask(agent.url(), "task done", &elsewhere.url);
    eventually("the refusal", || elsewhere.notes.lock().unwrap().contains("the JWT is for another audience"));
    assert_eq!(elsewhere.stop(), (String::new(), Some(0)));
    // A proxy that changes the body, or sends a notification again, has no key.
    let proxy = RecordingHook::start();
    ask(agent.url(), "task done", &proxy.url());
    let (authorization, body) = proxy.first();
    let header = format!("Authorization: {authorization}\r\n");
    let audience = proxy.url();
    let mut receiver = Receiver::start(&home, &["--jwks", &keys, "--audience", &audience, "-ojsonl"]);
    let changed = body.replacen("task", "tusk", 1);
    assert_ne!(changed, body);
    assert_eq!(request("POST", &receiver.url, &header, &changed), 401);
    assert_eq!(request("POST", &receiver.url, &header, &body), 200);
    assert_eq!(request("POST", &receiver.url, &header, &body), 401, "the second time");
    assert!(receiver.event()["task_id"].is_string());
    assert_eq!(receiver.stop(), (String::new(), Some(0)));
}

/// Webhook that keeps what it receives.
struct RecordingHook {
    listener: TcpListener,
}

impl RecordingHook {
    fn start() -> Self {
        RecordingHook { listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.listener.local_addr().unwrap())
    }

    /// The header `Authorization` and the body of the first request.
    fn first(&self) -> (String, String) {
        let mut stream = BufReader::new(self.listener.accept().unwrap().0);
        let (mut authorization, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                match line.trim_end() {
                    "" => break,
                    _ => continue,
                }
            };
            match name.to_ascii_lowercase().as_str() {
                "authorization" => value.clone_into(&mut authorization),
                "content-length" => length = value.parse().unwrap(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        stream
            .get_mut()
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .unwrap();
        (authorization, String::from_utf8(body).unwrap())
    }
}

#[test]
fn request_that_is_not_a_verified_notification_is_refused() {
    let home = home_with_token();
    let mut receiver = Receiver::start(&home, &["--token", "@push.token", "-ojsonl"]);
    let event =
        json!({"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_WORKING"}}}).to_string();
    let token = format!("X-A2A-Notification-Token: {TOKEN}\r\n");
    let large = "x".repeat(5 << 20);
    for (method, headers, body, status) in [
        ("POST", "", event.as_str(), 401),
        ("POST", "X-A2A-Notification-Token: other\r\n", &event, 401),
        ("GET", &token, "", 405),
        ("POST", &token, "{", 400),
        ("POST", &token, "{}", 400),
        ("POST", &token, &large, 413),
        ("POST", &token, &event, 200),
    ] {
        assert_eq!(request(method, &receiver.url, headers, body), status, "{method} {headers}");
    }
    let accepted = receiver.event();
    assert_eq!((accepted["task_id"].as_str(), accepted["state"].as_str()), (Some("t"), Some("working")));
    assert_eq!(receiver.stop(), (String::new(), Some(0)));
}

#[test]
fn program_gets_each_event_on_its_input_and_no_shell_sees_it() {
    let (home, agent) = (home_with_token(), agent());
    let script = home.write("on-event", "#!/bin/sh\ncat >> events\n");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let flags = ["--token", "@push.token", "--exec", script.to_str().unwrap(), "$(touch evil)"];
    let mut receiver = Receiver::start(&home, &flags);
    ask(agent.url(), "task $(touch evil) `touch evil` '; touch evil", &receiver.url);
    let events = home.path("events");
    let events = || std::fs::read_to_string(&events).unwrap_or_default();
    eventually("the last event", || events().contains("TASK_STATE_COMPLETED"));
    let parsed: Vec<Value> = events().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(parsed.iter().any(|one| one.to_string().contains("`touch evil`")), "{parsed:?}");
    assert!(parsed.iter().all(|one| one["source"] == "agent" && one["body"].is_object()), "{parsed:?}");
    assert!(!home.path("evil").exists());
    assert_eq!(receiver.stop().1, Some(0));
}

#[test]
fn unusable_program_of_exec_is_refused_at_the_start() {
    let home = home_with_token();
    home.write("text", "");
    for program in ["./missing", "./text", "no-such-program-anywhere"] {
        let words =
            ["agent", "listen", "--listen", "127.0.0.1:0", "--token", "@push.token", "--exec", program];
        let refused = home.call(&words).run().exit(2);
        assert!(refused.stderr().contains("--exec"), "{}", refused.told());
    }
    let script = home.write("on-event", "#!/bin/sh\ncat >> events\n");
    let mode = |mode| std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(mode));
    mode(0o700).unwrap();
    let flags = ["--token", "@push.token", "--exec", script.to_str().unwrap()];
    let mut receiver = Receiver::start(&home, &flags);
    let event =
        json!({"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_WORKING"}}}).to_string();
    let token = format!("X-A2A-Notification-Token: {TOKEN}\r\n");
    std::fs::rename(&script, home.path("away")).unwrap();
    assert_eq!(request("POST", &receiver.url, &token, &event), 200);
    let noted = || receiver.notes.lock().unwrap().contains("cannot run");
    eventually("the note", noted);
    // It goes on when the program is back.
    std::fs::rename(home.path("away"), &script).unwrap();
    assert_eq!(request("POST", &receiver.url, &token, &event), 200);
    eventually("the event", || home.path("events").exists());
    assert_eq!(receiver.stop().1, Some(0));
}

#[test]
fn receiver_that_would_verify_nothing_does_not_start() {
    let home = home_with_token();
    let listen =
        |flags: &[&str]| home.call(&["agent", "listen", "--listen", "127.0.0.1:0"]).args(flags).run();
    assert!(listen(&[]).exit(2).stderr().contains("--token SOURCE or --jwks SOURCE"));
    let typed = listen(&["--token", TOKEN]).exit(2);
    assert!(!typed.stderr().contains(TOKEN), "{}", typed.told());
    listen(&["--no-verify", "-ojson"]).exit(2);
    let everywhere = ["agent", "listen", "--listen", "0.0.0.0:0", "--token", "@push.token"];
    assert!(home.call(&everywhere).run().exit(2).stderr().contains("--behind-proxy"));
}
