//! The tools as the reference tells of them: what clients are told, and which call of the program each is.

use serde_json::{Value, json};

use super::tool::{Input, Kind, Limit, To, Tool, USUAL};
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
        Limit::Longer(name) => format!("{} and `{name}`", sessile::duration::short(USUAL)),
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
    let becomes: Vec<&str> = match (input.kind, input.to) {
        (Kind::Choice(choices), _) => choices.iter().map(|(_, flag)| *flag).collect(),
        (_, To::Word) => vec!["a word"],
        (_, To::Flag(flag)) => vec![flag],
        (_, To::Stdin) => vec!["standard input"],
        (_, To::Directory) => vec!["the working directory"],
    };
    json!({ "name": input.name, "becomes": becomes })
}
