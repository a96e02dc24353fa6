//! Pages of the commands, one per group.

use std::fmt::Write;

use clap::CommandFactory;
use serde_json::Value;
use sessile_cli::cli::Cli;
use sessile_cli::commands::manifest::manifest;

use super::{MADE, cell, code, items, text};
use crate::repository;

/// Page, title and top-level commands of each group. Other commands are on the last page.
const GROUPS: &[(&str, &str, &[&str])] = &[
    ("work", "Run commands and sessions", &["run", "shell", "session", "env", "hook", "prompt"]),
    ("targets", "Contexts, credentials and trust", &["context", "import", "auth", "trust"]),
    ("settings", "Settings", &["config"]),
    ("agents", "Agents", &["message", "chat", "agent", "task", "conversation", "mcp", "skill", "setup"]),
    ("coordination", "Locks", &["lock"]),
    ("service", "Service", &["serve", "user", "team", "probe"]),
    ("insight", "Status, history and tools", &["status", "history", "undo", "doctor", "tool", "tui"]),
    ("more", "Other commands", &[]),
];

/// Page of a command.
fn page(path: &str) -> &'static str {
    let top = path.split(' ').next().unwrap_or_default();
    let found = GROUPS.iter().find(|(_, _, commands)| commands.contains(&top));
    found.map_or("more", |(page, _, _)| page)
}

/// Link to the entry of a command, from a page of the reference. `at` is the directory of the link.
pub(super) fn link(at: &str, path: &str) -> String {
    let dir = if at == "commands" { "" } else { "commands/" };
    format!("[`{path}`]({dir}{}.md#sessile-{})", page(path), path.replace(' ', "-"))
}

/// What a flag or argument takes.
fn kind(flag: &Value) -> String {
    let values: Vec<&str> = items(flag, "values").iter().filter_map(Value::as_str).collect();
    let kind = match text(flag, "type") {
        _ if !values.is_empty() => values.join(", "),
        // Any text: its name says which.
        "text" if !text(flag, "value_name").is_empty() => code(text(flag, "value_name")),
        kind => kind.to_owned(),
    };
    if flag["repeatable"] == true { format!("{kind}; repeatable") } else { kind }
}

fn flags(out: &mut String, title: &str, flags: &[Value], with_variable: bool) {
    if flags.is_empty() {
        return;
    }
    let (head, rule) = if with_variable { (" variable |", "---|") } else { ("", "") };
    let _ = writeln!(out, "\n| {title} | takes | default |{head} about |\n|---|---|---|{rule}---|");
    for flag in flags {
        let short = flag["short"].as_str().map_or_else(String::new, |short| format!(", `{short}`"));
        let is_bool = flag["type"] == "bool";
        let takes = if is_bool { "-".to_owned() } else { kind(flag) };
        let default = if is_bool { "" } else { text(flag, "default") };
        let variable =
            if with_variable { format!(" {} |", code(text(flag, "variable"))) } else { String::new() };
        let _ = writeln!(
            out,
            "| {}{short} | {takes} | {} |{variable} {} |",
            code(text(flag, "name")),
            code(default),
            cell(text(flag, "about"))
        );
    }
}

/// The command of a path such as `context use`, in the parser's tree.
fn find(path: &str) -> clap::Command {
    let mut command = Cli::command();
    command.build();
    for name in path.split(' ') {
        command = command.find_subcommand(name).unwrap_or_else(|| panic!("no command {path}")).clone();
    }
    command
}

fn table_of_commands(out: &mut String, commands: &[&Value]) {
    out.push_str("| command | effect | about |\n|---|---|---|\n");
    for command in commands {
        let path = text(command, "path");
        let (effect, about) = (text(command, "effect"), cell(text(command, "about")));
        let _ = writeln!(out, "| {} | {effect} | {about} |", link("commands", path));
    }
}

#[test]
fn commands() {
    let manifest = manifest();
    let mut index = format!("# Commands\n{MADE}\n\n{}\n\n", text(&manifest, "about"));
    index.push_str("`sessile manifest --output json` prints the same for programs.\n");
    for (page, title, _) in GROUPS {
        let of_page = |command: &&Value| self::page(text(command, "path")) == *page;
        let commands: Vec<&Value> = items(&manifest, "commands").iter().filter(of_page).collect();
        assert!(!commands.is_empty(), "{page} has no commands");
        let _ = writeln!(index, "\n## {title}\n");
        table_of_commands(&mut index, &commands);
        let mut out = format!("# {title}\n{MADE}\n\n");
        out.push_str(
            "[All commands](README.md) · [Flags of every command](README.md#flags-of-every-command)\n\n",
        );
        table_of_commands(&mut out, &commands);
        for command in commands {
            entry(&mut out, command);
        }
        repository::assert_generated(&format!("docs/reference/commands/{page}.md"), &out);
    }
    index.push_str("\n## Flags of every command\n");
    flags(&mut index, "flag", items(&manifest, "global_flags"), true);
    index.push_str("\n`--yes` has no variable: confirm each call.\n");
    repository::assert_generated("docs/reference/commands/README.md", &index);
}

/// Entry of one command.
fn entry(out: &mut String, command: &Value) {
    let path = text(command, "path");
    let mut parsed = find(path);
    let _ = writeln!(out, "\n## `sessile {path}`\n");
    let about = parsed.get_long_about().or(parsed.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(out, "{}\n", about.trim().replace('<', "&lt;"));
    let usage = parsed.render_usage().to_string();
    let _ = writeln!(out, "```text\n{}\n```\n", usage.trim().trim_start_matches("Usage: "));
    let scope = command["write_scope"].as_str().map_or_else(String::new, |scope| format!(": {scope}"));
    let _ = write!(out, "Effect: {}{scope}.", text(command, "effect"));
    // Reading is always repeatable.
    if command["idempotent"] == true && command["effect"] != "read" {
        out.push_str(" A repeated call has no further effect.");
    }
    if command["outside"] == true {
        out.push_str(" May contact other machines.");
    }
    out.push('\n');
    let arguments = items(command, "arguments");
    if !arguments.is_empty() {
        out.push_str("\n| argument | takes | about |\n|---|---|---|\n");
        for argument in arguments {
            let must = if argument["required"] == true { "" } else { "; optional" };
            // As in the usage line above.
            let name = text(argument, "value_name");
            let _ =
                writeln!(out, "| `{name}` | {}{must} | {} |", kind(argument), cell(text(argument, "about")));
        }
    }
    flags(out, "flag", items(command, "flags"), false);
    if let Some(examples) = parsed.get_after_help().map(ToString::to_string) {
        let lines = examples.lines().skip_while(|line| !line.starts_with("Examples:")).skip(1);
        let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).map(str::trim_start).collect();
        let _ = writeln!(out, "\n```text\n{}\n```", lines.join("\n"));
    }
    let common: Vec<&str> = sessile_cli::effects::COMMON.iter().map(|code| code.as_str()).collect();
    let own: Vec<String> = items(command, "error_codes")
        .iter()
        .filter_map(Value::as_str)
        .filter(|code| !common.contains(code))
        .map(|code| format!("`{code}`"))
        .collect();
    if !own.is_empty() {
        let _ = writeln!(
            out,
            "\nErrors: {}, and the codes of [every command](../errors.md#codes-of-every-command).",
            own.join(", ")
        );
    }
}
