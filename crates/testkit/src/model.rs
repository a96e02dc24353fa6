//! A language model on this machine that follows a script: it asks a coding agent to run one shell command after another,
//! and keeps what the agent reports of each.
//!
//! It speaks the protocols of the agents: Anthropic's Messages, OpenAI's Responses and Gemini's `generateContent`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::loopback::{Loopback, LoopbackAnswer, LoopbackRequest};

/// A model with a script.
pub struct ScriptedModel {
    server: Loopback,
    outputs: Arc<Mutex<Vec<String>>>,
    tools: Arc<Mutex<String>>,
}

impl ScriptedModel {
    /// A model that asks for these commands, in this order.
    pub fn start(commands: &[&str]) -> Self {
        let commands: Vec<String> = commands.iter().map(|command| (*command).to_owned()).collect();
        let outputs = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&outputs);
        let tools = Arc::new(Mutex::new(String::new()));
        let offered = Arc::clone(&tools);
        let server = Loopback::start(move |request| {
            let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
                return LoopbackAnswer::not_found(json!({}));
            };
            let Some((reported, answer)) = answer(request, &body, &commands) else {
                return LoopbackAnswer::not_found(json!({"error": {"message": "not found"}}));
            };
            offered.lock().unwrap_or_else(PoisonError::into_inner).push_str(&body["tools"].to_string());
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            // A request repeats the whole conversation, so the longest one has all outputs.
            if reported.len() > kept.len() {
                *kept = reported;
            }
            answer
        });
        ScriptedModel { server, outputs, tools }
    }

    /// Listening address, `127.0.0.1:PORT`.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Tools that the agent offered, as JSON of all its requests.
    pub fn tools(&self) -> String {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Outputs that the agent reported, in the order of the commands.
    pub fn outputs(&self) -> Vec<String> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn answer(
    request: &LoopbackRequest,
    body: &Value,
    commands: &[String],
) -> Option<(Vec<String>, LoopbackAnswer)> {
    let path = request.path.as_str();
    if path.ends_with("/messages") {
        let outputs = messages_outputs(body);
        let is_streamed = body["stream"] == true;
        let command = commands.get(outputs.len());
        Some((outputs, messages(body, command, is_streamed)))
    } else if path.ends_with("/responses") {
        let outputs = responses_outputs(body);
        let command = commands.get(outputs.len());
        Some((outputs, responses(body, command)))
    } else if path.ends_with("enerateContent") {
        let outputs = gemini_outputs(body);
        let command = commands.get(outputs.len());
        Some((outputs, gemini(body, command, path.ends_with("streamGenerateContent"))))
    } else {
        None
    }
}

/// The first of these tools that a request offers.
fn offered<'n>(body: &Value, names: &[&'n str]) -> Option<&'n str> {
    let offered = body["tools"].to_string();
    names.iter().copied().find(|name| offered.contains(&format!("\"name\":\"{name}\"")))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The text of a tool's result, whether it is text or a list of parts.
fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => list(value).filter_map(|part| part["text"].as_str()).collect(),
    }
}

/// Server-sent events.
fn events(events: &[Value]) -> LoopbackAnswer {
    let event = |data: &Value| {
        let name = data["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {data}\n\n")
    };
    LoopbackAnswer { status: "200 OK", kind: "text/event-stream", body: events.iter().map(event).collect() }
}

fn messages_outputs(body: &Value) -> Vec<String> {
    let parts = list(&body["messages"]).flat_map(|message| list(&message["content"]));
    parts.filter(|part| part["type"] == "tool_result").map(|part| text(&part["content"])).collect()
}

fn messages(body: &Value, command: Option<&String>, is_streamed: bool) -> LoopbackAnswer {
    let tool = offered(body, &["Bash", "bash"]);
    let (start, delta, whole, reason) = match command.zip(tool) {
        Some((command, tool)) => {
            let input = json!({"command": command, "description": "look"});
            let id = format!("toolu_{}", messages_outputs(body).len());
            let block = |input: Value| json!({"type": "tool_use", "id": id, "name": tool, "input": input});
            let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
            (block(json!({})), delta, block(input), "tool_use")
        }
        None => {
            let block = |text: &str| json!({"type": "text", "text": text});
            (block(""), json!({"type": "text_delta", "text": "done"}), block("done"), "end_turn")
        }
    };
    let message = |content: Value, reason: Value| {
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content,
            "stop_reason": reason, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
        })
    };
    if !is_streamed {
        return LoopbackAnswer::json(message(json!([whole]), json!(reason)));
    }
    events(&[
        json!({"type": "message_start", "message": message(json!([]), Value::Null)}),
        json!({"type": "content_block_start", "index": 0, "content_block": start}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 1},
        }),
        json!({"type": "message_stop"}),
    ])
}

fn responses_outputs(body: &Value) -> Vec<String> {
    let results = list(&body["input"]).filter(|item| item["type"] == "function_call_output");
    results.map(|item| text(&item["output"])).collect()
}

fn responses(body: &Value, command: Option<&String>) -> LoopbackAnswer {
    let tool = offered(body, &["exec_command", "shell_command", "shell"]);
    let item = match command.zip(tool) {
        Some((command, tool)) => {
            let arguments = match tool {
                "exec_command" => json!({"cmd": command}),
                "shell_command" => json!({"command": command}),
                _ => json!({"command": ["bash", "-lc", command]}),
            };
            let number = responses_outputs(body).len();
            json!({
                "type": "function_call", "id": format!("fc_{number}"), "call_id": format!("call_{number}"),
                "name": tool, "arguments": arguments.to_string(), "status": "completed",
            })
        }
        None => json!({
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "done", "annotations": []}],
        }),
    };
    events(&[
        json!({"type": "response.created", "response": {"id": "resp_1"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {
            "id": "resp_1", "object": "response", "status": "completed", "output": [item],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        }}),
    ])
}

fn gemini_outputs(body: &Value) -> Vec<String> {
    let parts = list(&body["contents"]).flat_map(|content| list(&content["parts"]));
    let results = parts.filter_map(|part| part.get("functionResponse"));
    results.map(|result| result["response"]["output"].as_str().unwrap_or_default().to_owned()).collect()
}

fn gemini(body: &Value, command: Option<&String>, is_streamed: bool) -> LoopbackAnswer {
    let tool = offered(body, &["run_shell_command"]);
    let part = match command.zip(tool) {
        Some((command, tool)) => {
            json!({"functionCall": {"name": tool, "args": {"command": command, "description": "look"}}})
        }
        None => json!({"text": "done"}),
    };
    let answer = json!({
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    });
    if is_streamed { events(&[answer]) } else { LoopbackAnswer::json(answer) }
}
