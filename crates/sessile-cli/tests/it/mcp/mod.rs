//! `sessile mcp`: what must hold for a server that agents talk to, whoever talks and whatever happens.

mod config;
mod consent;
mod descriptions;
mod explicit;
mod guards;
mod hostile;
mod http;
mod kills;
mod long_calls;
mod parallel;
mod protocol;
mod resources;
mod tools;

use serde_json::{Value, json};
use testkit::{AgentOptions, Home, McpClient, Protocol, ScriptedAgent};

/// The newest revision that begins with a handshake.
const USUAL: &str = "2025-11-25";

/// The revision that needs none.
const INLINE: &str = "2026-07-28";

/// A server with these flags that has been greeted.
#[track_caller]
fn serve(home: &Home, flags: &[&str]) -> McpClient {
    let mut client = McpClient::start(home.call(&["mcp"]).args(flags));
    client.initialize(USUAL);
    client
}

fn agent() -> ScriptedAgent {
    ScriptedAgent::start(AgentOptions::of(Protocol::V1))
}

/// What a call of a tool came to, which must be a success.
#[track_caller]
fn result(client: &mut McpClient, tool: &str, arguments: Value) -> Value {
    content(&client.call(tool, arguments))
}

/// The structured content of what must be a success.
#[track_caller]
fn content(result: &Value) -> Value {
    assert_ne!(result["isError"], true, "{result}");
    let content = &result["structuredContent"];
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert!(content.is_object() && *content == text, "the text says the same: {result}");
    content.clone()
}

/// The error that a call of a tool came to.
#[track_caller]
fn refusal(client: &mut McpClient, tool: &str, arguments: Value) -> Value {
    refused(&client.call(tool, arguments))
}

/// The error in what must be a failure.
#[track_caller]
fn refused(result: &Value) -> Value {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none(), "an error has no structured content: {result}");
    let told: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert!(told["error"]["message"].is_string(), "{told}");
    told["error"].clone()
}

/// The code of the error that a call of a tool came to.
#[track_caller]
fn code(client: &mut McpClient, tool: &str, arguments: Value) -> String {
    refusal(client, tool, arguments)["code"].as_str().unwrap().to_owned()
}

/// The server still serves.
#[track_caller]
fn still_answers(client: &mut McpClient) {
    assert!(result(client, "status", json!({}))["os_user"].is_string());
}

/// The names of the tools that are offered.
#[track_caller]
fn names(client: &mut McpClient) -> Vec<String> {
    client.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Sends a signal.
fn signal(pid: u32, name: &str) {
    let sent = std::process::Command::new("kill").args(["-s", name, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}
