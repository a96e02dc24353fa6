//! Tasks in lists, and their push notifications.

use serde_json::{Value, json};

use crate::options::{AgentBinding, Protocol};
use crate::tasks::{Tasks, new_id};
use crate::wire::{Action, AgentCall, Fault};

/// A page of tasks, newest first; a page's token is where it begins.
pub(crate) fn list(tasks: &Tasks, params: &Value) -> Value {
    let number = |name: &str| {
        let value = &params[name];
        value
            .as_u64()
            .or_else(|| value.as_str()?.parse().ok())
            .and_then(|number| usize::try_from(number).ok())
    };
    let wanted =
        |name: &str, is: &Value| params[name].as_str().is_none_or(|wanted| wanted.is_empty() || is == wanted);
    let state = tasks.lock();
    let all = state.order.iter().rev().filter_map(|id| state.tasks.get(id)).map(|task| &task.value);
    let all = all.filter(|task| wanted("contextId", &task["contextId"]));
    let all = all.filter(|task| wanted("status", &task["status"]["state"])).collect::<Vec<_>>();
    // 50 by default and 100 at most, as version 1.0 specifies.
    let (size, from) = (number("pageSize").unwrap_or(50).clamp(1, 100), number("pageToken").unwrap_or(0));
    let artifacts = params["includeArtifacts"] == true || params["includeArtifacts"] == "true";
    let page = all.iter().skip(from).take(size).map(|task| {
        let mut task = shorten(task, params);
        if let (false, Some(task)) = (artifacts, task.as_object_mut()) {
            task.remove("artifacts");
        }
        task
    });
    let next = if from + size < all.len() { (from + size).to_string() } else { String::new() };
    let page = page.collect::<Vec<_>>();
    json!({"tasks": page, "nextPageToken": next, "pageSize": page.len(), "totalSize": all.len()})
}

/// Task with the requested length of its history.
pub(crate) fn shorten(task: &Value, params: &Value) -> Value {
    let mut task = task.clone();
    let length = &params["historyLength"];
    let length = length.as_u64().or_else(|| length.as_str()?.parse().ok());
    if let (Some(length), Some(history)) = (length, task["history"].as_array_mut()) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        history.drain(..history.len().saturating_sub(length));
    }
    task
}

/// Sets, gets, lists or removes configurations of push notifications.
pub(crate) fn push(tasks: &Tasks, asked: &AgentCall) -> Result<Value, Fault> {
    let (place, id) = (asked.place(), &asked.task);
    let mut state = tasks.lock();
    let Some(task) = state.tasks.get_mut(id) else { return Err(Fault::TaskNotFound(id.clone())) };
    let configs = &mut task.configs;
    // 0.3 may leave it out, and then means the one there is.
    let wanted = asked.push.as_str().filter(|id| !id.is_empty());
    match asked.action {
        Action::SetPush => {
            let mut config = json!({"id": asked.push["id"], "taskId": id});
            if config["id"].as_str().is_none_or(str::is_empty) {
                config["id"] = json!(new_id("push"));
            }
            for name in ["url", "token", "authentication"] {
                if !asked.push[name].is_null() {
                    config[name] = asked.push[name].clone();
                }
            }
            // Setting an id again replaces it.
            configs.retain(|had| had["id"] != config["id"]);
            configs.push(config.clone());
            Ok(place.wrap(place.push(&config)))
        }
        Action::GetPush => {
            let found = configs.iter().find(|config| wanted.is_none_or(|wanted| config["id"] == wanted));
            let found = found.ok_or_else(|| Fault::TaskNotFound(id.clone()))?;
            Ok(place.wrap(place.push(found)))
        }
        Action::DeletePush => {
            configs.retain(|config| Some(&config["id"]) != wanted.map(|id| json!(id)).as_ref());
            Ok(match place.binding {
                AgentBinding::JsonRpc => place.wrap(Value::Null),
                AgentBinding::Rest => json!({}),
            })
        }
        _ => {
            let configs = configs.iter().map(|config| place.push(config)).collect::<Vec<_>>();
            Ok(match (place.protocol, place.binding) {
                (Protocol::V03, AgentBinding::JsonRpc) => place.wrap(json!(configs)),
                _ => place.wrap(json!({"configs": configs})),
            })
        }
    }
}
