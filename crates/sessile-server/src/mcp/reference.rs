//! Description of the tools for the reference.

use serde_json::{Value, json};

use super::arguments::{Argument, ArgumentTarget};
use super::tool::{self, ServiceTool};

/// Every tool as clients see it, under `listed`, with its request, the request's fixed values, and the place of each
/// argument.
pub fn describe_tools() -> Vec<Value> {
    tool::all().iter().map(one).collect()
}

fn one(tool: &ServiceTool) -> Value {
    json!({
        "listed": tool.listed(),
        "method": tool.method.as_str(),
        "path": tool.path,
        "scopes": tool.scopes,
        "always": tool.always.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>(),
        "arguments": tool.arguments.iter().map(argument).collect::<Vec<_>>(),
        "needs_upstream": tool.asks_upstream,
    })
}

fn argument(argument: &Argument) -> Value {
    let becomes = match argument.target {
        ArgumentTarget::Path => "the path",
        ArgumentTarget::Query => "a parameter",
        ArgumentTarget::Member => "the body",
        ArgumentTarget::Body => "all of the body",
        ArgumentTarget::IdempotencyKey => "`Idempotency-Key`",
        ArgumentTarget::Revision => "`If-Match`, `If-None-Match`",
    };
    json!({ "name": argument.name, "becomes": becomes })
}
