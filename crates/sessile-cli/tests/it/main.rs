//! The program as its users see it: one file per command or promise.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking and uses files and locks directly"
)]

use testkit::Home;

mod agents;
mod chat;
mod contexts;
mod contract;
mod documents;
mod durability;
mod hostile;
mod isolation;
mod mcp;
mod probe;
mod repository;
mod service;
mod sessions;
mod settings;
mod shell_hook;
mod tui;
mod vault;

/// A throwaway home for the program.
fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_sessile"))
}

/// A throwaway home with contexts in it.
fn home_with(contexts: &[&str]) -> Home {
    let home = home();
    for name in contexts {
        home.write(format!(".config/sessile/contexts/{name}.toml"), "");
    }
    home
}

/// Starts a session with these flags; returns its id.
fn start(home: &Home, flags: &[&str]) -> String {
    home.call(&["session", "start", "--quiet"]).args(flags).ok().stdout().trim().to_owned()
}

/// The live sessions' ids, oldest first.
fn live(home: &Home) -> Vec<String> {
    let listed = home.call(&["session", "list", "--limit", "1000", "--output", "json"]).ok().json();
    let mut ids: Vec<String> =
        listed.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

/// What the history says.
fn history(home: &Home) -> serde_json::Value {
    home.call(&["history", "--output", "json"]).ok().json()
}

/// A session as `session show` has it.
fn shown(home: &Home, session: &str) -> serde_json::Value {
    home.call(&["session", "show", session, "--output", "json"]).ok().json()
}

/// A session's room.
fn room(home: &Home, session: &str) -> std::path::PathBuf {
    shown(home, session)["room"].as_str().unwrap().into()
}

/// The scalars of a document in YAML, in order.
#[track_caller]
fn yaml_scalars(text: &str) -> Vec<String> {
    let events = saphyr_parser::Parser::new_from_str(text).map(|event| event.unwrap().0);
    events
        .filter_map(|event| match event {
            saphyr_parser::Event::Scalar(text, ..) => Some(text.into_owned()),
            _ => None,
        })
        .collect()
}

/// One that has died and whose new parent has not looked yet does not live.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

/// Waits until something is so. The limit is for what never comes.
#[track_caller]
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{what} never came");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
