//! Arguments of a tool: their kinds, and the typed values of a call.

use serde_json::{Map, Value};
use sessile::text::{quoted, shortened};

use super::tool::ServiceTool;
use crate::http::ApiProblem;

/// Kind of an argument, by the type in its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentKind {
    Text,
    Integer,
    Boolean,
    /// Part of a body. The API parses it with the type of the request, so its refusals are the same for tools and for HTTP.
    Json,
}

/// Part of the request that an argument becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentTarget {
    /// Segment of the path.
    Path,
    /// Parameter of the query.
    Query,
    /// Member of the body.
    Member,
    /// Whole body.
    Body,
    /// Header `Idempotency-Key`.
    IdempotencyKey,
    /// Revision of `If-Match`; 0 becomes `If-None-Match: *`.
    Revision,
}

/// Argument of a tool.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) target: ArgumentTarget,
    pub(super) kind: ArgumentKind,
    pub(super) schema: Value,
    pub(super) is_required: bool,
}

/// Value of an argument, of its kind.
#[derive(Debug, PartialEq)]
pub(super) enum ArgumentValue {
    Text(String),
    Integer(i64),
    Boolean(bool),
    Json(Value),
}

impl ArgumentKind {
    /// Kind of an argument that becomes part of the path, the query or a header; `Json` for an unknown type.
    pub(super) fn of_schema(schema: &Value) -> Self {
        match schema["type"].as_str() {
            Some("string") => ArgumentKind::Text,
            Some("integer") => ArgumentKind::Integer,
            Some("boolean") => ArgumentKind::Boolean,
            _ => ArgumentKind::Json,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            ArgumentKind::Text => "text",
            ArgumentKind::Integer => "integer",
            ArgumentKind::Boolean => "boolean",
            ArgumentKind::Json => "JSON",
        }
    }
}

impl ArgumentValue {
    /// Text of the value in a path, a query or a header.
    pub(super) fn into_text(self) -> String {
        match self {
            ArgumentValue::Text(text) => text,
            ArgumentValue::Integer(number) => number.to_string(),
            ArgumentValue::Boolean(switch) => switch.to_string(),
            ArgumentValue::Json(value) => value.to_string(),
        }
    }
}

impl From<ArgumentValue> for Value {
    fn from(value: ArgumentValue) -> Self {
        match value {
            ArgumentValue::Text(text) => text.into(),
            ArgumentValue::Integer(number) => number.into(),
            ArgumentValue::Boolean(switch) => switch.into(),
            ArgumentValue::Json(value) => value,
        }
    }
}

impl Argument {
    fn parse(&self, value: Value) -> Result<ArgumentValue, ApiProblem> {
        match (self.kind, value) {
            (ArgumentKind::Json, value) => Ok(ArgumentValue::Json(value)),
            (ArgumentKind::Text, Value::String(text)) => Ok(ArgumentValue::Text(text)),
            (ArgumentKind::Boolean, Value::Bool(switch)) => Ok(ArgumentValue::Boolean(switch)),
            (kind, value) => {
                // Numbers beyond 64 bits and fractions are refused here, with the argument's name.
                if let (ArgumentKind::Integer, Some(number)) = (kind, value.as_i64()) {
                    return Ok(ArgumentValue::Integer(number));
                }
                let (name, value) = (quoted(&self.name), shortened(&value.to_string(), 60));
                Err(ApiProblem::invalid(format!(
                    "the argument {name} must be {}, not {value}",
                    kind.as_str()
                )))
            }
        }
    }
}

/// Typed arguments of a call, in the order of the tool. An unknown name is refused, because a misspelt one would change
/// what the call does.
pub(super) fn parse(
    tool: &ServiceTool,
    mut given: Map<String, Value>,
) -> Result<Vec<(&Argument, ArgumentValue)>, ApiProblem> {
    check_names(tool, &given)?;
    let mut parsed = Vec::with_capacity(given.len());
    for argument in &tool.arguments {
        let name = argument.name.as_str();
        // `null` is a value of its own in a state entry; elsewhere it stands for an omitted argument.
        let is_body = argument.target == ArgumentTarget::Body;
        match given.remove(name).filter(|value| is_body || !value.is_null()) {
            Some(value) => parsed.push((argument, argument.parse(value)?)),
            None if argument.is_required => {
                return Err(ApiProblem::usage(format!(
                    "{} requires the argument {}",
                    tool.name,
                    quoted(name)
                )));
            }
            None => {}
        }
    }
    Ok(parsed)
}

fn check_names(tool: &ServiceTool, given: &Map<String, Value>) -> Result<(), ApiProblem> {
    let known = || tool.arguments.iter().map(|argument| argument.name.as_str());
    let Some(other) = given.keys().find(|name| !known().any(|known| known == name.as_str())) else {
        return Ok(());
    };
    let near = sessile::names::nearest(other, known());
    let near = near.map_or_else(String::new, |near| format!("; did you mean {}?", quoted(near)));
    let other = quoted(shortened(other, 60));
    Err(ApiProblem::usage(format!("{} takes no argument {other}{near}", tool.name)))
}
