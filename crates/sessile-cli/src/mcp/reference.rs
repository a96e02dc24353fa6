//! Tools for the reference, with the command behind each.

use serde_json::{Value, json};

use super::tool::{Input, InputTarget, Limit, Shape, Tool, USUAL};
use super::tools::TOOLS;

/// Every tool as clients see it, under `listed`, with its command, the command's fixed arguments, the place of each
/// argument, and the time limit.
pub fn described() -> Vec<Value> {
    TOOLS.iter().map(one).collect()
}

fn one(tool: &Tool) -> Value {
    let limit = match tool.limit {
        Limit::Usual => sessile::duration::short(USUAL),
        Limit::Given(name, usual) if tool.input.iter().any(|input| input.name == name) => {
            format!("`{name}`, or {usual}")
        }
        Limit::Given(_, usual) => usual.to_owned(),
        Limit::Longer(name, usual) => format!("{} and `{name}`, or {usual}", sessile::duration::short(USUAL)),
    };
    json!({
        "listed": tool.listed(),
        "command": tool.command,
        "always": tool.always,
        "arguments": tool.input.iter().map(argument).collect::<Vec<_>>(),
        "limit": limit,
        "result": result(tool),
        "runs_commands": tool.runs_commands(),
    })
}

/// Members of the result.
fn result(tool: &Tool) -> Vec<&'static str> {
    match tool.shape {
        Shape::List(items) => {
            [Some("count"), Some(items), tool.page_key.map(|_| "next_cursor")].into_iter().flatten().collect()
        }
        Shape::Object | Shape::Captured => tool.output.iter().map(|field| field.name).collect(),
    }
}

fn argument(input: &Input) -> Value {
    let becomes = match input.to {
        InputTarget::Word => "a word",
        InputTarget::Flag(flag) | InputTarget::PathFlag(flag) => flag,
        InputTarget::Conversation => "--continue or --conversation",
        InputTarget::PageLimit => "--limit",
        InputTarget::Stdin => "standard input",
        InputTarget::Directory => "the working directory",
    };
    json!({ "name": input.name, "becomes": becomes })
}
