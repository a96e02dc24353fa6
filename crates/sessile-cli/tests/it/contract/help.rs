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
        for flags in [&["-h"][..], &["--help", "--verbose"]] {
            let args: Vec<&str> = path.iter().map(String::as_str).chain(flags.iter().copied()).collect();
            let help = home().call(&args).ok().stdout();
            let examples = examples(&help);
            // The first page has the commands in groups instead.
            assert!(!examples.is_empty() || args == ["-h"], "{args:?} shows no example:\n{help}");
            for example in examples {
                let parsed = Cli::try_parse_from(words(&example));
                assert!(parsed.is_ok(), "{args:?}: {example}\n{}", parsed.unwrap_err());
                count += 1;
            }
        }
    }
    assert!(count > 100, "only {count} examples were tried");
}

/// Long flags in the lines of a page.
fn long_flags(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let names = text.split(|c: char| !is_name(c)).filter(|word| word.starts_with("--") && word.len() > 2);
    names.collect()
}

#[test]
fn summary_lists_common_flags_and_those_of_its_examples() {
    let globals = home().call(&["help", "options"]).ok().stdout();
    let globals = long_flags(&globals);
    for (path, command) in commands().iter().filter(|(path, _)| !path.is_empty()) {
        let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = home().call(&args).ok().stdout();
        let options = help.split("\nOptions:\n").nth(1).unwrap_or_default();
        let options = options.lines().take_while(|line| line.starts_with("  ")).map(str::trim_start);
        let listed: Vec<&str> = options
            .filter(|line| line.starts_with('-'))
            .filter_map(|line| long_flags(line).first().copied())
            .collect();
        // A group's examples are those of its commands.
        if !command.has_subcommands() {
            for example in examples(&help) {
                let line = example.split(" -- ").next().unwrap();
                for flag in long_flags(line) {
                    assert!(
                        listed.contains(&flag) || globals.contains(&flag),
                        "{args:?} does not list {flag} of: {example}\n{help}"
                    );
                }
            }
        }
        for arg in command.get_arguments().filter(|arg| !arg.is_global_set() && !arg.is_positional()) {
            let Some(long) = arg.get_long().filter(|long| *long != "help") else { continue };
            let is_rare = arg.is_hide_set() || arg.is_hide_short_help_set();
            assert!(
                is_rare || listed.contains(&format!("--{long}").as_str()),
                "{args:?} has no room for --{long}; hide a rare flag:\n{help}"
            );
        }
    }
}

#[test]
fn no_two_commands_have_the_same_description() {
    let mut seen = std::collections::BTreeMap::new();
    for (path, command) in commands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        if let Some(other) = seen.insert(about.clone(), path.clone()) {
            panic!("{path:?} and {other:?}: {about}");
        }
    }
}

#[test]
fn verbose_help_shows_the_precedence_where_settings_matter() {
    let precedence =
        "flag > environment > session > terminal > directory > context > user >\n  system > default\n";
    for args in [
        &["--help", "-v"][..],
        &["help", "options"],
        &["config", "--help", "-v"],
        &["config", "set", "--help", "-v"],
        &["help", "config", "show", "--verbose"],
        &["context", "use", "-vh"],
        &["context", "current", "--verbose", "--help"],
        &["status", "--help", "-v"],
    ] {
        let help = home().call(args).ok().stdout();
        assert!(help.contains(precedence), "{args:?}");
    }
}

#[test]
fn global_options_have_one_page_that_every_command_names() {
    let page = home().call(&["help", "options"]).ok().stdout();
    for flag in [
        "-c, --context",
        "-s, --session",
        "--config",
        "--no-config",
        "--set",
        "-o, --output",
        "-y, --yes",
        "--no-input",
        "--lock-timeout",
        "-q, --quiet",
        "-v, --verbose",
        "--color",
        "--log-file",
    ] {
        assert!(page.contains(flag), "{flag} is missing:\n{page}");
    }
    for (path, _) in commands() {
        for flags in [&["--help"][..], &["--help", "-v"]] {
            let args: Vec<&str> = path.iter().map(String::as_str).chain(flags.iter().copied()).collect();
            let help = home().call(&args).ok().stdout();
            let names_page = help.contains("\nGlobal options: sessile help options\n");
            assert_eq!(names_page, args != ["--help", "-v"], "{args:?}:\n{help}");
            assert!(
                path.is_empty() || !help.contains("--lock-timeout <"),
                "{args:?} repeats the global options"
            );
        }
    }
}

#[test]
fn every_help_fits_40_lines_of_80_columns() {
    for (path, _) in commands() {
        let args: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
        let help = home().call(&args).ok().stdout();
        // The first page may fill two screens.
        let limit = if path.is_empty() { 48 } else { 40 };
        assert!(help.lines().count() <= limit, "{args:?} has {} lines:\n{help}", help.lines().count());
        let long: Vec<&str> = help.lines().filter(|line| line.chars().count() > 80).collect();
        // A usage line and an option's name are never broken.
        let is_whole = |line: &&str| line.starts_with("Usage:") || line.contains("  --");
        assert!(long.iter().all(is_whole), "{args:?}: {long:?}");
    }
}

#[test]
fn every_example_and_the_page_of_options_fit_80_columns() {
    for (path, command) in commands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{path:?}: {line}");
        }
    }
    let page = home().call(&["help", "options"]).ok().stdout();
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
}

#[test]
fn first_page_groups_the_commands_in_lines_of_72_columns() {
    let page = home().call(&[]).ok().stdout();
    assert_eq!(home().call(&["--help"]).ok().stdout(), page);
    assert_eq!(home().call(&["help"]).ok().stdout(), page);
    for line in page.lines() {
        assert!(line.chars().count() <= 72, "{line}");
    }
    let titles: Vec<&str> = page.lines().filter(|line| !line.contains(' ') && !line.is_empty()).collect();
    let groups = ["Work", "Targets", "Settings", "Agents", "Coordination", "Service", "Insight", "More"];
    assert_eq!(titles, groups, "{page}");
    assert!(page.contains("\n  run           Run a command with isolated tool state\n"), "{page}");
}

#[test]
fn help_shows_the_page_of_a_command_by_its_words_and_aliases() {
    let page = home().call(&["session", "list", "--help"]).ok().stdout();
    assert!(page.contains("Usage: sessile session list [OPTIONS]"), "{page}");
    for args in [&["help", "session", "list"][..], &["help", "session", "ls"], &["session", "ls", "-h"]] {
        assert_eq!(home().call(args).ok().stdout(), page, "{args:?}");
    }
    let page = home().call(&["help", "use"]).ok().stdout();
    assert!(page.contains("Usage: sessile context use"), "{page}");
    assert_eq!(home().call(&["use", "--help"]).ok().stdout(), page);
    let page = home().call(&["help", "exec"]).ok().stdout();
    assert!(page.contains("Usage: sessile run"), "{page}");
}

/// Global flags and their values may stand before the command and between its words.
#[test]
fn help_finds_the_command_behind_global_flags() {
    let page = home().call(&["session", "list", "--help"]).ok().stdout();
    let args = ["-o", "json", "--context", "run", "session", "--color=never", "list", "-h"];
    assert_eq!(home().call(&args).ok().stdout(), page);
}

#[test]
fn help_works_with_broken_settings() {
    let home = home();
    home.write(".config/sessile/config.toml", "output = [");
    let page = home.call(&["help", "run"]).ok().stdout();
    assert!(page.contains("Usage: sessile run"), "{page}");
}

#[test]
fn verbose_help_shows_what_the_summary_leaves_out() {
    let summary = home().call(&["run", "--help"]).ok().stdout();
    let full = home().call(&["help", "run", "-v"]).ok().stdout();
    assert!(summary.contains("more options: sessile help run --verbose"), "{summary}");
    for flag in ["--kill-stragglers", "--keep-env"] {
        assert!(!summary.contains(flag) && full.contains(flag), "{flag}");
    }
    for flag in ["--expect", "--dry-run", "--timeout", "--lock", "--isolate", "--bind"] {
        assert!(summary.contains(flag), "{flag} is missing:\n{summary}");
    }
}

#[test]
fn aliases_call_their_command() {
    let home = home();
    home.call(&["context", "create", "staging"]).ok();
    assert_eq!(
        home.call(&["context", "ls", "-o", "json"]).ok().stdout(),
        home.call(&["context", "list", "-o", "json"]).ok().stdout()
    );
    assert_eq!(home.call(&["exec", "-c", "staging", "--", "echo", "hi"]).ok().stdout(), "hi\n");
    let id = home.call(&["session", "start", "-q", "-c", "staging"]).ok().stdout();
    let status = home.call(&["status", "-s", id.trim(), "-o", "json"]).ok().json();
    assert_eq!(status["current_context"], "staging", "{status}");
    home.call(&["session", "stop", id.trim()]).ok();
    home.call(&["context", "rm", "staging", "--yes"]).ok();
    assert_eq!(home.call(&["context", "list", "-o", "json"]).ok().json(), serde_json::json!([]));
}

#[test]
fn suggestions_go_by_meaning() {
    let home = home();
    home.call(&["context", "create", "staging"]).ok();
    for (line, hint) in [
        ("send hi", "sessile message send"),
        ("stop", "sessile session stop"),
        ("ls", "sessile session list, or sessile context list"),
        ("ps", "sessile session list"),
        ("rm x", "sessile session stop, or sessile context delete"),
        ("login", "sessile auth login"),
        ("switch staging", "sessile context use"),
        ("context switch staging", "sessile context use"),
        ("session rm x", "sessile session stop"),
        ("--quiet lock unlock x", "sessile lock release"),
        ("status --json", "--output json"),
        ("message send --token abc hi", "sessile auth set NAME --secret-stdin"),
        ("help login", "sessile auth login"),
        ("help session rm", "sessile session stop"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let failed = home.call(&words).run().exit(2);
        let has_hint = failed.stderr().lines().skip(1).any(|line| line.contains(hint));
        assert!(has_hint, "{line}: {}", failed.stderr());
    }
    let failed = home.call(&["-c", "staging", "--", "echo", "a b"]).run().exit(2);
    let hint = "hint: did you mean: sessile run --context staging -- echo 'a b'\n";
    assert!(failed.stderr().contains(hint), "{}", failed.stderr());
    let failed = home.call(&["send", "-o", "json"]).run().exit(2);
    assert_eq!(failed.json_error()["fix_command"], "sessile message send");
}

#[test]
fn unknown_command_suggests_the_intended_one() {
    let home = home();
    home.call(&["context", "create", "staging"]).ok();
    for (args, hint) in [
        (&["run", "staging", "--", "echo", "a b"][..], "sessile run --context staging -- echo 'a b'"),
        (&["run", "echo hi"], "sessile run -- echo hi"),
        (&["run", "--", "echo hi | wc"], "sessile run -- sh -c 'echo hi | wc'"),
        (&["run", "--", "-c", "staging", "echo"], "sessile run -c staging echo"),
        (&["run", "other", "--", "echo"], "sessile run --session other -- echo"),
    ] {
        let failed = home.call(args).run().exit(127);
        assert!(failed.stderr().contains(hint), "{args:?}: {}", failed.stderr());
    }
    let failed = home.call(&["run", "no-such-command-here"]).run().exit(127);
    assert!(failed.stderr().contains("check the name of the command"), "{}", failed.stderr());
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
fn verbose_version_names_the_build() {
    // `scripts/build-static` sets the commit; cargo alone does not.
    let commit = option_env!("SESSILE_BUILD_COMMIT").filter(|commit| !commit.is_empty());
    let printed = home().call(&["--version", "--verbose"]).ok().stdout();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], concat!("sessile ", env!("CARGO_PKG_VERSION")));
    let fields: Vec<(&str, &str)> = lines[1..].iter().map(|line| line.split_at(10)).collect();
    let names: Vec<&str> = fields.iter().map(|(name, _)| name.trim_end()).collect();
    assert_eq!(names, ["commit", "target", "profile", "features"]);
    let target = format!("{}-unknown-linux-gnu (dynamic)", std::env::consts::ARCH);
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        assert_eq!(fields[1].1, target);
    }
    assert_eq!((fields[0].1, fields[2].1, fields[3].1), (commit.unwrap_or("unknown"), "debug", "keychain"));
    let build = home().call(&["-v", "--version", "--output", "json"]).ok().json();
    assert_eq!((build["static"].as_bool(), build["profile"].as_str()), (Some(false), Some("debug")));
    assert!(build["target"].as_str().unwrap().starts_with(std::env::consts::ARCH), "{build}");
    assert_eq!(build["commit"].as_str(), commit);
}

#[test]
fn the_version_is_a_result() {
    let done = home().call(&["--version"]).ok();
    assert_eq!(done.stdout(), format!("sessile {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(done.stderr(), "");
}
