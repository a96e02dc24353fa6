//! From what a call printed to the result of a tool.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};
use sessile::{Code, Report};

use super::invocation::Ended;
use super::tool::{Shape, Tool};

/// The status of a command that runs another, when the failure is its own.
const OWN_FAILURE: std::ops::RangeInclusive<i32> = 124..=127;

/// What a call came to.
pub(super) enum Reply {
    Result(CallToolResult),
    /// A guard wants a person's approval of this context first.
    Guarded {
        context: String,
        refusal: CallToolResult,
    },
}

/// The result of a tool whose call has ended.
pub(super) fn reply(tool: &Tool, ended: &Ended) -> Reply {
    let messages = Messages::in_lines(&ended.err.text());
    if tool.shape == Shape::Captured {
        let code = ended.status.and_then(|status| status.code());
        let is_own = code.is_some_and(|code| OWN_FAILURE.contains(&code));
        return match messages.error.filter(|error| is_own && error["code"] != "TIMED_OUT") {
            Some(error) => failed(error),
            None => Reply::Result(CallToolResult::structured(captured(ended, code == Some(124)))),
        };
    }
    if ended.out.is_cut() {
        let report = Report::new(Code::FileTooLarge, "the result is too large to be handed on");
        return failed(report.to_json()["error"].take());
    }
    // A result that is bad news has a status of its own; it is a result all the same.
    let text = ended.out.text();
    let result = serde_json::from_str(&text).ok().map(|result| shaped(tool, result));
    match (result, messages.error) {
        (Some(result), None) => {
            let mut reply = CallToolResult::structured(result);
            reply.content.extend(messages.warnings.into_iter().map(ContentBlock::text));
            Reply::Result(reply)
        }
        (_, Some(error)) => failed(error),
        (None, None) => failed(died(ended)),
    }
}

/// An error that is not the program's own.
pub(super) fn refused(code: Code, message: impl Into<String>) -> CallToolResult {
    error(&Report::new(code, message).to_json()["error"])
}

/// The output of a command whose time was up, or that ended.
pub(super) fn captured(ended: &Ended, timed_out: bool) -> Value {
    let code = ended.status.and_then(|status| status.code()).filter(|_| !timed_out);
    let mut stderr = ended.err.text();
    if timed_out {
        // What it says in the end is ours.
        let lines: Vec<&str> = stderr.lines().filter(|line| !line.starts_with("{\"error\":")).collect();
        stderr = lines.join("\n");
    }
    json!({
        "exit_code": code,
        "timed_out": timed_out,
        "stdout": ended.out.text(),
        "stderr": stderr,
        "truncated": ended.out.is_cut() || ended.err.is_cut(),
    })
}

fn failed(mut told: Value) -> Reply {
    let context = told["context"].as_str().map(str::to_owned);
    match context.filter(|_| told["code"] == Code::GuardApproval.as_str()) {
        Some(context) => {
            told["hint"] = json!(format!(
                "only a person can open it: ask them to run `sessile context approve {context} --for 30m` on a terminal"
            ));
            Reply::Guarded { context, refusal: error(&told) }
        }
        None => Reply::Result(error(&told)),
    }
}

/// Clients hold structured content against the schema even if it is an error: so an error is text, and that is JSON.
fn error(told: &Value) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(json!({ "error": told }).to_string())])
}

/// A call that printed nothing, which is none of ours.
fn died(ended: &Ended) -> Value {
    let how = ended.status.map_or_else(|| "its time was up".to_owned(), |status| status.to_string());
    let err = sessile::text::shortened(&ended.err.text(), 1000);
    let report = Report::new(Code::Io, format!("the call ended without a result ({how}) {err}"));
    report.to_json()["error"].take()
}

/// The result as the tool gives it.
fn shaped(tool: &Tool, mut result: Value) -> Value {
    // What the agent sent is there as text already, and is said twice otherwise.
    let leaner = |one: &mut Value| {
        let has_text = one["text"].as_str().is_some_and(|text| !text.is_empty());
        if let (true, Some(members)) = (has_text && one["source"] == "agent", one.as_object_mut()) {
            members.remove("reply");
            members.remove("raw");
        }
    };
    match (tool.shape, &mut result) {
        (Shape::List(name), Value::Array(items)) => {
            items.iter_mut().for_each(leaner);
            let mut listed = serde_json::Map::new();
            listed.insert("count".to_owned(), json!(items.len()));
            listed.insert(name.to_owned(), result);
            Value::Object(listed)
        }
        (_, one) => {
            leaner(one);
            result
        }
    }
}

/// What a call says beside its result, a line of JSON each.
#[derive(Default)]
struct Messages {
    error: Option<Value>,
    warnings: Vec<String>,
}

impl Messages {
    fn in_lines(text: &str) -> Self {
        let mut messages = Messages::default();
        for line in text.lines() {
            let Ok(mut line) = serde_json::from_str::<Value>(line) else { continue };
            if line["error"].is_object() {
                messages.error = Some(line["error"].take());
            } else if let Some(warning) = line["warning"]["message"].as_str() {
                messages.warnings.push(format!("warning: {warning}"));
            }
        }
        messages
    }
}
