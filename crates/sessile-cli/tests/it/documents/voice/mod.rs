//! English of messages, help, doc comments, docs and names of tests: patterns that a reader has to decode, counted per area.
//!
//! The goals are 0.5 % of messages and help texts, and 1 % of the lines of doc comments and docs and of the
//! names of tests. An area that is not
//! rewritten yet has a row in `caps.txt` with its present count, and the count can only fall:
//! `UPDATE_REFERENCE=1 cargo test -p sessile-cli --test it voice` lowers the rows and removes those that meet the goal.
//! `cargo test -p sessile-cli --test it voice -- --nocapture` prints the shares and every place.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test reads its own variable, prints measurements and fails by panicking"
)]

mod measure;
mod prose;
mod rust_source;

use std::collections::BTreeMap;
use std::fmt::Write;

use clap::CommandFactory;
use sessile_cli::cli::Cli;

use self::measure::{Areas, Kind, measure};
use self::prose::{DOC_WORDS, MESSAGE_WORDS};
use crate::repository;

const CAPS: &str = "crates/sessile-cli/tests/it/documents/voice/caps.txt";

/// Longest line that describes a command.
const ABOUT_CHARS: usize = 72;

/// Counts the help of a command and its subcommands.
fn add_help(areas: &mut Areas, area: &str, path: &str, command: &clap::Command) {
    let entry = areas.entry((Kind::Help, area.to_owned())).or_default();
    if let Some(about) = command.get_about().map(ToString::to_string) {
        entry.add_text(path, &about, MESSAGE_WORDS);
        if about.chars().count() > ABOUT_CHARS || about.ends_with('.') {
            entry.hits += 1;
            entry.places.push(format!("{path}: [longer than {ABOUT_CHARS}, or a full stop] {about}"));
        }
    }
    if let Some(about) = command.get_long_about() {
        entry.add_text(path, &about.to_string(), DOC_WORDS);
    }
    for argument in command.get_arguments().filter(|argument| !argument.is_global_set()) {
        for help in [argument.get_help(), argument.get_long_help()].into_iter().flatten() {
            entry.add_text(&format!("{path} {}", argument.get_id()), &help.to_string(), MESSAGE_WORDS);
        }
    }
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        add_help(areas, area, &format!("{path} {}", sub.get_name()), sub);
    }
}

fn measure_all() -> Areas {
    let mut areas = measure();
    let mut cli = Cli::command();
    // Arguments and subcommands are built lazily.
    cli.build();
    for argument in cli.get_arguments() {
        let entry = areas.entry((Kind::Help, "global options".to_owned())).or_default();
        for help in [argument.get_help(), argument.get_long_help()].into_iter().flatten() {
            entry.add_text(argument.get_id().as_str(), &help.to_string(), MESSAGE_WORDS);
        }
    }
    for command in cli.get_subcommands().filter(|command| command.get_name() != "help") {
        add_help(&mut areas, command.get_name(), command.get_name(), command);
    }
    areas
}

fn caps() -> BTreeMap<(String, String), usize> {
    let table = repository::read(CAPS);
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| {
        let (kind, rest) = row.split_once(' ').unwrap();
        let (area, count) = rest.rsplit_once(' ').unwrap();
        ((kind.to_owned(), area.to_owned()), count.parse().unwrap())
    })
    .collect()
}

/// Rows of the areas that still miss the goal, none of them higher than it was and none of them new.
fn lowered(areas: &Areas, caps: &BTreeMap<(String, String), usize>) -> String {
    let mut out = String::from("# kind, area, units that match a pattern; the numbers can only fall\n");
    for ((kind, area), measured) in areas {
        let is_above = measured.hits * 1000 > kind.goal_per_mille() * measured.units;
        if let Some(cap) = caps.get(&(kind.name().to_owned(), area.clone())).filter(|_| is_above) {
            let _ = writeln!(out, "{} {area} {}", kind.name(), measured.hits.min(*cap));
        }
    }
    out
}

#[test]
fn hard_english_only_becomes_rarer() {
    let areas = measure_all();
    let caps = caps();
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        repository::assert_generated(CAPS, &lowered(&areas, &caps));
    }
    let mut failures = Vec::new();
    for kind in Kind::ALL {
        let (mut units, mut hits) = (0, 0);
        for ((_, area), measured) in areas.iter().filter(|((of, _), _)| *of == kind) {
            units += measured.units;
            hits += measured.hits;
            if measured.hits > 0 {
                println!("{:<9} {:>4} of {:>5}  {area}", kind.name(), measured.hits, measured.units);
                println!("  {}", measured.places.join("\n  "));
            }
            let goal = kind.goal_per_mille() * measured.units / 1000;
            let cap = caps.get(&(kind.name().to_owned(), area.clone())).copied().unwrap_or(0).max(goal);
            if measured.hits > cap {
                let places = measured.places.join("\n  ");
                failures.push(format!(
                    "{} of {area}: {} match, at most {cap} may:\n  {places}",
                    kind.name(),
                    measured.hits
                ));
            }
        }
        println!(
            "{:<9} {hits:>4} of {units:>5} in all: {:.2} %",
            kind.name(),
            100.0 * f64::from(u32::try_from(hits).unwrap()) / f64::from(u32::try_from(units).unwrap())
        );
        assert!(units > 300, "the search for {} finds too little", kind.name());
    }
    assert!(failures.is_empty(), "rewrite these sentences:\n{}", failures.join("\n"));
}
