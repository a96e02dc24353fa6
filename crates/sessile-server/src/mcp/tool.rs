//! A tool: an entry of the table, with what the route and the OpenAPI document say of its request.

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::arguments::{Argument, ArgumentKind, ArgumentTarget};
use super::tools::{ARGUMENTS, TOOLS, ToolEntry};
use crate::account::TokenScope;
use crate::http::parameters::Location;
use crate::http::{BOTH, ResponseBody, Route, openapi, routes};

/// A tool that an agent can call.
#[derive(Debug)]
pub(crate) struct ServiceTool {
    pub(super) name: &'static str,
    about: &'static str,
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) scopes: &'static [TokenScope],
    pub(super) always: &'static [(&'static str, &'static str)],
    pub(super) arguments: Vec<Argument>,
    /// The schema of the result, if it has one.
    output: Option<Value>,
    destroys: bool,
    pub(super) asks_upstream: bool,
}

/// All tools, in the order of the table.
pub(super) fn all() -> Vec<ServiceTool> {
    let document: Value = serde_json::from_str(&openapi::document()).unwrap_or_default();
    let routes = routes();
    // That every entry has its route is tested.
    let of = |entry: &ToolEntry| {
        let route = routes.iter().find(|route| route.id == entry.operation)?;
        Some(ServiceTool::new(entry, route, &document["components"]))
    };
    TOOLS.iter().filter_map(of).collect()
}

impl ServiceTool {
    fn new(entry: &ToolEntry, route: &Route, components: &Value) -> Self {
        ServiceTool {
            name: entry.name,
            about: entry.about,
            method: route.method.clone(),
            path: route.path,
            // A reply reveals the messages before it.
            // A listed tool always has the result that its schema describes.
            scopes: if entry.asks_upstream || route.needs_read_for_body { BOTH } else { route.scopes },
            always: entry.always,
            arguments: arguments(entry, route, components),
            output: match route.response.1 {
                ResponseBody::Json(schema) => Some(result(&components["schemas"], &(schema.name)())),
                _ => None,
            },
            destroys: entry.destroys,
            asks_upstream: entry.asks_upstream,
        }
    }

    /// Entry in the list of tools.
    pub(super) fn listed(&self) -> Value {
        let properties: Map<String, Value> =
            self.arguments.iter().map(|one| (one.name.clone(), one.schema.clone())).collect();
        let needed: Vec<&str> =
            self.arguments.iter().filter(|one| one.is_required).map(|one| one.name.as_str()).collect();
        let mut input = json!({ "type": "object", "properties": properties });
        if !needed.is_empty() {
            input["required"] = json!(needed);
        }
        let mut listed = json!({ "name": self.name, "description": self.about, "inputSchema": input });
        if let Some(output) = &self.output {
            listed["outputSchema"] = output.clone();
        }
        listed["annotations"] = self.annotations();
        listed
    }

    /// Annotations that differ from the protocol's defaults, and always the destructive hint.
    fn annotations(&self) -> Value {
        let mut annotations = Map::new();
        let mut say = |hint: &str, value: bool| annotations.insert(hint.to_owned(), json!(value));
        if self.method == Method::GET {
            say("readOnlyHint", true);
        } else {
            say("destructiveHint", self.destroys);
            // What these methods do twice is done once.
            if matches!(self.method, Method::PUT | Method::DELETE) {
                say("idempotentHint", true);
            }
        }
        if !self.asks_upstream {
            say("openWorldHint", false);
        }
        Value::Object(annotations)
    }
}

fn arguments(entry: &ToolEntry, route: &Route, components: &Value) -> Vec<Argument> {
    let mut arguments = Vec::new();
    let is_argument = |name: &str| {
        !entry.without.contains(&name) && !entry.always.iter().any(|(always, _)| *always == name)
    };
    for parameter in openapi::parameters(route) {
        let to = match parameter.location {
            Location::Path => ArgumentTarget::Path,
            Location::Query if is_argument(parameter.name) => ArgumentTarget::Query,
            _ => continue,
        };
        arguments.push(Argument::new(parameter.name, to, &(parameter.schema)(), parameter.is_required));
    }
    let body = route.body.map(|schema| &components["schemas"][&*(schema.name)()]);
    match body.map(|body| (body, body["properties"].as_object())) {
        Some((body, Some(members))) => {
            let needed = body["required"].as_array().map(Vec::as_slice).unwrap_or_default();
            for (name, schema) in members {
                let is_needed = needed.iter().any(|needed| needed == name);
                arguments.push(Argument::new(name, ArgumentTarget::Member, schema, is_needed));
            }
        }
        Some((body, None)) => arguments.push(Argument::new("value", ArgumentTarget::Body, body, true)),
        None => {}
    }
    if route.refusals.contains(&412) {
        arguments.push(Argument::new(
            "if_revision",
            ArgumentTarget::Revision,
            &json!({ "type": "integer" }),
            false,
        ));
    }
    if route.scopes.contains(&TokenScope::Write) {
        arguments.push(Argument::new(
            "idempotency_key",
            ArgumentTarget::IdempotencyKey,
            &json!({ "type": "string" }),
            false,
        ));
    }
    arguments
}

impl Argument {
    fn new(name: &str, target: ArgumentTarget, schema: &Value, is_required: bool) -> Self {
        let mut schema = lean(schema);
        let kind = match target {
            ArgumentTarget::Member | ArgumentTarget::Body => ArgumentKind::Json,
            _ => ArgumentKind::of_schema(&schema),
        };
        if let Some((_, about)) = ARGUMENTS.iter().find(|(argument, _)| *argument == name) {
            schema["description"] = json!(about);
        }
        Argument { name: name.to_owned(), target, kind, schema, is_required }
    }
}

/// Parts of a schema that help a model. Limits are left out, because a list of tools is read in every conversation.
fn lean(schema: &Value) -> Value {
    let mut lean = Map::new();
    if let Some(kind) = kind(schema) {
        lean.insert("type".to_owned(), json!(kind));
    }
    for name in ["enum", "default"] {
        if let Some(value) = schema.get(name) {
            lean.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(items) = schema.get("items") {
        lean.insert("items".to_owned(), self::lean(items));
    }
    Value::Object(lean)
}

/// Type of a value, besides null.
fn kind(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    }
}

/// Schema of a result: its required fields, with their types unless they may be null.
fn result(schemas: &Value, name: &str) -> Value {
    let schema = &schemas[name];
    let members = schema["properties"].as_object().into_iter().flatten();
    let properties: Map<String, Value> = members
        // A nullable member has an array of types; clients that validate strictly would refuse its null.
        .filter_map(|(name, member)| Some((name.clone(), json!({ "type": member["type"].as_str()? }))))
        .collect();
    json!({ "type": "object", "properties": properties, "required": schema["required"] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str) -> Value {
        all().iter().find(|tool| tool.name == name).unwrap().listed()
    }

    #[test]
    fn every_operation_is_a_tool_or_listed_as_none() {
        let tools = all();
        assert_eq!(tools.len(), TOOLS.len());
        // Streams are for those who stay connected, the rest is for people and programs.
        let others = [
            "followSession",
            "editSession",
            "rewindSession",
            "whoAmI",
            "getHistory",
            "beginLogin",
            "collectLogin",
            "isHealthy",
            "isReady",
            "getMetrics",
            "getOpenApi",
        ];
        for route in routes() {
            let offered = TOOLS.iter().any(|entry| entry.operation == route.id);
            assert!(offered != others.contains(&route.id), "{}", route.id);
        }
    }

    #[test]
    fn tool_descriptions_stay_under_12_kb() {
        let tools: Vec<Value> = all().iter().map(ServiceTool::listed).collect();
        let size =
            json!({ "jsonrpc": "2.0", "id": 1_000_000, "result": { "tools": tools } }).to_string().len();
        assert!(size < 12_000, "{size}");
    }

    #[test]
    fn arguments_and_results_are_those_of_the_route() {
        let begin = listed("begin_turn");
        let names: Vec<&String> = begin["inputSchema"]["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["session", "ttl_ms", "wait_ms", "busy", "history", "holder", "idempotency_key"]);
        assert_eq!(begin["inputSchema"]["required"], json!(["session"]));
        assert_eq!(begin["outputSchema"]["properties"]["token"], json!({ "type": "integer" }));
        let set = listed("set_state");
        assert_eq!(set["inputSchema"]["required"], json!(["session", "key", "value"]));
        assert!(set["inputSchema"]["properties"]["if_revision"].is_object());
        let append = &listed("append_messages")["inputSchema"];
        assert!(append["properties"].get("reply").is_none() && append["properties"].get("busy").is_none());
        let send = &listed("send_message")["inputSchema"];
        assert!(send["properties"].get("reply").is_none() && send["properties"].get("busy").is_some());
        assert!(listed("abandon_turn").get("outputSchema").is_none());
    }

    #[test]
    fn annotations_say_what_is_read_destroyed_and_asked_outside() {
        let of = |name: &str| listed(name)["annotations"].clone();
        assert_eq!(of("list_sessions"), json!({ "readOnlyHint": true, "openWorldHint": false }));
        assert_eq!(
            of("stop_session"),
            json!({ "destructiveHint": true, "idempotentHint": true, "openWorldHint": false })
        );
        assert_eq!(of("set_state")["destructiveHint"], true, "the old value is overwritten");
        assert_eq!(of("append_messages"), json!({ "destructiveHint": false, "openWorldHint": false }));
        assert_eq!(of("send_message"), json!({ "destructiveHint": false }));
        for tool in all() {
            let reads = tool.scopes == [TokenScope::Read];
            assert_eq!(of(tool.name)["readOnlyHint"] == true, reads, "{}", tool.name);
        }
    }
}
