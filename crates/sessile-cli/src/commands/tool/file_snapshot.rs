//! What is in a directory, to compare before and after: every byte that landed somewhere is seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Everything below a directory.
pub(super) struct FileSnapshot {
    root: PathBuf,
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(PartialEq, Eq)]
struct Entry {
    kind: char,
    content: Vec<u8>,
}

/// One difference.
pub(super) struct FileDifference {
    /// The path below the directory.
    pub(super) path: PathBuf,
    /// What happened to it.
    pub(super) what: &'static str,
    /// How many bytes it has now.
    pub(super) bytes: usize,
}

impl FileSnapshot {
    /// Takes one, without what is below these.
    #[expect(clippy::disallowed_methods, reason = "a throwaway home is read whole, whatever is in it")]
    pub(super) fn take(root: &Path, without: &[PathBuf]) -> Self {
        let mut entries = BTreeMap::new();
        let mut dirs = vec![root.to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                let path = entry.path();
                if without.contains(&path) {
                    continue;
                }
                let Ok(kind) = entry.file_type() else { continue };
                let (letter, content) = match () {
                    () if kind.is_dir() => {
                        dirs.push(path.clone());
                        ('d', Vec::new())
                    }
                    () if kind.is_file() => ('f', std::fs::read(&path).unwrap_or_default()),
                    () if kind.is_symlink() => {
                        let target = path.read_link().unwrap_or_default();
                        ('l', target.into_os_string().into_encoded_bytes())
                    }
                    () => ('s', Vec::new()),
                };
                let relative = path.strip_prefix(root).unwrap_or(&path).to_owned();
                entries.insert(relative, Entry { kind: letter, content });
            }
        }
        FileSnapshot { root: root.to_owned(), entries }
    }

    /// What has changed since. Directories alone hold no bytes; only what is in them counts.
    pub(super) fn differences(&self, without: &[PathBuf]) -> Vec<FileDifference> {
        let now = Self::take(&self.root, without);
        let mut found = Vec::new();
        for (path, entry) in &now.entries {
            let what = match self.entries.get(path) {
                Some(before) if before == entry => continue,
                Some(_) => "changed",
                None if entry.kind == 'd' => continue,
                None => "new",
            };
            found.push(FileDifference { path: path.clone(), what, bytes: entry.content.len() });
        }
        for (path, entry) in self.entries.iter().filter(|(path, _)| !now.entries.contains_key(*path)) {
            if entry.kind != 'd' {
                found.push(FileDifference { path: path.clone(), what: "removed", bytes: 0 });
            }
        }
        found
    }
}
