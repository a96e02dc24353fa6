//! Random damage to a vault's file, by the million: the reader never panics, and never opens what was changed.
//!
//! `SESSILE_TEST_FUZZ` says how many changed files are read.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test fails by panicking and prints its progress"
)]

use std::collections::BTreeSet;

use sessile::vault::KeySource;
use sessile::vault::sealed::{SealedFile, UnsealError};
use sessile::vault_key::VaultKey;

/// A generator with a fixed seed (xorshift), so that a failure comes back.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// A part of a text that is not empty, if the text is not.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length);
        // Mostly short ones: a long one leaves nothing to be looked at.
        let most = if self.below(4) == 0 { length } else { 16 };
        let end = (start + 1 + self.below(most)).min(length);
        start..end
    }
}

/// Values that readers trip over.
const VALUES: [&str; 27] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "1.0",
    "1e3",
    "1e999",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "null",
    "true",
    "\"\"",
    "\"0\"",
    "\"file\"",
    "\"keychain\"",
    "\"passphrase\"",
    "\"zz\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "[]",
    "{}",
    "{\"from\":\"file\"}",
    "{\"from\":\"passphrase\",\"salt\":\"\",\"memory\":4294967295,\"passes\":4294967295}",
];

const MEMBERS: [&str; 11] =
    ["header", "format", "version", "key", "from", "salt", "memory", "passes", "key_id", "nonce", "sealed"];

/// Where the value of a member stands in a text, if it still has it.
fn value_of(text: &[u8], member: &str) -> Option<std::ops::Range<usize>> {
    let wanted = format!("\"{member}\":");
    let at = text.windows(wanted.len()).position(|part| part == wanted.as_bytes())? + wanted.len();
    let (mut depth, mut in_text) = (0, false);
    for (offset, byte) in text[at..].iter().enumerate() {
        match byte {
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b',' | b'}' | b']' if !in_text && depth == 0 => return Some(at..at + offset),
            b'}' | b']' if !in_text => depth -= 1,
            _ => {}
        }
    }
    None
}

/// One change of any kind.
fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    match random.below(10) {
        0 if !bytes.is_empty() => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        1 => drop(bytes.drain(random.range(bytes.len()))),
        2 => {
            let part = bytes[random.range(bytes.len())].to_vec();
            let at = random.below(bytes.len() + 1);
            bytes.splice(at..at, part);
        }
        3 => {
            let (here, there) = (random.range(bytes.len()), random.range(other.len()));
            bytes.splice(here, other[there].to_vec());
        }
        4 => {
            // The beginning of one and the end of another.
            let (here, there) = (random.below(bytes.len() + 1), random.below(other.len() + 1));
            bytes.splice(here.., other[there..].to_vec());
        }
        5 | 6 => {
            if let Some(range) = value_of(bytes, random.of(&MEMBERS)) {
                bytes.splice(range, random.of(&VALUES).bytes());
            }
        }
        7 => {
            // A member of another file, whole.
            let member = random.of(&MEMBERS);
            if let (Some(here), Some(there)) = (value_of(bytes, member), value_of(other, member)) {
                bytes.splice(here, other[there].to_vec());
            }
        }
        8 => {
            let member = format!("\"{}\":{},", random.of(&MEMBERS), random.of(&VALUES));
            let places =
                bytes.iter().enumerate().filter(|(_, byte)| b"{,".contains(byte)).map(|(at, _)| at + 1);
            let places: Vec<usize> = places.collect();
            if !places.is_empty() {
                let at = places[random.below(places.len())];
                bytes.splice(at..at, member.into_bytes());
            }
        }
        _ => {
            let at = random.below(bytes.len() + 1);
            let more =
                random.of(&[" ", "\n", "\0", "{", "}", "[", "\"", "\\", ",", "\u{feff}", "[[[[[[[[[[[[[[[["]);
            bytes.splice(at..at, more.bytes());
        }
    }
}

/// What this process has held at most, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn no_changed_vault_opens_and_none_makes_the_reader_panic() {
    let rounds: usize = std::env::var("SESSILE_TEST_FUZZ").map_or(20_000, |text| text.parse().unwrap());
    let (key, other_key) = (VaultKey::of_bytes([7; 32]), VaultKey::of_bytes([8; 32]));
    let passphrase = || KeySource::Passphrase {
        salt: "00112233445566778899aabbccddeeff".into(),
        memory: 65536,
        passes: 3,
    };
    let long = "x".repeat(5_000);
    let seal = |content: &str, key: &VaultKey, source: KeySource| {
        SealedFile::seal(content, key, source).unwrap().to_text()
    };
    let files: Vec<String> = vec![
        seal("[]", &key, KeySource::File),
        seal("the content", &key, KeySource::File),
        seal("the content", &key, KeySource::Keychain),
        seal("the content", &key, passphrase()),
        seal("the content", &other_key, passphrase()),
        seal(&long, &key, KeySource::File),
        seal("", &key, KeySource::File),
    ];
    let whole: BTreeSet<&[u8]> = files.iter().map(|file| file.as_bytes()).collect();
    for file in &files {
        assert!(SealedFile::of_text(file).unwrap().open(&key).is_ok() || file == &files[4]);
    }
    let before = peak();
    let mut random = Random(0x5e55_1ef0);
    let (mut read, mut opened_not, mut unchanged) = (0, 0, 0);
    for round in 0..rounds {
        let mut bytes = files[random.below(files.len())].clone().into_bytes();
        let other = files[random.below(files.len())].as_bytes();
        for _ in 0..=random.below(3) {
            change(&mut bytes, other, &mut random);
        }
        if whole.contains(bytes.as_slice()) {
            unchanged += 1;
            continue;
        }
        // What is not text is refused by whoever reads the file.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let Ok(sealed) = SealedFile::of_text(&text) else { continue };
        read += 1;
        for key in [&key, &other_key] {
            match sealed.open(key) {
                Ok(_) => panic!("round {round} opened {text}"),
                Err(UnsealError::TooNew(_)) => {
                    panic!("round {round} was accepted as a known version: {text}")
                }
                Err(UnsealError::Damaged(_)) => opened_not += 1,
                Err(UnsealError::OtherKey) => {}
            }
        }
    }
    println!("{rounds} rounds: {read} read, {opened_not} refused by the seal, {unchanged} unchanged");
    // A run in which nothing came as far as the seal would say nothing.
    assert!(
        read > rounds / 100 && opened_not > rounds / 200,
        "{read} read, {opened_not} refused by the seal"
    );
    assert!(peak() < before + 256 * 1024, "{} KiB, and {before} before", peak());
}
