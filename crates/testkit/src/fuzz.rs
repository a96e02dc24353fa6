//! A deterministic fuzzing campaign on stable Rust: the corpus of a target first, then mutations of it.
//!
//! Targets live in `src/fuzz.rs` of each crate, corpora in `fuzz/corpus/TARGET/`. The same targets run under libFuzzer by
//! `scripts/fuzz`, which finds more; this driver needs no nightly toolchain and gives the same inputs in every run.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

/// Mutations of the corpus per target. `scripts/test --long` raises it.
const MUTATIONS: usize = 2_000;

/// The largest input that mutation grows to.
const LARGEST: usize = 1 << 16;

/// Runs a target over its corpus and over mutations of it.
///
/// # Panics
/// If the corpus is missing, or the target panics. The input is then saved, and the panic names the file.
pub fn campaign(name: &str, target: fn(&[u8])) {
    let corpus = corpus(name);
    for (file, bytes) in &corpus {
        attempt(name, file, bytes, target);
    }
    let mutations = std::env::var("SESSILE_TEST_MUTATIONS")
        .map_or(MUTATIONS, |text| text.parse().expect("SESSILE_TEST_MUTATIONS is a number"));
    let mut random =
        // Seeded by the name: targets get different mutations, and every run of a target the same.
        Random(name.bytes().fold(0xcbf2_9ce4_8422_2325, |seed, byte| {
            (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }));
    for round in 0..mutations {
        let (file, bytes) = random.of(&corpus);
        let mut bytes = bytes.clone();
        for _ in 0..=random.below(4) {
            let other = &random.of(&corpus).1;
            mutate(&mut bytes, other, &mut random);
            // Repetition could otherwise multiply the input in each step.
            bytes.truncate(LARGEST);
        }
        attempt(name, &format!("{file}, mutation {round}"), &bytes, target);
    }
}

fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let dir = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus")).join(name);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a directory entry").path()).collect();
    // Directories list in any order, and each run must try the same inputs.
    files.sort();
    assert!(!files.is_empty(), "{} is empty", dir.display());
    files
        .into_iter()
        .map(|path| {
            let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), bytes)
        })
        .collect()
}

fn attempt(name: &str, origin: &str, bytes: &[u8], target: fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(bytes))) {
        let path = std::env::temp_dir().join(format!("sessile-fuzz-{name}"));
        std::fs::write(&path, bytes).expect("the input can be saved");
        // The panic itself is already on standard error.
        let saved = format!("target {name} panicked on {origin}; input saved: {}\n", path.display());
        let _ = std::io::Write::write_all(&mut std::io::stderr(), saved.as_bytes());
        // The test fails with the original panic, and not with a second one.
        resume_unwind(panic);
    }
}

/// Bytes that parsers treat specially, and values at the edges of what they accept.
const TOKENS: [&[u8]; 40] = [
    b"\"",
    b"'",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b"[[",
    b":",
    b",",
    b"=",
    b"#",
    b"\n",
    b"\r\n",
    b"\t",
    b"\0",
    b"%00",
    b"%zz",
    b"../",
    b"//",
    b"\x1b[31m",
    b"\xff\xfe",
    "\u{202e}".as_bytes(),
    "\u{feff}".as_bytes(),
    b"null",
    b"true",
    b"-0",
    b"1e999",
    b"0.1e-400",
    b"9223372036854775808",
    b"18446744073709551616",
    b"9999-12-31T23:59:59Z",
    b"\\u0000",
    b"\\ud800",
    b"!!binary",
    b"&a",
    b"*a",
    b"<<:",
    b"|\n ",
    b"\"\"\"",
];

fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let end = at + random.below((bytes.len() - at).min(64) + 1);
    match random.below(11) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 if at < bytes.len() => bytes[at] = u8::try_from(random.below(256)).unwrap_or_default(),
        2 => drop(bytes.drain(at..end)),
        3 => bytes.truncate(at),
        4 => drop(bytes.splice(at..end, random.of(&TOKENS).iter().copied())),
        5 => drop(bytes.splice(at..at, random.of(&TOKENS).repeat(random.below(200)))),
        6 => {
            let again = bytes[at..end].repeat(1 + random.below(8));
            bytes.splice(at..at, again);
        }
        7 => {
            let from = random.below(other.len() + 1);
            let to = from + random.below(other.len() - from + 1);
            bytes.splice(at..end, other[from..to].iter().copied());
        }
        8 => swap_lines(bytes, random),
        9 => {
            // A number becomes another one.
            let digits = |byte: &u8| byte.is_ascii_digit();
            if let Some(start) = bytes.iter().skip(at).position(digits).map(|found| at + found) {
                let length = bytes[start..].iter().take_while(|byte| digits(byte)).count();
                let number =
                    random.of(&["0", "-1", "65536", "4294967296", "99999999999999999999", "1.5", ""]);
                bytes.splice(start..start + length, number.bytes());
            }
        }
        _ => drop(bytes.splice(at..at, random.of(&TOKENS).iter().copied())),
    }
}

fn swap_lines(bytes: &mut Vec<u8>, random: &mut Random) {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let (one, two) = (random.below(lines.len()), random.below(lines.len()));
    lines.swap(one, two);
    *bytes = lines.join(&b'\n');
}

/// A small deterministic generator (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        // The high bits, because the low ones of this generator are weaker.
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap_or_default() % limit.max(1)
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// One test per target, each a [`campaign`].
#[macro_export]
macro_rules! fuzz_tests {
    ($($target:ident),+ $(,)?) => {
        $(
            #[test]
            fn $target() {
                $crate::fuzz::campaign(stringify!($target), super::$target);
            }
        )+
    };
}
