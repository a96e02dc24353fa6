//! A client that speaks JSON-RPC on the pipes of a server, without any SDK.

use std::collections::{HashMap, HashSet};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tempfile::NamedTempFile;

use super::message::{self, McpMessageKind};
use crate::Call;

/// Timeout of the server; a debug build beside other tests is slow.
const PATIENCE: Duration = Duration::from_secs(30);

/// Limit of questions per call.
const ROUNDS: usize = 10;

/// Answers what the server asks: the method and its params; a result, or a JSON-RPC error.
type Handler = Box<dyn FnMut(&str, &Value) -> Result<Value, Value>>;

/// A client of a server that it has started. It waits a limited time for everything, and panics with the server's standard
/// error. Each line that the server writes must be one message, and each answer one to what was asked.
///
/// Requests of the server are answered while something is waited for. For revisions up to 2025-11-25 a connection begins
/// with [`initialize`](Self::initialize), for later ones with [`discover`](Self::discover), or with nothing but
/// [`speak`](Self::speak).
///
/// ```no_run
/// # use serde_json::json;
/// # let home = testkit::Home::new("program");
/// # use testkit::McpClient;
/// let mut client = McpClient::start(home.call(&["mcp"]));
/// client.on_elicitation(|_| json!({"action": "accept", "content": {"confirm": true}}));
/// client.initialize("2025-11-25");
/// let slow = client.call_async("slow", json!({}));
/// let quick = client.call("quick", json!({}));
/// assert_eq!(quick["isError"], false);
/// client.notify("notifications/cancelled", json!({"requestId": slow}));
/// assert!(client.close().success());
/// ```
pub struct McpClient {
    child: Child,
    /// Writing is left to a thread, so that a server that does not read cannot hold up a test.
    stdin: Option<Sender<Vec<u8>>>,
    lines: Receiver<Vec<u8>>,
    /// Nothing more comes from it.
    ended: bool,
    stderr: NamedTempFile,
    patience: Duration,
    handler: Option<Handler>,
    capabilities: Value,
    /// Envelope of every request since revision 2026-07-28.
    envelope: Map<String, Value>,
    last_id: u64,
    open: HashSet<u64>,
    answers: HashMap<u64, Result<Value, Value>>,
    /// Something was sent of which it is not known what it is answered by.
    raw: bool,
    strays: Vec<Value>,
    notifications: Vec<Value>,
    asked: Vec<Value>,
}

impl McpClient {
    /// Starts the server: the call, with pipes.
    #[track_caller]
    pub fn start(call: Call) -> Self {
        // A file and not a pipe: a server that complains a lot must not block on a full pipe.
        let stderr = NamedTempFile::new().expect("a file");
        let complaints = OpenOptions::new().append(true).open(stderr.path()).expect("the same file");
        let mut command: Command = call.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(complaints);
        let mut child = command.spawn().expect("the server starts");
        let mut input = child.stdin.take().expect("its input");
        let output = child.stdout.take().expect("its output");
        let (stdin, to_write) = mpsc::channel::<Vec<u8>>();
        thread::spawn(move || {
            // One that has ended is noticed by whoever waits for an answer.
            while to_write.recv().is_ok_and(|bytes| input.write_all(&bytes).is_ok()) {}
        });
        let (read, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|count| count > 0)
                && read.send(std::mem::take(&mut line)).is_ok()
            {}
        });
        McpClient {
            child,
            stdin: Some(stdin),
            lines,
            ended: false,
            stderr,
            patience: PATIENCE,
            handler: None,
            capabilities: json!({}),
            envelope: Map::new(),
            last_id: 0,
            open: HashSet::new(),
            answers: HashMap::new(),
            raw: false,
            strays: Vec::new(),
            notifications: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// With another time limit for each answer.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Declares these capabilities; before the connection begins.
    pub fn capabilities(&mut self, capabilities: Value) {
        self.capabilities = capabilities;
    }

    /// Answers each request of the server by a result or a JSON-RPC error. Without this they are not supported, but for
    /// `ping`.
    pub fn on_request(&mut self, handler: impl FnMut(&str, &Value) -> Result<Value, Value> + 'static) {
        self.handler = Some(Box::new(handler));
    }

    /// Declares that the user can be asked, and answers as the user: from the params to
    /// `{"action": "accept", "content": ..}`, `{"action": "decline"}` or `{"action": "cancel"}`. Before the connection
    /// begins.
    pub fn on_elicitation(&mut self, mut answer: impl FnMut(&Value) -> Value + 'static) {
        self.capabilities["elicitation"] = json!({"form": {}});
        self.on_request(move |method, params| match method {
            "elicitation/create" => Ok(answer(params)),
            _ => Err(unsupported(method)),
        });
    }

    /// Shakes hands for a revision up to 2025-11-25. The server's answer; which revision it is, it says.
    #[track_caller]
    pub fn initialize(&mut self, version: &str) -> Value {
        let params = json!({
            "protocolVersion": version, "capabilities": self.capabilities, "clientInfo": client_info(),
        });
        let result = self.request("initialize", params);
        self.notify("notifications/initialized", json!({}));
        result
    }

    /// Asks for the server's revisions and capabilities, as since 2026-07-28, and speaks that revision from now on.
    #[track_caller]
    pub fn discover(&mut self, version: &str) -> Value {
        self.speak(version);
        self.request("server/discover", json!({}))
    }

    /// Speaks a revision since 2026-07-28, which is named in each request, without asking for it.
    pub fn speak(&mut self, version: &str) {
        let meta = |name: &str, value: Value| (format!("io.modelcontextprotocol/{name}"), value);
        self.envelope = Map::from_iter([
            meta("protocolVersion", json!(version)),
            meta("clientInfo", client_info()),
            meta("clientCapabilities", self.capabilities.clone()),
        ]);
    }

    /// Asks, and waits for the result.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        match self.try_request(method, params) {
            Ok(result) => result,
            Err(error) => self.give_up(&format!("{method} failed: {error}")),
        }
    }

    /// Asks, and waits for the result or the JSON-RPC error.
    #[track_caller]
    pub fn try_request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.request_async(method, params);
        self.answer(id)
    }

    /// Asks, and does not wait: the id, for [`answer`](Self::answer).
    pub fn request_async(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        for (name, value) in &self.envelope {
            params["_meta"][name] = value.clone();
        }
        self.open.insert(id);
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the answer to what was asked under this id, whatever else comes before it.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let until = Instant::now() + self.patience;
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return answer;
            }
            assert!(self.open.contains(&id), "request {id} was never sent, or its response was read");
            let left = until.saturating_duration_since(Instant::now());
            if self.read_message(left).is_none() {
                self.give_up(&format!("the server's output ended without an answer to request {id}"));
            }
        }
    }

    /// Calls a tool and waits for its result, which may be one with `isError`. What the call needs to be told in between,
    /// as since revision 2026-07-28, it is told as the server's requests are answered.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        match self.try_call(tool, arguments) {
            Ok(result) => result,
            Err(error) => self.give_up(&format!("the call of {tool} failed: {error}")),
        }
    }

    /// Calls a tool as [`call`](Self::call) does: the result, or the JSON-RPC error.
    #[track_caller]
    pub fn try_call(&mut self, tool: &str, arguments: Value) -> Result<Value, Value> {
        let mut params = call_params(tool, arguments);
        for _ in 0..ROUNDS {
            let id = self.send_call(params.clone());
            let result = self.answer(id)?;
            if result["resultType"] != "input_required" {
                return Ok(result);
            }
            let mut responses = Map::new();
            for (key, request) in result["inputRequests"].as_object().into_iter().flatten() {
                responses.insert(key.clone(), self.handle(request)?);
            }
            params["inputResponses"] = Value::Object(responses);
            // Opaque to the client, and returned as it came.
            if let Some(state) = result.get("requestState") {
                params["requestState"] = state.clone();
            }
        }
        self.give_up(&format!("{tool} still asks after {ROUNDS} rounds"))
    }

    /// Calls a tool and does not wait: the id, for [`answer`](Self::answer) and [`progress`](Self::progress).
    pub fn call_async(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send_call(call_params(tool, arguments))
    }

    fn send_call(&mut self, mut params: Value) -> u64 {
        // Whoever calls wants to know how far it is, under the id that the request will have.
        params["_meta"]["progressToken"] = json!(self.last_id + 1);
        self.request_async("tools/call", params)
    }

    /// All tools, page after page.
    #[track_caller]
    pub fn tools(&mut self) -> Vec<Value> {
        let mut tools = Vec::new();
        let mut params = json!({});
        loop {
            let mut page = self.request("tools/list", params);
            tools.append(page["tools"].as_array_mut().expect("a list of tools"));
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return tools,
            }
        }
    }

    /// Tells the server something that is not answered.
    pub fn notify(&mut self, method: &str, params: Value) {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        message["params"] = params;
        self.write(&message);
    }

    /// Writes these bytes as they are; a message needs its line feed. What comes back is read by
    /// [`read_message`](Self::read_message).
    pub fn send_raw(&mut self, bytes: impl Into<Vec<u8>>) {
        self.raw = true;
        self.send(bytes.into());
    }

    fn write(&mut self, message: &Value) {
        self.send(format!("{message}\n").into_bytes());
    }

    fn send(&mut self, bytes: Vec<u8>) {
        // A writer that is gone has met a server that is.
        let _ = self.stdin.as_ref().expect("an input that is not closed yet").send(bytes);
    }

    /// The next message, of whichever kind, or `None` at the end of the server's output. A request has been answered
    /// already.
    #[track_caller]
    pub fn read_message(&mut self, limit: Duration) -> Option<Value> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => Some(self.take(&line)),
            Err(RecvTimeoutError::Disconnected) => {
                self.ended = true;
                None
            }
            Err(RecvTimeoutError::Timeout) => self.give_up("the server said nothing more in time"),
        }
    }

    /// Waits, and fails if the server says anything meanwhile.
    #[track_caller]
    pub fn silent_for(&mut self, time: Duration) {
        if let Ok(line) = self.lines.recv_timeout(time) {
            self.give_up(&format!("the server said {}", String::from_utf8_lossy(&line)));
        }
    }

    #[track_caller]
    fn take(&mut self, line: &[u8]) -> Value {
        let (kind, message) = match message::parse(line) {
            // A last line without its end means that the server was cut off while writing.
            _ if line.last() != Some(&b'\n') => self.give_up(&format!(
                "the server's output ended within a line: {}",
                String::from_utf8_lossy(line)
            )),
            Ok(parsed) => parsed,
            Err(why) => self.give_up(&format!(
                "the server wrote what is no message: {why}: {}",
                String::from_utf8_lossy(line)
            )),
        };
        match kind {
            McpMessageKind::Notification => self.notifications.push(message.clone()),
            McpMessageKind::Request => {
                let answer = match self.handle(&message) {
                    Ok(result) => json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
                    Err(error) => json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
                };
                if self.stdin.is_some() {
                    self.write(&answer);
                }
            }
            McpMessageKind::Answer => match message["id"].as_u64().filter(|id| self.open.remove(id)) {
                Some(id) => {
                    let answer = message.get("result").cloned().ok_or_else(|| message["error"].clone());
                    self.answers.insert(id, answer);
                }
                // Only the test knows what its raw bytes are answered by.
                None if self.raw => self.strays.push(message.clone()),
                None => self.give_up(&format!("the server answered what was not asked: {message}")),
            },
        }
        message
    }

    fn handle(&mut self, request: &Value) -> Result<Value, Value> {
        self.asked.push(request.clone());
        let method = request["method"].as_str().unwrap_or_default();
        match &mut self.handler {
            _ if method == "ping" => Ok(json!({})),
            Some(handler) => handler(method, &request["params"]),
            None => Err(unsupported(method)),
        }
    }

    /// The notifications that have come so far.
    pub fn notifications(&self) -> &[Value] {
        &self.notifications
    }

    /// The params of the progress that has come so far for this call.
    pub fn progress(&self, id: u64) -> Vec<&Value> {
        let progress = self.notifications.iter().filter(|told| told["method"] == "notifications/progress");
        progress.map(|told| &told["params"]).filter(|params| params["progressToken"] == id).collect()
    }

    /// The requests of the server that have come so far.
    pub fn asked(&self) -> &[Value] {
        &self.asked
    }

    /// Answers to what was sent raw, which have come while something else was waited for.
    pub fn strays(&self) -> &[Value] {
        &self.strays
    }

    /// Standard error of the server so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.stderr.path()).unwrap_or_default()).into_owned()
    }

    /// The id of the server's process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the server's input and waits for its end: how it ended. What it still said has been taken in.
    #[track_caller]
    pub fn close(&mut self) -> ExitStatus {
        self.stdin = None;
        self.wait()
    }

    /// Waits for the server to end by itself.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + self.patience;
        // A child of its that still holds the output could write into it, so this waits for those too.
        while self.read_message(until.saturating_duration_since(Instant::now())).is_some() {}
        loop {
            if let Some(status) = self.child.try_wait().expect("the server's state") {
                return status;
            }
            if Instant::now() > until {
                self.give_up("the server did not end in time");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    #[track_caller]
    fn give_up(&mut self, why: &str) -> ! {
        // One whose output has ended will soon have a status to tell.
        let until = Instant::now() + Duration::from_secs(if self.ended { 2 } else { 0 });
        let state = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break format!("ended, {status}"),
                _ if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
                _ => break "still runs".to_owned(),
            }
        };
        panic!("{why}\n--- the server {state}; its standard error:\n{}", self.stderr())
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        self.kill();
    }
}

fn call_params(tool: &str, arguments: Value) -> Value {
    Value::Object(Map::from_iter([("name".to_owned(), json!(tool)), ("arguments".to_owned(), arguments)]))
}

fn client_info() -> Value {
    json!({"name": "testkit", "version": "1"})
}

fn unsupported(method: &str) -> Value {
    json!({"code": -32601, "message": format!("{method} is not supported")})
}
