//! The service over HTTP: a real server on this machine for each test, and plain clients.

mod access;
mod agents;
mod events;
mod history;
mod hostile;
mod login;
mod mcp;
mod messages;
mod names;
mod openapi;
mod readiness;
mod reconnects;
mod replies;
mod request_heads;
mod round_trip;
mod schemathesis;
mod sessions;
mod shutdown;
mod state;
mod throughput;
mod tls;
mod token_guessing;
mod turns;
mod upstream;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use sessile_server::account::TokenScope;
use sessile_server::limits::Limits;
use sessile_server::serve::{Log, Options, Server};
use sessile_server::store::ServiceStore;
use sessile_server::users;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// A running server. It ends with the value.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) db: ServiceStore,
    runtime: Runtime,
    stop: Option<oneshot::Sender<()>>,
    ended: Option<tokio::task::JoinHandle<()>>,
    log: LogBuffer,
    dir: tempfile::TempDir,
}

/// What was logged.
#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A server with the usual limits.
pub(crate) fn server() -> TestServer {
    with(|_| {})
}

/// A server with other limits.
pub(crate) fn with(limit: impl FnOnce(&mut Limits)) -> TestServer {
    let mut options = Options::default();
    limit(&mut options.limits);
    started(options)
}

pub(crate) fn started(options: Options) -> TestServer {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let log = LogBuffer::default();
    let to = Box::new(log.clone());
    let options = Options { listen: "127.0.0.1:0".parse().unwrap(), log: Log::Json, ..options };
    let path = dir.path().join("service.db");
    let (db, server) = runtime.block_on(async move {
        let db = ServiceStore::sqlite(&path).await.unwrap();
        (db.clone(), Server::bind(db, options, to).await.unwrap())
    });
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = runtime.spawn(server.serve(async move {
        let _ = stopped.await;
    }));
    TestServer { address, db, runtime, stop: Some(stop), ended: Some(ended), log, dir }
}

impl TestServer {
    /// So many users, with a session each.
    pub(crate) fn users(&self, count: usize) -> Vec<(Client, String)> {
        let user = |number| {
            let user = self.user(&format!("u{number}"));
            let session = user.session();
            (user, session)
        };
        (0..count).map(user).collect()
    }

    /// A user who may read and write.
    pub(crate) fn user(&self, name: &str) -> Client {
        self.runtime.block_on(users::add(&self.db, name)).unwrap();
        self.token(name, &[TokenScope::Read, TokenScope::Write], None).0
    }

    /// A client with a new token of a user, and the token's id.
    pub(crate) fn token(
        &self,
        name: &str,
        scopes: &[TokenScope],
        expires_ms: Option<i64>,
    ) -> (Client, String) {
        let user = name.parse().unwrap();
        let new = self.runtime.block_on(users::create_token(&self.db, &user, scopes, expires_ms)).unwrap();
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let secret = Some(new.secret.expose().to_owned());
        (Client { base: format!("http://{}", self.address), secret, agent }, new.token.id.into())
    }

    /// Somebody without a token.
    pub(crate) fn nobody(&self) -> Client {
        Client::anonymous(format!("http://{}", self.address))
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Tells the server to end.
    pub(crate) fn send_sigterm(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    /// Until it has ended.
    pub(crate) fn ended(&mut self) {
        let ended = self.ended.take().unwrap();
        self.runtime
            .block_on(async { tokio::time::timeout(Duration::from_secs(20), ended).await })
            .unwrap()
            .unwrap();
    }

    /// What was logged so far, line by line.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = String::from_utf8(self.log.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Another server on the same store, as in another process; and the client, as it asks there.
    pub(crate) fn twin(&self, client: &Client) -> Client {
        let path = self.dir.path().join("service.db");
        let options = Options { listen: "127.0.0.1:0".parse().unwrap(), log: Log::Off, ..Options::default() };
        let address = self.runtime.block_on(async {
            let db = ServiceStore::sqlite(&path).await.unwrap();
            let server = Server::bind(db, options, Box::new(std::io::sink())).await.unwrap();
            let address = server.address();
            tokio::spawn(server.serve(std::future::pending()));
            address
        });
        Client { base: format!("http://{address}"), ..client.clone() }
    }

    pub(crate) fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    /// Sends bytes as they are, and reads what is answered until the connection is closed.
    pub(crate) fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }
}

/// One who asks.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) base: String,
    pub(crate) secret: Option<String>,
    agent: ureq::Agent,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// That it was done.
    #[track_caller]
    pub(crate) fn ok(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// That it was refused, well.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!((problem["code"].as_str(), problem["status"].as_u64()), (Some(code), Some(status.into())));
        for member in ["type", "title", "detail"] {
            assert!(problem[member].is_string(), "{self:?}");
        }
        assert!(problem["retryable"].is_boolean() && problem.get("retry_after_ms").is_some(), "{self:?}");
        for internal in ["SELECT", "INSERT", "sqlite", "service.db", "/tmp", ".rs:"] {
            assert!(!self.text.contains(internal), "{self:?}");
        }
    }
}

impl Client {
    /// A client without a token.
    pub(crate) fn anonymous(base: String) -> Self {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        Client { base, secret: None, agent }
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> Reply {
        let mut response = self.open(method, path, headers, body);
        let text = response.body_mut().read_to_string().unwrap();
        Reply { status: response.status().as_u16(), headers: response.headers().clone(), text }
    }

    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> ureq::http::Response<ureq::Body> {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(secret) = &self.secret {
            request = request.header("authorization", format!("Bearer {secret}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match body {
            Some(body) => {
                let request =
                    request.header("content-type", "application/json").body(body.to_owned()).unwrap();
                self.agent.run(request).unwrap()
            }
            None => self.agent.run(request.body(()).unwrap()).unwrap(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, &[], Some(&body.to_string()))
    }

    pub(crate) fn delete(&self, path: &str) -> Reply {
        self.send("DELETE", path, &[], None)
    }

    /// A new session; its path.
    pub(crate) fn session(&self) -> String {
        let session = self.post("/v1/sessions", &json!({})).ok(201);
        format!("/v1/sessions/{}", session["id"].as_str().unwrap())
    }

    /// Takes the turn; its token.
    pub(crate) fn turn(&self, session: &str) -> i64 {
        let turn = self.post(&format!("{session}/turns"), &json!({})).ok(201);
        turn["token"].as_i64().unwrap()
    }

    pub(crate) fn append(&self, session: &str, texts: &[&str]) -> Value {
        self.post(&format!("{session}/messages"), &json!({ "messages": texts })).ok(201)
    }

    pub(crate) fn texts(&self, session: &str) -> Vec<String> {
        let page = self.get(&format!("{session}/messages?limit=1000")).ok(200);
        let body = |message: &Value| message["body"].as_str().unwrap().to_owned();
        page["messages"].as_array().unwrap().iter().map(body).collect()
    }
}
