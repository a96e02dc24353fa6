//! A chat endpoint that does as it is told, for the tests of replies.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What it does next. It says all that it was told, joined by bars.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mood {
    /// How long it thinks.
    pub(crate) think: Duration,
    /// A status instead of a reply, and what it says then.
    pub(crate) refuse: Option<(u16, String)>,
    /// How long it rests between two tokens.
    pub(crate) rest: Duration,
    /// After how many tokens, or bytes of a whole answer, it hangs up.
    pub(crate) break_off: Option<usize>,
    /// What it says instead.
    pub(crate) say: Option<String>,
    /// Whether it keeps connections open after a reply.
    pub(crate) keep_alive: bool,
    /// Whether it closes such a connection when the next request arrives.
    pub(crate) drop_second: bool,
}

/// Such an endpoint; it ends with the test's process.
#[derive(Clone)]
pub(crate) struct ScriptedUpstream {
    pub(crate) address: SocketAddr,
    mood: Arc<Mutex<Mood>>,
    asked: Arc<Mutex<Vec<Value>>>,
    connections: Arc<AtomicUsize>,
}

impl ScriptedUpstream {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let scripted = ScriptedUpstream {
            address,
            mood: Arc::default(),
            asked: Arc::default(),
            connections: Arc::default(),
        };
        let served = scripted.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = served.clone();
                served.connections.fetch_add(1, Ordering::SeqCst);
                // Who goes away in the middle is not its business.
                std::thread::spawn(move || served.serve_all(&stream).ok());
            }
        });
        scripted
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn mood(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }

    /// Number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn until_asked(&self, times: usize) {
        let began = Instant::now();
        while self.asked().len() < times {
            assert!(began.elapsed() < Duration::from_secs(10), "never asked {times} times");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn serve_all(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        loop {
            self.serve(&mut reader, stream)?;
            let mood = self.mood.lock().unwrap().clone();
            if !mood.keep_alive {
                return Ok(());
            }
            if mood.drop_second {
                return reader.read_exact(&mut [0]);
            }
        }
    }

    fn serve(&self, reader: &mut BufReader<&TcpStream>, mut stream: &TcpStream) -> std::io::Result<()> {
        let (mut length, mut key, mut line) = (0, String::new(), String::new());
        reader.read_line(&mut line)?;
        assert_eq!(line, "POST /v1/chat/completions HTTP/1.1\r\n");
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().unwrap();
                }
                Some((name, value)) if name.eq_ignore_ascii_case("authorization") => key = value.to_owned(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let mut asked: Value = serde_json::from_slice(&body).unwrap();
        asked["key"] = json!(key);
        let mood = self.mood.lock().unwrap().clone();
        self.asked.lock().unwrap().push(asked.clone());
        std::thread::sleep(mood.think);
        if let Some((status, text)) = &mood.refuse {
            let length = text.len();
            let location = "location: http://127.0.0.1:1/elsewhere\r\n";
            return write!(
                stream,
                "HTTP/1.1 {status} No\r\n{location}content-length: {length}\r\n\r\n{text}"
            );
        }
        let contents =
            asked["messages"].as_array().unwrap().iter().map(|one| one["content"].as_str().unwrap());
        let reply = mood.say.clone().unwrap_or_else(|| contents.collect::<Vec<_>>().join("|"));
        if asked["stream"] == true {
            return stream_tokens(stream, &mood, &reply);
        }
        let body =
            json!({ "choices": [{ "message": { "role": "assistant", "content": reply } }] }).to_string();
        let sent = mood.break_off.unwrap_or(body.len());
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", body.len(), &body[..sent])
    }
}

fn stream_tokens(mut stream: &TcpStream, mood: &Mood, reply: &str) -> std::io::Result<()> {
    let framing = if mood.keep_alive { "transfer-encoding: chunked" } else { "connection: close" };
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{framing}\r\n\r\n")?;
    let mut send = |event: String| match mood.keep_alive {
        true => write!(stream, "{:x}\r\n{event}\r\n", event.len()),
        false => write!(stream, "{event}"),
    };
    let tokens: Vec<&str> = reply.split_inclusive('|').collect();
    for (at, token) in tokens.iter().enumerate() {
        if mood.break_off == Some(at) {
            return Ok(());
        }
        let event = json!({ "choices": [{ "delta": { "content": token }, "finish_reason": null }] });
        send(format!("data: {event}\n\n"))?;
        std::thread::sleep(mood.rest);
    }
    send("data: [DONE]\n\n".to_owned())?;
    if mood.keep_alive { write!(stream, "0\r\n\r\n") } else { Ok(()) }
}
