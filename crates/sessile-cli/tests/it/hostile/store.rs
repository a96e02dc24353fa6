//! A store that is damaged, too new, or something else.

use std::process::Command;

use testkit::Home;

use super::system::UnprivilegedUser;
use super::{clean, refused};
use crate::home;

const STORE: &str = ".local/state/sessile/state.db";

/// A home whose project is trusted and whose global context is selected: both are asked of the store.
fn prepared() -> Home {
    let home = home();
    prepare(&home, |args| home.call(args).ok());
    home
}

fn prepare(home: &Home, call: impl Fn(&[&str]) -> testkit::CallResult) {
    home.write("p/.sessile/config.toml", "env.A = 'trusted'\n");
    call(&["context", "create", "a"]);
    call(&["context", "use", "a", "--global"]);
    call(&["trust", "p", "--yes"]);
}

/// What does not need the store works; what does is refused; nothing is changed.
#[track_caller]
fn the_store_is_refused(home: &Home, code: &str) {
    for args in [&["context", "current"][..], &["config", "show"], &["context", "list"]] {
        clean(home.call(args).ok());
    }
    refused(home, &["context", "use", "a", "--global"], code);
    refused(home, &["trust", "p", "--yes"], code);
    refused(home, &["trust", "--list"], code);
    let done = clean(home.call(&["doctor"]).run()).exit(1);
    assert!(done.stdout().contains("state.db") && done.stdout().contains("fix: "), "{}", done.told());
}

#[test]
fn a_damaged_store_is_named_with_the_way_out_and_left_alone() {
    let home = prepared();
    home.write(STORE, "this is no database\n".repeat(500));
    the_store_is_refused(&home, "STORE_CORRUPT");
    let error = refused(&home, &["trust", "--list"], "STORE_CORRUPT");
    assert!(error["hint"].as_str().unwrap().contains("aside"), "{error}");
    // The way out leads out.
    std::fs::rename(home.path(STORE), home.path("aside")).unwrap();
    home.call(&["trust", "p", "--yes"]).ok();
    home.call(&["doctor"]).ok();
}

#[test]
fn a_store_cut_short_is_damaged_wherever_it_was_cut() {
    let model = prepared();
    let whole = std::fs::read(model.path(STORE)).unwrap();
    assert!(whole.len() > 8192, "everything is in the one file");
    for length in [1, 50, 99, 100, 512, 4095, 4096, 6000, whole.len() - 4096, whole.len() - 1] {
        let home = prepared();
        home.write(STORE, &whole[..length]);
        for args in [
            &["trust", "--list"][..],
            &["context", "use", "a", "--global"],
            &["status"],
            &["trust", "p", "--yes"],
        ] {
            let done = clean(home.call(args).arg("--output=json").run());
            assert!(matches!(done.status(), Some(0 | 1)), "cut at {length}: {}", done.told());
            if done.status() == Some(1) {
                assert_eq!(done.code(), "STORE_CORRUPT", "cut at {length}: {}", done.told());
            }
        }
    }
}

#[test]
fn a_store_with_flipped_bytes_is_never_a_panic() {
    let model = prepared();
    let whole = std::fs::read(model.path(STORE)).unwrap();
    let home = prepared();
    for at in (16..whole.len()).step_by(whole.len() / 60) {
        let mut damaged = whole.clone();
        for byte in &mut damaged[at..(at + 8).min(whole.len())] {
            *byte ^= 0x5a;
        }
        home.write(STORE, damaged);
        for args in [&["trust", "--list"][..], &["status"], &["doctor"]] {
            let done = clean(home.call(args).run());
            assert!(matches!(done.status(), Some(0 | 1)), "flipped at {at}: {}", done.told());
        }
    }
}

#[test]
fn a_newer_store_is_refused_and_left_alone() {
    let home = prepared();
    let mut bytes = std::fs::read(home.path(STORE)).unwrap();
    // The file format keeps the user version in these four bytes.
    bytes[60..64].copy_from_slice(&9999_u32.to_be_bytes());
    home.write(STORE, bytes);
    the_store_is_refused(&home, "STORE_TOO_NEW");
}

#[test]
fn something_else_in_the_place_of_the_store_is_refused() {
    let make: [fn(&Home); 3] = [
        |home| std::fs::create_dir(home.path(STORE)).unwrap(),
        |home| assert!(Command::new("mkfifo").arg(home.path(STORE)).status().unwrap().success()),
        |home| drop(std::os::unix::net::UnixListener::bind(home.path(STORE)).unwrap()),
    ];
    for make in make {
        let home = prepared();
        std::fs::remove_file(home.path(STORE)).unwrap();
        make(&home);
        the_store_is_refused(&home, "NOT_A_FILE");
    }
}

#[test]
fn an_empty_store_is_one_that_was_not_filled_yet() {
    let home = prepared();
    home.write(STORE, "");
    clean(home.call(&["doctor"]).ok());
    home.call(&["context", "use", "a", "--global"]).ok();
    home.call(&["trust", "p", "--yes"]).ok();
}

/// A state directory on a read-only medium, or of another user: what was decided still holds.
#[test]
fn a_store_in_a_read_only_directory_can_be_read() {
    let user = UnprivilegedUser::new(65_534);
    prepare(user.home(), |args| user.call(args).ok());
    user.own();
    let read = || {
        for (args, expected) in [
            (&["config", "get", "env.A"][..], Some("trusted\n")),
            (&["context", "current"], Some("a\n")),
            (&["trust", "--list"], None),
            (&["status"], None),
        ] {
            let done = clean(user.call(args).cwd("p").run()).exit(0);
            assert!(expected.is_none_or(|expected| done.stdout() == expected), "{}", done.told());
            assert_eq!(done.stderr(), "", "{}", done.told());
        }
        for args in [&["context", "use", "a", "--global"][..], &["trust", "p", "--yes"]] {
            super::refused_call(user.home(), || user.call(args), "IO");
        }
    };
    user.modes(".local/state/sessile", "a-w");
    read();
    // What a reader left beside it, from before, makes no difference.
    user.modes(".local/state/sessile", "u+w");
    user.call(&["trust", "--list"]).ok();
    user.modes(".local/state/sessile", "a-w");
    read();
    user.modes(".local/state/sessile", "u+w");
}
