//! The reference in `docs/reference/` is made from the tables that the program itself uses, and cannot rot.

#![expect(clippy::panic, reason = "a test fails by panicking")]

mod commands;
mod errors;

use std::fmt::Write;

use serde_json::Value;
use sessile_cli::commands::manifest::manifest;

use self::commands::link;

use crate::repository;

const MADE: &str =
    "<!-- Made from the program by crates/sessile-cli/tests/it/documents/reference.rs; do not edit. -->";

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ").replace('<', "&lt;")
}

/// Text for a cell, as code, or a dash.
fn code(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { format!("`{}`", text.replace('|', "\\|")) }
}

#[test]
fn settings() {
    let mut out = format!("# Settings\n{MADE}\n\n");
    out.push_str(
        "Each setting has a value and an origin; [concepts](../explanation/concepts.md#precedence) has the precedence. A `*`\n\
         matches any name. A setting that needs trust takes effect in a project's file only after you\n\
         [trust](../guide/configuration.md#trust) the project.\n\n\
         | key | takes | default | variable | needs trust | about |\n|---|---|---|---|---|---|\n",
    );
    let app = sessile_cli::app();
    let mut settings: Vec<_> = app.settings().collect();
    settings.sort_by_key(|setting| setting.key);
    for setting in settings {
        let variable = setting.variable().map(|name| app.variable(&name)).unwrap_or_default();
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} |",
            setting.key,
            cell(&setting.kind.expected()),
            code(setting.default.unwrap_or_default()),
            code(&variable),
            if setting.needs_trust { "yes" } else { "no" },
            cell(setting.about)
        );
    }
    out.push_str("\n[settings.schema.json](settings.schema.json) is the JSON Schema, for editors.\n");
    repository::assert_generated("docs/reference/settings.md", &out);
}

#[test]
fn settings_schema() {
    let schema = sessile::settings::schema::settings(&sessile_cli::app());
    repository::assert_generated("docs/reference/settings.schema.json", &format!("{schema:#}\n"));
}

/// Every variable: those that stand for flags, those that stand for settings, and the others.
fn variables() -> Vec<(String, String)> {
    let manifest = manifest();
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, about: String| {
        if !name.is_empty() && !all.iter().any(|(known, _)| known == name) {
            all.push((name.to_owned(), about));
        }
    };
    for flag in items(&manifest, "global_flags") {
        let about = match text(flag, "name") {
            "--set" => "`--set`, one KEY=VALUE on each line.".to_owned(),
            name => format!("`{name}`: {}.", text(flag, "about")),
        };
        add(text(flag, "variable"), about);
    }
    for setting in items(&manifest, "settings") {
        add(
            text(setting, "variable"),
            format!("The setting `{}`: {}", text(setting, "key"), text(setting, "about")),
        );
    }
    for variable in items(&manifest, "variables") {
        add(text(variable, "name"), text(variable, "about").to_owned());
    }
    all
}

#[test]
fn environment() {
    let mut out = format!("# Environment variables\n{MADE}\n\n");
    out.push_str(
        "An empty variable counts as not set. A flag overrides its variable. `--yes` has no variable.\n\n\
         | variable | effect |\n|---|---|\n",
    );
    for (name, about) in variables() {
        let _ = writeln!(out, "| `{name}` | {} |", cell(&about));
    }
    repository::assert_generated("docs/reference/environment.md", &out);
}

#[test]
fn every_variable_that_the_source_names_is_in_the_reference() {
    let known = variables();
    let is_known = |name: &str| {
        known.iter().any(|(known, _)| {
            // A name that ends in `*` stands for all that begin so.
            let known = known.trim_end_matches('*');
            known == name || known.strip_prefix("SESSILE_") == Some(name)
        })
    };
    let mut seen = 0;
    for file in repository::files(".rs") {
        let in_source =
            file.to_string_lossy().contains("/src/") && !file.to_string_lossy().contains("testkit");
        let source = if in_source { repository::read(&file) } else { String::new() };
        for line in source.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for (at, _) in line.match_indices("variable(\"") {
                let name = line[at + "variable(\"".len()..].split('"').next().unwrap();
                assert!(is_known(name), "{}: {name} is in no table of variables", file.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 5, "the search has gone blind");
}

/// Whether a tool needs an argument.
fn is_needed(listed: &Value, name: &str) -> bool {
    items(&listed["inputSchema"], "required").iter().any(|needed| needed == name)
}

/// The annotations of a tool.
fn hints(listed: &Value) -> String {
    let hints = listed["annotations"].as_object().into_iter().flatten();
    hints.map(|(hint, value)| format!("`{hint}: {value}`")).collect::<Vec<_>>().join(", ")
}

/// What an argument of a tool takes, in the words of the page of commands.
fn schema_kind(schema: &Value) -> String {
    let choices: Vec<&str> = items(schema, "enum").iter().filter_map(Value::as_str).collect();
    match text(schema, "type") {
        "" if choices.is_empty() => "any JSON".to_owned(),
        "" => choices.join(", "),
        "array" if schema["items"].get("type").is_none() => "a list of any JSON".to_owned(),
        "array" => "a list of texts".to_owned(),
        "string" => "text".to_owned(),
        kind => kind.to_owned(),
    }
}

#[test]
fn mcp_tools() {
    let tools = sessile_cli::mcp::described();
    let mut out = format!("# MCP tools\n{MADE}\n\n");
    out.push_str(
        "Tools of [`sessile mcp`](../guide/mcp.md). Every tool runs its command with `--output=json --no-input`;\n\
         [its entry](commands/README.md) describes the effect and the errors.\n\n\
         | tool | calls | effect | about |\n|---|---|---|---|\n",
    );
    let effect = |tool: &Value| match &tool["listed"]["annotations"] {
        hints if hints["readOnlyHint"] == true => "read",
        hints if hints["destructiveHint"] == true => "destructive",
        _ => "write",
    };
    let call = |tool: &Value| link("", text(tool, "command"));
    for tool in &tools {
        let name = text(&tool["listed"], "name");
        let about = cell(text(&tool["listed"], "description"));
        let _ = writeln!(out, "| [`{name}`](#{name}) | {} | {} | {about} |", call(tool), effect(tool));
    }
    out.push_str(
        "\nWith `--read-only` the server offers only the tools that read. It offers `run` with `--allow-run`, and to\n\
         clients that can prompt their user. A result may have further fields. A list has the number of its items in\n\
         `count`.\n",
    );
    for tool in &tools {
        let listed = &tool["listed"];
        let _ = writeln!(out, "\n## `{}`\n\n{}\n", text(listed, "name"), cell(text(listed, "description")));
        let always: Vec<String> =
            items(tool, "always").iter().filter_map(Value::as_str).map(|word| format!(" `{word}`")).collect();
        let with = if always.is_empty() { String::new() } else { format!(" with{}", always.join("")) };
        let limit = text(tool, "limit");
        let _ = writeln!(out, "Calls {}{with}. Time limit: {limit}.", call(tool));
        let arguments = items(tool, "arguments");
        if !arguments.is_empty() {
            out.push_str("\n| argument | takes | becomes | about |\n|---|---|---|---|\n");
        }
        for argument in arguments {
            let name = text(argument, "name");
            let schema = &listed["inputSchema"]["properties"][name];
            let is_needed = is_needed(listed, name);
            let optional = if is_needed { "" } else { "; optional" };
            let becomes = argument["becomes"].as_str().unwrap();
            let becomes = if becomes.starts_with('-') { code(becomes) } else { becomes.to_owned() };
            let _ = writeln!(
                out,
                "| `{name}` | {}{optional} | {becomes} | {} |",
                schema_kind(schema),
                cell(text(schema, "description"))
            );
        }
        let fields: Vec<String> = items(tool, "result").iter().filter_map(Value::as_str).map(code).collect();
        let fields =
            if fields.is_empty() { "the output of the command".to_owned() } else { fields.join(", ") };
        let _ = writeln!(out, "\nResult: {fields}. Annotations: {}.", hints(listed));
    }
    repository::assert_generated("docs/reference/mcp-tools.md", &out);
}

#[test]
fn service_tools() {
    let tools = sessile_server::mcp_tools();
    let mut out = format!("# MCP tools of the service\n{MADE}\n\n");
    out.push_str(
        "Tools of [`sessile serve`](http-api.md#mcp) at `/mcp`. Every tool is a request of [the API](openapi.json) with\n\
         the same token. The scopes of the token select the tools. A result may have further fields.\n\n\
         | tool | request | scopes | about |\n|---|---|---|---|\n",
    );
    let request = |tool: &Value| format!("`{} {}`", text(tool, "method"), text(tool, "path"));
    for tool in &tools {
        let name = text(&tool["listed"], "name");
        let about = cell(text(&tool["listed"], "description"));
        let scopes: Vec<&str> = items(tool, "scopes").iter().filter_map(Value::as_str).collect();
        let _ =
            writeln!(out, "| [`{name}`](#{name}) | {} | {} | {about} |", request(tool), scopes.join(", "));
    }
    for tool in &tools {
        let listed = &tool["listed"];
        let _ = writeln!(out, "\n## `{}`\n\n{}\n", text(listed, "name"), cell(text(listed, "description")));
        let always: Vec<String> = items(tool, "always")
            .iter()
            .filter_map(Value::as_str)
            .map(|one| format!(" with `{one}`"))
            .collect();
        let upstream = if tool["needs_upstream"] == true { " Only with `--upstream`." } else { "" };
        let _ = writeln!(out, "Is {}{}.{upstream}", request(tool), always.join(""));
        let arguments = items(tool, "arguments");
        if !arguments.is_empty() {
            out.push_str("\n| argument | takes | becomes | about |\n|---|---|---|---|\n");
        }
        for argument in arguments {
            let name = text(argument, "name");
            let schema = &listed["inputSchema"]["properties"][name];
            let is_needed = is_needed(listed, name);
            let usual = schema.get("default").map_or_else(String::new, |usual| format!(", `{usual}`"));
            let optional = if is_needed { String::new() } else { format!("; optional{usual}") };
            let choices: Vec<&str> = items(schema, "enum").iter().filter_map(Value::as_str).collect();
            let kind = if choices.is_empty() { schema_kind(schema) } else { choices.join(", ") };
            let (becomes, about) = (text(argument, "becomes"), cell(text(schema, "description")));
            let _ = writeln!(out, "| `{name}` | {kind}{optional} | {becomes} | {about} |");
        }
        let fields: Vec<String> = items(&listed["outputSchema"], "required")
            .iter()
            .filter_map(Value::as_str)
            .map(|name| format!("`{name}`"))
            .collect();
        let fields = if fields.is_empty() { "none".to_owned() } else { fields.join(", ") };
        let _ = writeln!(out, "\nResult: {fields}. Annotations: {}.", hints(listed));
    }
    repository::assert_generated("docs/reference/service-tools.md", &out);
}

#[test]
fn undo() {
    use sessile::history::{COMMANDS, Undo};
    let mut out = format!("# Undo\n{MADE}\n\n");
    out.push_str(
        "Every command that writes is an operation in the [history](../guide/history-and-undo.md), or is below with the\n\
         reason. You cannot undo an operation after a later change of the same thing. You cannot undo an operation on a\n\
         secret, because the history contains no secrets.\n",
    );
    let mut table = |title: &str, column: &str, chosen: fn(Undo) -> Option<&'static str>| {
        let _ = writeln!(out, "\n## {title}\n\n| command | {column} |\n|---|---|");
        for known in COMMANDS {
            if let Some(about) = chosen(known.undo) {
                let _ = writeln!(out, "| {} | {} |", link("", known.command), cell(about));
            }
        }
    };
    table("Can be undone", "afterwards", |undo| match undo {
        Undo::Yes(what) => Some(what),
        _ => None,
    });
    table("Cannot be undone", "why, and what to do instead", |undo| match undo {
        Undo::No(why) => Some(why),
        _ => None,
    });
    table("Not recorded", "why", |undo| match undo {
        Undo::NotRecorded(why) => Some(why),
        _ => None,
    });
    repository::assert_generated("docs/reference/undo.md", &out);
}

#[test]
fn every_writing_command_has_a_row_in_the_undo_table() {
    use sessile_cli::effects::{CommandEffect, TABLE};
    let mut writing: Vec<&str> =
        TABLE.iter().filter(|entry| entry.effect != CommandEffect::Read).map(|entry| entry.path).collect();
    writing.sort_unstable();
    let known: Vec<&str> = sessile::history::COMMANDS.iter().map(|known| known.command).collect();
    assert_eq!(known, writing);
}

/// What the sources record under a name must be in the table under that name, on the right side.
#[test]
fn every_command_that_the_source_records_is_in_the_table() {
    use sessile::history::{Undo, recorded};
    let mut seen = 0;
    for file in repository::files(".rs") {
        let name = file.to_string_lossy().into_owned();
        let in_source = name.contains("/src/") && !name.contains("testkit") && !name.contains("/history/");
        // A call may be broken into lines.
        let source = if in_source { repository::read(&file) } else { String::new() };
        for (function, can_be_undone) in [("record(", false), ("perform(", true)] {
            for (at, _) in source.match_indices(function) {
                let second = source[at..].split(',').nth(1).unwrap_or_default().trim();
                let Some(command) = second.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
                    continue;
                };
                let known =
                    recorded(command).unwrap_or_else(|| panic!("{name}: {command} is not in the table"));
                assert_eq!(matches!(known.undo, Undo::Yes(_)), can_be_undone, "{name}: {command}");
                seen += 1;
            }
        }
    }
    assert!(seen > 10, "the search has gone blind: {seen}");
}
