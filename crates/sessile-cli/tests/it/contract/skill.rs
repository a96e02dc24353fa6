//! `sessile skill`: what agents are told is so.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory};
use sessile::{Code, exit};
use sessile_cli::cli::Cli;
use sessile_cli::effects::{CommandEffect, TABLE};

use crate::documents::guides::assert_parses;
use crate::{home, yaml_scalars};

const FORMATS: [&str; 2] = ["skill", "agents-md"];

fn printed(format: &str) -> String {
    home().call(&["skill", "--format", format]).ok().stdout()
}

/// What stands in blocks for a shell, line by line.
fn lines(text: &str) -> Vec<&str> {
    let blocks = text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.flat_map(str::lines).collect()
}

/// What stands between single backticks outside of blocks.
fn spans(text: &str) -> Vec<String> {
    let outside: String = text.split("```").step_by(2).collect();
    let spans = outside.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " "));
    spans.collect()
}

fn root() -> Command {
    let mut root = Cli::command();
    root.build();
    root
}

/// Whether these words name a command or a group of them.
fn is_command(words: &[&str]) -> bool {
    let root = root();
    let mut command = &root;
    words.iter().all(|word| match command.find_subcommand(word) {
        Some(found) => {
            command = found;
            true
        }
        None => false,
    })
}

fn flags(command: &Command, found: &mut BTreeSet<String>) {
    found.extend(command.get_arguments().filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")));
    command.get_subcommands().for_each(|command| flags(command, found));
}

#[test]
fn every_command_in_it_is_one() {
    for format in FORMATS {
        let text = printed(format);
        let lines = lines(&text);
        assert!(lines.len() > 2, "the search has gone blind: {lines:?}");
        for line in lines {
            assert!(line.starts_with("sessile "), "{format}: {line}");
            assert_parses(format, line);
        }
        let mut seen = 0;
        for span in spans(&text) {
            let Some(rest) = span.strip_prefix("sessile ") else { continue };
            let words: Vec<&str> = rest.split(' ').collect();
            // A command may be named without what it takes.
            if !is_command(&words) {
                assert_parses(format, &span);
            }
            seen += 1;
        }
        assert!(seen > 4, "the search has gone blind: {seen}");
    }
}

#[test]
fn every_flag_in_it_is_one() {
    let mut known = BTreeSet::new();
    flags(&root(), &mut known);
    for format in FORMATS {
        let spans = spans(&printed(format));
        let named =
            spans.iter().filter(|span| span.starts_with("--") && !span.starts_with("-- ") && *span != "--");
        let named: Vec<&str> = named.map(|span| span.split(' ').next().unwrap()).collect();
        assert!(named.len() > 2, "the search has gone blind: {named:?}");
        for flag in named {
            assert!(known.contains(flag), "{format}: {flag}");
        }
    }
}

#[test]
fn every_code_in_it_is_one_and_has_its_status() {
    for format in FORMATS {
        let text = printed(format);
        assert!(!text.contains("{{"), "{format}: something was not filled in");
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let looks_like_one = |word: &&str| {
            word.contains('_')
                && word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
                && !word.starts_with("SESSILE_")
        };
        let codes: BTreeSet<&str> = words.filter(looks_like_one).collect();
        assert!(codes.len() > 1, "the search has gone blind: {codes:?}");
        for word in codes {
            let code = Code::ALL.iter().find(|code| code.as_str() == word);
            assert!(code.is_some(), "{format}: {word}");
        }
        for code in Code::ALL {
            let said = text.split(&format!("`{}` (", code.as_str())).nth(1);
            let said = said.map(|rest| rest.split(')').next().unwrap().to_owned());
            assert!(said.is_none_or(|said| said == code.exit().to_string()), "{format}: {code:?}");
        }
    }
}

#[test]
fn the_tables_of_the_program_are_in_it() {
    let text = printed("skill");
    for (status, about) in exit::ALL {
        assert!(text.contains(&format!("| {status} | {about} |")), "{status}");
    }
    let listed = |after: &str| -> BTreeSet<String> {
        let list = text.split(after).nth(1).unwrap().trim_start().split("\n\n").next().unwrap();
        spans(list).into_iter().collect()
    };
    let of = |effect: CommandEffect| -> BTreeSet<String> {
        TABLE.iter().filter(|entry| entry.effect == effect).map(|entry| entry.path.to_owned()).collect()
    };
    assert_eq!(listed("Commands that only read:"), of(CommandEffect::Read));
    assert_eq!(listed("or when the person asks:"), of(CommandEffect::Destructive));
    let retryable = Code::ALL.iter().filter(|code| code.is_retryable()).map(|code| code.as_str().to_owned());
    assert_eq!(listed("These codes are retryable:"), retryable.collect());
}

#[test]
fn fields_and_codes_in_the_skill_exist() {
    let text = printed("skill");
    let status = home().call(&["status", "--output", "json"]).ok().json();
    let table = text.split("| field | meaning |").nth(1).unwrap().split("\n\n").next().unwrap();
    let fields: Vec<&str> = table.lines().skip(2).map(|row| row.split('`').nth(1).unwrap()).collect();
    assert!(fields.len() > 2, "the search has gone blind: {fields:?}");
    for field in fields {
        assert!(status.as_object().unwrap().contains_key(field), "{field}");
    }
    let example = text.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let example: serde_json::Value = serde_json::from_str(example).unwrap();
    let failed = home().call(&["context", "show", "nothing", "--output", "json"]).run().json_error();
    let members = |error: &serde_json::Value| error.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&example["error"]), members(&failed));
}

#[test]
fn the_front_matter_is_what_agents_read() {
    let text = printed("skill");
    let (matter, body) = text.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    let [name_key, name, description_key, description] = &yaml_scalars(matter)[..] else {
        panic!("{matter}")
    };
    assert_eq!((name_key.as_str(), description_key.as_str()), ("name", "description"));
    // The directory that it goes into must have this name.
    assert_eq!(name, "sessile");
    assert!((100..=1024).contains(&description.len()), "{}", description.len());
    assert!(body.trim_start().starts_with("# "));
}

#[test]
fn skill_stays_short() {
    assert!(printed("skill").lines().count() <= 155);
    assert!(printed("agents-md").lines().count() <= 30);
    for format in FORMATS {
        for line in printed(format).lines().filter(|line| !line.starts_with("description:")) {
            assert!(line.len() <= 140, "{format}: {line}");
        }
    }
}

#[test]
fn the_section_can_be_found_and_replaced() {
    let text = printed("agents-md");
    assert!(text.starts_with(&format!("<!-- sessile: begin {} -->\n", env!("CARGO_PKG_VERSION"))));
    assert!(text.ends_with("<!-- sessile: end -->\n"));
    assert_eq!(text.matches("<!-- sessile:").count(), 2);
}

#[test]
fn the_result_says_where_it_goes() {
    for (format, path) in [("skill", ".claude/skills/sessile/SKILL.md"), ("agents-md", "AGENTS.md")] {
        let result = home().call(&["skill", "--format", format, "--output", "json"]).ok().json();
        let members: Vec<&String> = result.as_object().unwrap().keys().collect();
        assert_eq!(members, ["format", "version", "path", "content"]);
        assert_eq!((&result["format"], &result["path"]), (&format.into(), &path.into()));
        assert_eq!(result["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(result["content"], printed(format));
    }
}

#[test]
fn skill_changes_nothing_and_needs_no_settings() {
    let home = home();
    home.write(".config/sessile/config.toml", "context = \n");
    let before = home.tree();
    home.call(&["skill"]).env("SESSILE_SESSION", "gone").ok();
    assert_eq!(home.tree(), before);
}
