//! Agents of the official SDKs and of frameworks: each operation over each binding, in one table with versions. The page in
//! `docs/reference/` is made from it. The frameworks are in the long run.

use std::fmt::Write;

use serde_json::Value;
use testkit::{AgentFramework, FrameworkAgent, Home, JavaScriptAgent, Protocol, PythonAgent};

use crate::{home, repository};

/// Operation with an agent; an error is what went wrong.
type Operation = fn(&Talk<'_>) -> Result<(), String>;

const OPERATIONS: [(&str, Operation); 7] = [
    ("send", |talk| talk.expect(&["message", "send", talk.url, "task done"], "done")),
    ("stream", |talk| {
        let text = talk.run(&["message", "stream", talk.url, "stream 3"])?;
        // Each chunk once, whatever the agent repeats.
        if text == "chunk 1\nchunk 2\nchunk 3\n" { Ok(()) } else { Err(text) }
    }),
    ("multi-turn", |talk| {
        let ask = ["message", "send", talk.url, "ask"];
        let session = ["--session", &talk.session()];
        talk.run(&[&ask[..], &session].concat())?;
        talk.expect(&[&["message", "send", talk.url, "Ann"][..], &session].concat(), "hello Ann")?;
        // An agent whose task waits for the answer also gets it by the task's id.
        let asked = talk.json(&ask)?;
        match (asked["state"].as_str(), asked["task_id"].as_str()) {
            (Some("input-required"), Some(task)) => {
                talk.expect(&["message", "send", talk.url, "Ann", "--task-id", task], "hello Ann")
            }
            _ => Ok(()),
        }
    }),
    ("files to it", |talk| {
        let text = ["message", "send", "--url", talk.url, "--text", "got"];
        let sent = [&text[..], &["--file", "sent.bin", "--data", "{\"a\":1}"]].concat();
        talk.expect(&sent, "sent.bin")
    }),
    ("files from it", |talk| {
        let dir = format!("out-{}", talk.session());
        talk.run(&["message", "send", talk.url, "file", "--save-artifacts", &dir])?;
        let saved =
            std::fs::read(talk.home.path(&dir).join("evil.bin")).map_err(|error| error.to_string())?;
        if saved == b"evil \x00\xff bytes\n" { Ok(()) } else { Err(format!("{saved:?}")) }
    }),
    ("cancel", |talk| {
        let task = talk.task("slow 60000 x")?;
        talk.run(&["task", "cancel", &task, "--url", talk.url])?;
        // Some answer before the task has ended.
        talk.expect(&["task", "get", &task, "--url", talk.url, "--wait"], "canceled")
    }),
    ("resubscribe", |talk| {
        let task = talk.task("slow 1500 late")?;
        talk.expect(&["task", "watch", &task, "--url", talk.url], "late")
    }),
];

/// An agent over one binding.
struct Talk<'a> {
    home: &'a Home,
    url: &'a str,
    binding: &'a str,
}

impl Talk<'_> {
    /// Name of a session for this binding.
    fn session(&self) -> String {
        self.binding.replace('+', "-")
    }

    fn run(&self, args: &[&str]) -> Result<String, String> {
        let done = self.home.call(args).args(&["--transport", self.binding, "--timeout", "60s"]).run();
        if done.status() == Some(0) { Ok(done.stdout()) } else { Err(done.told()) }
    }

    fn expect(&self, args: &[&str], text: &str) -> Result<(), String> {
        let out = self.run(args)?;
        if out.contains(text) { Ok(()) } else { Err(format!("{text:?} is missing from {out:?}")) }
    }

    fn json(&self, args: &[&str]) -> Result<Value, String> {
        let out = self.run(&[args, &["-ojson"]].concat())?;
        serde_json::from_str(&out).map_err(|error| error.to_string())
    }

    /// Id of a task that goes on.
    fn task(&self, text: &str) -> Result<String, String> {
        let sent = self.json(&["message", "send", self.url, text, "--no-wait"])?;
        sent["task_id"].as_str().map(str::to_owned).ok_or(sent.to_string())
    }
}

/// Row of the table.
struct Sdk {
    name: &'static str,
    version: &'static str,
    /// As `scripts/test` installs it.
    pin: &'static str,
    bindings: &'static [&'static str],
    faults: &'static [Fault],
}

/// Operation that an SDK itself gets wrong.
struct Fault {
    operation: &'static str,
    binding: &'static str,
    /// Text of what Sessile prints, or of the difference.
    text: &'static str,
    reason: &'static str,
}

const BOTH: &[&str] = &["JSONRPC", "HTTP+JSON"];
const RPC: &[&str] = &["JSONRPC"];

const PYTHON: Sdk =
    Sdk { name: "a2a-sdk (Python)", version: "1.3.0", pin: "a2a-1:1.3.0", bindings: BOTH, faults: &[] };
const PYTHON_OLD: Sdk =
    Sdk { name: "a2a-sdk (Python)", version: "0.3.26", pin: "a2a-03:0.3.26", bindings: BOTH, faults: &[] };
const JAVASCRIPT: Sdk = Sdk {
    name: "@a2a-js/sdk (JavaScript)",
    version: "1.3.0",
    pin: "a2a-js-1:1.3.0",
    bindings: BOTH,
    faults: &[],
};
const JAVASCRIPT_OLD: Sdk = Sdk {
    name: "@a2a-js/sdk (JavaScript)",
    version: "0.3.14",
    pin: "a2a-js-03:0.3.14",
    bindings: BOTH,
    faults: &[
        Fault {
            operation: "files to it",
            binding: "HTTP+JSON",
            text: "is missing from",
            reason: "It drops the names of files that it gets.",
        },
        Fault {
            operation: "files from it",
            binding: "HTTP+JSON",
            text: "No such file",
            reason: "It drops the names of files that it sends.",
        },
    ],
};
const ADK: Sdk =
    Sdk { name: "google-adk", version: "2.13.0", pin: "google-adk[a2a]==2.13.0", bindings: RPC, faults: &[] };
const STRANDS: Sdk = Sdk {
    name: "strands-agents",
    version: "1.62.0",
    pin: "strands-agents[a2a]==1.62.0",
    bindings: RPC,
    faults: &[
        Fault {
            operation: "files to it",
            binding: "JSONRPC",
            text: "sent 2\\n",
            reason: "Its model gets the file without the ending of its name.",
        },
        Fault {
            operation: "files from it",
            binding: "JSONRPC",
            text: "No such file",
            reason: "Its model replies with text only.",
        },
    ],
};
const FASTA2A: Sdk =
    Sdk { name: "fasta2a", version: "2.1.1", pin: "fasta2a==2.1.1", bindings: RPC, faults: &[] };
const PYTHON_A2A: Sdk = Sdk {
    name: "python-a2a",
    version: "0.5.10",
    pin: "python-a2a[server]==0.5.10",
    bindings: RPC,
    faults: &[
        PYTHON_A2A_FAULT.of("send"),
        PYTHON_A2A_FAULT.of("stream"),
        PYTHON_A2A_FAULT.of("multi-turn"),
        PYTHON_A2A_FAULT.of("files to it"),
        PYTHON_A2A_FAULT.of("files from it"),
        PYTHON_A2A_FAULT.of("cancel"),
        PYTHON_A2A_FAULT.of("resubscribe"),
    ],
};
const PYTHON_A2A_FAULT: Fault = Fault {
    operation: "",
    binding: "JSONRPC",
    text: "Unknown content type",
    reason: "Its card says 0.3, but the server has only `tasks/send` of version 0.2, at another path. It answers messages of 0.3 and 1.0 at the URL of its card with status 500, `Unknown content type`.",
};

impl Fault {
    const fn of(&self, operation: &'static str) -> Self {
        Fault { operation, binding: self.binding, text: self.text, reason: self.reason }
    }
}

const SDKS: [&Sdk; 8] =
    [&PYTHON, &PYTHON_OLD, &JAVASCRIPT, &JAVASCRIPT_OLD, &ADK, &STRANDS, &FASTA2A, &PYTHON_A2A];

impl Sdk {
    fn fault(&self, operation: &str, binding: &str) -> Option<&Fault> {
        self.faults.iter().find(|fault| (fault.operation, fault.binding) == (operation, binding))
    }

    /// Does everything with an agent. A fault of the SDK has to show as that.
    #[track_caller]
    fn check(&self, url: &str) {
        let home = home();
        home.write("sent.bin", b"\x00\x01");
        let mut wrong = Vec::new();
        for binding in self.bindings {
            let talk = Talk { home: &home, url, binding };
            for (name, operation) in OPERATIONS {
                match (operation(&talk), self.fault(name, binding)) {
                    (Ok(()), None) => {}
                    (Err(reason), Some(fault)) if reason.contains(fault.text) => {}
                    (Ok(()), Some(_)) => wrong.push(format!("{name} over {binding} works now")),
                    (Err(reason), _) => wrong.push(format!("{name} over {binding}: {reason}")),
                }
            }
        }
        assert!(wrong.is_empty(), "{} {}\n{}", self.name, self.version, wrong.join("\n"));
    }

    /// Cell of an operation: yes, or where it fails.
    fn cell(&self, operation: &str) -> String {
        let failing: Vec<&str> = self
            .bindings
            .iter()
            .copied()
            .filter(|binding| self.fault(operation, binding).is_some())
            .collect();
        match failing.len() {
            0 => "yes".to_owned(),
            count if count == self.bindings.len() => "no".to_owned(),
            _ => format!("not over {}", failing.join(", ")),
        }
    }

    /// Reasons of its faults, each once.
    fn reasons(&self) -> String {
        let mut reasons: Vec<&str> = self.faults.iter().map(|fault| fault.reason).collect();
        reasons.dedup();
        reasons.join(" ")
    }
}

#[test]
fn python_sdk_1() {
    PYTHON.check(PythonAgent::shared(Protocol::V1).url());
}

#[test]
fn python_sdk_0_3() {
    PYTHON_OLD.check(PythonAgent::shared(Protocol::V03).url());
}

#[test]
fn javascript_sdk_1() {
    JAVASCRIPT.check(JavaScriptAgent::start(Protocol::V1).url());
}

#[test]
fn javascript_sdk_0_3() {
    JAVASCRIPT_OLD.check(JavaScriptAgent::start(Protocol::V03).url());
}

/// Agents on frameworks, which repeat their reply, split it into tokens or leave it out of the stream.
#[test]
#[ignore = "needs four frameworks, which scripts/test --long installs"]
fn frameworks() {
    for (sdk, framework) in [
        (&ADK, AgentFramework::Adk),
        (&STRANDS, AgentFramework::Strands),
        (&FASTA2A, AgentFramework::FastA2a),
        (&PYTHON_A2A, AgentFramework::PythonA2a),
    ] {
        sdk.check(FrameworkAgent::start(framework).url());
    }
}

#[test]
fn sdk_reference_is_made_from_the_table() {
    let script = repository::read("scripts/test");
    let mut out = String::from(
        "# SDKs and frameworks\n<!-- Made from a table by crates/sessile-cli/tests/it/agents/sdks.rs; do not edit. -->\n\n\
         What Sessile does with agents of the official A2A SDKs and of frameworks, each in the version that the tests install. A\n\
         test runs every operation over every binding of the agent. `no` is a fault of the SDK, and Sessile reports it as that.\n\n",
    );
    let heads: Vec<&str> = OPERATIONS.iter().map(|(name, _)| *name).collect();
    let _ = writeln!(out, "| agent on | version | bindings | {} |", heads.join(" | "));
    let _ = writeln!(out, "|---|---|---|{}", "---|".repeat(heads.len()));
    for sdk in SDKS {
        assert!(script.contains(sdk.pin), "scripts/test installs another version than {}", sdk.pin);
        let cells: Vec<String> = heads.iter().map(|name| sdk.cell(name)).collect();
        let bindings = sdk.bindings.join(", ");
        let _ = writeln!(out, "| {} | {} | {bindings} | {} |", sdk.name, sdk.version, cells.join(" | "));
    }
    out.push_str("\n| fault of | |\n|---|---|\n");
    for sdk in SDKS.iter().filter(|sdk| !sdk.faults.is_empty()) {
        let _ = writeln!(out, "| {} {} | {} |", sdk.name, sdk.version, sdk.reasons());
    }
    repository::assert_generated("docs/reference/a2a-sdks.md", &out);
}
