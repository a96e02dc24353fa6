//! The client of the official SDK for Python.

use serde_json::{Value, json};

use super::{McpServer, fetched};
use crate::CallResult;

/// Timeout of one answer, in seconds; less than that of a program's call.
const SECONDS: u32 = 60;

/// Revision of the protocol that a client offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// What a new client does: asks by `server/discover`, and shakes hands if the server does not know that.
    Auto,
    /// What clients did before: shakes hands by `initialize`, and offers this revision, `2024-11-05` to `2025-11-25`.
    Handshake(&'static str),
    /// Speaks 2026-07-28 and asks nothing first, so the report has neither `serverInfo` nor `capabilities`.
    Modern,
}

impl Revision {
    /// All that the SDK can speak.
    pub const ALL: [Revision; 6] = [
        Revision::Auto,
        Revision::Modern,
        Revision::Handshake("2025-11-25"),
        Revision::Handshake("2025-06-18"),
        Revision::Handshake("2025-03-26"),
        Revision::Handshake("2024-11-05"),
    ];
}

/// The official client, with which a list of calls is gone through. It checks that the tools' schemas are schemas, and that
/// structured content is as the tools' output schemas say.
///
/// ```no_run
/// # use serde_json::json;
/// # use testkit::{PythonMcpClient, Revision};
/// # let home = testkit::Home::new("program");
/// let report = PythonMcpClient::new(Revision::Handshake("2025-06-18"))
///     .answer(json!({"action": "accept", "content": {"confirm": true}}))
///     .run(&home.call(&["mcp"]), &[("status", json!({}))]);
/// assert_eq!(report["protocolVersion"], "2025-06-18");
/// assert_eq!(report["results"][0]["isError"], false);
/// ```
#[must_use]
pub struct PythonMcpClient {
    revision: Revision,
    answers: Vec<Value>,
    explore: Option<Value>,
}

impl PythonMcpClient {
    /// Client without a person to ask.
    pub fn new(revision: Revision) -> Self {
        PythonMcpClient { revision, answers: Vec::new(), explore: None }
    }

    /// With a user who answers so when asked: `{"action": "accept", "content": ..}`, `{"action": "decline"}` or
    /// `{"action": "cancel"}`. Said repeatedly, it is the answer to one question after the other; the last one stays.
    pub fn answer(mut self, answer: Value) -> Self {
        self.answers.push(answer);
        self
    }

    /// Lists and reads the resources, gets a `prompt` with `arguments`, completes its context, and follows the resource `uri`
    /// while `tool` with `tool_arguments` changes it; the report has it as `explored`.
    pub fn explore(mut self, explore: Value) -> Self {
        self.explore = Some(explore);
        self
    }

    /// Starts the server, or connects to it, lists its tools, calls these and ends it. The report has `protocolVersion`, `serverInfo`,
    /// `capabilities`, `instructions`, `tools`, `results` (of each call its result, or `{"error": ..}` with the JSON-RPC
    /// error), `progress` (each with the number of its `call`), and `elicitations` (the params of each).
    #[track_caller]
    pub fn run(self, server: &impl McpServer, calls: &[(&str, Value)]) -> Value {
        self.try_run(server, calls).exit(0).json()
    }

    /// The same, if it may fail; the reason is on standard error, after what the server wrote there.
    #[track_caller]
    pub fn try_run(self, server: &impl McpServer, calls: &[(&str, Value)]) -> CallResult {
        let calls = calls.iter().map(|(tool, arguments)| json!({"tool": tool, "arguments": arguments}));
        let revision = match self.revision {
            Revision::Auto => "auto",
            Revision::Modern => "2026-07-28",
            Revision::Handshake(version) => version,
        };
        let mut given = json!({
            "revision": revision,
            "calls": calls.collect::<Vec<_>>(),
            "answers": self.answers,
            "seconds": SECONDS,
        });
        if let Some(explore) = self.explore {
            given["explore"] = explore;
        }
        let call = server.call();
        if let Some((url, token)) = server.address() {
            (given["url"], given["token"]) = (json!(url), json!(token));
        } else {
            let words = call.words();
            (given["command"], given["args"]) = (json!(words[0]), json!(words[1..]));
            (given["env"], given["cwd"]) = (json!(call.variables()), json!(call.directory()));
        }
        // -I: neither variables nor the working directory change what is imported.
        call.replaced(&fetched("mcp/bin/python"), &["-I", "-B", "-c", include_str!("client.py")])
            // Through standard input, because tokens are among it.
            .stdin(given.to_string())
            .run()
    }
}
