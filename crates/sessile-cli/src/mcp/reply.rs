//! From what a call printed to the result of a tool.

use rmcp::model::{CallToolResult, ContentBlock};
use serde::Deserialize as _;
use serde_json::{Value, json};
use sessile::{Code, Report, ReportBody};

use super::invocation::{CallOutput, ResultPage};
use super::tool::{Shape, Tool};
use crate::output::StderrLine;
use crate::view::AgentOutput;

/// The longest text that is handed on of what an agent sent beside words.
const LONGEST: usize = 32 * 1024;

/// Reply to a call.
pub(super) enum Reply {
    Result(CallToolResult),
    /// A guard wants a person's approval of this context first.
    Guarded {
        context: String,
        refusal: CallToolResult,
    },
}

/// The result of a tool whose call has ended.
pub(super) fn reply(tool: &Tool, ended: &CallOutput, page: Option<ResultPage>) -> Reply {
    if tool.shape == Shape::Captured {
        return match &ended.report {
            Some(report) if report.code == Code::TimedOut.as_str() => Reply::Result(captured(ended, true)),
            Some(report) => failed(report.clone()),
            None => Reply::Result(captured(ended, false)),
        };
    }
    let messages = Messages::in_lines(&ended.err.text());
    // A cut result is not JSON any more.
    if ended.out.is_cut() {
        let report = Report::new(Code::FileTooLarge, "the result is too large");
        return failed(report.to_body());
    }
    // A result that is bad news has a status of its own; it is a result all the same.
    let text = ended.out.text();
    let next = messages.next_cursor;
    let result = sessile::json::from_str(&text).ok().map(|result| shaped(tool, result, page, next));
    let with_warnings = |result: Value, warnings: Vec<String>| {
        let mut reply = CallToolResult::structured(result);
        reply.content.extend(warnings.into_iter().map(ContentBlock::text));
        Reply::Result(reply)
    };
    match (result, messages.error) {
        (Some(result), None) => with_warnings(result, messages.warnings),
        // The agent sends a reply once, and a client that got an error would send the message again.
        (Some(mut result), Some(error)) if error.code == Code::NotSaved.as_str() && result.is_object() => {
            let warning = match &error.hint {
                Some(hint) => format!("{}; {hint}", error.message),
                None => error.message.clone(),
            };
            result["warning"] = json!(warning);
            with_warnings(result, messages.warnings)
        }
        (_, Some(error)) => failed(error),
        (None, None) => failed(died(ended)),
    }
}

/// The JSON that a call printed, or its failure.
pub(super) fn read_value(ended: &CallOutput) -> Result<Value, Box<ReportBody>> {
    let result = sessile::json::from_str(&ended.out.text()).ok();
    match (result, Messages::in_lines(&ended.err.text()).error) {
        (Some(result), None) => Ok(result),
        (_, Some(error)) => Err(Box::new(error)),
        (None, None) => Err(Box::new(died(ended))),
    }
}

/// An error that is not the program's own.
pub(super) fn refused(code: Code, message: impl Into<String>) -> CallToolResult {
    error(Report::new(code, message).to_body())
}

/// Output of a command that ended or timed out.
pub(super) fn captured(ended: &CallOutput, timed_out: bool) -> CallToolResult {
    let code = ended.status.and_then(|status| status.code()).filter(|_| !timed_out);
    CallToolResult::structured(json!({
        "exit_code": code,
        "timed_out": timed_out,
        "stdout": ended.out.text(),
        "stderr": ended.err.text(),
        "truncated": ended.out.is_cut() || ended.err.is_cut(),
    }))
}

fn failed(report: ReportBody) -> Reply {
    let is_guarded = report.code == Code::GuardApproval.as_str();
    match report.details.context.clone().filter(|_| is_guarded) {
        Some(context) => {
            let hint = format!(
                "only a person can approve it: ask them to run `sessile context approve {context} --for 30m` on a terminal"
            );
            // Nothing that a model could be tempted to run.
            let refusal = error(ReportBody { fix_command: None, hint: Some(hint), ..report });
            Reply::Guarded { context, refusal }
        }
        None => Reply::Result(error(report)),
    }
}

/// Error result. It is JSON in a text block, because clients validate structured content against the schema even for errors.
fn error(report: ReportBody) -> CallToolResult {
    let line = json!(StderrLine::Error(report)).to_string();
    CallToolResult::error(vec![ContentBlock::text(line)])
}

/// Error of a call that ended without printing a result.
fn died(ended: &CallOutput) -> ReportBody {
    let how = ended.status.map_or_else(|| "timed out".to_owned(), |status| status.to_string());
    let err = sessile::text::shortened(&ended.err.text(), 1000);
    Report::new(Code::Io, format!("the call ended without a result ({how}) {err}")).to_body()
}

/// The result as the tool gives it.
fn shaped(tool: &Tool, mut result: Value, page: Option<ResultPage>, next: Option<String>) -> Value {
    match (tool.shape, &mut result) {
        (Shape::List(name), Value::Array(items)) => {
            let next = page.and_then(|page| cut(items, page)).or(next);
            items.iter_mut().for_each(make_leaner);
            if let Some(hidden) = tool.hidden {
                items.iter_mut().for_each(|item| hide(item, hidden));
            }
            let mut listed = serde_json::Map::new();
            listed.insert("count".to_owned(), json!(items.len()));
            listed.insert(name.to_owned(), result);
            listed.extend(next.map(|next| ("next_cursor".to_owned(), json!(next))));
            Value::Object(listed)
        }
        (_, one) => {
            make_leaner(one);
            result
        }
    }
}

/// Cuts a list to its page and returns the cursor of the next one, if any.
fn cut(items: &mut Vec<Value>, page: ResultPage) -> Option<String> {
    if items.len() <= page.limit {
        return None;
    }
    items.truncate(page.limit);
    let key = items.last()?.get(page.key)?;
    Some(key.as_str().map_or_else(|| key.to_string(), str::to_owned))
}

/// Removes a member, wherever it occurs.
fn hide(value: &mut Value, name: &str) {
    match value {
        Value::Object(members) => {
            members.remove(name);
            members.values_mut().for_each(|value| hide(value, name));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| hide(value, name)),
        _ => {}
    }
}

/// Drops an agent's raw parts if the text already holds all of them.
fn make_leaner(one: &mut Value) {
    let Ok(AgentOutput { reply, raw, .. }) = AgentOutput::deserialize(&*one) else { return };
    let Some(members) = one.as_object_mut() else { return };
    for (name, received) in [(AgentOutput::REPLY, reply), (AgentOutput::RAW, raw)] {
        match received {
            Some(mut received) if has_other_parts(&received) => {
                cut_long_texts(&mut received);
                members.insert(name.to_owned(), received);
            }
            _ => {
                members.remove(name);
            }
        }
    }
}

/// Whether the value contains parts that are not text, at any depth.
fn has_other_parts(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| match (name.as_str(), value) {
            ("parts", Value::Array(parts)) => parts.iter().any(|part| !part["text"].is_string()),
            // What was said before is none of the reply.
            ("history", _) => false,
            (_, value) => has_other_parts(value),
        }),
        Value::Array(values) => values.iter().any(has_other_parts),
        _ => false,
    }
}

fn cut_long_texts(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONGEST => {
            *text =
                format!("({} bytes, too long; save them with `message send --save-artifacts`)", text.len());
        }
        Value::Object(members) => members.values_mut().for_each(cut_long_texts),
        Value::Array(values) => values.iter_mut().for_each(cut_long_texts),
        _ => {}
    }
}

/// Notes of a call on standard error, a line of JSON each.
#[derive(Default)]
struct Messages {
    error: Option<ReportBody>,
    warnings: Vec<String>,
    /// Cursor of the agent for the next page.
    next_cursor: Option<String>,
}

impl Messages {
    fn in_lines(text: &str) -> Self {
        let mut messages = Messages::default();
        for line in text.lines() {
            match StderrLine::parse(line) {
                // The last one counts: it is printed when the call ends.
                Some(StderrLine::Error(report)) => messages.error = Some(report),
                Some(StderrLine::Warning(warning)) => {
                    messages.warnings.push(format!("warning: {}", warning.message));
                }
                Some(StderrLine::NextCursor(cursor)) => messages.next_cursor = Some(cursor),
                Some(StderrLine::Note(_)) | None => {}
            }
        }
        messages
    }
}
