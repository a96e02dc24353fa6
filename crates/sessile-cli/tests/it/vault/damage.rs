//! Whatever becomes of the vault's files: it is told what is wrong, nothing is overwritten, and the right bytes back in
//! their place are the vault again.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use testkit::{Call, Home};

use super::{DIR, bind, files, list, listed, printed, set};
use crate::durability::crash::Random;
use crate::home;

/// A vault with two credentials in it.
struct VaultFiles {
    home: Home,
    /// What the vault's file is when nothing is wrong with it.
    whole: Vec<u8>,
}

impl VaultFiles {
    fn new() -> Self {
        let home = home();
        set(&home, "one", "the first secret").ok();
        set(&home, "two", "the second secret").ok();
        bind(&home, "work", &[("ONE", "one"), ("TWO", "two")]);
        let whole = std::fs::read(home.path(DIR).join("credentials")).unwrap();
        VaultFiles { home, whole }
    }

    fn vault(&self) -> PathBuf {
        self.home.path(DIR).join("credentials")
    }

    fn key(&self) -> PathBuf {
        self.home.path(DIR).join("key")
    }

    fn put(&self, bytes: &[u8]) {
        std::fs::write(self.vault(), bytes).unwrap();
    }

    /// Everything that reads and everything that writes fails the same way, and the files stay as they are.
    #[track_caller]
    fn assert_told(&self, what: &str, codes: &[(&str, i32)]) -> String {
        let before = files(&self.home);
        let mut told = String::new();
        for call in [list(&self.home), self.json(&["auth", "set", "new", "--secret-stdin"]).stdin("x")] {
            told = assert_code(what, call, codes);
        }
        assert!(files(&self.home) == before, "{what}: something was overwritten");
        told
    }

    /// The same for all commands that have to do with the vault.
    #[track_caller]
    fn assert_all_told(&self, what: &str, code: &str, exit: i32) {
        let before = files(&self.home);
        for args in [
            &["auth", "show", "one"][..],
            &["auth", "check", "one"],
            &["auth", "clear", "one", "--yes"],
            &["auth", "logout", "--all", "--yes"],
            &["auth", "refresh", "--all"],
            &["auth", "rekey", "--to", "file"],
            &["auth", "status"],
            &["auth", "set", "one", "--keep-secret", "--account", "me"],
        ] {
            assert_code(&format!("{what}, {args:?}"), self.json(args), &[(code, exit)]);
        }
        let run = printed(&self.home, "work", &["ONE"]).env("SESSILE_OUTPUT", "json").run().exit(125);
        assert_eq!(run.code(), code, "{what}");
        assert!(files(&self.home) == before, "{what}: something was overwritten");
    }

    fn json(&self, args: &[&str]) -> Call {
        self.home.call(&["--output", "json"]).args(args)
    }

    /// With the right bytes in their place everything is there.
    #[track_caller]
    fn assert_whole_again(&self) {
        self.put(&self.whole);
        let shown = printed(&self.home, "work", &["ONE", "TWO"]).ok().stdout();
        assert_eq!(shown, "the first secret\nthe second secret\n");
    }
}

#[track_caller]
fn assert_code(what: &str, call: Call, codes: &[(&str, i32)]) -> String {
    let done = call.run();
    let error = done.json_error();
    let told = (error["code"].as_str().unwrap_or_default(), done.status().unwrap_or_default());
    assert!(codes.contains(&told), "{what}: {told:?}\n{}", done.told());
    told.0.to_owned()
}

const DAMAGED: (&str, i32) = ("VAULT_DAMAGED", 1);
const OTHER_KEY: (&str, i32) = ("VAULT_WRONG_KEY", 8);
const TOO_NEW: (&str, i32) = ("VAULT_TOO_NEW", 4);

#[test]
fn flipped_bit_is_detected() {
    let kept = VaultFiles::new();
    let mut random = Random(0x5e55_1e201);
    let header = kept.whole.windows(10).position(|part| part == b"\"sealed\":\"").unwrap();
    // All of the header, and a sample of the rest.
    let rest = (header..kept.whole.len()).step_by(12);
    for at in (0..header).step_by(2).chain(rest).chain([kept.whole.len() - 1]) {
        let bit = random.below(8);
        let mut bytes = kept.whole.clone();
        bytes[at] ^= 1 << bit;
        kept.put(&bytes);
        kept.assert_told(&format!("byte {at}, bit {bit}"), &[DAMAGED, OTHER_KEY, TOO_NEW]);
    }
    kept.assert_whole_again();
}

#[test]
fn truncated_or_extended_vault_is_reported() {
    let kept = VaultFiles::new();
    for length in (0..kept.whole.len()).step_by(16).chain([kept.whole.len() - 1]) {
        kept.put(&kept.whole[..length]);
        kept.assert_told(&format!("{length} bytes"), &[DAMAGED]);
    }
    for more in ["\n", " ", "{}", "\0"] {
        kept.put(&[&kept.whole, more.as_bytes()].concat());
        kept.assert_told("more at its end", &[DAMAGED]);
    }
    kept.assert_whole_again();
}

#[test]
fn file_that_is_not_a_vault_is_reported() {
    let kept = VaultFiles::new();
    let text = String::from_utf8(kept.whole.clone()).unwrap();
    let nested = "[".repeat(1_000_000);
    let not_text = [b"{\"header\":\"", &[0xff, 0xfe][..], b"\"}"].concat();
    let huge_number = text.replace("\"version\":1", "\"version\":99999999999999999999999");
    for (what, bytes) in [
        ("nothing", &b""[..]),
        ("garbage", b"\x01\x02garbage\xff"),
        ("not text", &not_text),
        ("an array", b"[]\n"),
        ("another document", b"{\"header\":{\"format\":\"other\",\"version\":1}}\n"),
        ("nested", nested.as_bytes()),
        ("a huge number", huge_number.as_bytes()),
        ("an older version", text.replace("\"version\":1", "\"version\":0").as_bytes()),
        (
            "another order",
            text.replace(
                "\"format\":\"sessile vault\",\"version\":1",
                "\"version\":1,\"format\":\"sessile vault\"",
            )
            .as_bytes(),
        ),
        ("a blank more", text.replacen(':', ": ", 1).as_bytes()),
        ("a member more", text.replacen("\"version\":1", "\"version\":1,\"more\":1", 1).as_bytes()),
    ] {
        kept.put(bytes);
        kept.assert_told(what, &[DAMAGED]);
        kept.assert_all_told(what, DAMAGED.0, DAMAGED.1);
    }
    let newer = text.replace("\"version\":1", "\"version\":2");
    kept.put(newer.as_bytes());
    kept.assert_told("a newer version", &[TOO_NEW]);
    kept.assert_all_told("a newer version", TOO_NEW.0, TOO_NEW.1);
    kept.assert_whole_again();
}

#[test]
fn oversized_or_irregular_vault_is_reported() {
    let kept = VaultFiles::new();
    // It has no content: only its length is looked at.
    let file = std::fs::File::create(kept.vault()).unwrap();
    file.set_len(1 << 40).unwrap();
    let too_large = ("FILE_TOO_LARGE", 1);
    for call in [list(&kept.home), kept.json(&["auth", "set", "new", "--secret-stdin"]).stdin("x")] {
        assert_code("a terabyte", call, &[too_large]);
    }
    assert_eq!(kept.vault().metadata().unwrap().len(), 1 << 40);
    drop(file);

    std::fs::remove_file(kept.vault()).unwrap();
    std::fs::create_dir(kept.vault()).unwrap();
    kept.assert_told("a directory", &[("NOT_A_FILE", 1), ("IO", 1)]);
    std::fs::remove_dir(kept.vault()).unwrap();
    kept.assert_whole_again();
}

#[test]
fn missing_wrong_or_exposed_key_is_reported() {
    let kept = VaultFiles::new();
    let (key, other) = (std::fs::read(kept.key()).unwrap(), VaultFiles::new());
    let missing = ("VAULT_KEY_MISSING", 8);
    std::fs::remove_file(kept.key()).unwrap();
    kept.assert_told("no key", &[missing]);
    kept.assert_all_told("no key", missing.0, missing.1);
    assert!(!kept.key().exists(), "no key is made for a vault that has one");

    let put = |bytes: &[u8], mode: u32| {
        std::fs::write(kept.key(), bytes).unwrap();
        std::fs::set_permissions(kept.key(), PermissionsExt::from_mode(mode)).unwrap();
    };
    put(&std::fs::read(other.key()).unwrap(), 0o600);
    kept.assert_told("another vault's key", &[OTHER_KEY]);
    kept.assert_all_told("another vault's key", OTHER_KEY.0, OTHER_KEY.1);

    let invalid = ("KEY_FILE_INVALID", 1);
    let half = &key[..32];
    for garbage in [&b""[..], b"garbage\n", half, &[&key[..], b"more"].concat(), b"\n\n"] {
        put(garbage, 0o600);
        kept.assert_told("garbage", &[invalid]);
    }
    kept.assert_all_told("garbage", invalid.0, invalid.1);

    let exposed = ("KEY_FILE_EXPOSED", 7);
    for mode in [0o644, 0o640, 0o604, 0o660, 0o602] {
        put(&key, mode);
        kept.assert_told(&format!("mode {mode:o}"), &[exposed]);
    }
    kept.assert_all_told("a key for all to read", exposed.0, exposed.1);
    put(&key, 0o600);
    kept.assert_whole_again();
}

/// The key of a vault with a passphrase is asked for, or in a file that a variable names.
fn with_passphrase(call: Call, file: &Path) -> Call {
    call.env("SESSILE_VAULT_PASSPHRASE_FILE", file)
}

#[test]
fn wrong_passphrase_or_forged_cost_is_reported() {
    let kept = VaultFiles::new();
    let home = &kept.home;
    let private = |name: &str, text: &str| {
        let path = home.write(name, text);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path
    };
    let (right, wrong) = (private("right", "correct horse\n"), private("wrong", "incorrect horse\n"));
    home.call(&["auth", "rekey", "--to", "passphrase", "--passphrase-file", "right"]).ok();
    let sealed = String::from_utf8(std::fs::read(kept.vault()).unwrap()).unwrap();
    let before = files(home);
    let attempts = |file: &Path, what: &str, codes: &[(&str, i32)]| {
        let set = kept.json(&["auth", "set", "new", "--secret-stdin"]).stdin("x");
        for call in [list(home), set, kept.json(&["auth", "clear", "one", "--yes"])] {
            assert_code(what, with_passphrase(call, file), codes);
        }
    };
    attempts(&wrong, "a wrong passphrase", &[OTHER_KEY]);
    assert_code("none", list(home), &[("VAULT_LOCKED", 8)]);
    assert_code(
        "none",
        kept.json(&["auth", "set", "new", "--secret-stdin"]).stdin("x"),
        &[("VAULT_LOCKED", 8)],
    );
    assert!(files(home) == before);
    assert_code(
        "wrong at unlocking",
        kept.json(&["auth", "unlock", "--passphrase-file", "wrong"]).env("XDG_RUNTIME_DIR", home.dir()),
        &[OTHER_KEY],
    );
    std::fs::set_permissions(&right, PermissionsExt::from_mode(0o644)).unwrap();
    attempts(&right, "a passphrase for all to read", &[("KEY_FILE_EXPOSED", 7)]);
    std::fs::set_permissions(&right, PermissionsExt::from_mode(0o600)).unwrap();

    // What it would cost stands in the file before anything in it is proven.
    for (from, to) in [
        ("\"memory\":65536", "\"memory\":4294967295"),
        ("\"passes\":3", "\"passes\":4294967295"),
        ("\"memory\":65536", "\"memory\":0"),
        ("\"passes\":3", "\"passes\":0"),
        ("\"salt\":\"", "\"salt\":\"zz"),
        ("\"salt\":\"", "\"salt\":\"00"),
    ] {
        let forged = sealed.replace(from, to);
        assert_ne!(forged, sealed);
        kept.put(forged.as_bytes());
        attempts(&right, &format!("{from} to {to}"), &[DAMAGED, OTHER_KEY]);
        assert_eq!(std::fs::read(kept.vault()).unwrap(), forged.as_bytes());
    }
    kept.put(sealed.as_bytes());
    assert_eq!(listed(&with_passphrase(list(home), &right).ok()).len(), 2);
    let shown = with_passphrase(printed(home, "work", &["ONE", "TWO"]), &right).ok().stdout();
    assert_eq!(shown, "the first secret\nthe second secret\n");
}
