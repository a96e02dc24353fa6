//! The tools as the reference tells of them: what clients are told, and which request each is.

use serde_json::{Value, json};

use super::tool::{self, Argument, To, Tool};

/// Every tool as clients are told of it, under `listed`; with the request that it is, what is always said in that, and what
/// becomes of each argument.
pub fn described() -> Vec<Value> {
    tool::all().iter().map(one).collect()
}

fn one(tool: &Tool) -> Value {
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
    let becomes = match argument.to {
        To::Path => "the path",
        To::Query => "a parameter",
        To::Member => "the body",
        To::Body => "all of the body",
        To::Key => "`Idempotency-Key`",
        To::Revision => "`If-Match`, `If-None-Match`",
    };
    json!({ "name": argument.name, "becomes": becomes })
}
