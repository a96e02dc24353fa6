//! The files of the repository itself, for tests that hold the documents against the program.

#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reads the repository's files directly and fails by panicking"
)]

use std::path::{Path, PathBuf};

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The text of a file in it.
pub(crate) fn read(relative: impl AsRef<Path>) -> String {
    let path = root().join(relative);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file with this ending, by its path in the repository.
pub(crate) fn files(ending: &str) -> Vec<PathBuf> {
    let root = root();
    let mut files = Vec::new();
    let mut dirs = vec![root.clone()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !path.is_symlink() {
                if !["target", ".git"].contains(&name.as_str()) {
                    dirs.push(path);
                }
            } else if name.ends_with(ending) {
                files.push(path.strip_prefix(&root).unwrap().to_owned());
            }
        }
    }
    files.sort();
    files
}

/// Holds a generated file against what is checked in; with `UPDATE_REFERENCE` set it writes it instead.
#[track_caller]
pub(crate) fn assert_generated(relative: &str, text: &str) {
    let path = root().join(relative);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some((line, (is, should))) = found
        .lines()
        .chain([""])
        .zip(text.lines().chain([""]))
        .enumerate()
        .find(|(_, (is, should))| is != should)
    {
        panic!(
            "{relative} is out of date, first in line {}:\n  is:        {is}\n  should be: {should}\n{HOW}",
            line + 1
        );
    }
    assert!(found == text, "{relative} is out of date\n{HOW}");
}

const HOW: &str = "write it anew: UPDATE_REFERENCE=1 cargo test -p sessile-cli --test it reference";
