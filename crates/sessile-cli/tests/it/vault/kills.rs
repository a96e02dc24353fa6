//! A process killed at any instant leaves a vault that opens, with everything in it that was acknowledged.
//!
//! `SESSILE_TEST_KILLS` says how many processes are killed; the tests share them out.

use std::collections::BTreeMap;
use std::fs::File;

use testkit::{Call, Home, OidcOptions, OidcServer};

use super::{DIR, bind, by_client, list, listed, printed, secrets};
use crate::durability::crash::{Killer, assert_not_locked, kills};
use crate::{eventually, home};

/// What a replacement is written into. There is one name, so nothing can pile up.
const TEMPORARY: &str = ".sessile-tmp";

/// A value as the secret and, where it can be seen, as the account.
fn set(home: &Home, name: &str, value: &str) -> Call {
    home.call(&["auth", "set", name, "--secret-env", "VALUE", "--account", value]).env("VALUE", value)
}

fn clear(home: &Home, name: &str) -> Call {
    home.call(&["auth", "clear", name, "--yes"])
}

/// The accounts of all credentials. That there is an answer says that the vault opens.
fn accounts(call: Call) -> BTreeMap<String, String> {
    let all = listed(&call.ok());
    all.into_iter()
        .map(|(name, one)| (name, one["account"].as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// No lock has outlived its process, and what was half written is one file at most.
fn assert_clean(home: &Home) {
    assert_not_locked(&home.path(DIR));
    assert_not_locked(&home.path(".local/state/sessile"));
    let tree = home.tree();
    for (path, _) in &tree {
        if path.starts_with(home.path(DIR).join("renewing")) && path.is_file() {
            // A command that was just being started holds it until it is another program.
            let lock = File::open(path).unwrap();
            eventually("the lock of a process that is dead", || lock.try_lock().is_ok());
        }
    }
    let names: Vec<String> = tree
        .iter()
        .filter(|(path, _)| path.starts_with(home.path(DIR)) && path.is_file())
        .map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let known = ["credentials", "key", TEMPORARY, "robot", "asked"];
    assert!(names.iter().all(|name| known.contains(&name.as_str())), "{names:?}");
}

fn assert_nothing_half_written(home: &Home) {
    assert!(!home.tree().iter().any(|(path, _)| path.ends_with(TEMPORARY)), "the next writer cleans up");
}

#[test]
fn a_killed_set_or_clear_is_whole_or_absent() {
    let home = home();
    let kills = kills();
    let warm = (0..5).map(|number| set(&home, &format!("w{number}"), "warm"));
    let mut killer = Killer::new(0x5e55_1e101, warm);
    let mut known = accounts(list(&home));
    assert_eq!(known.len(), 5);
    for number in 0..kills {
        // A few names, so that most changes are of something that is there.
        let (name, value) = (format!("n{}", number % 7), format!("value-{number}"));
        let before = known.clone();
        let mut after = known.clone();
        let done = if number % 3 == 2 && before.contains_key(&name) {
            after.remove(&name);
            killer.kill(clear(&home, &name))
        } else {
            after.insert(name.clone(), value.clone());
            killer.kill(set(&home, &name, &value))
        };
        assert_clean(&home);
        known = accounts(list(&home));
        assert!(known == after || (known == before && !done), "neither old nor new, after kill {number}");
        if number % 10 == 9 {
            set(&home, "steady", &value).arg("--lock-timeout=0").ok();
            known.insert("steady".to_owned(), value);
            assert_nothing_half_written(&home);
            let names: Vec<String> = known.keys().cloned().collect();
            assert_eq!(secrets(&home, &names), known, "a secret goes with its account");
        }
    }
    killer.assert_it_was_a_fight(kills);
    home.call(&["doctor"]).ok();
}

/// The first of all makes the directory, the key and the file. A key without a file is no vault; a file without its key
/// would be lost.
#[test]
fn a_killed_first_set_leaves_nothing_in_the_way() {
    let kills = kills() / 4;
    let mut killer = Killer::new(0x5e55_1e102, [set(&home(), "first", "1"), set(&home(), "first", "1")]);
    for _ in 0..kills {
        let home = home();
        let done = killer.kill(set(&home, "first", "1"));
        assert_clean(&home);
        let known = accounts(list(&home));
        assert!(known.contains_key("first") || !done);
        set(&home, "second", "2").arg("--lock-timeout=0").ok();
        assert_eq!(accounts(list(&home)).contains_key("first"), known.contains_key("first"));
        assert_nothing_half_written(&home);
    }
    killer.assert_it_was_a_fight(kills);
}

/// Whatever key the file is under when the process dies, that key is there.
#[test]
fn a_killed_rekey_leaves_the_old_key_or_the_new_one() {
    let home = home();
    let passphrase = home.write("passphrase", "correct horse battery\n");
    std::fs::set_permissions(&passphrase, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let runtime = home.private_dir("run");
    let open =
        |call: Call| call.env("SESSILE_VAULT_PASSPHRASE_FILE", &passphrase).env("XDG_RUNTIME_DIR", &runtime);
    let rekey = |to: &str| {
        let call = home.call(&["auth", "rekey", "--to", to]);
        open(if to == "file" { call } else { call.args(&["--passphrase-file", "passphrase"]) })
    };
    let key = || {
        let status = open(home.call(&["auth", "status", "--output", "json"])).ok().json();
        status["vault"]["key"].as_str().unwrap().to_owned()
    };
    for number in 0..5 {
        set(&home, &format!("k{number}"), "kept").ok();
    }
    let kills = (kills() / 8).max(10);
    let warm = ["passphrase", "file", "passphrase", "file"].map(rekey);
    let mut killer = Killer::new(0x5e55_1e103, warm);
    for number in 0..kills {
        let old = key();
        let new = if old == "file" { "passphrase" } else { "file" };
        let done = killer.kill(rekey(new));
        assert_clean(&home);
        let now = key();
        assert!(now == new || (now == old && !done), "{now} after a change from {old} to {new}");
        assert_eq!(accounts(open(list(&home))).len(), 5, "after kill {number}");
    }
    open(set(&home, "steady", "x")).arg("--lock-timeout=0").ok();
    assert_nothing_half_written(&home);
    killer.assert_it_was_a_fight(kills);
}

#[test]
fn a_killed_refresh_leaves_the_old_token_or_a_new_one() {
    let home = home();
    let options = OidcOptions { access_seconds: 3600, ..OidcOptions::default() };
    let server = OidcServer::with(&options);
    let flags = by_client(&server);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    home.call(&["auth", "login", "robot"]).args(&flags).stdin(OidcServer::SECRET).ok();
    // Each answer is another: the time on a clock that only goes on, and the process.
    let answer = home.write("answer", "#!/bin/sh\nread -r up idle < /proc/uptime; echo \"answer-$up-$$\"\n");
    std::fs::set_permissions(&answer, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    home.call(&["auth", "set", "asked", "--command", "./answer", "--cache", "10h"]).ok();
    bind(&home, "work", &[("ROBOT", "robot"), ("ASKED", "asked")]);
    let read = || {
        let lines = printed(&home, "work", &["ROBOT", "ASKED"]).ok().stdout();
        lines.lines().map(str::to_owned).collect::<Vec<String>>()
    };
    let refresh = |name: &str| home.call(&["auth", "refresh", name]);
    let kills = (kills() / 2).max(10);
    let mut killer = Killer::new(0x5e55_1e104, ["robot", "asked", "robot", "asked"].map(refresh));
    let mut old = read();
    for number in 0..kills {
        let at = number % 2;
        let done = killer.kill(refresh(["robot", "asked"][at]));
        assert_clean(&home);
        let now = read();
        assert!(now[at] != old[at] || !done, "an acknowledged credential is missing after kill {number}");
        assert_eq!(now[1 - at], old[1 - at], "the other one stays, after kill {number}");
        old = now;
    }
    assert_eq!(server.whoami(&old[0]).as_deref(), Some(OidcServer::SECRET_CLIENT));
    home.call(&["auth", "refresh", "--all", "--lock-timeout=0"]).ok();
    assert_nothing_half_written(&home);
    killer.assert_it_was_a_fight(kills);
}
