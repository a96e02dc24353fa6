//! Tables fit 80 columns, and `--wide` shows everything.

use crate::contract::output::furnished_for;
use crate::home;

#[test]
fn session_list_has_short_ids_that_can_be_passed_on() {
    let home = home();
    home.call(&["context", "create", "staging"]).ok();
    let start = || home.call(&["session", "start", "-q", "-c", "staging"]).ok().stdout().trim().to_owned();
    let ids = [start(), start()];
    let table = home.call(&["session", "list"]).ok().stdout();
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(
        !table.contains("NAME") && !table.contains("RUNNING"),
        "columns without a value are left out:\n{table}"
    );
    for (id, line) in ids.iter().rev().zip(table.lines().skip(1)) {
        let short = line.split_whitespace().find(|word| *word != "*").unwrap();
        assert!(short.len() < id.len() && id.starts_with(short), "{short} of {id}");
        let shown = home.call(&["session", "show", short, "-o", "json"]).ok().json();
        assert_eq!(shown["id"], id.as_str());
    }
    let wide = home.call(&["session", "list", "--wide"]).ok().stdout();
    assert!(ids.iter().all(|id| wide.contains(id.as_str())), "{wide}");
}

#[test]
fn context_list_shows_bindings_and_marks_guards() {
    let home = home();
    home.call(&["context", "create", "staging", "--bind", "git.name=Stage"]).ok();
    home.call(&["context", "create", "production", "--guard", "approval", "--bind", "git.name=Prod"]).ok();
    let list = |flags: &[&str]| home.call(&[&["context", "list"], flags].concat()).ok().stdout();
    let table = list(&[]);
    assert!(table.contains("git.name=Stage") && !table.contains("user"), "{table}");
    let guarded = table.lines().find(|line| line.contains("production")).unwrap();
    assert!(guarded.contains("guarded: approval") && guarded.contains("git.name=Prod"), "{table}");
    let colored = list(&["--color", "always"]);
    let line = |name: &str| colored.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("production").starts_with('\u{1b}') && !line("staging").starts_with('\u{1b}'), "{colored}");
}

#[test]
fn config_list_shows_effective_values() {
    let home = home();
    home.write(".config/sessile/config.toml", "lock-timeout = \"9s\"\n");
    let list = home.call(&["config", "list"]).ok().stdout();
    assert!(list.lines().any(|line| line.split_whitespace().eq(["lock-timeout", "9s"])), "{list}");
    for args in [&["config", "list", "--show-origin"][..], &["config", "--show-origin"]] {
        let list = home.call(args).ok().stdout();
        let line = list.lines().find(|line| line.starts_with("lock-timeout")).unwrap();
        assert!(line.contains("9s") && line.contains("user "), "{args:?}: {line}");
    }
    let get = home.call(&["config", "get", "lock-timeout", "--show-origin"]).ok().stdout();
    assert!(get.starts_with("9s\tuser "), "{get}");
    let described = home.call(&["config", "describe", "lock-timeout"]).ok().stdout();
    assert!(described.contains("duration") && described.lines().count() == 2, "{described}");
    home.call(&["config", "describe", "nonsense"]).run().exit(2);
    let json = home.call(&["config", "list", "-o", "json"]).ok().json();
    let one = json.as_array().unwrap().iter().find(|one| one["key"] == "lock-timeout").unwrap();
    assert_eq!((one["kind"].as_str(), one["origin"]["layer"].as_str()), (Some("duration"), Some("user")));
}

/// Commands that print a table for people, and which the furnished home gives rows.
const LISTS: &[&[&str]] = &[
    &["agent", "list"],
    &["auth", "list"],
    &["auth", "status"],
    &["config", "describe"],
    &["config", "list"],
    &["context", "approve", "--list"],
    &["context", "list"],
    &["conversation", "list"],
    &["help", "options"],
    &["history"],
    &["import", "scan"],
    &["lock", "list"],
    &["manifest"],
    &["mcp", "config"],
    &["run", "--dry-run", "--variables"],
    &["session", "list"],
    &["setup"],
    &["status", "--show-state-files"],
    &["tool", "list"],
    &["trust", "--list"],
    &["user", "list"],
    &["user", "audit"],
];

#[test]
fn tables_fit_80_columns_and_never_cut_a_time() {
    use unicode_width::UnicodeWidthStr;
    for words in LISTS {
        let home = furnished_for(words[0]);
        if words[0] == "user" {
            home.call(&["user", "add", "a-user-with-a-rather-long-name"]).ok();
        }
        if words[0] == "session" {
            let name = "a-session-with-a-rather-long-name";
            home.call(&["session", "start", "--name", name, "-c", "staging"]).ok();
        }
        if words[0] == "lock" {
            home.call(&["lock", "acquire", "a-lock-with-a-rather-long-name-for-a-table", "--ttl", "1h"]).ok();
        }
        let text = home.call(words).ok().stdout();
        // A word is never broken, and the path of the throwaway home is a long one.
        let is_long_path =
            |line: &str| line.split_whitespace().any(|word| word.contains('/') && word.len() > 30);
        // The precedence is one line.
        for line in text.lines().filter(|line| !line.contains(" > directory > ")) {
            assert!(line.width() <= 80 || is_long_path(line), "{words:?}: {line}\n{text}");
        }
        let is_cut_time = |word: &str| word.ends_with('…') && word.starts_with("20") && word.contains('-');
        assert!(!text.split_whitespace().any(is_cut_time), "{words:?}: {text}");
    }
}
