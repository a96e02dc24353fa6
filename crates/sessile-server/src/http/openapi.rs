//! The OpenAPI document: made from the routes, and from the schemas in `openapi.base.json`.

use serde_json::{Map, Value, json};

use super::problem;
use super::route::Route;
use super::routes;
use crate::account::Scope;

const BASE: &str = include_str!("openapi.base.json");

/// The document, as it is served and stands in the reference.
pub fn document() -> String {
    let mut document: Value = serde_json::from_str(BASE).unwrap_or_default();
    let mut paths = Map::new();
    for route in routes::all() {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(&route);
    }
    document["paths"] = Value::Object(paths);
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({ "operationId": route.id, "summary": route.summary });
    if route.is_open {
        operation["security"] = json!([]);
    } else if !route.scopes.is_empty() {
        let scopes: Vec<&str> = route.scopes.iter().map(name).collect();
        operation["description"] = json!(format!("Needs a token with the scope {}.", scopes.join(" and ")));
    }
    let parameters: Vec<Value> = parameters(route)
        .iter()
        .map(|name| json!({ "$ref": format!("#/components/parameters/{name}") }))
        .collect();
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if let Some(schema) = route.body {
        operation["requestBody"] =
            json!({ "required": true, "content": content("application/json", schema) });
    }
    operation["responses"] = responses(route);
    operation
}

fn name(scope: &Scope) -> &'static str {
    match scope {
        Scope::Read => "read",
        Scope::Write => "write",
        Scope::Admin => "admin",
    }
}

fn parameters(route: &Route) -> Vec<String> {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut names: Vec<String> = in_path.map(|name| format!("{name}-path")).collect();
    names.extend(route.params.iter().map(|name| (*name).to_owned()));
    let writes = route.scopes.contains(&Scope::Write);
    if writes {
        names.push("idempotency-key".to_owned());
    }
    if route.refusals.contains(&412) {
        names.push("if-match".to_owned());
    }
    if route.refusals.contains(&304) || (route.refusals.contains(&412) && route.path.ends_with("{key}")) {
        names.push("if-none-match".to_owned());
    }
    names
}

fn responses(route: &Route) -> Value {
    let (status, schema) = route.reply;
    let mut responses = Map::new();
    let done = match schema {
        None => json!({ "description": "Done." }),
        Some("EventStream") => {
            json!({ "description": "Done.", "content": content("text/event-stream", "ServerSentEvent") })
        }
        Some("Metrics") => {
            json!({ "description": "Done.", "content": { "text/plain": { "schema": { "type": "string" } } } })
        }
        Some(schema) => json!({ "description": "Done.", "content": content("application/json", schema) }),
    };
    responses.insert(status.to_string(), done);
    if route.may_stream {
        let content = content("text/event-stream", "ServerSentEvent");
        let description = "With `Accept: text/event-stream`: the reply as it comes, then all of it.";
        responses.insert("200".to_owned(), json!({ "description": description, "content": content }));
    }
    let mut refusals = route.refusals.to_vec();
    if !route.is_open {
        refusals.extend([400, 401, 403, 429, 503]);
    }
    if route.body.is_some() {
        refusals.extend([408, 413, 415]);
    }
    if route.scopes.contains(&Scope::Write) {
        refusals.push(422);
    }
    refusals.sort_unstable();
    refusals.dedup();
    for status in refusals {
        let mut refused = json!({ "description": described(status) });
        if status >= 400 {
            refused["content"] = content(problem::MEDIA_TYPE, "Problem");
        }
        responses.insert(status.to_string(), refused);
    }
    Value::Object(responses)
}

fn content(media: &str, schema: &str) -> Value {
    json!({ media: { "schema": { "$ref": format!("#/components/schemas/{schema}") } } })
}

fn described(status: u16) -> &'static str {
    match status {
        204 => "There is nothing to come.",
        304 => "It has not changed.",
        400 => "The request is not one, or a value in it cannot be.",
        401 => "A valid token is needed.",
        403 => "The token does not allow this, or the login was refused.",
        404 => "There is no such thing of yours.",
        408 => "What was waited for did not come in time.",
        409 => "Somebody else has it, it has changed, or nobody has decided yet.",
        410 => "The session has ended or expired, or the events are not kept any more.",
        412 => "It has changed since.",
        413 => "It is too large.",
        415 => "A body is JSON.",
        422 => "The idempotency key was used for something else.",
        429 => "Too many requests.",
        502 => "The upstream cannot be reached, or gave no reply.",
        504 => "The upstream did not answer in time.",
        _ => "The service or its store cannot do it now.",
    }
}
