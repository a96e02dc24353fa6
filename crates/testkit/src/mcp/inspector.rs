//! The Inspector, in the mode in which it is a command: it shows nothing in a browser and listens nowhere.

use serde_json::Value;

use super::{McpServer, fetched};
use crate::CallResult;

/// The Inspector's command, by the revisions that it speaks.
///
/// ```no_run
/// # use testkit::Inspector;
/// # let home = testkit::Home::new("program");
/// let tools = Inspector::Legacy.list(&home.call(&["mcp"]));
/// let result = Inspector::Legacy.call(&home.call(&["mcp"]), "config_get", &[("key", "agent")]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inspector {
    /// Shakes hands, for revisions up to 2025-11-25.
    Legacy,
    /// Finds out which.
    Auto,
    /// 2026-07-28 only.
    Modern,
}

impl Inspector {
    /// The tools. Fails if the Inspector finds that a schema would not work with every client.
    #[track_caller]
    pub fn list(self, server: &impl McpServer) -> Vec<Value> {
        let done = self.run(server, "tools/list", &["--strict"]).exit(0);
        done.json()["result"]["tools"].as_array().expect("a list of tools").clone()
    }

    /// The result of a tool. The Inspector makes arguments of texts, as the tool's schema says.
    #[track_caller]
    pub fn call(self, server: &impl McpServer, tool: &str, arguments: &[(&str, &str)]) -> Value {
        let pairs: Vec<String> = arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut options = vec!["--tool-name", tool];
        for pair in &pairs {
            options.extend(["--tool-arg", pair]);
        }
        let done = self.run(server, "tools/call", &options);
        // 5 says that the result has isError.
        let done = if done.status() == Some(5) { done } else { done.exit(0) };
        done.json()["result"].clone()
    }

    /// Any method, with options of the Inspector's: how its command ended. Its output is `{"result": ..}`, an error is on
    /// standard error.
    #[track_caller]
    pub fn run(self, server: &impl McpServer, method: &str, options: &[&str]) -> CallResult {
        let era = match self {
            Inspector::Legacy => "legacy",
            Inspector::Auto => "auto",
            Inspector::Modern => "modern",
        };
        let modules = "inspector/node_modules";
        let launcher = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";
        let call = server.call();
        let mut command = call
            .replaced(&fetched(&format!("{modules}/node/bin/node")), &[])
            .arg(fetched(&format!("{modules}/{launcher}")))
            .args(&["--cli", "--format", "json", "--stored-auth-only", "--protocol-era", era])
            .args(&["--method", method])
            .args(options);
        if let Some((url, token)) = server.address() {
            let header = format!("Authorization: Bearer {token}");
            return command.args(&["--transport", "http", "--server-url", url, "--header", &header]).run();
        }
        command = command.args(&["--cwd", &call.directory()]);
        for (name, value) in call.variables() {
            command = command.arg("-e").arg(format!("{name}={value}"));
        }
        command.arg("--").args(&call.words().iter().map(String::as_str).collect::<Vec<_>>()).run()
    }
}
