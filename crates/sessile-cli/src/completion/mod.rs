//! Completion in the shell, of commands, flags and the names that exist now.
//!
//! The scripts in this directory pass the words of the line to the program, and complete what follows `--` as the shell
//! completes the wrapped command itself. The program answers with the tree of commands and the completers in `values`.

mod values;

use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

use clap::{Arg, Command, CommandFactory};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use sessile::{World, exit};

use crate::cli::Cli;

/// Variable in which the completion scripts pass the index of the word. Users do not set it.
const INDEX_VARIABLE: &str = "_CLAP_COMPLETE_INDEX";

/// The variable by which a shell's script asks for completions.
pub(crate) const VARIABLE: &str = "SESSILE_COMPLETE";

/// Script for bash, which splits words at `=` and `:`.
pub(crate) const BASH: &str = include_str!("sessile.bash");
/// Script for zsh.
pub(crate) const ZSH: &str = include_str!("sessile.zsh");
/// Script for fish.
pub(crate) const FISH: &str = include_str!("sessile.fish");

/// The words before the one that is completed, for completers whose values depend on them.
static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Answers a completion request of the shell. Returns the exit status, or `None` without a request.
pub(crate) fn answer(world: &World, args: &[OsString]) -> Option<u8> {
    let words: Vec<OsString> = args.iter().skip_while(|arg| *arg != "--").skip(1).cloned().collect();
    let index = world.variable(INDEX_VARIABLE).and_then(|index| index.to_str()?.parse().ok());
    let index = index.unwrap_or_else(|| words.len().saturating_sub(1));
    let _ = WORDS.set(words.into_iter().take(index).collect());
    let complete = CompleteEnv::with_factory(tree).var(VARIABLE);
    match complete.try_complete(args.to_vec(), world.cwd()) {
        Ok(true) => Some(exit::DONE),
        Ok(false) => None,
        // A message would appear in the middle of the line that the user types.
        Err(_) => Some(exit::FAILED),
    }
}

/// The words before the one that is completed.
fn words() -> &'static [OsString] {
    WORDS.get().map(Vec::as_slice).unwrap_or_default()
}

/// Complete command tree. An ordinary call builds only the command that it runs.
fn tree() -> Command {
    let mut tree = Cli::command();
    tree.build();
    let switch = tree.find_subcommand("context").and_then(|group| group.find_subcommand("use")).cloned();
    // The parser expands this word, so the tree does not have it.
    let tree = tree.subcommands(switch);
    with_completers(tree, "")
}

/// The tree with completers for the values that have names. Ordinary calls are spared the cost.
fn with_completers(mut command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    for name in names {
        let below = if path.is_empty() { name.clone() } else { format!("{path} {name}") };
        command = command.mut_subcommand(name, |command| with_completers(command, &below));
    }
    command.mut_args(|arg| with_completer(arg, path))
}

fn with_completer(arg: Arg, path: &str) -> Arg {
    // An argument with a list of its own needs no other.
    if !arg.get_possible_values().is_empty() {
        return arg;
    }
    let names: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let completer: fn(&OsStr) -> Vec<CompletionCandidate> =
        match (names.first().map(String::as_str), arg.get_long(), path) {
            (Some("CONTEXT"), _, _) | (_, Some("context"), _) => values::contexts,
            (Some("SESSION"), _, _) | (_, Some("session"), _) => values::sessions,
            (Some("CREDENTIAL"), _, _) | (_, Some("credential" | "login"), _) => values::credentials,
            (Some("NAME=CREDENTIAL" | "URL=CREDENTIAL"), _, _) => values::credentials_of_pairs,
            (Some("AGENT"), _, _) | (Some("NAME"), None, "agent remove") => values::agents,
            (Some("LOCK"), _, _) => values::locks,
            (Some("CONVERSATION"), _, _) | (_, Some("conversation"), _) => values::conversations,
            (Some("TOOL"), _, _) => values::tools,
            (Some("TOOL.KEY=VALUE"), _, _) => values::bindings,
            (_, Some("only"), "import") => values::importable_contexts,
            (Some("KEY"), None, _) => values::settings,
            (Some("KEY=VALUE"), Some("set" | "setting"), _) => values::setting_pairs,
            (Some("VALUE"), None, "config set") => values::setting_values,
            _ => return arg,
        };
    arg.add(ArgValueCompleter::new(completer))
}
