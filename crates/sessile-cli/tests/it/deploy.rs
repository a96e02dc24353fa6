//! What is in `deploy/` fits the program, and is what it says it is.

use std::process::Command;
use std::time::Duration;

use clap::CommandFactory;
use sessile::args::parse_duration;
use sessile_cli::cli::Cli;

use crate::{repository, yaml_scalars};

/// How long the service may take to end beyond `--grace`.
const AFTER_GRACE: Duration = Duration::from_secs(16);

const UNITS: [&str; 2] = ["sessile.service", "sessile@.service"];

#[track_caller]
fn assert_parses(place: &str, words: &[&str]) {
    if let Err(error) = Cli::command().try_get_matches_from(words) {
        panic!("{place}: {words:?}\n{error}");
    }
}

/// Fails unless whoever kills the service waits for it.
#[track_caller]
fn assert_patient(place: &str, words: &[&str], patience: Duration) {
    let grace = words
        .iter()
        .zip(words.iter().skip(1))
        .find_map(|(flag, value)| flag.strip_prefix("--grace=").or((*flag == "--grace").then_some(value)))
        .or_else(|| words.last().and_then(|word| word.strip_prefix("--grace=")));
    let grace = parse_duration(grace.unwrap()).unwrap();
    assert!(patience > grace + AFTER_GRACE, "{place}: {patience:?} for {grace:?} of grace");
}

fn value<'t>(unit: &'t str, key: &str) -> &'t str {
    unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap()
}

#[test]
fn the_units_start_what_there_is() {
    for name in UNITS {
        let unit = repository::read(format!("deploy/{name}"));
        let start = value(&unit, "ExecStart").replace("%i", "8737");
        let words: Vec<&str> = start.split(' ').collect();
        assert_eq!(words[0], "/usr/local/bin/sessile");
        assert_parses(name, &words);
        let seconds = value(&unit, "TimeoutStopSec").parse().unwrap();
        assert_patient(name, &words, Duration::from_secs(seconds));
    }
}

#[test]
fn systemd_takes_the_units() {
    // Where there is no systemd they are of no use either.
    let Some(analyze) = testkit::find_tool("systemd-analyze") else { return };
    let home = crate::home();
    let program = home.program().display().to_string();
    for name in UNITS {
        let unit = repository::read(format!("deploy/{name}")).replace("/usr/local/bin/sessile", &program);
        let file = name.replace('@', "@8737");
        home.write(&file, &unit);
        let verified =
            Command::new(&analyze).args(["verify", "--man=no"]).arg(home.path(&file)).output().unwrap();
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        let about: Vec<&str> = said.lines().filter(|line| line.contains("sessile")).collect();
        assert!(verified.status.success() && about.is_empty(), "{name}: {said}");
    }
}

#[test]
fn the_compose_file_fits_the_program_and_the_proxy() {
    let scalars = yaml_scalars(&repository::read("deploy/compose.yaml"));
    let at = scalars.iter().position(|word| word == "serve").unwrap();
    let flags = scalars[at + 1..].iter().take_while(|word| word.starts_with("--"));
    let words: Vec<&str> = ["sessile", "serve"].into_iter().chain(flags.map(String::as_str)).collect();
    assert!(words.len() > 5, "the search has gone blind: {words:?}");
    assert_parses("compose.yaml", &words);
    let after = |key: &'static str| {
        scalars
            .iter()
            .zip(&scalars[1..])
            .filter(move |(word, _)| *word == key)
            .map(|(_, value)| value.as_str())
    };
    assert_patient(
        "compose.yaml",
        &words,
        parse_duration(after("stop_grace_period").next().unwrap()).unwrap(),
    );
    // Where images come from is for whoever runs it to say.
    assert!(after("image").count() >= 3 && after("image").all(|image| !image.contains('/')));

    let proxy = repository::read("deploy/nginx.conf");
    let servers: Vec<&str> = proxy
        .lines()
        .filter_map(|line| line.trim().strip_prefix("server ")?.split(':').next())
        .filter(|name| *name != "{")
        .collect();
    assert_eq!(servers.len(), 3, "{servers:?}");
    for server in servers {
        assert!(scalars.iter().any(|word| word == server), "{server} is no service");
    }
    assert_eq!(proxy.matches('{').count(), proxy.matches('}').count());
}
