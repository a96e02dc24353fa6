//! Clients of an MCP server on stdio, to test one from outside: one of our own, which sees every byte, the official SDK for
//! Python, and the Inspector. The server is the program of a [`Call`](crate::Call), with its arguments, variables and
//! directory.
//!
//! ```no_run
//! # use serde_json::json;
//! # use testkit::{Home, Inspector, McpClient, PythonMcpClient, Revision};
//! # let home = Home::new("program");
//! let mut client = McpClient::start(home.call(&["mcp"]));
//! client.initialize("2025-11-25");
//! let result = client.call("status", json!({}));
//! assert!(client.close().success());
//!
//! let report = PythonMcpClient::new(Revision::Auto).run(&home.call(&["mcp"]), &[("status", json!({}))]);
//! assert_eq!(report["results"][0]["structuredContent"], result["structuredContent"]);
//!
//! let tools = Inspector::Modern.list(&home.call(&["mcp"]));
//! # let _ = tools;
//! ```

mod client;
mod inspector;
mod message;
mod python;

pub use client::McpClient;
pub use inspector::Inspector;
pub use python::{PythonMcpClient, Revision};

use std::path::PathBuf;

/// What `scripts/test` has put into the directory of test tools.
#[track_caller]
fn fetched(entry: &str) -> PathBuf {
    let tested = std::env::current_exe().expect("the test's own path");
    let entry = format!("test-tools/{entry}");
    tested
        .ancestors()
        .map(|dir| dir.join(&entry))
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("this test needs target/{entry}; scripts/test installs it"))
}

#[cfg(test)]
mod tests;
