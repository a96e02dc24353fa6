//! Bad input and a bad system get a clear error with the right code, change nothing, and never panic or hang.
//! What comes from outside never reaches the terminal as an escape code.

use std::path::PathBuf;

use serde_json::Value;
use testkit::{Call, CallResult, Home};

mod approval;
mod backup;
mod checkout;
mod clock;
mod context_rewrite;
mod damaged_backup;
mod edited_backup;
mod files;
mod guard;
mod limits;
mod local_user;
mod repository;
mod secrets;
mod store;
mod system;
mod text;
mod vault_choice;
mod working_directory;
mod world;

/// The call fails with this code, as text and as JSON, and changes nothing. Returns the error.
#[track_caller]
fn refused(home: &Home, args: &[&str], code: &str) -> Value {
    refused_call(home, || home.call(args), code)
}

#[track_caller]
fn refused_call(home: &Home, call: impl Fn() -> Call, code: &str) -> Value {
    let before = kept(home);
    let text = clean(call().run());
    assert_eq!(text.stdout(), "", "{}", text.told());
    assert!(text.stderr().contains("error: "), "{}", text.told());
    let json = clean(call().arg("--output=json").run());
    let error = json.json_error();
    assert_eq!(error["code"], code, "{}", json.told());
    assert_eq!(text.status(), json.status(), "{}{}", text.told(), json.told());
    assert_eq!(error["exit_code"].as_i64(), json.status().map(i64::from), "{}", json.told());
    assert!(kept(home) == before, "something was changed: {}", json.told());
    error
}

/// Everything in a home but what SQLite needs beside a database that is open, which a reader may leave behind, empty, and the answers
/// that readers keep for the next call.
fn kept(home: &Home) -> Vec<(PathBuf, Vec<u8>)> {
    let mut tree = home.tree();
    tree.retain(|(path, bytes)| {
        let name = path.to_string_lossy();
        let is_log = name.ends_with("state.db-wal") && bytes.is_empty();
        !is_log && !name.ends_with("state.db-shm") && !name.ends_with("state.db-answers")
    });
    tree
}

/// The same, if it ended by itself, did not panic, and prints nothing that acts on a terminal.
#[track_caller]
fn clean(done: CallResult) -> CallResult {
    assert!(done.status().is_some_and(|status| status != 101), "{}", done.told());
    for text in [done.stdout(), done.stderr()] {
        assert!(!text.contains("panicked"), "{}", done.told());
        let hostile = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
        assert!(!text.contains(hostile), "{text:?}");
    }
    done
}
