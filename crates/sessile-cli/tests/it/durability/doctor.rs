//! `sessile doctor`: what is wrong, and how to mend it.

use std::os::unix::fs::PermissionsExt;

use testkit::Home;

use crate::{home, home_with};

/// The checks that found something: name, health, message, fix.
fn findings(home: &Home, exit: i32) -> Vec<(String, String, String, String)> {
    let json = home.call(&["doctor", "-ojson"]).run().exit(exit).json();
    assert_eq!(json["healthy"], exit == 0);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let checks = json["checks"].as_array().unwrap().iter();
    checks
        .filter(|check| check["health"] != "ok")
        .map(|check| {
            (text(&check["name"]), text(&check["health"]), text(&check["message"]), text(&check["fix"]))
        })
        .collect()
}

fn chmod(home: &Home, path: &str, mode: u32) {
    std::fs::set_permissions(home.path(path), std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_healthy_home_is_healthy_and_stays_untouched() {
    let home = home();
    insta::assert_snapshot!(home.call(&["doctor"]).ok().told(), @"
    exit 0
    --- stdout
    ok      directories
    ok      permissions
    ok      file system
    ok      settings
    ok      contexts
    ok      store
    ok      pointers
    ok      sessions
    ok      vault
    ok      tools
    ok      start-up files
    ok      shell hook
    ok      clock
    ok      leftovers
    --- stderr
    ");
    assert!(home.tree().is_empty());
}

#[test]
fn open_doors_are_found_with_the_command_that_shuts_them() {
    let home = home_with(&["dev"]);
    home.call(&["context", "use", "dev", "--global"]).ok();
    chmod(&home, ".local/state/sessile", 0o755);
    chmod(&home, ".local/state/sessile/state.db", 0o644);
    chmod(&home, ".config/sessile/config.toml", 0o666);
    let fixes: Vec<String> =
        findings(&home, 1).into_iter().map(|(name, _, _, fix)| format!("{name}: {fix}")).collect();
    let path = |relative: &str| home.path(relative).display().to_string();
    assert_eq!(
        fixes,
        [
            format!("permissions: chmod go-w {}", path(".config/sessile/config.toml")),
            format!("permissions: chmod 0700 {}", path(".local/state/sessile")),
            format!("permissions: chmod 0600 {}", path(".local/state/sessile/state.db")),
        ]
    );
    // Looking into an open store may leave more such files beside it; the same commands mend those.
    for _ in 0..2 {
        let found = home.call(&["doctor", "-ojson"]).run().json();
        for fix in found["checks"].as_array().unwrap().iter().filter_map(|check| check["fix"].as_str()) {
            assert!(std::process::Command::new("sh").args(["-c", fix]).status().unwrap().success());
        }
    }
    assert_eq!(findings(&home, 0), [], "the suggested commands repair the installation");
}

#[test]
fn broken_files_are_found_although_nothing_else_works() {
    let home = home();
    home.write(".config/sessile/config.toml", "color = \n");
    home.write(".config/sessile/contexts/dev.toml", "guard = 1\n");
    let found = findings(&home, 1);
    assert!(found.iter().all(|(name, ..)| name == "settings" || name == "contexts"), "{found:?}");
    assert!(found.iter().any(|(_, _, message, _)| message.contains("config.toml:1")), "{found:?}");
    assert!(
        found.iter().any(|(_, _, message, fix)| message.contains("dev.toml:1") && !fix.is_empty()),
        "{found:?}"
    );
}

#[test]
fn a_damaged_store_is_found_with_the_way_out() {
    let home = home_with(&["dev"]);
    home.call(&["context", "use", "dev", "--global"]).ok();
    home.write(".local/state/sessile/state.db", "no database at all ".repeat(500));
    let found = findings(&home, 1);
    let (_, _, message, fix) = found.iter().find(|(name, ..)| name == "store").unwrap();
    assert!(message.contains("damaged"), "{message}");
    assert!(fix.contains("move") && fix.contains("aside"), "{fix}");
}

#[test]
fn leftovers_of_a_killed_writer_are_found() {
    let home = home_with(&["dev"]);
    let done = home.call(&["doctor", "-ojson"]).ok();
    assert_eq!(done.json()["checks"].as_array().unwrap().last().unwrap()["name"], "leftovers");
    let left = home.write(format!(".config/sessile/{}", sessile::files::TEMPORARY), "half");
    let found = findings(&home, 0);
    assert_eq!(found[0].3, format!("rm {}", left.display()));
}

#[test]
fn secrets_untrusted_projects_and_lost_selections_are_found() {
    let home = home();
    home.write(".config/sessile/contexts/dev.toml", "[env]\nGH_TOKEN = \"t0psecret\"\n");
    home.write(".config/sessile/config.toml", "context = \"gone\"\n");
    home.write(".sessile/config.toml", "server = \"https://x.example\"\n");
    let found = findings(&home, 1);
    assert!(
        found
            .iter()
            .any(|(_, health, message, _)| health == "warning" && message.contains("GH_TOKEN in plain text")),
        "{found:?}"
    );
    assert!(found.iter().any(|(.., fix)| fix.starts_with("sessile trust ")), "{found:?}");
    assert!(
        found
            .iter()
            .any(|(_, health, message, _)| health == "error" && message.contains("\"gone\" not found")),
        "{found:?}"
    );
    assert!(!format!("{found:?}").contains("t0psecret"));
}

#[test]
fn a_clock_that_was_set_back_is_found() {
    let home = home_with(&["dev"]);
    home.call(&["context", "use", "dev", "--global"]).ok();
    let store =
        std::fs::OpenOptions::new().write(true).open(home.path(".local/state/sessile/state.db")).unwrap();
    store
        .set_modified(store.metadata().unwrap().modified().unwrap() + std::time::Duration::from_secs(3600))
        .unwrap();
    let found = findings(&home, 1);
    assert!(
        found
            .iter()
            .any(|(name, _, message, _)| name == "clock" && message.contains("behind the state database")),
        "{found:?}"
    );
}
