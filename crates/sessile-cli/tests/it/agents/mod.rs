//! What must hold for conversations whatever happens: many processes, killed ones, long ones, and agents that mean harm.

mod client;
mod client_certificate;
mod continuation;
mod credentials;
mod crowd;
mod delivery;
mod demo;
mod ended_tasks;
mod fixed;
mod hostile;
mod kills;
mod listen;
mod long_process;
mod message;
mod sdks;
mod tables;
mod wire_log;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::Barrier;

use serde_json::Value;
use testkit::{AgentOptions, Home, Protocol, ScriptedAgent};

/// How many processes are at it at the same time.
const CROWD: usize = 50;

fn agent() -> ScriptedAgent {
    ScriptedAgent::start(AgentOptions::of(Protocol::V1))
}

/// Does something in many threads that begin at the same instant.
fn together(count: usize, work: impl Fn(usize) + Sync) {
    let begin = Barrier::new(count);
    std::thread::scope(|scope| {
        for number in 0..count {
            let (begin, work) = (&begin, &work);
            scope.spawn(move || {
                begin.wait();
                work(number);
            });
        }
    });
}

/// All conversations of all sessions, each with all that was said.
fn conversations(home: &Home) -> Vec<Value> {
    let listed = home.call(&["conversation", "list", "--all", "--limit", "1000", "-ojson"]).ok().json();
    let ids = listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap());
    ids.map(|id| home.call(&["conversation", "export", id]).ok().json()).collect()
}

/// The conversation that was used last in the session `work`.
fn last(home: &Home) -> Value {
    home.call(&["conversation", "show", "--session", "work", "--last", "1000", "-ojson"]).ok().json()
}

/// The texts that were sent in a conversation, in order.
fn sent(conversation: &Value) -> Vec<String> {
    let items = conversation["messages"].as_array().unwrap().iter().filter(|item| item["kind"] == "sent");
    items.map(|item| item["body"]["parts"][0]["text"].as_str().unwrap().to_owned()).collect()
}

/// A `message stream` in the session `work` that goes on while the test does something else.
struct StreamingCommand {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl StreamingCommand {
    fn start(home: &Home, agent: &str, text: &str, flags: &[&str]) -> Self {
        let call = home.call(&["message", "stream", agent, text, "--session", "work", "-ojsonl"]).args(flags);
        let mut command = call.command();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        StreamingCommand { child, lines }
    }

    /// The next event; nothing at the end.
    fn event(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Kills it, as nobody can prevent.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The last line, and the exit status.
    fn end(mut self) -> (Value, Option<i32>) {
        let mut last = Value::Null;
        while let Some(event) = self.event() {
            last = event;
        }
        (last, self.child.wait().unwrap().code())
    }
}
