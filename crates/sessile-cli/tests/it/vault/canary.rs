//! A secret that came in by any way is seen by nobody: not in a file, not in an output, not among arguments; whatever
//! command uses it, and whatever fails.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sessile::vault::sealed::SealedFile;
use sessile::vault_key::VaultKey;
use testkit::{Call, Home, Keyring, OidcServer};

use super::secret_search::SecretPattern;
use super::{DIR, LONG_AGO, bind, by_client, device_login, printed, set};
use crate::contract::output::{CALLS, furnished_for};
use crate::durability::crash::{Killer, kills};
use crate::home;

/// What the user has put there, and nobody else.
pub(super) const INPUT: &str = "input";

/// A file of the user's own.
pub(super) fn input(home: &Home, name: &str, text: &str) -> PathBuf {
    let path = home.write(format!("{INPUT}/{name}"), text);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path
}

/// A program of the user's own.
pub(super) fn script(home: &Home, name: &str, text: &str) {
    let path = home.write(format!("{INPUT}/{name}"), format!("#!/bin/sh\n{text}\n"));
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Everything secret in a sealed file whose key is beside it.
fn secrets_of(home: &Home) -> Vec<(String, String)> {
    let dir = home.path(DIR);
    let key = std::fs::read_to_string(dir.join("key")).unwrap();
    let byte = |at: usize| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).unwrap();
    let key = VaultKey::of_bytes(std::array::from_fn(byte));
    let text = std::fs::read_to_string(dir.join("credentials")).unwrap();
    let content = SealedFile::of_text(&text).unwrap().open(&key).unwrap();
    let all: serde_json::Value = serde_json::from_str(&content).unwrap();
    let mut found = Vec::new();
    for one in all.as_array().unwrap() {
        for (which, secret) in one["secrets"].as_object().unwrap() {
            if let Some(secret) = secret.as_str() {
                found.push((format!("{} of {}", which, one["about"]["name"]), secret.to_owned()));
            }
        }
    }
    found
}

/// Looks for what the vault holds by now, too: tokens that a server gave.
fn learn(sought: &SecretPattern, home: &Home) {
    for (what, secret) in secrets_of(home) {
        sought.add(&what, &secret);
    }
}

pub(super) fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

/// The ways in by `auth set`, each with a canary of its own. The names of the credentials are those of the ways.
fn come_in(home: &Home, sought: &SecretPattern, with: &dyn Fn(Call) -> Call) -> Vec<String> {
    let way = |name: &str| sought.canary(name);
    let file = |name: &str| input(home, name, &format!("{}\n", way(name)));
    let at = |name: &str| format!("@{}", file(name).display());
    let path = |name: &str| file(name).display().to_string();
    let auth = |args: &[&str]| with(home.call(&["--verbose", "auth", "set"]).args(args));
    let calls = [
        ("stdin", auth(&["stdin", "--secret-stdin"]).stdin(way("stdin"))),
        (
            "bound",
            auth(&["bound", "--url", "https://agent.example/a", "--bearer-token-stdin"]).stdin(way("bound")),
        ),
        ("dash", auth(&["dash", "--bearer-token", "-"]).stdin(way("dash"))),
        ("at-file", auth(&["at-file", "--bearer-token", &at("at-file")])),
        ("key", auth(&["key", "--api-key", &at("key"), "--api-key-header", "X-Key"])),
        ("basic", auth(&["basic", "--basic", "me", "--secret-file", &path("basic")])),
        ("variable", auth(&["variable", "--secret-env", "SOME_TOKEN"]).env("SOME_TOKEN", way("variable"))),
        ("printed", auth(&["printed", "--command", &format!("cat {}", path("printed"))])),
        ("kept", auth(&["kept", "--cache", "1h", "--command", &format!("cat {}", path("kept"))])),
        ("json", auth(&["json", "--output", "json", "--secret-stdin"]).stdin(way("json"))),
        ("env", auth(&["env", "--from-env", "CI_TOKEN"])),
    ];
    let mut ways = vec!["descriptor".to_owned(), "typed".to_owned(), "said".to_owned()];
    for (name, call) in calls {
        sought.call(name, call).exit(0);
        ways.push(name.to_owned());
    }
    let program = home.program().display();
    let line =
        format!("exec {program} --verbose auth set descriptor --secret-fd 3 3< {}", path("descriptor"));
    sought.call("descriptor", with(home.tool("sh", &["-c", &line]))).exit(0);

    let mut terminal = with(home.call(&["--verbose", "auth", "set", "typed"])).tty();
    let before = terminal.expect("typed: ");
    terminal.type_line(&way("typed"));
    let (rest, status) = terminal.finish();
    assert_eq!(status, 0, "{before}{rest}");
    sought.assert_not_in("a terminal", format!("{before}{rest}"));
    ways
}

/// The variables in which two of the ways are.
fn with_variables(sought: &SecretPattern, call: Call) -> Call {
    call.env("CI_TOKEN", sought.canary("env")).env("SESSILE_CREDENTIAL_SAID", sought.canary("said"))
}

/// What a command that is given secrets sees of itself and of whoever has run it.
const ARGUMENTS: &str = "cat /proc/$$/cmdline /proc/$PPID/cmdline; true";

fn every_way(place: &str, home: &Home, own: &[&str], with: &dyn Fn(Call) -> Call) {
    let sought = SecretPattern::new();
    let processes = sought.watch_processes();
    let with = |call: Call| with_variables(&sought, with(call));
    let ways = come_in(home, &sought, &with);
    // They are there: each command gets what came in.
    for way in &ways {
        bind(home, way, &[("T", way)]);
        let done = with(printed(home, way, &["T"])).ok();
        assert_eq!(done.stdout(), format!("{}\n", sought.canary(way)), "{place}");
        sought.assert_not_in(way, done.stderr());
    }
    // And all of them together, in a session that stays.
    let variables: Vec<(String, &String)> =
        ways.iter().enumerate().map(|(number, way)| (format!("T{number}"), way)).collect();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, way)| (name.as_str(), way.as_str())).collect();
    bind(home, "all", &variables);
    for shell in ["sh", "bash"] {
        let args =
            ["--verbose", "run", "--context", "all", "--session", "stays", "--", shell, "-c", ARGUMENTS];
        let done = sought.call("run", with(home.call(&args))).exit(0);
        assert!(done.stdout().contains("cmdline"), "the command sees its own arguments");
    }
    let calls: [&[&str]; 12] = [
        &["auth", "list"],
        &["auth", "status", "--context", "all"],
        &["auth", "refresh", "kept"],
        &["auth", "check", "stdin", "key", "basic", "printed", "kept", "env", "said", "typed"],
        &["env", "--session", "stays"],
        &["run", "--context", "all", "--dry-run", "--", "true"],
        &["session", "show", "stays"],
        &["session", "export", "stays", "--file", "exported.json"],
        &["context", "export", "--all"],
        &["backup", "copy"],
        &["history"],
        &["doctor"],
    ];
    for args in calls {
        for more in [&["--verbose"][..], &["--output", "json", "--yes"]] {
            sought.call(&format!("{args:?}"), with(home.call(more).args(args)));
        }
    }
    for way in &ways {
        sought.call(way, with(home.call(&["auth", "show", way, "--output", "json", "--verbose"])));
    }
    sought.assert_not_in_files(home, &[&[INPUT], own].concat());
    sought.call("logout", with(home.call(&["auth", "logout", "--all", "--yes", "--output", "json"]))).exit(0);
    sought.assert_not_in_files(home, &[&[INPUT], own].concat());
    assert!(processes.seen().is_empty(), "{place}");
}

#[test]
fn no_way_into_a_file_leaves_a_trace() {
    let home = home();
    every_way("a file", &home, &[], &|call| call.env("SESSILE_VAULT_BACKEND", "file"));
}

#[test]
fn no_way_into_a_keychain_leaves_a_trace() {
    let (home, keyring) = (home(), Keyring::new());
    every_way("a keychain", &home, &[], &|call| call.env("DBUS_SESSION_BUS_ADDRESS", keyring.address()));
    assert!(home.path(DIR).join("keychain").exists(), "the vault was a keychain");
}

#[test]
fn no_way_to_a_helper_leaves_a_trace() {
    let home = home();
    // It keeps what it is told, and writes down how it was called: that is looked into.
    script(
        &home,
        "helper",
        r#"cat /proc/$$/cmdline /proc/$PPID/cmdline >> "$HOME/called"
IFS= read -r line
umask 077; mkdir -p "$HOME/kept"; cd "$HOME/kept"
rest=${line#*\"name\":\"}; name=${rest%%\"*}
case $line in
  *'"action":"get"'*) if [ -f "$name" ]; then printf '{"credential":%s}' "$(cat "$name")"; fi ;;
  *'"action":"list"'*)
    printf '{"credentials":['; comma=
    for one in *; do if [ -f "$one" ]; then printf '%s' "$comma"; cat "$one"; comma=,; fi; done
    echo ']}' ;;
  *'"action":"put"'*) rest=${line#*,\"credential\":}; printf '%s' "${rest%?}" > "$name" ;;
  *'"action":"remove"'*) rm -f "$name" ;;
esac"#,
    );
    let helper = home.path(INPUT).join("helper");
    every_way("a helper", &home, &["kept"], &|call| {
        call.env("SESSILE_VAULT_BACKEND", "helper").env("SESSILE_VAULT_HELPER", &helper)
    });
    assert!(home.read("called").contains("auth"), "the helper was started");
}

#[test]
fn no_login_leaves_a_trace() {
    let (home, elsewhere) = (home(), home());
    let sought = SecretPattern::new();
    sought.add("the client's secret", OidcServer::SECRET);
    let processes = sought.watch_processes();
    let server = OidcServer::start();
    let said = device_login(&home, &server, "corp");
    learn(&sought, &home);
    sought.assert_not_in("a login by device", said);

    let client = by_client(&server);
    let login = |name: &str| home.call(&["--verbose", "auth", "login", name]).args(&words(&client));
    sought.call("a client", login("robot").stdin(OidcServer::SECRET)).exit(0);
    device_login(&elsewhere, &server, "other");
    let found = secrets_of(&elsewhere);
    let (_, refresh) = found.iter().find(|(which, _)| which.starts_with("refresh")).unwrap();
    sought.add("a refresh token", refresh);
    input(&home, "refresh", refresh);
    let args = ["--verbose", "auth", "login", "taken", "--refresh-token", "@input/refresh"];
    let place = ["--issuer", server.issuer(), "--client-id", OidcServer::PUBLIC_CLIENT];
    sought.call("a refresh token", home.call(&args).args(&place)).exit(0);
    home.call(&["auth", "set", "part", "--login", "corp", "--scope", "api:read"]).ok();
    learn(&sought, &home);

    let names = ["corp", "robot", "taken", "part"];
    let site = ["--keep-secret", "--site", server.issuer()];
    for name in names {
        sought.call(name, home.call(&["auth", "set", name]).args(&site)).exit(0);
        let checked = home.call(&[
            "--verbose",
            "auth",
            "check",
            name,
            "--url",
            &server.url("/whoami"),
            "--output",
            "json",
        ]);
        sought.call(name, checked).exit(0);
        learn(&sought, &home);
        sought.call(name, home.call(&["--verbose", "auth", "refresh", name])).exit(0);
        learn(&sought, &home);
        sought.call(name, home.call(&["auth", "show", name, "--output", "json"])).exit(0);
        bind(&home, name, &[("T", name)]);
        let args = ["--verbose", "run", "--context", name, "--session", name, "--", "bash", "-c", ARGUMENTS];
        sought.call(name, home.call(&args)).exit(0);
        let token = printed(&home, name, &["T"]).ok().stdout();
        assert!(sought.find(token.as_bytes()).is_some(), "the search detects the token");
    }
    for args in [
        &["auth", "list"][..],
        &["auth", "status"],
        &["history"],
        &["status"],
        &["doctor"],
        &["backup", "copy"],
    ] {
        sought.call(&format!("{args:?}"), home.call(&["--output", "json"]).args(args)).exit(0);
    }
    // Whoever is refused does not hear again what was refused.
    let wrong = sought.canary("wrong");
    let refused = sought.call("a wrong secret", login("wrong").stdin(wrong.as_str()));
    assert_eq!(refused.status(), Some(8), "{}", refused.told());
    input(&home, "refresh", &wrong);
    sought.call("a wrong refresh token", home.call(&args).args(&place)).exit(8);
    drop(server);
    for name in names {
        home.call(&["auth", "set", name, "--keep-secret", "--expires-at", LONG_AGO]).ok();
        sought.call(name, home.call(&["--verbose", "auth", "check", name, "--output", "json"])).exit(8);
        sought.call(name, home.call(&["--verbose", "auth", "refresh", name]));
    }
    sought.assert_not_in_files(&home, &[INPUT]);
    // The servers of the tests themselves are told the secret that way.
    let seen: Vec<String> =
        processes.seen().into_iter().filter(|line| !line.contains("\"secret_client\"")).collect();
    assert_eq!(seen, [""; 0]);
    assert!(secrets_of(&home).len() >= 7, "tokens, refresh tokens and the client's secret");
}

#[test]
fn no_passphrase_leaves_a_trace() {
    let home = home();
    let sought = SecretPattern::new();
    let processes = sought.watch_processes();
    let runtime = home.private_dir("run");
    let with = |call: Call| call.env("XDG_RUNTIME_DIR", &runtime);
    set(&home, "bot", &sought.canary("bot")).ok();
    let (right, wrong) = (sought.canary("right"), sought.canary("wrong"));
    input(&home, "right", &right);
    input(&home, "wrong", &wrong);
    let key = |args: &[&str]| with(home.call(&["--verbose", "auth"]).args(args));
    sought.call("rekey", key(&["rekey", "--to", "passphrase", "--passphrase-file", "input/right"])).exit(0);
    sought.call("locked", key(&["list"])).exit(8);
    sought.call("wrong", key(&["unlock", "--passphrase-file", "input/wrong"])).exit(8);
    sought.call("wrong", key(&["unlock", "--passphrase-file", "-"]).stdin(wrong)).exit(8);
    sought
        .call("by file", key(&["list"]).env("SESSILE_VAULT_PASSPHRASE_FILE", home.path("input/right")))
        .exit(0);
    let mut terminal = key(&["list"]).tty();
    let before = terminal.expect("vault: ");
    terminal.type_line(&right);
    let (rest, status) = terminal.finish();
    assert_eq!(status, 0, "{before}{rest}");
    sought.assert_not_in("a terminal", format!("{before}{rest}"));
    sought.call("open", key(&["status", "--output", "json"])).exit(0);
    sought.assert_not_in_files(&home, &[INPUT]);
    sought.call("end", key(&["unlock", "--end"])).exit(0);
    sought
        .call("unlock", key(&["unlock", "--passphrase-file", "-", "--output", "json"]).stdin(right))
        .exit(0);
    sought.call("back", key(&["rekey", "--to", "file"])).exit(0);
    let mut terminal = key(&["rekey", "--to", "passphrase"]).tty();
    let mut shown = terminal.expect("New passphrase: ");
    terminal.type_line(&sought.canary("typed"));
    shown += &terminal.expect("Repeat the passphrase: ");
    terminal.type_line(&sought.canary("typed"));
    let (rest, status) = terminal.finish();
    assert_eq!(status, 0, "{shown}{rest}");
    sought.assert_not_in("a terminal", format!("{shown}{rest}"));
    sought.assert_not_in_files(&home, &[INPUT]);
    assert!(processes.seen().is_empty());
}

/// A vault with one credential of each kind, as a directory to be copied.
fn a_vault(sought: &SecretPattern) -> Home {
    let home = home();
    let canary = |name: &str| sought.canary(name);
    set(&home, "bot", &canary("bot")).args(&["--site", "http://127.0.0.1:9"]).ok();
    home.call(&["auth", "set", "asked", "--cache", "1h", "--command", "cat input/asked"]).ok();
    home.call(&["auth", "set", "basic", "--basic", "me", "--secret-stdin"]).stdin(canary("basic")).ok();
    home.call(&["auth", "set", "key", "--api-key", "-"]).stdin(canary("key")).ok();
    home.call(&["auth", "set", "env", "--from-env", "CI_TOKEN"]).ok();
    home
}

fn copy_vault(from: &Home, to: &Home) {
    for name in ["credentials", "key"] {
        let text = std::fs::read(from.path(DIR).join(name)).unwrap();
        let path = to.write(Path::new(DIR).join(name), text);
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
    }
    for dir in [to.path(DIR), to.path(DIR).with_file_name("")] {
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o700)).unwrap();
    }
}

#[test]
fn no_command_shows_a_secret() {
    let sought = SecretPattern::new();
    let vault = a_vault(&sought);
    let processes = sought.watch_processes();
    for (path, args) in CALLS {
        let home = furnished_for(path);
        copy_vault(&vault, &home);
        input(&home, "asked", &sought.canary("asked"));
        input(&home, "token", &sought.canary("token"));
        bind(&home, "staging", &[("A", "bot"), ("B", "asked"), ("C", "basic"), ("D", "key"), ("E", "env")]);
        let settings = home.read(".config/sessile/config.toml");
        home.write(".config/sessile/config.toml", format!("credential = \"bot\"\n{settings}"));
        let with = |call: Call| with_variables(&sought, call);
        // What the first of them has changed the second may miss; both are looked at.
        let json = with(home.call(&["--output", "json"]).args(args))
            .env("SESSILE_TOKEN_FILE", home.path("input/token"));
        let first = sought.call(path, json);
        assert_eq!(first.status(), Some(0), "{path}: {}", first.told());
        sought.call(path, with(home.call(&["--verbose"]).args(args)));
        sought.assert_not_in_files(&home, &[INPUT]);
    }
    assert!(processes.seen().is_empty());
}

/// The one command that needs an editor.
#[test]
fn editor_gets_no_secret() {
    let sought = SecretPattern::new();
    let vault = a_vault(&sought);
    script(
        &vault,
        "editor",
        "cat \"$1\" >> \"$HOME/edited\"; env -u CI_TOKEN -u SESSILE_CREDENTIAL_SAID >> \"$HOME/edited\"",
    );
    let call = with_variables(&sought, vault.call(&["--verbose", "config", "edit", "--global"]));
    let (shown, status) = call.env("EDITOR", vault.path("input/editor")).tty().finish();
    assert_eq!(status, 0, "{shown}");
    sought.assert_not_in("a terminal", shown);
    assert!(vault.read("edited").contains("HOME="), "the secret's variables reached the editor");
    sought.assert_not_in_files(&vault, &[INPUT]);
}

/// What is half done is in temporary files and in the store's log.
#[test]
fn nothing_that_a_killed_command_leaves_has_a_secret_in_it() {
    let home = home();
    let sought = SecretPattern::new();
    input(&home, "asked", &sought.canary("asked"));
    bind(&home, "work", &[("T", "bot"), ("A", "asked")]);
    let set =
        || home.call(&["auth", "set", "bot", "--secret-env", "VALUE"]).env("VALUE", sought.canary("bot"));
    let calls =
        [set(), home.call(&["auth", "set", "asked", "--cache", "1h", "--command", "cat input/asked"]), set()];
    let mut killer = Killer::new(0x5e55_1e301, calls);
    let kills = (kills() / 2).max(12);
    for number in 0..kills {
        killer.kill(match number % 4 {
            0 | 1 => set(),
            2 => home.call(&["auth", "refresh", "asked"]),
            _ => home.call(&["run", "--context", "work", "--", "true"]),
        });
        sought.assert_not_in_files(&home, &[INPUT]);
    }
    killer.assert_it_was_a_fight(kills);
    assert_eq!(printed(&home, "work", &["T"]).ok().stdout(), format!("{}\n", sought.canary("bot")));
}
