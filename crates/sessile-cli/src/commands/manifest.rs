//! `sessile manifest`: the whole command tree, from the same source as the parser.

use clap::{Arg, ArgAction, Command, CommandFactory};
use serde::Serialize;
use serde_json::{Value, json};
use sessile::variables::{OWN, SHARED};
use sessile::{App, Code, exit};

use crate::cli::{Cli, Cx};
use crate::commands::lock::run::TOKEN_VARIABLE;
use crate::commands::run::RUN_VARIABLE;
use crate::completion::VARIABLE;
use crate::effects::{self, COMMON};
use crate::error::{Outcome, remedy_of};
use crate::help::examples;
use crate::output::Table;
use crate::settings::app;

/// Describe every command, flag, effect and error code, for programs
#[derive(Debug, clap::Args)]
#[command(after_help = examples!("sessile manifest --output json"))]
pub struct Args {}

pub(crate) fn run(_: &Args, cx: &Cx) -> Outcome {
    let root = built_tree();
    let commands = collect(&root);
    cx.out.result(&manifest_of(&root, &commands), || {
        let mut table = Table::new(&["COMMAND", "EFFECT", "ABOUT"]);
        for command in &commands {
            let about = command.about.as_deref().unwrap_or_default();
            table.row(&[command.path.as_str(), command.effect.unwrap_or_default(), about], None);
        }
        table.render_wrapped(&cx.out)
    })
}

/// The manifest as JSON.
pub fn manifest() -> Value {
    let root = built_tree();
    manifest_of(&root, &collect(&root))
}

fn built_tree() -> Command {
    let mut root = Cli::command();
    root.build();
    root
}

fn manifest_of(root: &Command, commands: &[CommandView]) -> Value {
    let settings = app();
    json!({
        "name": root.get_name(),
        "version": root.get_version(),
        "about": root.get_about().map(ToString::to_string),
        "precedence": ["flag", "environment", "session", "terminal", "directory", "context", "user", "system", "default"],
        "global_flags": root.get_arguments().filter(|arg| arg.is_global_set()).map(flag).collect::<Vec<_>>(),
        "commands": commands,
        "settings": settings.settings().map(|setting| json!({
            "key": setting.key,
            "kind": setting.kind.as_str(),
            "default": setting.default,
            "variable": setting.variable().map(|name| settings.variable(&name)),
            "needs_trust": setting.needs_trust,
            "about": setting.about,
        })).collect::<Vec<_>>(),
        "variables": variables(&settings),
        "error_codes": Code::ALL.iter().map(|code| json!({
            "code": code.as_str(),
            "exit_code": code.exit(),
            "retryable": code.is_retryable(),
            "about": code.about(),
            "cause": remedy_of(*code).cause,
            "remedy": remedy_of(*code).fix,
        })).collect::<Vec<_>>(),
        "exit_codes": exit::ALL.iter().map(|(status, about)| json!({ "exit_code": status, "about": about })).collect::<Vec<_>>(),
    })
}

/// Variables without a flag or a setting.
fn variables(app: &App) -> Vec<Value> {
    let own = OWN.iter().map(|known| (app.variable(known.name), known.about));
    let completion =
        (VARIABLE.to_owned(), "Asks for completions instead of a command; set by the shell's script.");
    let shared = SHARED.iter().map(|known| (known.name.to_owned(), known.about));
    let token = (
        TOKEN_VARIABLE.to_owned(),
        "Set by `lock run` for its command: the fencing token of the lock. Default of --token of `lock renew` and `lock release`.",
    );
    let run = (
        RUN_VARIABLE.to_owned(),
        "Set by `run` with --timeout or --kill-stragglers: mark of the processes of a call.",
    );
    let all = own.chain([completion, token, run]).chain(shared);
    all.map(|(name, about)| json!({ "name": name, "about": about })).collect()
}

/// A command of the manifest.
#[derive(Debug, Serialize)]
struct CommandView {
    path: String,
    about: Option<String>,
    effect: Option<&'static str>,
    write_scope: Option<&'static str>,
    idempotent: Option<bool>,
    outside: Option<bool>,
    arguments: Vec<Value>,
    flags: Vec<Value>,
    error_codes: Vec<&'static str>,
}

/// Commands that can be called, in the order of the tree.
fn collect(root: &Command) -> Vec<CommandView> {
    let mut commands = Vec::new();
    collect_below(root, "", &mut commands);
    commands
}

fn collect_below(command: &Command, path: &str, commands: &mut Vec<CommandView>) {
    for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
        let path = format!("{path} {}", child.get_name());
        // A group alone cannot be called; `backup` and the like are both a command and a group.
        if !child.is_subcommand_required_set() {
            commands.push(describe(child, path.trim_start()));
        }
        collect_below(child, &path, commands);
    }
}

fn describe(command: &Command, path: &str) -> CommandView {
    let entry = effects::entry(path);
    let own = entry.map(|entry| entry.codes).unwrap_or_default();
    let mut codes: Vec<Code> = COMMON.iter().chain(own).copied().collect();
    // The manifest is part of the reference, which a test compares.
    codes.sort_unstable();
    let own_arguments = || {
        command
            .get_arguments()
            .filter(|arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help")
    };
    CommandView {
        path: path.to_owned(),
        about: command.get_about().map(ToString::to_string),
        effect: entry.map(|entry| entry.effect.as_str()),
        write_scope: entry.and_then(|entry| entry.scope),
        idempotent: entry.map(|entry| entry.idempotent),
        outside: entry.map(|entry| entry.outside),
        arguments: own_arguments().filter(|arg| arg.is_positional()).map(argument).collect(),
        flags: own_arguments().filter(|arg| !arg.is_positional()).map(flag).collect(),
        error_codes: codes.iter().map(|code| code.as_str()).collect(),
    }
}

fn argument(arg: &Arg) -> Value {
    json!({
        "name": arg.get_id().as_str(),
        "about": arg.get_help().map(ToString::to_string),
        "value_name": value_name(arg),
        "required": arg.is_required_set(),
        "repeatable": arg.get_num_args().is_some_and(|range| range.max_values() > 1),
        "type": kind(arg),
    })
}

fn flag(arg: &Arg) -> Value {
    let values: Vec<String> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let takes_value = arg.get_action().takes_values();
    // Every global flag but --yes can be said by a variable too.
    let twin = arg.get_long().filter(|long| arg.is_global_set() && *long != "yes" && *long != "help");
    json!({
        "name": arg.get_long().map(|long| format!("--{long}")),
        "short": arg.get_short().map(|short| format!("-{short}")),
        "about": arg.get_help().map(ToString::to_string),
        "value_name": value_name(arg),
        "type": kind(arg),
        "values": if takes_value { values } else { Vec::new() },
        "default": arg.get_default_values().first().map(|value| value.to_string_lossy()),
        "required": arg.is_required_set(),
        "repeatable": matches!(arg.get_action(), ArgAction::Append | ArgAction::Count),
        "variable": twin.map(|long| app().variable(&long.to_uppercase().replace('-', "_"))),
    })
}

/// Name of the value in the usage line; `None` if the flag takes none.
fn value_name(arg: &Arg) -> Option<&str> {
    let names = arg.get_value_names().filter(|_| arg.get_action().takes_values())?;
    names.first().map(|name| name.as_str())
}

fn kind(arg: &Arg) -> &'static str {
    match value_name(arg).unwrap_or_default() {
        _ if !arg.get_action().takes_values() => "bool",
        "DURATION" => "duration",
        "FILE" | "DIR" => "path",
        "N" => "integer",
        "CONTEXT" => "context",
        _ if !arg.get_possible_values().is_empty() => "choice",
        _ => "text",
    }
}
