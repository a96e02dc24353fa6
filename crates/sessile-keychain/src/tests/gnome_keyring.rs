//! The client against GNOME Keyring on a private bus.

use std::collections::BTreeSet;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use testkit::Keyring;

use sessile::vault::{Keychain, KeychainError, Secret};

use crate::SecretService;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Number of parallel clients, and of all.
const CROWD: usize = 16;
const CALLERS: usize = 20_000;

fn uid() -> u32 {
    rustix::process::getuid().as_raw()
}

fn connect(keyring: &Keyring) -> SecretService {
    SecretService::connect(&keyring.address(), uid(), TIMEOUT).unwrap()
}

/// The secrets of the items with these attributes, in the order of all their attributes.
fn secrets(keychain: &mut SecretService, attributes: &[(&str, &str)]) -> Vec<String> {
    let found = keychain.find(attributes).unwrap();
    found.into_iter().map(|(_, secret)| secret.expose().to_owned()).collect()
}

#[test]
fn item_is_stored_found_replaced_and_removed() {
    let keyring = Keyring::new();
    let mut keychain = connect(&keyring);
    keychain.require_unlocked().unwrap();
    assert!(keychain.find(&[("app", "sessile")]).unwrap().is_empty());
    assert_eq!(keychain.remove(&[("app", "sessile")]).unwrap(), 0);

    let (one, two) = ([("app", "sessile"), ("name", "one")], [("app", "sessile"), ("name", "two")]);
    keychain.put("One", &one, &Secret::new("first")).unwrap();
    keychain.put("Two", &two, &Secret::new("second")).unwrap();
    keychain.put("One", &one, &Secret::new("third")).unwrap();
    assert_eq!(secrets(&mut keychain, &one), ["third"]);
    let found = keychain.find(&[("app", "sessile")]).unwrap();
    let names: Vec<_> = found.iter().map(|(attributes, _)| attributes["name"].as_str()).collect();
    assert_eq!(names, ["one", "two"]);

    // Another process sees the same.
    let mut other = connect(&keyring);
    assert_eq!(secrets(&mut other, &[("app", "sessile")]), ["third", "second"]);
    assert_eq!(other.remove(&one).unwrap(), 1);
    assert_eq!(secrets(&mut keychain, &[("app", "sessile")]), ["second"]);
}

#[test]
fn attributes_round_trip() {
    let keyring = Keyring::new();
    let mut keychain = connect(&keyring);
    let given = [("app", "s"), ("empty", ""), ("\u{fc}", "\u{1f511} \"'\n"), ("xdg:schema", "a.b.C")];
    keychain.put("\u{1f511}", &given, &Secret::new("x")).unwrap();
    let found = keychain.find(&given).unwrap();
    let attributes: Vec<_> = found[0].0.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(attributes, BTreeSet::from(given).into_iter().collect::<Vec<_>>());
}

/// Why [`Keychain::put`] asks for the same names of attributes in all items of a kind.
#[test]
fn item_with_fewer_attributes_replaces_one_with_more() {
    let keyring = Keyring::new();
    let mut keychain = connect(&keyring);
    keychain.put("long", &[("a", "1"), ("b", "2")], &Secret::new("long")).unwrap();
    keychain.put("longer", &[("a", "1"), ("b", "2"), ("c", "3")], &Secret::new("longer")).unwrap();
    assert_eq!(secrets(&mut keychain, &[("a", "1")]), ["long", "longer"]);
    keychain.put("short", &[("a", "1")], &Secret::new("short")).unwrap();
    assert_eq!(secrets(&mut keychain, &[("a", "1")]).len(), 2, "one of the two items was replaced");
}

#[test]
fn secret_of_any_length_and_script_round_trips() {
    let keyring = Keyring::new();
    let mut keychain = connect(&keyring);
    let long = "0123456789".repeat(6 << 10);
    for text in ["", "\u{1f511} \u{43a}\u{43b}\u{44e}\u{447}\n\t\u{9375}", "zero \0 byte", &long] {
        keychain.put("Text", &[("k", "v")], &Secret::new(text)).unwrap();
        assert!(secrets(&mut keychain, &[("k", "v")]) == [text], "{} bytes", text.len());
    }
}

#[test]
fn invalid_message_is_refused_before_it_is_sent() {
    let keyring = Keyring::new();
    let mut keychain = connect(&keyring);
    let refused = keychain.put("a\0b", &[("k", "v")], &Secret::new("x"));
    assert!(matches!(refused, Err(KeychainError::Protocol(_))), "{refused:?}");
    let refused = keychain.put("large", &[("k", "v")], &Secret::new("x".repeat(17 << 20)));
    assert!(matches!(refused, Err(KeychainError::Protocol(_))), "{refused:?}");
    assert!(secrets(&mut keychain, &[("k", "v")]).is_empty());
}

#[test]
fn concurrent_clients_are_independent() {
    let keyring = Keyring::new();
    std::thread::scope(|threads| {
        for number in 0..30 {
            let keyring = &keyring;
            threads.spawn(move || {
                let mut keychain = connect(keyring);
                let name = number.to_string();
                for round in 0..5 {
                    let secret = format!("{number}-{round}");
                    keychain.put("n", &[("app", "s"), ("n", &name)], &Secret::new(secret.as_str())).unwrap();
                    assert_eq!(secrets(&mut keychain, &[("n", &name)]), [secret]);
                    // All of one's own kind, while others are replaced.
                    assert!(!keychain.find(&[("app", "s")]).unwrap().is_empty());
                }
            });
        }
    });
    assert_eq!(secrets(&mut connect(&keyring), &[("app", "s")]).len(), 30);
}

/// GNOME's daemon aborts if it gets to open a session before it has taken note of who asks for it, which happens while
/// others come or go: once in some thousand times.
#[test]
fn daemon_survives_a_crowd_of_short_connections() {
    let keyring = Keyring::new();
    std::thread::scope(|threads| {
        for _ in 0..CROWD {
            threads.spawn(|| (0..CALLERS / CROWD).for_each(|_| drop(connect(&keyring))));
        }
    });
    assert!(connect(&keyring).find(&[("k", "v")]).unwrap().is_empty());
}

#[test]
fn item_stored_by_concurrent_clients_exists_once() {
    let keyring = Keyring::new();
    std::thread::scope(|threads| {
        for number in 0..12 {
            let keyring = &keyring;
            threads.spawn(move || {
                let mut keychain = connect(keyring);
                for _ in 0..5 {
                    keychain.put("same", &[("k", "v")], &Secret::new(number.to_string())).unwrap();
                    assert_eq!(secrets(&mut keychain, &[("k", "v")]).len(), 1);
                }
            });
        }
    });
    assert_eq!(connect(&keyring).remove(&[("k", "v")]).unwrap(), 1, "a second item exists");
}

#[test]
fn find_tolerates_items_removed_meanwhile() {
    let keyring = Keyring::new();
    std::thread::scope(|threads| {
        let keyring = &keyring;
        for number in 0..4 {
            threads.spawn(move || {
                let (mut keychain, name) = (connect(keyring), number.to_string());
                for _ in 0..40 {
                    keychain.put("n", &[("app", "s"), ("n", &name)], &Secret::new("x")).unwrap();
                    assert_eq!(keychain.remove(&[("n", &name)]).unwrap(), 1);
                }
            });
        }
        threads.spawn(move || {
            let mut keychain = connect(keyring);
            for _ in 0..80 {
                keychain.find(&[("app", "s")]).unwrap();
            }
        });
    });
    assert!(connect(&keyring).find(&[("app", "s")]).unwrap().is_empty());
}

#[test]
fn locked_keychain_is_reported() {
    let keyring = Keyring::new();
    let mut keychain = connect(&keyring);
    keychain.put("k", &[("k", "v")], &Secret::new("x")).unwrap();
    keyring.lock();
    let locked = |result: Result<(), KeychainError>| {
        assert!(matches!(result, Err(KeychainError::Locked)), "{result:?}");
    };
    for mut keychain in [keychain, connect(&keyring)] {
        locked(keychain.require_unlocked());
        locked(keychain.put("k", &[("k", "v")], &Secret::new("y")));
        locked(keychain.put("k", &[("new", "v")], &Secret::new("y")));
        locked(keychain.find(&[("k", "v")]).map(drop));
        locked(keychain.remove(&[("k", "v")]).map(drop));
        assert!(keychain.find(&[("k", "other")]).unwrap().is_empty());
    }
}

#[test]
fn item_survives_a_restart_of_the_daemon() {
    let mut keyring = Keyring::new();
    let mut before = connect(&keyring);
    let attributes = [("app", "s"), ("n", "1")];
    before.put("n", &attributes, &Secret::new("kept")).unwrap();
    keyring.restart();
    let found = connect(&keyring).find(&[("app", "s")]).unwrap();
    assert_eq!(found[0].1.expose(), "kept");
    // The daemon adds a schema where none was given, but only when it reads its file.
    let names: Vec<_> = found[0].0.keys().filter(|name| *name != "xdg:schema").collect();
    assert_eq!(names, ["app", "n"]);
    // What was opened with the one that has gone means nothing to the other.
    let error = before.find(&[("app", "s")]).err().unwrap();
    assert!(matches!(error, KeychainError::Refused(_)), "{error:?}");
    // Read from a file, an item is still replaced by the same one.
    let mut after = connect(&keyring);
    after.put("n", &attributes, &Secret::new("replaced")).unwrap();
    assert_eq!(secrets(&mut after, &[("app", "s")]), ["replaced"]);
}

#[test]
fn bus_without_a_keychain_is_unreachable() {
    let keyring = Keyring::empty();
    let error = SecretService::connect(&keyring.address(), uid(), TIMEOUT).err().unwrap();
    assert!(matches!(error, KeychainError::Unreachable(_)), "{error:?}");
}

#[test]
fn missing_bus_is_unreachable() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    drop(UnixListener::bind(&gone).unwrap());
    let gone = format!("unix:path={}", gone.display());
    for address in ["", "unix:path=/nowhere/bus", "tcp:host=localhost,port=1", "unix:abstract=nobody", &gone]
    {
        let error = SecretService::connect(address, uid(), TIMEOUT).err().unwrap();
        assert!(matches!(error, KeychainError::Unreachable(_)), "{address}: {error:?}");
    }
    // The second address is as good as the first.
    let keyring = Keyring::new();
    let both = format!("{gone};{}", keyring.address());
    SecretService::connect(&both, uid(), TIMEOUT).unwrap();
}

#[test]
fn another_user_is_rejected_by_the_bus() {
    let keyring = Keyring::empty();
    let error = SecretService::connect(&keyring.address(), uid() + 1, TIMEOUT).err().unwrap();
    assert!(matches!(error, KeychainError::Unreachable(_)), "{error:?}");
}

#[test]
fn halted_bus_times_out() {
    let keyring = Keyring::new();
    let timeout = Duration::from_millis(300);
    let mut before = SecretService::connect(&keyring.address(), uid(), timeout).unwrap();
    keyring.halt(true);
    let start = Instant::now();
    let error = before.find(&[("k", "v")]).err().unwrap();
    assert!(matches!(error, KeychainError::Unreachable(_)), "{error:?}");
    let error = SecretService::connect(&keyring.address(), uid(), timeout).err().unwrap();
    assert!(matches!(error, KeychainError::Unreachable(_)), "{error:?}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    keyring.halt(false);
    let error = before.find(&[("k", "v")]).err().unwrap();
    assert!(
        matches!(error, KeychainError::Unreachable(_)),
        "a late reply was taken for this request: {error:?}"
    );
    assert!(connect(&keyring).find(&[("k", "v")]).unwrap().is_empty());
}
