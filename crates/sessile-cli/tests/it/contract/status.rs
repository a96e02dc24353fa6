//! `sessile status`: where am I, and why.

use std::path::Path;

use serde_json::{Value, json};

use crate::{home, home_with};

#[test]
fn with_nothing_set_up_it_still_answers() {
    let home = home();
    let json = home.call(&["status", "--output", "json"]).ok().json();
    for key in ["current_context", "context_origin", "token_expires", "session", "project", "guard"] {
        assert_eq!(json[key], Value::Null, "{key}");
        assert!(json.as_object().unwrap().contains_key(key), "{key}");
    }
    assert_eq!(json["logged_in"], false);
    assert_eq!(json["user"], Value::Null);
    assert!(!json["os_user"].as_str().unwrap().is_empty());
    assert!(!json.as_object().unwrap().contains_key("state_files"));
    let text = home.call(&["status"]).ok().stdout();
    assert!(text.starts_with("context   none\nsession   none\nuser      "), "{text}");
    assert!(home.tree().is_empty(), "looking leaves nothing behind");
}

#[test]
fn the_context_comes_with_its_origin() {
    let home = home_with(&["dev"]);
    home.write(".config/sessile/config.toml", "\ncontext = \"dev\"\n");
    let json = home.call(&["status", "-ojson"]).ok().json();
    assert_eq!(json["current_context"], "dev");
    let path = home.path(".config/sessile/config.toml");
    assert_eq!(json["context_origin"], json!({ "layer": "user", "path": path, "line": 2 }));
    let text = home.call(&["status"]).ok().stdout();
    assert!(text.starts_with(&format!("context   dev  from user {}:2\n", path.display())), "{text}");
}

#[test]
fn deselected_context_is_reported() {
    let home = home_with(&["dev"]);
    let done = home.call(&["status"]).env("SESSILE_CONTEXT", "dve").ok();
    assert!(done.stdout().contains("dve does not exist"), "{}", done.told());
    assert!(done.stderr().contains("did you mean \"dev\"?"), "{}", done.told());
    assert_eq!(home.call(&["status", "-ojson", "--context", "dve"]).ok().json()["context_exists"], false);
}

#[test]
fn the_guard_says_whether_it_is_open() {
    let home = home();
    home.write(".config/sessile/contexts/prod.toml", "guard = \"explicit\"\n");
    home.write(".config/sessile/config.toml", "context = \"prod\"\n");
    assert!(home.call(&["status"]).ok().stdout().contains("guard     explicit (shut)"));
    assert!(home.call(&["status", "--context", "prod"]).ok().stdout().contains("guard     explicit (open)"));
    let guard = home.call(&["status", "-ojson"]).ok().json()["guard"].clone();
    assert_eq!(guard, json!({ "guard": "explicit", "satisfied": false }));
}

#[test]
fn every_file_that_is_read_or_kept_is_listed() {
    let home = home_with(&["dev"]);
    home.write("project/.sessile/contexts/theirs.toml", "");
    home.call(&["context", "use", "dev", "--global"]).ok();
    home.call(&["context", "use", "dev", "--dir"]).cwd("project").ok();
    let json = home.call(&["status", "--show-state-files", "-ojson"]).cwd("project").ok().json();
    let files = json["state_files"].as_array().unwrap();
    let listed: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    for (path, _) in home.tree().into_iter().filter(|(path, _)| !path.is_dir()) {
        assert!(listed.contains(&path.to_str().unwrap()), "{} is kept and not listed", path.display());
    }
    for file in files {
        let members: Vec<&String> = file.as_object().unwrap().keys().collect();
        assert_eq!(members, ["path", "purpose", "exists", "mode", "size"]);
        assert_eq!(file["exists"].as_bool().unwrap(), file["mode"].is_string(), "{file}");
    }
    let store = files.iter().find(|file| file["path"].as_str().unwrap().ends_with("state.db")).unwrap();
    assert_eq!(store["mode"], "0600");
}

#[test]
fn backups_service_stores_and_sockets_are_listed() {
    let home = home();
    let runtime = home.path("run");
    std::fs::create_dir(&runtime).unwrap();
    std::fs::set_permissions(&runtime, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let call = |args: &[&str]| home.call(args).env("XDG_RUNTIME_DIR", &runtime);
    let sockets = call(&["run", "--session", "s1", "--", "printenv", "TMUX_TMPDIR"]).ok().stdout();
    call(&["user", "add", "ann"]).ok();
    call(&["serve", "backup"]).ok();
    call(&["backup"]).ok();
    let state = home.path(".local/state/sessile");
    let backup = std::fs::read_dir(&state)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains("state.db.backup-"));
    call(&["backup", "restore", &backup.unwrap().to_string_lossy(), "--yes"]).ok();
    let json = call(&["status", "--show-state-files", "-ojson"]).ok().json();
    let files = json["state_files"].as_array().unwrap();
    let listed: Vec<&str> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    for dir in [state.clone(), state.join("service")] {
        for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            let is_listed = listed.iter().any(|path| Path::new(path).starts_with(&entry));
            assert!(is_listed, "{} is not listed in {listed:#?}", entry.display());
        }
    }
    assert!(listed.contains(&sockets.trim()), "{sockets} is not listed in {listed:#?}");
}

#[test]
fn inside_a_session_it_names_the_session() {
    let home = home();
    home.call(&["session", "start", "--name", "s1"]).ok();
    let done = home.call(&["status"]).env("SESSILE_SESSION", "s1").ok();
    assert!(done.stdout().contains("session   s1 "), "{}", done.told());
    assert!(done.stdout().contains("from environment SESSILE_SESSION"), "{}", done.told());
}
