//! The session service as it is run: `sessile user`, and `sessile serve` as processes, used over HTTP by plain clients.

mod agents;
mod backup;
mod campaign;
mod faults;
mod invariants;
mod login;
mod remote;
mod serve;
mod syncs;
mod two_processes;
mod users;
mod wire;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::{Call, Home};

/// A store of the service, as the flags name it.
#[derive(Clone)]
struct Store<'a> {
    home: &'a Home,
    flags: Vec<String>,
}

impl<'a> Store<'a> {
    /// A file.
    fn file(home: &'a Home) -> Self {
        let path = home.path("service.db").display().to_string();
        Store { home, flags: vec!["--store".to_owned(), path] }
    }

    /// A database, whose password is in a file.
    fn postgres(home: &'a Home, url: &str) -> Self {
        let (start, host) = url.split_once('@').unwrap();
        let (user, password) = start.rsplit_once(':').unwrap();
        let file = home.write("password", format!("{password}\n")).display().to_string();
        let flags =
            ["--store".to_owned(), format!("{user}@{host}"), "--store-password-file".to_owned(), file];
        Store { home, flags: flags.to_vec() }
    }

    fn call(&self, words: &[&str]) -> Call {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.home.call(words).args(&flags)
    }

    /// A new token for a user, who is added.
    fn user(&self, name: &str) -> String {
        self.call(&["user", "add", name]).ok();
        self.call(&["user", "token", "create", name]).ok().stdout().trim().to_owned()
    }
}

/// `sessile serve`, until it is dropped.
struct Service {
    child: Child,
    address: SocketAddr,
    _stdout: BufReader<ChildStdout>,
}

impl Service {
    /// Starts it on a store, and waits until it serves.
    #[track_caller]
    fn start(store: &Store<'_>) -> Self {
        Service::start_with(store, &[])
    }

    /// The same, with more flags.
    #[track_caller]
    fn start_with(store: &Store<'_>, flags: &[&str]) -> Self {
        let call = store.call(&["serve", "--listen", "127.0.0.1:0", "--log", "off", "--rate", "1000000"]);
        Service::spawn(call.args(flags).command())
    }

    /// The same, with its syncs of files in a log of strace.
    #[track_caller]
    fn start_with_sync_log(store: &Store<'_>, log: &Path) -> Self {
        let call = store.call(&["serve", "--listen", "127.0.0.1:0", "--log", "off", "--rate", "1000000"]);
        let serve = call.command();
        let mut traced = Command::new("strace");
        // With -D the service is the child of this process, and strace its grandchild.
        traced
            .args(["-D", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"])
            .arg(log)
            .arg(serve.get_program());
        traced.args(serve.get_args()).env_clear();
        traced.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Service::spawn(traced)
    }

    #[track_caller]
    fn spawn(mut serve: Command) -> Self {
        let mut child = serve.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line
            .strip_prefix("serving on http://")
            .and_then(|rest| rest.split_whitespace().next())
            .map(str::parse);
        let Some(Ok(address)) = address else { panic!("unexpected start line {line:?}") };
        Service { child, address, _stdout: stdout }
    }

    /// A client with a token.
    fn client(&self, token: &str) -> Client {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        Client { agent, base: format!("http://{}", self.address), token: token.to_owned() }
    }

    fn tell(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end, which must come.
    #[track_caller]
    fn ended(mut self) -> ExitStatus {
        let mut status = None;
        crate::eventually("the end of the service", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// As a crash ends it.
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One who asks, with a token.
#[derive(Clone)]
struct Client {
    agent: ureq::Agent,
    base: String,
    token: String,
}

impl Client {
    /// Asks; the status, and what was answered.
    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        let request = request.header("authorization", format!("Bearer {}", self.token));
        let answer = match body {
            Some(body) => {
                let request = request.header("content-type", "application/json").body(body.to_string());
                self.agent.run(request.unwrap())
            }
            None => self.agent.run(request.body(()).unwrap()),
        };
        let mut answer = answer.unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null))
    }

    /// Asks for what must be done.
    #[track_caller]
    fn ok(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.send(method, path, Some(body));
        assert!((200..300).contains(&status), "{method} {path}: {status} {answer}");
        answer
    }

    /// Asks for what must be there.
    #[track_caller]
    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.send("GET", path, None);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// The path of a new session.
    #[track_caller]
    fn session(&self) -> String {
        let session = self.ok("POST", "/v1/sessions", &json!({}));
        format!("/v1/sessions/{}", session["id"].as_str().unwrap())
    }

    /// What a session says.
    #[track_caller]
    fn texts(&self, session: &str) -> Vec<String> {
        let page = self.get(&format!("{session}/messages?limit=1000"));
        let messages = page["messages"].as_array().unwrap();
        messages.iter().map(|message| message["body"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// Long enough for what is to happen meanwhile to happen.
fn a_moment() {
    std::thread::sleep(Duration::from_millis(300));
}
