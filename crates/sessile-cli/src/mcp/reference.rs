//! Tools for the reference: what clients list, and the call of the program behind each.

use serde_json::{Value, json};

use super::tool::{Input, InputTarget, Limit, Tool, USUAL};
use super::tools::TOOLS;

/// Every tool as clients are told of it, under `listed`; with the command it calls, what is always said to that, what
/// becomes of each argument, and how long it may take.
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
        "runs_commands": tool.runs_commands(),
    })
}

fn argument(input: &Input) -> Value {
    let becomes = match input.to {
        InputTarget::Word => "a word",
        InputTarget::Flag(flag) => flag,
        InputTarget::Stdin => "standard input",
        InputTarget::Directory => "the working directory",
    };
    json!({ "name": input.name, "becomes": becomes })
}
