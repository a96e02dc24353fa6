//! The OpenAPI document: operations from the routes, schemas from the types that requests and responses are made of.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use sessile_wire::service::{ProblemDetails, ServerSentEvent};

use super::parameters::{self, Parameter};
use super::route::{ResponseBody, Route};
use super::routes;
use crate::account::TokenScope;

const DESCRIPTION: &str = "Sessions, messages, turns, values and locks for many users. Users cannot see each other's data: another user's session is not found. Every write accepts an Idempotency-Key. Errors are application/problem+json with the codes of the command line.";

/// Type that a schema is derived from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SchemaOf {
    /// Name of the schema in the document.
    pub(crate) name: fn() -> Cow<'static, str>,
    reference: fn(&mut SchemaGenerator) -> Schema,
}

impl SchemaOf {
    pub(crate) fn of<T: JsonSchema>() -> Self {
        SchemaOf { name: T::schema_name, reference: SchemaGenerator::subschema_for::<T> }
    }
}

/// An OpenAPI document.
#[derive(JsonSchema)]
#[schemars(rename = "OpenApi")]
pub(super) struct OpenApiDocument {}

/// Generators of the schemas. Optional fields of requests are required in responses.
struct Schemas {
    requests: SchemaGenerator,
    responses: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                // OpenAPI 3.1 sets the dialect for the whole document.
                settings.meta_schema = None;
            })
        };
        Schemas {
            // A field with a default is optional in a request and always present in a response.
            requests: settings().for_deserialize().into_generator(),
            responses: settings().for_serialize().into_generator(),
        }
    }

    /// Content of a request.
    fn request(&mut self, schema: SchemaOf) -> Value {
        json!({ "application/json": { "schema": (schema.reference)(&mut self.requests) } })
    }

    /// Content of a response.
    fn response(&mut self, media_type: &str, schema: SchemaOf) -> Value {
        json!({ media_type: { "schema": (schema.reference)(&mut self.responses) } })
    }

    fn events(&mut self) -> Value {
        self.response("text/event-stream", SchemaOf::of::<ServerSentEvent>())
    }

    /// All schemas that were referred to.
    fn definitions(mut self) -> Map<String, Value> {
        let mut definitions = self.requests.take_definitions(true);
        definitions.extend(self.responses.take_definitions(true));
        // The document is checked in and compared by a test, so its order must not depend on the routes.
        definitions.sort_keys();
        definitions
    }
}

/// OpenAPI document, as served and as printed in the reference.
pub fn document() -> String {
    let (mut schemas, mut parameters, mut paths) = (Schemas::new(), Map::new(), Map::new());
    for route in routes::all() {
        parameters.extend(self::parameters(&route).into_iter().map(Parameter::documented));
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(&route, &mut schemas);
    }
    parameters.sort_keys();
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sessile",
            "version": "1",
            "license": { "name": env!("CARGO_PKG_LICENSE") },
            "description": DESCRIPTION,
        },
        "security": [{ "token": [] }],
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Token from `sessile user token create`: `sst_...`.",
                },
            },
            "parameters": parameters,
            "schemas": schemas.definitions(),
        },
        "paths": paths,
    });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

fn operation(route: &Route, schemas: &mut Schemas) -> Value {
    let mut operation = json!({ "operationId": route.id, "summary": route.summary });
    if route.is_open {
        operation["security"] = json!([]);
    } else if !route.scopes.is_empty() {
        let scopes: Vec<&str> = route.scopes.iter().map(|scope| scope.as_str()).collect();
        operation["description"] = json!(format!("Requires the scope {}.", scopes.join(" and ")));
    }
    let parameters: Vec<Value> = parameters(route).into_iter().map(Parameter::reference).collect();
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if let Some(schema) = route.body {
        operation["requestBody"] = json!({ "required": true, "content": schemas.request(schema) });
    }
    operation["responses"] = responses(route, schemas);
    operation
}

/// Parameters of a request besides its body.
pub(crate) fn parameters(route: &Route) -> Vec<&'static Parameter> {
    let in_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<&Parameter> = in_path.filter_map(parameters::in_path).collect();
    parameters.extend(route.params);
    if route.scopes.contains(&TokenScope::Write) {
        parameters.push(&parameters::IDEMPOTENCY_KEY);
    }
    if route.refusals.contains(&412) {
        parameters.push(&parameters::IF_MATCH);
    }
    if route.refusals.contains(&304) || (route.refusals.contains(&412) && route.path.ends_with("{key}")) {
        parameters.push(&parameters::IF_NONE_MATCH);
    }
    parameters
}

fn responses(route: &Route, schemas: &mut Schemas) -> Value {
    let (status, body) = route.response;
    let mut responses = Map::new();
    let mut done = json!({ "description": "Done." });
    match body {
        ResponseBody::Empty => {}
        ResponseBody::Json(schema) => done["content"] = schemas.response("application/json", schema),
        ResponseBody::EventStream => done["content"] = schemas.events(),
        ResponseBody::Text => done["content"] = json!({ "text/plain": { "schema": { "type": "string" } } }),
    }
    responses.insert(status.to_string(), done);
    if route.needs_read_for_body {
        let description = "Done. A token without the scope `read` gets no body.";
        responses.insert("204".to_owned(), json!({ "description": description }));
    }
    if route.may_stream {
        let description = "With `Accept: text/event-stream`: parts of the reply, then the whole reply.";
        let streamed = json!({ "description": description, "content": schemas.events() });
        responses.insert("200".to_owned(), streamed);
    }
    let mut refusals = route.refusals.to_vec();
    if !route.is_open {
        refusals.extend([400, 401, 403, 429, 503]);
    }
    if route.body.is_some() {
        refusals.extend([408, 413, 415]);
    }
    if route.scopes.contains(&TokenScope::Write) {
        refusals.push(422);
    }
    refusals.sort_unstable();
    // A route may list a status that all routes have.
    refusals.dedup();
    for status in refusals {
        let mut refused = json!({ "description": status_description(status) });
        if status >= 400 {
            let problem = SchemaOf::of::<ProblemDetails>();
            refused["content"] = schemas.response(ProblemDetails::MEDIA_TYPE, problem);
        }
        responses.insert(status.to_string(), refused);
    }
    Value::Object(responses)
}

fn status_description(status: u16) -> &'static str {
    match status {
        204 => "No further events.",
        304 => "Not modified.",
        400 => "Invalid request or value.",
        401 => "Missing or invalid token.",
        403 => "Missing scope, or login denied.",
        404 => "Not found.",
        408 => "Timed out.",
        409 => "Conflict: held by another holder, changed meanwhile, or login pending.",
        410 => "The session has ended or expired, or the events are no longer kept.",
        412 => "Precondition failed: changed meanwhile.",
        413 => "Body too large.",
        415 => "The body must be JSON.",
        422 => "The idempotency key was used for another request.",
        429 => "Too many requests.",
        502 => "Upstream unreachable, or invalid response.",
        504 => "Upstream timed out.",
        _ => "Service or store unavailable.",
    }
}
