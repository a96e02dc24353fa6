//! `sessile message`, `task`, `agent` and `conversation`, with agents that speak A2A.

use serde_json::Value;
use testkit::{AgentAuth, AgentOptions, Call, Home, OidcServer, Protocol, PythonAgent, ScriptedAgent};

use crate::home;

fn agent() -> ScriptedAgent {
    ScriptedAgent::start(AgentOptions::of(Protocol::V1))
}

fn send(home: &Home, agent: &str, text: &str) -> Call {
    home.call(&["message", "send", agent, text, "-ojson"])
}

fn in_session(home: &Home, agent: &str, text: &str) -> Value {
    send(home, agent, text).args(&["--session", "work"]).ok().json()
}

#[test]
fn session_continues_its_conversation() {
    let (home, agent) = (home(), agent());
    let first = in_session(&home, agent.url(), "context");
    let second = in_session(&home, &format!("{}/", agent.url()), "context");
    let (one, two) = (first["text"].as_str().unwrap(), second["text"].as_str().unwrap());
    let id = first["context_id"].as_str().unwrap();
    assert_eq!((one, two), (format!("{id} 1").as_str(), format!("{id} 2").as_str()));
    assert_eq!(first["source"], "agent");
    let new = send(&home, agent.url(), "context").args(&["--session", "work", "--new"]).ok().json();
    assert_ne!(new["context_id"], first["context_id"]);
    let other = send(&home, agent.url(), "context").args(&["--session", "other"]).ok().json();
    assert_ne!(other["context_id"], new["context_id"]);
    let back =
        send(&home, agent.url(), "context").args(&["--session", "work", "--context-id", id]).ok().json();
    assert_eq!(back["text"], format!("{id} 3"));
    let all = home.call(&["conversation", "list", "--session", "work", "-ojson"]).ok().json();
    assert_eq!((all.as_array().unwrap().len(), &all[0]["context_id"]), (2, &back["context_id"]));
}

#[test]
fn message_without_session_or_terminal_stores_nothing() {
    let (home, agent) = (home(), agent());
    let first = send(&home, agent.url(), "context").ok().json();
    let second = send(&home, agent.url(), "context").ok().json();
    assert_ne!(first["context_id"], second["context_id"]);
    assert_eq!(first["session"], Value::Null);
    let said = first["context_id"].as_str().unwrap();
    let third = send(&home, agent.url(), "context").args(&["--context-id", said]).ok().json();
    assert_eq!(third["text"], format!("{said} 2"));
    assert_eq!(home.call(&["conversation", "list", "-ojson"]).ok().json(), serde_json::json!([]));
    let goes_on = send(&home, agent.url(), "hello").args(&["--continue"]).run().exit(5);
    assert_eq!(goes_on.code(), "CONVERSATION_NOT_FOUND");
}

#[test]
fn first_message_in_a_terminal_starts_a_session() {
    let (home, agent) = (home(), agent());
    let mut shell = home.shell();
    let program = home.program().display().to_string();
    let (first, _) = shell.run(&format!("{program} message send {} context 2>&1", agent.url()));
    assert!(
        first.contains("for this terminal") && first.contains("continue: sessile message send"),
        "{first}"
    );
    let (second, _) = shell.run(&format!("{program} message send {} context 2>&1", agent.url()));
    assert!(second.lines().any(|line| line.trim().ends_with(" 2")), "{second}");
}

#[test]
fn input_required_task_is_answered_and_ended_task_is_replaced() {
    let (home, agent) = (home(), agent());
    let asked = in_session(&home, agent.url(), "ask");
    assert_eq!(asked["state"], "input-required");
    let answered = in_session(&home, agent.url(), "ann");
    assert_eq!((&answered["task_id"], answered["state"].as_str()), (&asked["task_id"], Some("completed")));
    let next = in_session(&home, agent.url(), "task more");
    assert_eq!(next["context_id"], asked["context_id"]);
    assert_ne!(next["task_id"], asked["task_id"]);
    let failed = send(&home, agent.url(), "fail").args(&["--session", "work"]).run().exit(1);
    assert_eq!(failed.json()["state"], "failed");
}

#[test]
fn forgotten_task_is_reported_before_a_new_one_starts() {
    let (home, agent) = (home(), agent());
    let asked = in_session(&home, agent.url(), "ask");
    agent.forget(asked["context_id"].as_str().unwrap());
    let before = agent.count("SendStreamingMessage");
    let told = send(&home, agent.url(), "ann").args(&["--session", "work"]).run();
    assert!(told.status() != Some(0), "{}", told.told());
    assert_eq!(
        (agent.count("SendStreamingMessage"), agent.count("SendMessage")),
        (before + 1, 0),
        "the message is sent once"
    );
}

#[test]
fn stream_is_printed_as_it_arrives() {
    let (home, agent) = (home(), agent());
    let done =
        home.call(&["message", "stream", agent.url(), "stream 3", "--session", "work", "-ojsonl"]).ok();
    let lines: Vec<Value> = done.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() >= 4 && lines.iter().all(|line| line["source"] == "agent"), "{}", done.told());
    assert_eq!(lines.last().unwrap()["state"], "completed");
    let shown = home.call(&["conversation", "show", "--session", "work", "-ojson"]).ok().json();
    assert!(shown["messages"].as_array().unwrap().len() >= 4, "{shown}");
    assert_eq!(
        (&shown["messages"][0]["source"], &shown["messages"][1]["source"]),
        (&"user".into(), &"agent".into())
    );
}

#[test]
fn artifacts_are_saved_to_one_directory() {
    let (home, agent) = (home(), agent());
    let done = send(&home, agent.url(), "file").args(&["--save-artifacts", "out"]).ok().json();
    let saved = done["saved"].as_array().unwrap();
    assert!(!saved.is_empty());
    for path in saved {
        assert!(std::path::Path::new(path.as_str().unwrap()).starts_with(home.path("out")), "{path}");
    }
    assert!(!home.path("evil").exists() && !home.dir().with_file_name("evil").exists());
}

#[test]
fn text_with_a_file_name_is_printed_and_saved() {
    let (home, agent) = (home(), PythonAgent::shared(Protocol::V1));
    for words in [&["message", "send"], &["message", "stream"]] {
        let call = home.call(words).args(&[agent.url(), "note # Plan", "--save-artifacts", "out"]);
        let done = call.ok();
        assert!(done.stdout().starts_with("# Plan\n") && done.stdout().contains("saved "), "{}", done.told());
    }
    for name in ["out/note.md", "out/note-2.md"] {
        assert_eq!(std::fs::read_to_string(home.path(name)).unwrap(), "# Plan", "{name}");
    }
    let unsaved = home.call(&["message", "send", agent.url(), "note # Plan"]).ok();
    assert!(unsaved.stderr().contains("save its files: --save-artifacts DIR"), "{}", unsaved.told());
}

#[test]
fn credential_is_sent_only_to_its_agent() {
    let options = AgentOptions::of(Protocol::V1).guarded(AgentAuth::Bearer, "s3cret-token", "alice");
    let (home, agent, other) = (home(), ScriptedAgent::start(options), agent());
    let stranger = send(&home, agent.url(), "echo hi").run().exit(8);
    assert_eq!(stranger.code(), "CREDENTIAL_REJECTED");
    home.call(&["auth", "set", "--url", agent.url(), "--bearer-token-stdin"]).stdin("s3cret-token").ok();
    assert_eq!(send(&home, agent.url(), "echo hi").ok().json()["text"], "hi");
    send(&home, other.url(), "echo hi").ok();
    assert!(agent.heard("s3cret-token") && !other.heard("s3cret-token"));
    // A card that names another origin gets nothing.
    let lure = AgentOptions { card_origin: Some(other.url().to_owned()), ..AgentOptions::of(Protocol::V1) };
    let lure = ScriptedAgent::start(lure);
    home.call(&["auth", "set", "--url", lure.url(), "--bearer-token-stdin"]).stdin("another-s3cret").ok();
    let _ = send(&home, lure.url(), "echo hi").run();
    assert!(!other.heard("another-s3cret"));
}

#[test]
fn agents_of_the_official_sdk_reply() {
    for protocol in [Protocol::V1, Protocol::V03] {
        let (home, agent) = (home(), PythonAgent::shared(protocol));
        let asked = in_session(&home, agent.url(), "ask");
        assert_eq!(asked["state"], "input-required", "{asked}");
        let answered = in_session(&home, agent.url(), "ann");
        assert_eq!(
            (answered["state"].as_str(), &answered["task_id"]),
            (Some("completed"), &asked["task_id"])
        );
        let task = home.call(&["task", "get", "--session", "work", "-ojson"]).ok().json();
        assert_eq!(task["state"], "completed");
        home.call(&["message", "stream", agent.url(), "stream 2", "--session", "work"]).ok();
        assert_eq!(home.call(&["agent", "validate", agent.url(), "-ojson"]).ok().json()["valid"], true);
    }
}

#[test]
fn agent_is_addressed_by_its_name() {
    let (home, agent) = (home(), agent());
    home.call(&["agent", "add", "local", agent.url(), "--global"]).ok();
    assert_eq!(send(&home, "local", "echo hi").ok().json()["text"], "hi");
    let listed = home.call(&["agent", "list", "-ojson"]).ok().json();
    assert_eq!((&listed[0]["name"], &listed[0]["url"]), (&"local".into(), &agent.url().into()));
    assert_eq!(send(&home, "locla", "echo hi").run().exit(5).code(), "AGENT_NOT_FOUND");
    home.call(&["agent", "show", "local"]).ok();
    home.call(&["agent", "remove", "local", "--global"]).ok();
    send(&home, "local", "echo hi").run().exit(5);
}

#[test]
fn conversation_is_named_shown_and_cleared() {
    let (home, agent) = (home(), agent());
    in_session(&home, agent.url(), "echo one");
    let id = home.call(&["conversation", "list", "--session", "work", "-ojson"]).ok().json()[0]["id"].clone();
    home.call(&["conversation", "rename", id.as_str().unwrap(), "first", "--session", "work"]).ok();
    let exported = home.call(&["conversation", "export", "first", "--session", "work"]).ok().json();
    assert_eq!(exported["name"], "first");
    let named =
        send(&home, agent.url(), "context").args(&["--session", "work", "--conversation", "second"]).ok();
    assert_ne!(named.json()["conversation"], id);
    home.call(&["conversation", "clear", "first", "--session", "work"]).run().exit(2);
    home.call(&["conversation", "clear", "--all", "--session", "work", "--yes"]).ok();
    assert_eq!(
        home.call(&["conversation", "list", "--session", "work", "-ojson"]).ok().json(),
        serde_json::json!([])
    );
}

#[test]
fn stateless_call_prints_the_conversation_id() {
    let (home, agent) = (home(), agent());
    let first = in_session(&home, agent.url(), "ask");
    let told = home
        .call(&["run", "--session", "work", "--", "printenv", "A2ACLI_CONTEXT_ID", "A2ACLI_TASK_ID"])
        .ok();
    let expected =
        format!("{}\n{}\n", first["context_id"].as_str().unwrap(), first["task_id"].as_str().unwrap());
    assert_eq!(told.stdout(), expected);
}

#[test]
fn conversation_continues_in_an_imported_session() {
    let (here, there, agent) = (home(), home(), agent());
    let asked = in_session(&here, agent.url(), "ask");
    let file = there.path("work.json");
    here.call(&["session", "export", "work", "--file", file.to_str().unwrap()]).ok();
    there.call(&["session", "import", "work.json"]).ok();
    let answered = in_session(&there, agent.url(), "ann");
    assert_eq!((&answered["task_id"], answered["state"].as_str()), (&asked["task_id"], Some("completed")));
    let shown = there.call(&["conversation", "show", "--session", "work", "-ojson"]).ok().json();
    let kinds =
        |kind: &str| shown["messages"].as_array().unwrap().iter().filter(|item| item["kind"] == kind).count();
    assert_eq!((kinds("sent"), kinds("artifact")), (2, 1), "{shown}");
}

#[test]
fn guard_is_checked_before_a_credential_is_sent() {
    let options = AgentOptions::of(Protocol::V1).guarded(AgentAuth::Bearer, "s3cret-token", "alice");
    let (home, agent) = (home(), ScriptedAgent::start(options));
    home.call(&["auth", "set", "prod", "--secret-stdin", "--site", agent.url()]).stdin("s3cret-token").ok();
    let bound = format!("{}=prod", agent.url());
    home.call(&["context", "create", "production", "--guard", "approval", "--agent-credential", &bound]).ok();
    let sent = send(&home, agent.url(), "echo hi").args(&["--context", "production"]).run().exit(7);
    assert_eq!(sent.code(), "GUARD_APPROVAL");
    let checked = home.call(&["auth", "check", "--url", agent.url(), "--context", "production", "-ojson"]);
    assert_eq!(checked.run().exit(7).code(), "GUARD_APPROVAL");
    assert!(!agent.heard("s3cret-token"));
}

#[test]
fn message_after_a_forgotten_task_starts_a_new_one() {
    let (home, agent) = (home(), agent());
    in_session(&home, agent.url(), "ask");
    let other = ScriptedAgent::start(AgentOptions::of(Protocol::V1));
    home.call(&["agent", "add", "other", other.url(), "--global"]).ok();
    // The same conversation, as another agent that never heard of it has it.
    let db = home.path(".local/state/sessile/state.db");
    let change = format!("UPDATE conversation SET agent = '{}', context_id = NULL", other.url());
    let changed = std::process::Command::new("python3")
        .args([
            "-c",
            "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()",
        ])
        .arg(&db)
        .arg(&change)
        .status()
        .unwrap();
    assert!(changed.success());
    let told = send(&home, "other", "ann").args(&["--session", "work"]).run().exit(5);
    assert_eq!(told.code(), "TASK_NOT_FOUND");
    assert_eq!(send(&home, "other", "echo again").args(&["--session", "work"]).ok().json()["text"], "again");
}

#[test]
fn conversation_of_another_session_is_hidden() {
    let (home, agent) = (home(), agent());
    in_session(&home, agent.url(), "ask");
    let program = home.program().display().to_string();
    let inner = ["run", "--session", "work", "--", &program, "run", "--session", "fresh", "--", "env"];
    assert!(!home.call(&inner).ok().stdout().contains("A2ACLI_"));
    let said =
        home.call(&["run", "--session", "work", "--", "env"]).env("A2ACLI_CONTEXT_ID", "mine").ok().stdout();
    assert!(said.contains("A2ACLI_CONTEXT_ID=mine") && !said.contains("A2ACLI_TASK_ID"), "{said}");
}

#[test]
fn stream_chunks_are_joined_and_end_with_a_newline() {
    let (home, agent) = (home(), agent());
    let done = home.call(&["message", "stream", agent.url(), "stream 2", "--session", "work"]).ok();
    assert!(done.stdout().ends_with('\n') && !done.stdout().ends_with("\n\n"), "{:?}", done.stdout());
    let json = home.call(&["message", "stream", agent.url(), "stream 2", "-ojson"]).ok().json();
    assert_eq!(json["text"].as_str().unwrap().trim_end(), done.stdout().trim_end());
}

#[test]
fn watching_an_older_task_creates_no_conversation() {
    let (home, agent) = (home(), agent());
    let first = in_session(&home, agent.url(), "task one");
    in_session(&home, agent.url(), "task two");
    let id = first["task_id"].as_str().unwrap();
    home.call(&["task", "watch", id, "--url", agent.url(), "--session", "work"]).ok();
    let all = home.call(&["conversation", "list", "--session", "work", "-ojson"]).ok().json();
    assert_eq!(all.as_array().unwrap().len(), 1);
    assert_ne!(all[0]["task_id"], first["task_id"]);
}

#[test]
fn credential_is_placed_as_the_card_requires() {
    let ways: [(AgentAuth, &str, &[&str]); 4] = [
        (AgentAuth::ApiKeyHeader("X-Agent-Key".into()), "s3cret-key", &["--api-key", "-"]),
        (AgentAuth::ApiKeyQuery("key".into()), "s3cret-key", &["--api-key", "-"]),
        (AgentAuth::ApiKeyCookie("key".into()), "s3cret-key", &["--api-key", "-"]),
        (AgentAuth::Basic, "ann:s3cret-key", &["--basic", "ann", "--secret-stdin"]),
    ];
    for (auth, secret, flags) in ways {
        let agent = ScriptedAgent::start(AgentOptions::of(Protocol::V1).guarded(auth, secret, "alice"));
        let home = home();
        assert_eq!(send(&home, agent.url(), "echo hi").run().exit(8).code(), "CREDENTIAL_REJECTED");
        home.call(&["auth", "set", "--url", agent.url()]).args(flags).stdin("s3cret-key").ok();
        let told = send(&home, agent.url(), "whoami").ok();
        assert!(told.json()["text"].as_str().unwrap().contains("alice"), "{flags:?}: {}", told.told());
    }
}

#[test]
fn agent_accepts_tokens_of_an_authorization_server() {
    let server = OidcServer::start();
    let auth = AgentAuth::OAuth2 { issuer: server.issuer().to_owned(), device: false };
    let agent = ScriptedAgent::start(AgentOptions { auth, ..AgentOptions::of(Protocol::V1) });
    let home = home();
    home.write("secret", OidcServer::SECRET);
    let login =
        ["auth", "login", "robot", "--issuer", server.issuer(), "--client-id", OidcServer::SECRET_CLIENT];
    let more =
        ["--client-credentials", "--client-secret", "@secret", "--site", agent.url(), "--scope", "api:read"];
    home.call(&login).args(&more).ok();
    home.call(&["agent", "add", "local", agent.url(), "--with-credential", "robot", "--global"]).ok();
    assert_eq!(send(&home, "local", "echo hi").ok().json()["text"], "hi");
    home.call(&["auth", "logout", "robot", "--yes"]).ok();
    assert_eq!(send(&home, "local", "echo hi").run().exit(8).code(), "CREDENTIAL_NOT_FOUND");
}
