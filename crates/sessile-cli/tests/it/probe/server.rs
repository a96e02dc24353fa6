//! A small HTTP server that answers as a test says.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedMessage {
    /// Method and path.
    pub(crate) line: String,
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

/// What each session has said.
pub(crate) type Sessions = Mutex<HashMap<String, Vec<String>>>;

type Answer = dyn Fn(&ReceivedMessage, &Sessions) -> (u16, String) + Send + Sync;

pub(crate) struct Server {
    url: String,
    heard: Arc<Mutex<Vec<ReceivedMessage>>>,
}

impl ReceivedMessage {
    pub(crate) fn session(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        body["session"].as_str().unwrap().to_owned()
    }

    /// The code words that are told in it.
    pub(crate) fn words(&self) -> Vec<String> {
        let told = self.body.split("code word number ").skip(1);
        let word = |rest: &str| rest.split(" is ").nth(1)?.split('.').next().map(str::to_owned);
        told.filter_map(word).collect()
    }

    /// The one that is.
    pub(crate) fn word(&self) -> Option<String> {
        self.words().into_iter().next()
    }
}

impl Server {
    /// A thread for each connection; it goes with the test.
    pub(crate) fn start(
        answer: impl Fn(&ReceivedMessage, &Sessions) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (heard, sessions): (Arc<Mutex<Vec<ReceivedMessage>>>, Arc<Sessions>) = Default::default();
        let (answer, kept): (Arc<Answer>, _) = (Arc::new(answer), Arc::clone(&heard));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, heard, sessions) =
                    (Arc::clone(&answer), Arc::clone(&kept), Arc::clone(&sessions));
                std::thread::spawn(move || serve(stream.unwrap(), &*answer, &heard, &sessions));
            }
        });
        Server { url, heard }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// All requests so far.
    pub(crate) fn heard(&self) -> Vec<ReceivedMessage> {
        self.heard.lock().unwrap().clone()
    }
}

fn serve(
    stream: TcpStream,
    answer: &Answer,
    heard: &Mutex<Vec<ReceivedMessage>>,
    sessions: &Sessions,
) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length =
        head.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let line = head.remove(0);
    let line = line.rsplit_once(' ').map_or(line.clone(), |(line, _)| line.to_owned());
    let asked = ReceivedMessage { line, headers: head, body: String::from_utf8(body).unwrap() };
    heard.lock().unwrap().push(asked.clone());
    let (status, body) = answer(&asked, sessions);
    let length = body.len();
    let head = format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let mut stream = stream;
    stream.write_all(format!("{head}{body}").as_bytes()).ok()
}
