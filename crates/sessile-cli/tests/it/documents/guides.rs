//! The documents hold: what they link to exists, and what they tell to type is understood.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use clap::CommandFactory;
use sessile_cli::cli::Cli;

use crate::repository;

/// Fails unless the program's own parser takes the line. What a shell would do with it is left out.
#[track_caller]
pub(crate) fn assert_parses(place: &str, line: &str) {
    let Some(words) = words(line) else { panic!("{place}: the quotes do not match: {line}") };
    // Variables may stand before the command.
    let words: Vec<&String> = words.iter().skip_while(|word| is_assignment(word)).collect();
    if words.first().is_none_or(|word| *word != "sessile") {
        return;
    }
    if let Err(error) = Cli::command().try_get_matches_from(words)
        && error.use_stderr()
    {
        panic!("{place}: {line}\n{error}");
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

/// The words of a shell's line up to the first pipe, redirection, list or comment.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let rest = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        end if end == c => break,
                        other => rest.push(other),
                    }
                }
            }
            ' ' => words.extend(word.take()),
            '|' | '>' | '<' | ';' | '&' => break,
            '#' if word.is_none() => break,
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Some(words)
}

#[test]
fn every_command_in_the_documents_parses() {
    let mut checked = 0;
    for file in repository::files(".md") {
        let mut block = None;
        for (number, line) in repository::read(&file).lines().enumerate() {
            let line = line.trim_start();
            if let Some(language) = line.strip_prefix("```") {
                block = if block.is_none() { Some(language.trim().to_owned()) } else { None };
                continue;
            }
            // A console shows what was typed behind a prompt, and what was printed without one.
            let command = match block.as_deref() {
                Some("sh") => Some(line),
                Some("console") => line.strip_prefix("$ "),
                _ => None,
            };
            if let Some(command) = command.filter(|command| command.contains("sessile ")) {
                assert_parses(&format!("{}:{}", file.display(), number + 1), command);
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "the search has gone blind: {checked} commands");
}

#[test]
fn every_example_in_the_help_parses() {
    fn visit(command: &clap::Command, checked: &mut usize) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in help.lines().map(str::trim_start).filter(|line| line.starts_with("sessile ")) {
            // What the example is for stands behind it, at some distance.
            assert_parses(command.get_name(), line.split("   ").next().unwrap());
            *checked += 1;
        }
        command.get_subcommands().for_each(|command| visit(command, checked));
    }
    let mut root = Cli::command();
    root.build();
    let mut checked = 0;
    visit(&root, &mut checked);
    assert!(checked > 40, "the search has gone blind: {checked} examples");
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut checked = 0;
    for file in repository::files(".md") {
        let text = repository::read(&file);
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap();
            // Links in a crate's documents may name an item of the crate.
            if target.contains("://") || target.contains("::") {
                continue;
            }
            let (path, anchor) =
                target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
            let there = if path.is_empty() { file.clone() } else { file.parent().unwrap().join(path) };
            assert!(repository::root().join(&there).exists(), "{}: {target} does not exist", file.display());
            if let Some(anchor) = anchor {
                assert!(has_heading(&there, anchor), "{}: {target} names no heading", file.display());
            }
            checked += 1;
        }
    }
    assert!(checked > 20, "the search has gone blind: {checked} links");
}

fn has_heading(file: &Path, anchor: &str) -> bool {
    let text = repository::read(file);
    let headings =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    headings.map(slug).any(|slug| slug == anchor)
}

/// The anchor that a heading gets.
fn slug(heading: &str) -> String {
    let kept = heading
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
        .collect::<String>();
    kept.replace(' ', "-")
}

/// The runtime and the protocol's library are the server's alone: no other command may come to depend on them.
#[test]
fn only_the_server_names_the_runtime() {
    let mut seen = 0;
    for file in repository::files(".rs") {
        let name = file.to_string_lossy().into_owned();
        let is_source = ["crates/sessile/", "crates/sessile-cli/"].iter().any(|crate_| {
            name.strip_prefix(crate_).is_some_and(|rest| rest.starts_with("src/") || rest == "build.rs")
        });
        let source = if is_source { repository::read(&file) } else { String::new() };
        let mut code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        if code.any(|line| ["tokio", "rmcp"].iter().any(|word| line.contains(word))) {
            assert!(
                name.starts_with("crates/sessile-cli/src/mcp/"),
                "{name} names the runtime or the protocol"
            );
            seen += 1;
        }
    }
    assert!(seen > 5, "the search has gone blind: {seen}");
}

/// The threat model names the test of each defence, as `module::test`, or a whole module as `module::`.
#[test]
fn threat_model_names_existing_tests() {
    let page = repository::read("SECURITY.md");
    let sources: Vec<(String, String)> = repository::files(".rs")
        .into_iter()
        .map(|file| (format!("/{}", file.display()), repository::read(&file)))
        .collect();
    let named =
        page.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('`').skip(1).step_by(2));
    let mut checked = 0;
    for name in named.filter(|name| name.contains("::") && !name.contains(' ')) {
        checked += 1;
        let (module, test) = name.rsplit_once("::").unwrap();
        let module = module.rsplit("::").next().unwrap();
        let is_there = |(path, text): &(String, String)| {
            let is_module =
                path.contains(&format!("/{module}")) || text.contains(&format!("mod {module} {{"));
            // The tests of fuzz targets are made by a macro from a list of names.
            let has_test = text.contains(&format!("fn {test}("))
                || (text.contains("fuzz_tests!(") && text.contains(test));
            is_module && (test.is_empty() || has_test)
        };
        assert!(sources.iter().any(is_there), "SECURITY.md names a test that does not exist: {name}");
    }
    assert!(checked > 30, "the search has gone blind: {checked} tests");
}
