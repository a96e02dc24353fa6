//! `has_credentials` of conversations, and the conversations of sessions: told to programs, and nobody is asked.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use testkit::{AgentOptions, Home, Protocol, ScriptedAgent};

use crate::{home, home_with, shown, start};

const SECRET: &str = "s3cret-token";

fn agent() -> ScriptedAgent {
    ScriptedAgent::start(AgentOptions::of(Protocol::V1))
}

fn send(home: &Home, agent: &str, session: &str, name: &str) {
    home.call(&["message", "send", agent, "input", "--session", session, "--conversation", name]).ok();
}

fn keep(home: &Home, agent: &str) {
    home.call(&["auth", "set", "--url", agent, "--bearer-token-stdin"]).stdin(SECRET).ok();
}

/// What `conversation list --all` says, by the names of the conversations.
fn listed(home: &Home) -> Value {
    let done = home.call(&["conversation", "list", "--all", "--output", "json", "--no-input"]).ok();
    assert!(!done.stdout().contains(SECRET) && !done.stderr().contains(SECRET), "{}", done.told());
    by_name(&done.json())
}

fn by_name(conversations: &Value) -> Value {
    let all = conversations.as_array().unwrap().iter();
    all.map(|one| (one["name"].as_str().unwrap().to_owned(), one["has_credentials"].clone())).collect()
}

#[test]
fn stored_credential_is_listed_for_its_agent() {
    let (home, one, two) = (home(), agent(), agent());
    send(&home, one.url(), "work", "a");
    send(&home, two.url(), "work", "b");
    assert_eq!(listed(&home), json!({ "a": false, "b": false }));
    keep(&home, one.url());
    assert_eq!(listed(&home), json!({ "a": true, "b": false }));
    let show = |name: &str| {
        home.call(&["conversation", "show", name, "--session", "work", "-ojson"]).ok().json()["has_credentials"]
            .clone()
    };
    assert_eq!((show("a"), show("b")), (json!(true), json!(false)));
    // By the agent's name in the settings, by what the settings select for its site, and for one call.
    home.call(&["auth", "set", "bot", "--secret-stdin", "--site", two.url()]).stdin(SECRET).ok();
    assert_eq!(listed(&home)["b"], false);
    let with = |args: &[&str]| {
        let call = home.call(&["conversation", "list", "--all", "--output", "json"]).args(args);
        by_name(&call.ok().json())["b"].clone()
    };
    assert_eq!(with(&["--credential", "bot"]), true);
    assert_eq!(with(&["--credential", "missing"]), false);
    home.call(&["agent", "add", "second", two.url(), "--with-credential", "bot", "--global"]).ok();
    assert_eq!(listed(&home)["b"], true);
    home.call(&["agent", "remove", "second", "--global"]).ok();
    home.call(&["config", "set", "credential", "bot", "--global"]).ok();
    assert_eq!(listed(&home), json!({ "a": true, "b": true }));
}

#[test]
fn session_context_decides_the_credential() {
    let (home, agent) = (home_with(&["bare"]), agent());
    let binding = |name: &str| format!("[agents.\"{}\"]\ncredential = \"{name}\"\n", agent.url());
    home.write(".config/sessile/contexts/bound.toml", binding("bot"));
    home.call(&["auth", "set", "bot", "--secret-stdin", "--site", agent.url()]).stdin(SECRET).ok();
    for context in ["bound", "bare"] {
        start(&home, &["--name", context, "--context", context]);
        send(&home, agent.url(), context, context);
    }
    assert_eq!(listed(&home), json!({ "bound": true, "bare": false }));
    home.write(".config/sessile/contexts/bound.toml", binding("missing"));
    assert_eq!(listed(&home)["bound"], false, "the bound credential is missing");
    std::fs::remove_file(home.path(".config/sessile/contexts/bound.toml")).unwrap();
    assert_eq!(listed(&home)["bound"], false, "the context was deleted");
}

#[test]
fn locked_vault_is_not_opened_by_agent_list() {
    let (home, agent) = (home(), agent());
    send(&home, agent.url(), "work", "a");
    keep(&home, agent.url());
    home.write("right", "a long passphrase\n");
    std::fs::set_permissions(home.path("right"), std::fs::Permissions::from_mode(0o600)).unwrap();
    home.call(&["auth", "rekey", "--to", "passphrase", "--passphrase-file", "right"]).ok();
    home.call(&["auth", "unlock", "--end"]).ok();
    assert_eq!(listed(&home), json!({ "a": null }));
    // Where somebody could be asked, nobody is.
    let (text, status) = home.call(&["conversation", "list", "--all", "-ojson"]).tty().finish();
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("\"has_credentials\": null") && !text.contains("Passphrase"), "{text}");
    let opened =
        home.call(&["conversation", "list", "--all", "-ojson"]).env("SESSILE_VAULT_PASSPHRASE_FILE", "right");
    assert_eq!(by_name(&opened.ok().json()), json!({ "a": true }));
    home.write(".local/state/sessile/vault/credentials", "no vault at all\n");
    assert_eq!(listed(&home), json!({ "a": null }));
    assert_eq!(shown(&home, "work")["conversations"][0]["has_credentials"], Value::Null);
}

#[test]
fn credential_helper_is_not_run_by_agent_list() {
    let (home, agent) = (home(), agent());
    send(&home, agent.url(), "work", "a");
    let helper = home.write("helper", format!("#!/bin/sh\ntouch '{}'\n", home.path("was-run").display()));
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!("[vault]\nbackend = \"helper\"\nhelper = \"{}\"\n", helper.display());
    home.write(".config/sessile/config.toml", config);
    assert_eq!(listed(&home), json!({ "a": null }));
    assert!(!home.path("was-run").exists());
    home.call(&["auth", "list"]).run();
    assert!(home.path("was-run").exists(), "the test detects a started helper");
}

/// A keychain that hangs up on everyone, and counts them.
fn keychain(home: &Home) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(home.path("bus")).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for caller in listener.incoming() {
            counted.fetch_add(1, Ordering::SeqCst);
            drop(caller);
        }
    });
    count
}

#[test]
fn vault_is_opened_once_and_only_on_request() {
    let (home, agent) = (home(), agent());
    let count = keychain(&home);
    let address = format!("unix:path={}", home.path("bus").display());
    let opened = |args: &[&str]| {
        let before = count.load(Ordering::SeqCst);
        home.call(args).env("DBUS_SESSION_BUS_ADDRESS", &address).ok();
        // Who was hung up on was counted.
        count.load(Ordering::SeqCst) - before
    };
    home.write(".config/sessile/config.toml", "vault.backend = \"keychain\"\n");
    start(&home, &["--name", "work"]);
    for args in [&["conversation", "list", "-ojson"][..], &["session", "list", "--conversations", "-ojson"]] {
        assert_eq!(opened(args), 0, "{args:?}: no conversation exists");
    }
    home.write(".config/sessile/config.toml", "");
    for name in ["a", "b", "c"] {
        send(&home, agent.url(), "work", name);
        send(&home, agent.url(), "play", name);
    }
    home.write(".config/sessile/config.toml", "vault.backend = \"keychain\"\n");
    for (args, times) in [
        (&["conversation", "list", "--all", "-ojson"][..], 1),
        (&["conversation", "list", "--all", "-ojsonl"], 1),
        (&["conversation", "list", "--all"], 0),
        (&["conversation", "show", "a", "--session", "work", "-ojson"], 1),
        (&["conversation", "show", "a", "--session", "work"], 0),
        (&["session", "list", "--conversations", "-ojson"], 1),
        (&["session", "list", "--conversations"], 0),
        (&["session", "list", "-ojson"], 0),
        (&["session", "show", "work", "-ojson"], 1),
        (&["session", "show", "work"], 0),
    ] {
        assert_eq!(opened(args), times, "{args:?}");
    }
}

#[test]
fn session_list_names_agents() {
    let (home, agent) = (home(), agent());
    send(&home, agent.url(), "work", "a");
    send(&home, agent.url(), "work", "b");
    send(&home, agent.url(), "play", "c");
    start(&home, &["--name", "silent"]);
    keep(&home, agent.url());
    let sessions = home.call(&["session", "list", "--conversations", "--output", "json"]).ok().json();
    let of = |name: &str| {
        let session = sessions.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
        session["conversations"].as_array().unwrap().clone()
    };
    let names = |all: &[Value]| all.iter().map(|one| one["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names(&of("work")), ["b", "a"], "the last used first");
    assert_eq!((names(&of("play")), names(&of("silent"))), (vec![json!("c")], Vec::new()));
    let members: Vec<String> = of("play")[0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        members,
        ["id", "name", "agent_url", "context_id", "task_id", "task_state", "has_credentials"]
    );
    assert_eq!(of("play")[0]["agent_url"], agent.url());
    assert_eq!(of("play")[0]["has_credentials"], true);
    for name in ["work", "play", "silent"] {
        assert_eq!(shown(&home, name)["conversations"], json!(of(name)));
    }
    let listed = home.call(&["conversation", "list", "--session", "play", "-ojson"]).ok().json();
    for key in &members {
        assert_eq!(listed[0][key], of("play")[0][key], "{key}");
    }
    let plain = home.call(&["session", "list", "-ojson"]).ok().json();
    assert!(plain.as_array().unwrap().iter().all(|one| one.get("conversations").is_none()));
    let told = format!("c with {}", agent.url());
    let text = home.call(&["session", "list", "--conversations", "--wide"]).ok().stdout();
    assert!(text.contains("CONVERSATIONS") && text.contains(&told), "{text}");
    assert!(!home.call(&["session", "list"]).ok().stdout().contains(&told));
    assert!(home.call(&["session", "show", "play"]).ok().stdout().contains(&told));
}
