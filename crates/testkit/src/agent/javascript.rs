//! Agents on the official SDK for JavaScript.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::node::NodeServer;
use crate::require_tool;
use sessile_agent::Protocol;

/// Timeout of an agent's start.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent on a port of its own, which ends when this is dropped. It does what the text of a message says: see
/// `ScriptedAgent`.
pub struct JavaScriptAgent {
    server: NodeServer,
}

impl JavaScriptAgent {
    /// Starts one on the SDK of this version.
    #[track_caller]
    pub fn start(sdk: Protocol) -> Self {
        let (dir, version) = match sdk {
            Protocol::V1 => ("a2a-js-1", "1"),
            Protocol::V03 => ("a2a-js-03", "03"),
        };
        let dir = installed(dir);
        // node looks for packages beside the script, and not in the working directory.
        let script = dir.join(format!("agent-{}.mjs", std::process::id()));
        std::fs::write(&script, include_str!("agent.mjs")).expect("a file");
        let mut command = Command::new(require_tool("node"));
        command.arg(&script).arg(version).current_dir(&dir).env_remove("NODE_OPTIONS");
        let server = NodeServer::spawn(command, PATIENCE);
        // It is read by now: the agent listens.
        let _ = std::fs::remove_file(&script);
        JavaScriptAgent { server }
    }

    /// Address, `http://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        self.server.address()
    }
}

/// The directory that `scripts/test` gave the SDK.
#[track_caller]
fn installed(name: &str) -> PathBuf {
    let tested = std::env::current_exe().expect("the test's own path");
    let entry = format!("test-tools/{name}");
    let is_there = |dir: &PathBuf| dir.join("node_modules/@a2a-js/sdk/package.json").is_file();
    tested.ancestors().map(|dir| dir.join(&entry)).find(is_there).unwrap_or_else(|| {
        panic!("A2A SDK for JavaScript not found in target/{entry}; scripts/test installs it")
    })
}
