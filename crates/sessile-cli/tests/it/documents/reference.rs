//! The reference in `docs/reference/` is made from the tables that the program itself uses, and cannot rot.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write;

use clap::CommandFactory;
use serde_json::Value;
use sessile_cli::cli::Cli;
use sessile_cli::commands::manifest::manifest;

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

/// What a flag or argument takes.
fn kind(flag: &Value) -> String {
    let values: Vec<&str> = items(flag, "values").iter().filter_map(Value::as_str).collect();
    let kind = if values.is_empty() { text(flag, "type").to_owned() } else { values.join(", ") };
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

#[test]
fn commands() {
    let manifest = manifest();
    let mut out = format!("# Commands\n{MADE}\n\n{}\n\n", text(&manifest, "about"));
    out.push_str("`sessile manifest --output json` says the same to programs.\n\n");
    out.push_str("| command | effect | about |\n|---|---|---|\n");
    for command in items(&manifest, "commands") {
        let path = text(command, "path");
        let anchor = format!("sessile-{}", path.replace(' ', "-"));
        let _ = writeln!(
            out,
            "| [`{path}`](#{anchor}) | {} | {} |",
            text(command, "effect"),
            cell(text(command, "about"))
        );
    }
    out.push_str("\n## Flags of every command\n");
    flags(&mut out, "flag", items(&manifest, "global_flags"), true);
    out.push_str("\nThere is no variable for `--yes`: a yes is given for one call.\n");
    for command in items(&manifest, "commands") {
        let path = text(command, "path");
        let mut parsed = find(path);
        let _ = writeln!(out, "\n## `sessile {path}`\n");
        let about =
            parsed.get_long_about().or(parsed.get_about()).map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(out, "{}\n", about.trim().replace('<', "&lt;"));
        let usage = parsed.render_usage().to_string();
        let _ = writeln!(out, "```text\n{}\n```\n", usage.trim().trim_start_matches("Usage: "));
        let scope = command["write_scope"].as_str().map_or_else(String::new, |scope| format!(": {scope}"));
        let _ = write!(out, "Effect: {}{scope}.", text(command, "effect"));
        // That reading can be done again goes without saying.
        if command["idempotent"] == true && command["effect"] != "read" {
            out.push_str(" Doing it again has no further effect.");
        }
        if command["outside"] == true {
            out.push_str(" It may reach other machines.");
        }
        out.push('\n');
        let arguments = items(command, "arguments");
        if !arguments.is_empty() {
            out.push_str("\n| argument | takes | about |\n|---|---|---|\n");
            for argument in arguments {
                let must = if argument["required"] == true { "" } else { "; optional" };
                let name = text(argument, "name").to_uppercase();
                let _ = writeln!(
                    out,
                    "| `{name}` | {}{must} | {} |",
                    kind(argument),
                    cell(text(argument, "about"))
                );
            }
        }
        flags(&mut out, "flag", items(command, "flags"), false);
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
                "\nIt can fail with {}, and with what [any command](errors.md) can.",
                own.join(", ")
            );
        }
    }
    repository::assert_generated("docs/reference/commands.md", &out);
}

#[test]
fn settings() {
    let mut out = format!("# Settings\n{MADE}\n\n");
    out.push_str(
        "Each has a value and an origin; [concepts](../concepts.md#precedence) says which one wins. A `*` stands for\n\
         any name. What needs trust counts in a project's file only once the [project is trusted](../guide/trust.md).\n\n\
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
    out.push_str("\n[settings.schema.json](settings.schema.json) is the same for editors.\n");
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
        "A variable that is set to nothing counts as not set. A flag wins over its variable. There is no variable for\n\
         `--yes`.\n\n| variable | what it does |\n|---|---|\n",
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

#[test]
fn errors() {
    let manifest = manifest();
    let mut out = format!("# Errors and exit statuses\n{MADE}\n\n");
    out.push_str(
        "A failed call prints nothing on standard output. On standard error it prints `error:` and `hint:` lines, or,\n\
         with `--output json` or `jsonl`, one line of JSON:\n\n\
         ```json\n\
         {\"error\":{\"code\":\"CONTEXT_NOT_FOUND\",\"message\":\"...\",\"exit_code\":5,\"retryable\":false,\
         \"retry_after_ms\":null,\"hint\":\"...\",\"fix_command\":null}}\n\
         ```\n\n\
         Codes are stable: they are only ever added. The exit status says what kind of thing happened, the code which.\n\n\
         ## Exit statuses\n\n| status | meaning |\n|---|---|\n",
    );
    for status in items(&manifest, "exit_codes") {
        let _ = writeln!(out, "| {} | {} |", status["exit_code"], cell(text(status, "about")));
    }
    out.push_str("\n## Codes\n\n| code | exit status | retryable | meaning |\n|---|---|---|---|\n");
    for code in items(&manifest, "error_codes") {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            text(code, "code"),
            code["exit_code"],
            if code["retryable"] == true { "yes" } else { "no" },
            cell(text(code, "about"))
        );
    }
    out.push_str("\n## Any command can fail with\n\n");
    let common: Vec<String> =
        sessile_cli::effects::COMMON.iter().map(|code| format!("`{}`", code.as_str())).collect();
    let _ = writeln!(out, "{}.", common.join(", "));
    out.push_str("\nWhat else a command can fail with stands in its [entry](commands.md).\n");
    repository::assert_generated("docs/reference/errors.md", &out);
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
        "What [`sessile mcp`](../guide/mcp.md) offers. Every tool is a call of a command, in a process of its own, with\n\
         `--output=json --no-input`; what the command does, and how it can fail, stands in [its entry](commands.md).\n\n\
         | tool | calls | effect | about |\n|---|---|---|---|\n",
    );
    let effect = |tool: &Value| match &tool["listed"]["annotations"] {
        hints if hints["readOnlyHint"] == true => "read",
        hints if hints["destructiveHint"] == true => "destructive",
        _ => "write",
    };
    let call = |tool: &Value| {
        let command = text(tool, "command");
        format!("[`{command}`](commands.md#sessile-{})", command.replace(' ', "-"))
    };
    for tool in &tools {
        let name = text(&tool["listed"], "name");
        let about = cell(text(&tool["listed"], "description"));
        let _ = writeln!(out, "| [`{name}`](#{name}) | {} | {} | {about} |", call(tool), effect(tool));
    }
    out.push_str(
        "\nWith `--read-only` only those that read are offered; `run` is offered with `--allow-run` alone. A result may have\n\
         more than is said here. A list counts what it holds in `count`.\n",
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
        let fields = listed["outputSchema"]["properties"].as_object();
        let fields: Vec<String> = fields.into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
        let _ = writeln!(out, "\nResult: {}. Annotations: {}.", fields.join(", "), hints(listed));
    }
    repository::assert_generated("docs/reference/mcp-tools.md", &out);
}

#[test]
fn service_tools() {
    let tools = sessile_server::mcp_tools();
    let mut out = format!("# MCP tools of the service\n{MADE}\n\n");
    out.push_str(
        "What [`sessile serve`](../guide/service.md#for-agents-mcp) offers at `/mcp`. Every tool is a request of [the\n\
         API](openapi.json), made with the same token; what that does, and how it can fail, stands there. A token sees the\n\
         tools that its scopes allow. A result may have more than is said here.\n\n\
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
    let mut out = format!("# What can be undone\n{MADE}\n\n");
    out.push_str(
        "Every command that writes is an operation in the [history](../guide/history-and-undo.md), or is here with the\n\
         reason why not. Whatever this page says, an operation can no longer be undone once what it changed was changed\n\
         again, and one that touched what looks like a secret cannot be undone, because secrets are not recorded.\n",
    );
    let mut table = |title: &str, column: &str, chosen: fn(Undo) -> Option<&'static str>| {
        let _ = writeln!(out, "\n## {title}\n\n| command | {column} |\n|---|---|");
        for known in COMMANDS {
            if let Some(about) = chosen(known.undo) {
                let anchor = format!("sessile-{}", known.command.replace(' ', "-"));
                let _ = writeln!(out, "| [`{}`](commands.md#{anchor}) | {} |", known.command, cell(about));
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
fn every_command_that_writes_is_in_the_table_of_what_can_be_undone() {
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
