//! The same behaviour wherever credentials are kept: in a sealed file, in a real desktop's keychain, with a helper; and
//! what variables hold, which nobody changes.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use testkit::{Call, Home, Keyring, OidcOptions, OidcServer};

use super::{CROWD, DIR, LONG_AGO, bind, by_client, list, listed, printed, set, together};
use crate::home;

/// A helper as somebody might write it: a file for each credential, which only its owner can read.
const HELPER: &str = r#"#!/bin/sh
set -eu
umask 077
IFS= read -r line
mkdir -p "$HOME/kept"
cd "$HOME/kept"
rest=${line#*\"name\":\"}
name=${rest%%\"*}
case $line in
  '{"version":1,"action":"get",'*)
    if [ -f "$name" ]; then printf '{"credential":%s}\n' "$(cat "$name")"; else echo '{}'; fi ;;
  '{"version":1,"action":"list",'*)
    printf '{"credentials":['
    comma=
    for one in *; do
      if [ -f "$one" ]; then printf '%s' "$comma"; cat "$one"; comma=,; fi
    done
    echo ']}' ;;
  '{"version":1,"action":"put",'*)
    rest=${line#*,\"credential\":}
    printf '%s' "${rest%?}" > ".new-$$"
    mv ".new-$$" "$name" ;;
  '{"version":1,"action":"remove",'*) rm -f "$name" ;;
  *) echo '{"error":"this is not understood"}'; exit 1 ;;
esac
"#;

/// A home whose credentials are kept in one of these places.
struct Place {
    home: Home,
    backend: &'static str,
    keyring: Option<Keyring>,
}

impl Place {
    fn file() -> Self {
        Place { home: home(), backend: "file", keyring: None }
    }

    fn keychain() -> Self {
        Place { home: home(), backend: "keychain", keyring: Some(Keyring::new()) }
    }

    fn helper() -> Self {
        let home = home();
        let helper = home.write("bin/helper", HELPER);
        std::fs::set_permissions(helper, PermissionsExt::from_mode(0o755)).unwrap();
        Place { home, backend: "helper", keyring: None }
    }

    /// A call that finds the place.
    fn with(&self, call: Call) -> Call {
        let call = call.env("SESSILE_VAULT_BACKEND", self.backend);
        let call = call.env("SESSILE_VAULT_HELPER", self.home.path("bin/helper"));
        match &self.keyring {
            Some(keyring) => call.env("DBUS_SESSION_BUS_ADDRESS", keyring.address()),
            None => call,
        }
    }

    fn call(&self, args: &[&str]) -> Call {
        self.with(self.home.call(args))
    }

    fn set(&self, name: &str, secret: &str) -> Call {
        self.with(set(&self.home, name, secret))
    }

    fn printed(&self, context: &str) -> Call {
        self.with(printed(&self.home, context, &["T"]))
    }

    /// The secret as a command gets it.
    #[track_caller]
    fn secret(&self, name: &str) -> String {
        bind(&self.home, "looking", &[("T", name)]);
        let text = self.printed("looking").ok().stdout();
        text.strip_suffix('\n').expect("a line").to_owned()
    }

    fn names(&self) -> BTreeSet<String> {
        listed(&self.with(list(&self.home)).ok()).into_keys().collect()
    }
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Keeping, showing, changing and taking out.
fn keeps(place: &Place) {
    assert_eq!(place.names(), names(&[]));
    let made = place.set("one", "the first").args(&["--account", "me", "--output", "json"]).ok().json();
    assert_eq!(
        (made["created"].as_bool(), made["vault"]["backend"].as_str()),
        (Some(true), Some(place.backend))
    );
    place.set("a.b_c@d-e", "another").ok();
    assert_eq!(place.names(), names(&["one", "a.b_c@d-e"]));
    let shown = place.call(&["auth", "show", "one", "--output", "json"]).ok();
    assert_eq!((&shown.json()["account"], &shown.json()["kind"]), (&"me".into(), &"bearer".into()));
    assert!(!shown.stdout().contains("the first"));

    let changed = place.set("one", "the second").args(&["--output", "json"]).ok().json();
    assert_eq!((changed["created"].as_bool(), &changed["account"]), (Some(false), &"me".into()));
    assert_eq!((place.secret("one"), place.secret("a.b_c@d-e")), ("the second".into(), "another".into()));
    let long = "0123456789abcdef".repeat(3_000);
    for secret in ["x", " \t'\"\\$`;{}[],: ", "käse → 🧀", "{\"name\":\"one\",\"credential\":1}", &long]
    {
        place.set("odd", secret).ok();
        assert_eq!(place.secret("odd"), secret);
    }

    place.call(&["auth", "clear", "odd", "--yes"]).ok();
    assert_eq!(place.names(), names(&["one", "a.b_c@d-e"]));
    let gone = place.call(&["auth", "show", "odd", "--output", "json"]).run().exit(8);
    assert_eq!(gone.code(), "CREDENTIAL_NOT_FOUND");
    bind(&place.home, "looking", &[("T", "odd")]);
    let gone = place.printed("looking").env("SESSILE_OUTPUT", "json").run().exit(125);
    assert_eq!(gone.code(), "CREDENTIAL_NOT_FOUND");
    place.call(&["auth", "logout", "--all", "--yes"]).ok();
    assert_eq!(place.names(), names(&[]));
}

/// Ending, and being renewed.
fn ends(place: &Place) {
    place.set("over", "old").args(&["--expires-at", LONG_AGO]).ok();
    let told = place.call(&["auth", "check", "over", "--output", "json"]).run().exit(8).json_error();
    assert_eq!(
        (&told["code"], &told["variable"]),
        (&"CREDENTIALS_EXPIRED".into(), &"SESSILE_CREDENTIAL_OVER".into())
    );
    assert!(told["expired_at"].as_str().unwrap().starts_with("2020-01-01"));
    bind(&place.home, "over", &[("T", "over")]);
    let told = place.printed("over").env("SESSILE_OUTPUT", "json").run().exit(125);
    assert_eq!(told.code(), "CREDENTIALS_EXPIRED");
    let said = place.printed("over").env("SESSILE_CREDENTIAL_OVER", "for this call").ok().stdout();
    assert_eq!(said, "for this call\n", "a variable stands for it");

    place.home.write("answer", "first");
    place.call(&["auth", "set", "asked", "--command", "cat answer", "--cache", "1h"]).ok();
    assert_eq!(place.secret("asked"), "first");
    place.home.write("answer", "second");
    assert_eq!(place.secret("asked"), "first");
    place.call(&["auth", "refresh", "asked"]).ok();
    assert_eq!(place.secret("asked"), "second");
    std::fs::remove_file(place.home.path("answer")).unwrap();
    let failed = place.call(&["auth", "refresh", "asked", "--output", "json"]).run().exit(8);
    assert_eq!(failed.code(), "CREDENTIAL_UNUSABLE");
    assert_eq!(place.secret("asked"), "second", "the old one stays");
}

/// A login, its renewal by one of many, and what shares it.
fn logs_in(place: &Place, crowd: usize) {
    let options = OidcOptions { access_seconds: 3600, delay_millis: 100, ..OidcOptions::default() };
    let server = OidcServer::with(&options);
    let flags = by_client(&server);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    place.call(&["auth", "login", "robot"]).args(&flags).stdin(OidcServer::SECRET).ok();
    let old = place.secret("robot");
    assert_eq!(server.whoami(&old).as_deref(), Some(OidcServer::SECRET_CLIENT));
    assert_eq!(place.secret("robot"), old);

    place.call(&["auth", "set", "robot", "--keep-secret", "--expires-at", LONG_AGO]).ok();
    bind(&place.home, "work", &[("T", "robot")]);
    let got: BTreeSet<String> =
        together(crowd, |_| place.printed("work").ok().stdout()).into_iter().collect();
    assert_eq!((got.len(), server.counts().client_credentials), (1, 2));
    let token = got.first().unwrap().trim();
    assert_eq!(server.whoami(token).as_deref(), Some(OidcServer::SECRET_CLIENT));
    assert_ne!(token, old);

    place.call(&["auth", "set", "part", "--login", "robot", "--scope", "api:read"]).ok();
    assert!(server.whoami(&place.secret("part")).is_some());
    place.call(&["auth", "logout", "robot", "--yes"]).ok();
    let left = place.names();
    assert!(!left.contains("robot") && !left.contains("part"), "{left:?}");
}

/// Each has credentials of its own.
fn is_crowded(place: &Place) {
    let name = |number: usize| format!("n{number}");
    for number in 0..CROWD {
        bind(&place.home, &name(number), &[("T", &name(number))]);
    }
    together(CROWD, |number| {
        place.set(&name(number), &format!("first of {number}")).ok();
        assert_eq!(place.printed(&name(number)).ok().stdout(), format!("first of {number}\n"));
        place.set(&name(number), &format!("second of {number}")).ok();
        if number % 5 == 0 {
            place.call(&["auth", "clear", &name(number), "--yes"]).ok();
        } else {
            assert_eq!(place.printed(&name(number)).ok().stdout(), format!("second of {number}\n"));
        }
    });
    let left = place.names();
    for number in 0..CROWD {
        assert_eq!(left.contains(&name(number)), number % 5 != 0, "{number}");
    }
}

fn behaves(place: &Place) {
    keeps(place);
    ends(place);
    logs_in(place, CROWD);
    is_crowded(place);
}

#[test]
fn fifty_processes_and_one_find_a_file_as_it_should_be() {
    let place = Place::file();
    behaves(&place);
    assert!(place.home.path(DIR).join("credentials").is_file());
}

#[test]
fn fifty_processes_and_one_find_a_keychain_as_it_should_be() {
    let mut place = Place::keychain();
    behaves(&place);
    assert!(!place.home.path(DIR).join("credentials").exists());
    place.set("stays", "over a restart").ok();
    place.keyring.as_mut().unwrap().restart();
    assert_eq!(place.secret("stays"), "over a restart");
}

#[test]
fn fifty_processes_and_one_find_a_helper_as_it_should_be() {
    let place = Place::helper();
    behaves(&place);
    assert!(!place.home.path(DIR).join("credentials").exists());
    for (path, _) in place.home.tree() {
        if path.starts_with(place.home.path("kept")) && path.is_file() {
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
        }
    }
}

#[test]
fn helper_failure_is_reported_without_its_output() {
    let place = Place::helper();
    place.set("one", "the first").ok();
    for (script, word) in [
        ("exit 3", "failed"),
        ("echo the-canary-of-a-helper", "JSON"),
        ("echo '{\"error\":\"no luck\"}'", "no luck"),
        ("echo '{\"credential\":{\"the-canary-of-a-helper\":1}}'", "unexpected field or value"),
        ("printf '\\377'", "not valid UTF-8"),
        ("echo '[]'; echo the-canary-of-a-helper >&2", ""),
    ] {
        place.home.write("bin/helper", format!("#!/bin/sh\n{script}\n"));
        for args in [&["auth", "show", "one"][..], &["auth", "clear", "one", "--yes"]] {
            let done = place.call(args).args(&["--output", "json"]).run().exit(1);
            let error = done.json_error();
            assert_eq!(error["code"], "VAULT_HELPER", "{script}: {error}");
            assert!(error["message"].as_str().unwrap().contains(word), "{script}: {error}");
            assert!(!error.to_string().contains("the-canary"), "{script}: {error}");
        }
    }
    place.home.write("bin/helper", HELPER);
    assert_eq!(place.secret("one"), "the first");
}

#[test]
fn variables_are_read_and_never_written() {
    let home = home();
    let with = |call: Call| {
        call.env("SESSILE_VAULT_BACKEND", "env")
            .env("SESSILE_CREDENTIAL_ONE", "the first")
            .env("SESSILE_CREDENTIAL_GH_BOT", "another")
    };
    let found: BTreeSet<String> = listed(&with(list(&home)).ok()).into_keys().collect();
    assert_eq!(found, names(&["one", "gh-bot"]));
    let shown = with(home.call(&["auth", "show", "gh-bot", "--output", "json"])).ok();
    assert_eq!(shown.json()["kind"], "env");
    bind(&home, "work", &[("T", "gh-bot")]);
    assert_eq!(with(printed(&home, "work", &["T"])).ok().stdout(), "another\n");
    with(home.call(&["auth", "check", "one"])).ok();
    for call in [
        set(&home, "new", "x"),
        set(&home, "one", "x"),
        home.call(&["auth", "clear", "one", "--yes"]),
        home.call(&["auth", "logout", "one", "--yes"]),
    ] {
        let done = with(call).args(&["--output", "json"]).run().exit(7);
        assert_eq!(done.code(), "VAULT_READ_ONLY");
    }
    assert!(!home.path(DIR).join("credentials").exists());
    let gone = with(home.call(&["auth", "show", "new", "--output", "json"])).run().exit(8);
    assert_eq!(gone.code(), "CREDENTIAL_NOT_FOUND");
}

/// With nothing said, the first credential decides, and what it decided stays.
mod by_itself {
    use super::*;

    fn backend(call: Call) -> serde_json::Value {
        call.args(&["--output", "json"]).ok().json()["vault"]["backend"].clone()
    }

    fn at(call: Call, keyring: &Keyring) -> Call {
        call.env("DBUS_SESSION_BUS_ADDRESS", keyring.address())
    }

    #[test]
    fn chosen_keychain_that_is_missing_is_an_error() {
        let (home, keyring) = (home(), Keyring::new());
        assert_eq!(backend(at(home.call(&["auth", "status"]), &keyring)), serde_json::Value::Null);
        assert_eq!(backend(at(set(&home, "one", "the first"), &keyring)), "keychain");
        bind(&home, "work", &[("T", "one")]);
        assert_eq!(at(printed(&home, "work", &["T"]), &keyring).ok().stdout(), "the first\n");
        // The usual place of a bus does as well.
        let runtime = home.private_dir("run");
        std::os::unix::fs::symlink(keyring.socket(), runtime.join("bus")).unwrap();
        let done = printed(&home, "work", &["T"]).env("XDG_RUNTIME_DIR", &runtime).ok();
        assert_eq!(done.stdout(), "the first\n");

        let empty = Keyring::empty();
        let calls = || {
            [
                list(&home),
                set(&home, "two", "x"),
                home.call(&["auth", "show", "one"]),
                home.call(&["auth", "clear", "one", "--yes"]),
            ]
        };
        for call in calls().into_iter().chain(calls().into_iter().map(|call| at(call, &empty))) {
            let done = call.env("SESSILE_OUTPUT", "json").run().exit(12);
            assert_eq!(done.code(), "KEYCHAIN_UNREACHABLE");
        }
        let run = printed(&home, "work", &["T"]).env("SESSILE_OUTPUT", "json").run().exit(125);
        assert_eq!(run.code(), "KEYCHAIN_UNREACHABLE");
        assert!(!home.path(DIR).join("credentials").exists(), "no second vault is begun");
        assert_eq!(listed(&at(list(&home), &keyring).ok()).len(), 1);
    }

    #[test]
    fn a_command_in_a_session_reaches_the_keychain_too() {
        let (home, keyring) = (home(), Keyring::new());
        at(set(&home, "one", "the first"), &keyring).ok();
        bind(&home, "work", &[("T", "one")]);
        let program = home.program().to_str().unwrap().to_owned();
        let inner =
            ["run", "--context", "work", "--", &program, "run", "--context", "work", "--", "printenv", "T"];
        assert_eq!(at(home.call(&inner), &keyring).ok().stdout(), "the first\n");
    }

    #[test]
    fn locked_keychain_is_reported() {
        let (home, keyring) = (home(), Keyring::new());
        at(set(&home, "one", "the first"), &keyring).ok();
        bind(&home, "work", &[("T", "one")]);
        keyring.lock();
        for call in [list(&home), set(&home, "two", "x"), home.call(&["auth", "check", "one"])] {
            let done = at(call, &keyring).env("SESSILE_OUTPUT", "json").run().exit(8);
            assert_eq!(done.code(), "KEYCHAIN_LOCKED");
        }
        let run = at(printed(&home, "work", &["T"]), &keyring).env("SESSILE_OUTPUT", "json").run().exit(125);
        assert_eq!(run.code(), "KEYCHAIN_LOCKED");
    }

    #[test]
    fn a_locked_keychain_is_not_chosen() {
        let (home, keyring) = (home(), Keyring::new());
        keyring.lock();
        assert_eq!(backend(at(set(&home, "one", "the first"), &keyring)), "file");
    }

    #[test]
    fn without_a_keychain_it_is_a_file_and_stays_one() {
        let keyring = Keyring::new();
        let empty = Keyring::empty();
        for (what, first) in [
            ("no bus", None),
            ("a bus without a keychain", Some(empty.address())),
            ("a bus that is not there", Some("unix:path=/nonexistent/bus".to_owned())),
            ("nonsense", Some("nonsense".to_owned())),
        ] {
            let home = home();
            let call = set(&home, "one", "the first");
            let call =
                if let Some(address) = &first { call.env("DBUS_SESSION_BUS_ADDRESS", address) } else { call };
            assert_eq!(backend(call), "file", "{what}");
            assert_eq!(
                backend(at(set(&home, "two", "the second"), &keyring)),
                "file",
                "{what}, then a keychain"
            );
            assert_eq!(listed(&at(list(&home), &keyring).ok()).len(), 2, "{what}");
            assert!(!home.path(DIR).join("keychain").exists());
        }
    }
}
