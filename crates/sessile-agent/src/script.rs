//! Scripts of an agent, by the first word of a message.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::ReceivedRequest;
use crate::tasks::{Tasks, is_last, is_terminal, new_id};
use crate::wire::{AgentCall, Fault};
use crate::{DemoAgent, Protocol};

/// Outcome of a message.
pub(crate) enum ScriptOutcome {
    /// Only this, after so long.
    Message(Value, Duration),
    /// A task, as it was at first or when it went on; it has said so much before. A stream of it does not begin with the
    /// task itself if it is bare, and is cut after so many events.
    Task { value: Value, said: usize, bare: bool, cut: Option<usize> },
}

/// Caller, by its credential.
pub(crate) struct AgentCaller<'a> {
    pub(crate) account: Option<String>,
    pub(crate) seen: &'a ReceivedRequest,
}

/// Takes a message.
pub(crate) fn take(
    tasks: &Arc<Tasks>,
    asked: &AgentCall,
    asker: &AgentCaller<'_>,
) -> Result<ScriptOutcome, Fault> {
    let message = asked.message();
    let parts = message["parts"].as_array().into_iter().flatten();
    let text = parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n");
    let given = &asked.params["message"];
    if !given.is_object() {
        return Err(Fault::InvalidParams("the params have no message".to_owned()));
    }
    let (context, task) = (given["contextId"].as_str(), given["taskId"].as_str());
    let context = context.filter(|context| !context.is_empty());
    if let Some(task) = task.filter(|task| !task.is_empty()) {
        return go_on(tasks, asked, (task, context), &message, &text);
    }
    if let Some(context) = context.filter(|context| tasks.lock().forgotten.contains(*context)) {
        return Err(Fault::InvalidParams(format!("Context {context} has expired")));
    }
    let context = context.map_or_else(|| new_id("context"), str::to_owned);
    let count = {
        let mut state = tasks.lock();
        let count = state.contexts.entry(context.clone()).or_default();
        *count += 1;
        *count
    };
    let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
    let (mut wait, rest_of) =
        (Duration::ZERO, |rest: &str| rest.split_once(' ').unwrap_or((rest, "")).1.to_owned());
    let answer = match word {
        "echo" => Some(rest.to_owned()),
        "late" => {
            wait = Duration::from_millis(number(rest, 0));
            Some(rest_of(rest))
        }
        "big" => Some("x".repeat(usize::try_from(number(rest, 0)).unwrap_or(0))),
        "escapes" => Some(format!("before{}after", DemoAgent::ESCAPES)),
        "whoami" => Some(whoami(asker)),
        "context" => Some(format!("{context} {count}")),
        "tenant" => Some(asked.tenant.clone()),
        "version" => Some(asker.seen.header("a2a-version").unwrap_or_default().to_owned()),
        "extensions" => {
            let header = match asked.protocol {
                Protocol::V1 => "a2a-extensions",
                Protocol::V03 => "x-a2a-extensions",
            };
            Some(asker.seen.header(header).unwrap_or_default().to_owned())
        }
        "got" => Some(asked.params.to_string()),
        "forget" => {
            tasks.forget(&context);
            Some("forgotten".to_owned())
        }
        _ => None,
    };
    if let Some(text) = answer {
        let said = json!({
            "messageId": new_id("message"), "contextId": context, "role": "ROLE_AGENT", "parts": [{"text": text}],
        });
        return Ok(ScriptOutcome::Message(said, wait));
    }
    let configuration = &asked.params["configuration"];
    let push = match asked.protocol {
        Protocol::V1 => &configuration["taskPushNotificationConfig"],
        Protocol::V03 => &configuration["pushNotificationConfig"],
    };
    let value = tasks.begin(&context, &message, push);
    let id = value["id"].as_str().unwrap_or_default().to_owned();
    let cut = (word == "cut").then(|| usize::try_from(number(rest, 1)).unwrap_or(1));
    let (tasks, played) = (Arc::clone(tasks), text.clone());
    // The task goes on when its client leaves, as with a real agent.
    std::thread::spawn(move || play(&tasks, &id, &played));
    Ok(ScriptOutcome::Task { value, said: 0, bare: word == "bare", cut })
}

/// A message for a task that waits for one.
fn go_on(
    tasks: &Arc<Tasks>,
    asked: &AgentCall,
    (id, context): (&str, Option<&str>),
    message: &Value,
    text: &str,
) -> Result<ScriptOutcome, Fault> {
    let mut state = tasks.lock();
    let Some(task) = state.tasks.get_mut(id) else { return Err(Fault::TaskNotFound(id.to_owned())) };
    let own = task.value["contextId"].as_str().unwrap_or_default().to_owned();
    if let Some(context) = context.filter(|context| *context != own) {
        return Err(Fault::InvalidParams(format!("Task {id} is not of context {context}")));
    }
    if is_terminal(task.state()) {
        let why = format!("Task {id} is in terminal state: {}", task.state());
        return Err(match asked.protocol {
            Protocol::V1 => Fault::Unsupported(why),
            Protocol::V03 => Fault::InvalidParams(why),
        });
    }
    let mut message = message.clone();
    (message["taskId"], message["contextId"]) = (json!(id), json!(own));
    task.hear(message);
    let (value, said) = (task.value.clone(), task.said());
    *state.contexts.entry(own).or_default() += 1;
    // The thread below locks it again.
    drop(state);
    let (tasks, id, text) = (Arc::clone(tasks), id.to_owned(), text.trim().to_owned());
    std::thread::spawn(move || {
        tasks.status(&id, "WORKING", None);
        if text == "ask" {
            return tasks.status(&id, "INPUT_REQUIRED", Some("what is your name?"));
        }
        let answer = format!("hello {text}");
        tasks.artifact(&id, &artifact("greeting", &json!({"text": answer})), false, true);
        tasks.status(&id, "COMPLETED", Some(&answer));
    });
    // The official SDK does not begin with the task when it only goes on.
    Ok(ScriptOutcome::Task { value, said, bare: true, cut: None })
}

/// Runs the script of a task, in a thread of its own.
fn play(tasks: &Tasks, id: &str, text: &str) {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let numbers = rest.split(' ').map(|word| word.parse().unwrap_or(0)).collect::<Vec<u64>>();
    match word {
        "ask" => return tasks.status(id, "INPUT_REQUIRED", Some("what is your name?")),
        "auth" => {
            return tasks.status(id, "AUTH_REQUIRED", Some("log in at http://127.0.0.1/login"));
        }
        "reject" => return tasks.status(id, "REJECTED", Some("not that")),
        _ => tasks.status(id, "WORKING", None),
    }
    let mut whole = text.to_owned();
    match word {
        "fail" => return tasks.status(id, "FAILED", Some("it broke")),
        "slow" => {
            let millis = millis(rest);
            let steps = (millis / 50).clamp(1, 10);
            for step in 1..=steps {
                if !tasks.sleep(Duration::from_millis(millis / steps)) {
                    return;
                }
                tasks.status(id, "WORKING", Some(&format!("step {step} of {steps}")));
            }
            rest.split_once(' ').unwrap_or((rest, "")).1.clone_into(&mut whole);
        }
        "hold" if !tasks.hold() => return,
        "stream" | "bare" | "cut" => {
            // `stream COUNT [MILLIS]`, `bare` likewise, and `cut EVENTS COUNT [MILLIS]`.
            let from = usize::from(word == "cut");
            let count = numbers.get(from).copied().filter(|count| *count > 0).unwrap_or(3);
            let pause = Duration::from_millis(numbers.get(from + 1).copied().unwrap_or(0));
            for chunk in 1..=count {
                if !pause.is_zero() && !tasks.sleep(pause) {
                    return;
                }
                let mut piece = artifact("chunks", &json!({"text": format!("chunk {chunk}\n")}));
                piece["artifactId"] = json!("chunks");
                tasks.artifact(id, &piece, chunk > 1, chunk == count);
            }
            return tasks.status(id, "COMPLETED", None);
        }
        "file" => {
            // `evil`, a zero, a byte that is no text, and `bytes`.
            let part = json!({
                "raw": "ZXZpbCAA/yBieXRlcwo=", "filename": "../../evil", "mediaType": "application/octet-stream",
            });
            tasks.artifact(id, &artifact("../../evil", &part), false, true);
            return tasks.status(id, "COMPLETED", None);
        }
        "files" => {
            // `A report of the demo agent.`
            let file = json!({
                "raw": "QSByZXBvcnQgb2YgdGhlIGRlbW8gYWdlbnQuCg==", "filename": "report.txt", "mediaType": "text/plain",
            });
            let link = json!({
                "url": "https://a2a-protocol.org/", "filename": "protocol.html", "mediaType": "text/html",
            });
            let data = json!({"data": {"rows": 2, "columns": ["name", "value"]}});
            for (name, part) in [("report", file), ("table", data), ("protocol", link)] {
                tasks.artifact(id, &artifact(name, &part), false, true);
            }
            return tasks.status(id, "COMPLETED", Some("three artifacts"));
        }
        "escaped" => {
            let name = format!("name{}", DemoAgent::ESCAPES);
            let part = json!({"raw": "eA==", "filename": name, "mediaType": name});
            tasks.artifact(id, &artifact(&name, &part), false, true);
            return tasks.status(id, "COMPLETED", Some(&name));
        }
        "data" => {
            let part = json!({"data": {"answer": 42, "list": [1, "two", null]}});
            tasks.artifact(id, &artifact("data", &part), false, true);
            return tasks.status(id, "COMPLETED", None);
        }
        "task" | "hold" => rest.clone_into(&mut whole),
        _ => {}
    }
    tasks.artifact(id, &artifact("result", &json!({"text": whole})), false, true);
    tasks.status(id, "COMPLETED", None);
}

/// Waits until a task rests, and says what it is then.
pub(crate) fn rest(tasks: &Tasks, id: &str, mut said: usize) -> Option<Value> {
    while let Some(event) = tasks.next(id, said) {
        said += 1;
        if is_last(&event) {
            break;
        }
    }
    tasks.lock().tasks.get(id).map(|task| task.value.clone())
}

fn artifact(name: &str, part: &Value) -> Value {
    json!({"artifactId": new_id("artifact"), "name": name, "parts": [part]})
}

/// Time of the first word: milliseconds, or seconds as `3s`.
fn millis(text: &str) -> u64 {
    let word = text.split(' ').next().unwrap_or_default();
    let in_seconds = word.strip_suffix('s').and_then(|seconds| seconds.parse::<u64>().ok());
    in_seconds.map_or_else(|| number(text, 0), |seconds| seconds.saturating_mul(1000))
}

fn number(text: &str, otherwise: u64) -> u64 {
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(otherwise)
}

fn whoami(asker: &AgentCaller<'_>) -> String {
    let names = ["authorization", "cookie", "x-api-key"];
    let sent = names.iter().filter(|name| asker.seen.header(name).is_some()).collect::<Vec<_>>();
    json!({"account": asker.account, "sent": sent}).to_string()
}
