//! Every command's help has examples, and the examples are commands that there are.

use clap::{Command, CommandFactory, Parser};
use sessile_cli::cli::Cli;

use crate::home;

/// Every command, with the words that call it.
fn commands() -> Vec<(Vec<String>, Command)> {
    fn collect(command: &Command, words: &[String], found: &mut Vec<(Vec<String>, Command)>) {
        found.push((words.to_vec(), command.clone()));
        for child in command.get_subcommands() {
            collect(child, &[words, &[child.get_name().to_owned()]].concat(), found);
        }
    }
    let mut root = Cli::command();
    root.build();
    let mut found = Vec::new();
    collect(&root, &[], &mut found);
    found
}

/// The example lines in a help text.
fn examples(help: &str) -> Vec<String> {
    let Some((_, after)) = help.split_once("Examples:\n") else { return Vec::new() };
    after.lines().take_while(|line| line.starts_with("  ")).map(|line| line.trim().to_owned()).collect()
}

/// The words of an example: what is in `$(...)` if it has that, up to a remark, a pipe or a redirection, and without
/// quotes.
fn words(example: &str) -> Vec<String> {
    let inner = example.split_once("$(").and_then(|(_, after)| after.split_once(')'));
    let example = inner.map_or(example, |(inner, _)| inner);
    let ends = ["  ", " > ", " >> ", " < ", " | "];
    let end = ends.iter().filter_map(|end| example.find(end)).min().unwrap_or(example.len());
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in example[..end].chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

#[test]
fn every_help_has_examples_and_each_of_them_parses() {
    let mut count = 0;
    for (path, _) in commands() {
        for flag in ["-h", "--help"] {
            let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
            args.push(flag);
            let help = home().call(&args).ok().stdout();
            let examples = examples(&help);
            assert!(!examples.is_empty(), "{args:?} shows no example:\n{help}");
            for example in examples {
                let parsed = Cli::try_parse_from(words(&example));
                assert!(parsed.is_ok(), "{args:?}: {example}\n{}", parsed.unwrap_err());
                count += 1;
            }
        }
    }
    assert!(count > 100, "only {count} examples were tried");
}

#[test]
fn the_precedence_stands_where_settings_matter() {
    let precedence =
        "flag > environment > session > terminal > directory > context > user > system > default";
    for args in [
        &["--help"][..],
        &["config", "--help"],
        &["config", "set", "--help"],
        &["config", "show", "--help"],
        &["context", "use", "--help"],
        &["context", "current", "--help"],
        &["status", "--help"],
    ] {
        let help = home().call(args).ok().stdout();
        assert!(help.contains(precedence), "{args:?}");
    }
}

#[test]
fn every_global_flag_is_on_every_command() {
    for (path, _) in commands() {
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let help = home().call(&args).ok().stdout();
        for flag in [
            "--context",
            "--session",
            "--config",
            "--no-config",
            "--set",
            "--output",
            "--yes",
            "--no-input",
            "--lock-timeout",
            "--quiet",
            "--verbose",
            "--color",
        ] {
            assert!(help.contains(flag), "{args:?} does not show {flag}");
        }
    }
}

#[test]
fn every_command_and_flag_says_what_it_is_for() {
    for (path, command) in commands() {
        assert!(command.get_about().is_some(), "{path:?}");
        for arg in command.get_arguments() {
            assert!(arg.get_help().is_some(), "{path:?} {}", arg.get_id());
        }
    }
}

#[test]
fn the_version_is_a_result() {
    let done = home().call(&["--version"]).ok();
    assert_eq!(done.stdout(), format!("sessile {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(done.stderr(), "");
}
