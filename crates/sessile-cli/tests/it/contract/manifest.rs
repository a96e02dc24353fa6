//! `sessile manifest`: the whole program, described for programs.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory};
use serde_json::Value;
use sessile::Code;
use sessile_cli::cli::Cli;
use sessile_cli::effects::{CommandEffect, TABLE};

use crate::contract::output::{CALLS, furnished_for};
use crate::home;

fn manifest() -> Value {
    home().call(&["manifest", "--output", "json"]).ok().json()
}

fn leaves(command: &Command, path: &str, found: &mut BTreeSet<String>) {
    for child in command.get_subcommands() {
        let path = format!("{path} {}", child.get_name()).trim().to_owned();
        if !child.is_subcommand_required_set() {
            found.insert(path.clone());
        }
        leaves(child, &path, found);
    }
}

fn strings<'a>(values: &'a Value, key: &str) -> BTreeSet<&'a str> {
    values.as_array().unwrap().iter().map(|value| value[key].as_str().unwrap()).collect()
}

#[test]
fn the_table_of_effects_and_the_parser_know_the_same_commands() {
    let mut root = Cli::command();
    root.build();
    let mut parsed = BTreeSet::new();
    leaves(&root, "", &mut parsed);
    let table: BTreeSet<String> = TABLE.iter().map(|entry| entry.path.to_owned()).collect();
    assert_eq!(parsed, table);
    assert_eq!(table.len(), TABLE.len(), "a command stands in the table twice");
    let manifest = manifest();
    assert_eq!(strings(&manifest["commands"], "path"), table.iter().map(String::as_str).collect());
}

#[test]
fn every_command_has_an_effect_and_every_writer_a_scope() {
    for command in manifest()["commands"].as_array().unwrap() {
        let effect = command["effect"].as_str().unwrap();
        assert!(["read", "write", "destructive"].contains(&effect), "{command}");
        assert_eq!(command["write_scope"].is_null(), effect == "read", "{command}");
        assert!(!command["about"].as_str().unwrap().is_empty(), "{command}");
    }
}

#[test]
fn commands_with_network_errors_are_marked_outside() {
    // Another command may reach anything, and so may a tool; `env` leaves credentials out, and shares its codes with those
    // that do not.
    let apart = ["env", "mcp"];
    // They give tokens back as well as they can, and do not fail over it.
    let forgiving = ["auth logout"];
    for command in manifest()["commands"].as_array().unwrap() {
        let path = command["path"].as_str().unwrap();
        let can_fail = command["error_codes"].as_array().unwrap().contains(&"UNREACHABLE".into());
        let expected = forgiving.contains(&path) || can_fail != apart.contains(&path);
        assert_eq!(command["outside"], expected, "{path}");
    }
}

/// Done twice where a call of it is at hand; the second must succeed, and end where the first did.
#[test]
fn idempotent_commands_can_be_repeated() {
    let mut done = Vec::new();
    for entry in TABLE.iter().filter(|entry| entry.idempotent && entry.effect != CommandEffect::Read) {
        let Some((_, words)) = CALLS.iter().find(|(path, _)| *path == entry.path) else { continue };
        let home = furnished_for(entry.path);
        home.call(words).ok();
        let before = home.tree_of_people();
        home.call(words).ok();
        assert_eq!(home.tree_of_people(), before, "{}", entry.path);
        done.push(entry.path);
    }
    assert_eq!(done.len(), 13, "{done:?}");
}

#[test]
fn manifest_lists_exactly_the_existing_error_codes() {
    let manifest = manifest();
    let known = strings(&manifest["error_codes"], "code");
    assert_eq!(known, Code::ALL.iter().map(|code| code.as_str()).collect());
    let exits: BTreeSet<u64> = manifest["exit_codes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|exit| exit["exit_code"].as_u64().unwrap())
        .collect();
    for code in manifest["error_codes"].as_array().unwrap() {
        assert!(!code["about"].as_str().unwrap().is_empty(), "{code}");
        assert!(exits.contains(&code["exit_code"].as_u64().unwrap()), "{code}");
        assert!(code["retryable"].is_boolean(), "{code}");
    }
    let mut used = BTreeSet::new();
    for command in manifest["commands"].as_array().unwrap() {
        let codes = command["error_codes"].as_array().unwrap().iter().map(|code| code.as_str().unwrap());
        used.extend(codes);
    }
    assert!(used.is_subset(&known));
}

#[test]
fn flags_have_types_values_and_variables() {
    let manifest = manifest();
    let flag = |name: &str| {
        let flags = manifest["global_flags"].as_array().unwrap();
        flags.iter().find(|flag| flag["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert_eq!(flag("--lock-timeout")["type"], "duration");
    assert_eq!(flag("--lock-timeout")["variable"], "SESSILE_LOCK_TIMEOUT");
    assert_eq!(flag("--output")["values"], serde_json::json!(["text", "json", "jsonl"]));
    assert_eq!(flag("--set")["repeatable"], true);
    assert_eq!(flag("--yes")["variable"], Value::Null, "nothing says yes but --yes");
    for flag in manifest["global_flags"].as_array().unwrap() {
        assert!(!flag["about"].as_str().unwrap().is_empty(), "{flag}");
    }
}

#[test]
fn arguments_say_whether_they_are_needed() {
    let manifest = manifest();
    let command = |path: &str| {
        let commands = manifest["commands"].as_array().unwrap();
        commands.iter().find(|command| command["path"] == path).unwrap()
    };
    let set = command("config set");
    assert_eq!(strings(&set["arguments"], "name"), ["key", "value"].into());
    assert!(set["arguments"].as_array().unwrap().iter().all(|argument| argument["required"] == true));
    assert_eq!(strings(&set["flags"], "name"), ["--dir", "--global", "--project"].into());
    assert_eq!(command("context use")["arguments"][0]["type"], "context");
    assert_eq!(command("context export")["arguments"][0]["repeatable"], true);
}

#[test]
fn every_setting_is_listed_with_its_variable() {
    let manifest = manifest();
    let listed = home().call(&["config", "list", "--output", "json"]).ok().json();
    assert_eq!(strings(&manifest["settings"], "key"), strings(&listed, "key"));
    let settings = manifest["settings"].as_array().unwrap();
    let idle = settings.iter().find(|setting| setting["key"] == "session.idle").unwrap();
    assert_eq!(idle["variable"], "SESSILE_SESSION_IDLE");
    assert_eq!(idle["default"], "2h");
    let token = settings.iter().find(|setting| setting["key"] == "token").unwrap();
    assert_eq!(token["variable"], Value::Null, "no variable carries a secret");
}

#[test]
fn as_text_it_is_a_table_of_the_commands() {
    let text = home().call(&["manifest"]).ok().stdout();
    let line = text.lines().find(|line| line.starts_with("context delete")).unwrap();
    assert!(line.contains("destructive"), "{line}");
}
