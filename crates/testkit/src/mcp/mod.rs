//! Clients of an MCP server, to test one from outside: one of our own, which sees every byte on stdio, the official SDK for
//! Python, and the Inspector. The server is the program of a [`Call`](crate::Call), with its arguments, variables and
//! directory, or an [`McpUrl`].
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

use crate::Call;

/// What a client can talk to: the program of a call, on stdio, or an address.
pub trait McpServer {
    /// The program, or where a client of an address runs.
    fn call(&self) -> &Call;

    /// The address, and the token.
    fn address(&self) -> Option<(&str, &str)> {
        None
    }
}

impl McpServer for Call {
    fn call(&self) -> &Call {
        self
    }
}

/// A server on the network, with a token for it. The call says where its clients run.
pub struct McpUrl {
    call: Call,
    url: String,
    token: String,
}

impl McpUrl {
    /// The server at a URL.
    pub fn new(call: Call, url: impl Into<String>, token: impl Into<String>) -> Self {
        McpUrl { call, url: url.into(), token: token.into() }
    }
}

impl McpServer for McpUrl {
    fn call(&self) -> &Call {
        &self.call
    }

    fn address(&self) -> Option<(&str, &str)> {
        Some((&self.url, &self.token))
    }
}

/// Entry in the directory of test tools of `scripts/test`.
#[track_caller]
fn fetched(entry: &str) -> PathBuf {
    let tested = std::env::current_exe().expect("the test's own path");
    let entry = format!("test-tools/{entry}");
    tested
        // A test's program is some levels below the target directory.
        .ancestors()
        .map(|dir| dir.join(&entry))
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("target/{entry} not found; scripts/test installs it"))
}

#[cfg(test)]
mod tests;
