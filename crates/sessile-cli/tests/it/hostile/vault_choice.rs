//! The program that keeps credentials: neither an import, a backup nor a session selects it.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use testkit::{Call, Home};

use super::backup::sql;
use super::{clean, refused_call};
use crate::{home, live, start};

/// Writes a helper that leaves the file `ran` when it is started. Returns its path.
fn helper(home: &Home) -> String {
    let ran = home.path("ran");
    let path = home.write("clone/helper", format!("#!/bin/sh\ncat >> '{}'\necho '{{}}'\n", ran.display()));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Uses the vault in a session; the helper must not start.
#[track_caller]
fn helper_stays_unused(home: &Home, session: &str) {
    clean(home.call(&["auth", "list", "--session", session]).ok());
    let set = ["auth", "set", "bot", "--secret-stdin", "--session", session];
    clean(home.call(&set).stdin("hunter2").ok());
    assert!(!home.path("ran").exists(), "the helper was started: {}", home.read("ran"));
}

#[test]
fn session_import_accepts_the_settings_of_config_set_only() {
    let home = home();
    let helper = helper(&home);
    let id = start(&home, &["--name", "model"]);
    let model = home.call(&["session", "export", &id, "-ojson"]).ok().json();
    let file = |settings: &Value| {
        let mut file = model.clone();
        file["settings"] = settings.clone();
        file.to_string()
    };
    let import = |settings: &Value| -> Call {
        home.call(&["session", "import", "-", "--name", "web"]).stdin(file(settings))
    };
    for (settings, code) in [
        (json!({ "vault.backend": "helper", "vault.helper": helper }), "IN_SESSION"),
        (json!({ "\"vault\".'helper'": helper }), "IN_SESSION"),
        (json!({ "env.A": "fine", "vault.key-file": "/x" }), "IN_SESSION"),
        (json!({ "chat.opener": helper }), "IN_SESSION"),
        (json!({ "chat.'opener'": helper }), "IN_SESSION"),
        (json!({ "agents.a.headers": ["X: @/etc/hostname"] }), "IN_SESSION"),
        (json!({ "context": "other" }), "IN_SESSION"),
        (json!({ "output": "zzz" }), "INVALID_VALUE"),
        (json!({ "lock-timeout": "-1s" }), "INVALID_VALUE"),
        (json!({ "lock-timeout": 5 }), "INVALID_VALUE"),
        (json!({ "env.": "x" }), "INVALID_NAME"),
        (json!({ "no-such-setting": "x" }), "UNKNOWN_SETTING"),
        (json!({ "token": "x" }), "SECRET_REFUSED"),
        (json!({ "env.API_TOKEN": "x" }), "SECRET_REFUSED"),
        (json!({ "server": "https://me:hunter2@a.example" }), "SECRET_REFUSED"),
    ] {
        refused_call(&home, || import(&settings), code);
    }
    let message = import(&json!({ "output": "zzz" })).run().stderr();
    assert!(message.contains("output") && !message.contains("zzz"), "the file is not quoted: {message}");
    assert_eq!(live(&home), [id]);
    import(&json!({ "env.A": "x", "lock-timeout": "3s", "tools.only": ["git"] })).ok();
    helper_stays_unused(&home, "web");
}

#[test]
fn session_sets_no_program_and_no_file_to_send() {
    let home = home();
    let helper = helper(&home);
    let id = start(&home, &["--name", "web"]);
    for (key, value) in [("chat.opener", &*helper), ("agents.a.headers", "X: @/etc/hostname")] {
        let inside = || home.call(&["config", "set", key, value]).env("SESSILE_SESSION", &id);
        refused_call(&home, inside, "IN_SESSION");
        refused_call(&home, || home.call(&["config", "set", key, value, "--session", "web"]), "IN_SESSION");
        let global = || home.call(&["config", "set", key, value, "--global"]).env("SESSILE_SESSION", &id);
        refused_call(&home, global, "IN_SESSION");
        let setting = format!("{key}={value}");
        let create = || {
            let call = home.call(&["context", "create", "evil", "--setting", &setting, "--no-input"]);
            call.env("SESSILE_SESSION", &id)
        };
        refused_call(&home, create, "IN_SESSION");
    }
    let add = ["agent", "add", "a", "https://a.example", "-H", "X: @/etc/hostname", "--session", "web"];
    refused_call(&home, || home.call(&add), "IN_SESSION");
    // A person chooses them.
    home.call(&["config", "set", "chat.opener", &helper, "--global"]).ok();
}

#[test]
fn imported_context_with_a_program_is_reported() {
    let home = home();
    let helper = helper(&home);
    home.write("in.toml", format!("[contexts.fine.settings]\nlock-timeout = \"3s\"\n[contexts.evil.settings.chat]\nopener = \"{helper}\"\n"));
    let done = home.call(&["context", "import", "in.toml"]).ok();
    assert!(done.stderr().contains("context \"evil\" sets chat.opener"), "{}", done.told());
    assert!(!done.stderr().contains("fine\" sets"), "{}", done.told());
}

#[test]
fn context_of_an_untrusted_project_sets_no_opener() {
    let home = home();
    let file = "[settings.chat]\nopener = \"/nonexistent/evil\"\n";
    home.write("work/.sessile/contexts/dev.toml", file);
    let get = || home.call(&["config", "get", "chat.opener", "--context", "dev"]).cwd("work").run();
    assert!(!get().stdout().contains("evil"), "{}", get().told());
}

#[test]
fn restored_session_setting_of_the_vault_or_context_is_ignored() {
    let home = home();
    let helper = helper(&home);
    home.write(".config/sessile/contexts/other.toml", "");
    let id = start(&home, &["--name", "web"]);
    home.call(&["config", "set", "lock-timeout", "3s", "--session", &id]).ok();
    home.call(&["backup", "copy"]).ok();
    let insert = |key: &str, value: &str| {
        format!(
            "INSERT INTO entry SELECT user, session, kind, '{key}', '\"{value}\"', 1, 0 FROM entry WHERE key = 'lock-timeout'"
        )
    };
    let rows = [
        insert("vault.backend", "helper"),
        insert("vault.helper", &helper),
        insert("chat.opener", &helper),
        insert("context", "other"),
    ];
    sql(home.path("copy"), &rows.each_ref().map(String::as_str));
    home.call(&["backup", "restore", "copy", "--yes"]).ok();
    helper_stays_unused(&home, &id);
    let shown = home.call(&["config", "show", "--session", &id, "-ojson"]).ok().stdout();
    assert!(!shown.contains("clone/helper"), "{shown}");
    let get = |key: &str| home.call(&["config", "get", key, "--session", &id]).run().stdout();
    assert_eq!(get("lock-timeout"), "3s\n");
    let current = home.call(&["status", "--session", &id, "-ojson"]).ok().json();
    assert!(!current.to_string().contains("\"other\""), "{current}");
}

#[test]
fn context_changed_inside_a_session_sets_no_vault() {
    let home = home();
    let helper = helper(&home);
    home.write(".config/sessile/contexts/plain.toml", "");
    let id = start(&home, &[]);
    let table = format!("settings.vault = {{ backend = \"helper\", helper = \"{helper}\" }}\n");
    home.write("in.toml", format!("[contexts.fine]\n[contexts.evil]\n{table}"));
    home.write("file.toml", "");
    home.write("p/.sessile/config.toml", "");
    let setting = format!("vault.helper={helper}");
    for args in [
        &["context", "create", "evil", "--setting", &setting][..],
        &["context", "create", "evil", "--setting", &setting, "--project"],
        &["context", "edit", "plain", "--setting", &setting],
        &["context", "import", "in.toml"],
    ] {
        let call = || home.call(args).env("SESSILE_SESSION", &id).arg("--no-input");
        let error = refused_call(&home, call, "IN_SESSION");
        assert!(error["message"].as_str().unwrap().contains("vault."), "{error}");
    }
    let inside = home.call(&["context", "create", "fine", "--setting", "lock-timeout=3s"]);
    inside.env("SESSILE_SESSION", &id).ok();
    // A person selects a vault for a context outside of sessions.
    home.call(&["context", "edit", "plain", "--setting", &setting]).ok();
    let call = || home.call(&["context", "delete", "plain", "--yes"]).env("SESSILE_SESSION", &id);
    refused_call(&home, call, "IN_SESSION");
}

#[test]
fn variables_of_a_session_or_context_choose_no_vault() {
    let home = home();
    let helper = helper(&home);
    let variables = [
        ("SESSILE_VAULT_BACKEND", "helper"),
        ("SESSILE_VAULT_HELPER", &*helper),
        ("SESSILE_CHAT_OPENER", &*helper),
    ];
    let id = start(&home, &["--name", "web"]);
    let mut file = home.call(&["session", "export", &id, "-ojson"]).ok().json();
    for (name, value) in variables {
        file["settings"][format!("env.{name}")] = json!(value);
    }
    file["settings"]["env.SESSILE_SET"] = json!(format!("vault.backend=helper,vault.helper={helper}"));
    home.call(&["session", "import", "-", "--name", "other"]).stdin(file.to_string()).ok();
    let env: String = variables.iter().map(|(name, value)| format!("{name} = \"{value}\"\n")).collect();
    home.write(".config/sessile/contexts/staging.toml", format!("[env]\n{env}"));
    let program = home.program().to_str().unwrap().to_owned();
    for flags in [["--session", "other"], ["--context", "staging"]] {
        let auth = ["--", &program, "auth", "set", flags[1], "--secret-stdin"];
        let done = clean(home.call(&["run"]).args(&flags).args(&auth).stdin("hunter2").ok());
        for (name, _) in variables {
            assert!(
                done.stderr().contains(&format!("ignored {name}, which only the user sets")),
                "{}",
                done.told()
            );
        }
        assert!(!home.path("ran").exists(), "the helper was started: {}", home.read("ran"));
    }
}
