//! `http-load ADDRESS TOKENS MODE CLIENTS SECONDS [PID]`: clients of the session service, each a thread with a connection of its own.
//! They share the tokens, which are separated by commas: one for each client is one user for each client.
//! Prints one row: requests (or turns) a second, median and 99th percentile of their latency, and the CPU time of the server's
//! process per request.
//!
//! | mode | what a client repeats |
//! |---|---|
//! | `append` | append a message to a session of its own |
//! | `read` | read the last 20 messages of a session of its own with 100 |
//! | `turn` | begin a turn with the last 10 messages, commit two messages; in a session of its own |
//! | `shared` | the same, all clients in one session; fails if turns are interleaved |
//!
//! It needs only the standard library: `benches/throughput` compiles it with rustc.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const MESSAGE: &str = r#"{"role":"user","content":"what is the weather in the city where it always rains"}"#;

struct Client {
    stream: BufReader<TcpStream>,
    head: String,
    request: Vec<u8>,
    body: Vec<u8>,
}

impl Client {
    fn connect(address: &str, token: &str) -> Self {
        let stream = TcpStream::connect(address).expect("connect");
        stream.set_nodelay(true).expect("nodelay");
        let head = format!(" HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n");
        Client { stream: BufReader::with_capacity(1 << 16, stream), head, request: Vec::new(), body: Vec::new() }
    }

    /// Sends a request and reads the whole answer; its body is in `self.body`.
    fn ask(&mut self, method: &str, path: &str, body: &str) -> u16 {
        self.request.clear();
        write!(self.request, "{method} {path}{}", self.head).expect("memory");
        if !body.is_empty() {
            write!(self.request, "content-type: application/json\r\n").expect("memory");
        }
        write!(self.request, "content-length: {}\r\n\r\n{body}", body.len()).expect("memory");
        self.stream.get_mut().write_all(&self.request).expect("send");
        let (mut line, mut status, mut length) = (String::new(), 0, 0);
        loop {
            line.clear();
            assert!(self.stream.read_line(&mut line).expect("receive") > 0, "the server closed the connection");
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            if status == 0 {
                status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
            } else if let Some((name, value)) = text.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().expect("a length");
            }
        }
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body).expect("receive");
        status
    }

    fn done(&mut self, method: &str, path: &str, body: &str) {
        let status = self.ask(method, path, body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {}", String::from_utf8_lossy(&self.body));
    }

    /// Text or number of a member of the answer.
    fn member(&self, name: &str) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let rest = &text[text.find(&format!("\"{name}\":")).expect(name) + name.len() + 3..];
        let rest = rest.trim_start().trim_start_matches('"');
        rest[..rest.find(['"', ',', '}']).unwrap_or(rest.len())].to_owned()
    }

    fn session(&mut self) -> String {
        self.done("POST", "/v1/sessions", "{}");
        format!("/v1/sessions/{}", self.member("id"))
    }

    fn turn(&mut self, session: &str, name: &str) {
        self.done("POST", &format!("{session}/turns"), r#"{"history":10}"#);
        let commit = format!("{session}/turns/{}/commit", self.member("token"));
        self.done("POST", &commit, &format!("{{\"messages\":[\"{name} 0\",\"{name} 1\"]}}"));
    }
}

/// CPU time that a process has used, in ticks of 10 ms.
fn cpu(pid: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum()
}

/// Turns of a session whose messages do not stand together.
fn interleaved(client: &mut Client, session: &str) -> usize {
    let (mut after, mut texts) = (0, Vec::new());
    loop {
        client.done("GET", &format!("{session}/messages?limit=1000&after={after}"), "");
        let text = String::from_utf8_lossy(&client.body).into_owned();
        let page = text.split("\"body\":\"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned);
        let before = texts.len();
        texts.extend(page);
        after += texts.len() - before;
        if texts.len() == before {
            break;
        }
    }
    let is_whole = |pair: &[String]| {
        pair.len() == 2 && pair[0].strip_suffix(" 0").is_some_and(|turn| pair[1].strip_suffix(" 1") == Some(turn))
    };
    texts.chunks(2).filter(|pair| !is_whole(pair)).count()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, token, mode, clients, seconds, rest @ ..] = &args[..] else {
        eprintln!("http-load: usage: http-load ADDRESS TOKENS append|read|turn|shared CLIENTS SECONDS [PID]");
        return ExitCode::from(2);
    };
    let clients: usize = clients.parse().expect("a number of clients");
    let time = Duration::from_secs_f64(seconds.parse().expect("a number of seconds"));
    let tokens: Vec<&str> = token.split(',').collect();
    let token = tokens[0];
    let shared = Client::connect(address, token).session();
    let (ready, go) = (Barrier::new(clients + 1), Barrier::new(clients + 1));
    let (mut took, used, passed) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|number| {
                let (ready, go, shared) = (&ready, &go, &shared);
                // A session belongs to one user.
                let token = if mode == "shared" { token } else { tokens[number % tokens.len()] };
                scope.spawn(move || {
                    let mut client = Client::connect(address, token);
                    let own = client.session();
                    let messages = format!("{own}/messages");
                    let one = format!("{{\"messages\":[{MESSAGE}]}}");
                    if mode == "read" || mode == "turn" {
                        let count = if mode == "read" { 100 } else { 10 };
                        let many = format!("{{\"messages\":[{}]}}", vec![MESSAGE; count].join(","));
                        client.done("POST", &messages, &many);
                    }
                    let last = format!("{messages}?last=20");
                    ready.wait();
                    go.wait();
                    let (begun, mut took) = (Instant::now(), Vec::new());
                    while begun.elapsed() < time {
                        let since = Instant::now();
                        match mode.as_str() {
                            "append" => client.done("POST", &messages, &one),
                            "read" => client.done("GET", &last, ""),
                            "turn" => client.turn(&own, &format!("{number}-{}", took.len())),
                            _ => client.turn(shared, &format!("{number}-{}", took.len())),
                        }
                        took.push(since.elapsed());
                    }
                    took
                })
            })
            .collect();
        ready.wait();
        let pid = rest.first().map(String::as_str);
        let (before, begun) = (pid.map(cpu), Instant::now());
        go.wait();
        let took: Vec<Duration> = threads.into_iter().flat_map(|thread| thread.join().expect("a client")).collect();
        let passed = begun.elapsed();
        (took, pid.zip(before).map(|(pid, before)| cpu(pid) - before), passed)
    });
    took.sort();
    let count = took.len();
    let millis = |at: usize| took[at.min(count - 1)].as_secs_f64() * 1e3;
    let rate = count as f64 / passed.as_secs_f64();
    let cpu = used.map_or("-".to_owned(), |used| format!("{:.0}", used as f64 * 10_000.0 / count as f64));
    print!("| {mode} | {clients} | {rate:.0} | {:.2} | {:.2} | {cpu} |", millis(count / 2), millis(count * 99 / 100));
    if mode == "shared" {
        let wrong = interleaved(&mut Client::connect(address, token), &shared);
        print!(" {wrong} interleaved");
        if wrong > 0 {
            println!();
            return ExitCode::FAILURE;
        }
    }
    println!();
    ExitCode::SUCCESS
}
