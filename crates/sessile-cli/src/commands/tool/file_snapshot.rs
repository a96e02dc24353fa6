//! Snapshots of directories, to compare contents before and after.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Snapshot of a directory tree.
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
    /// Kind of the difference.
    pub(super) what: &'static str,
    /// Current size in bytes.
    pub(super) bytes: usize,
}

impl FileSnapshot {
    /// Takes a snapshot, without these subtrees.
    #[expect(clippy::disallowed_methods, reason = "a throwaway home may be read without limits")]
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
                    // The target's path and not its content: a link out of the home must not be followed.
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

    /// Differences since the snapshot. Directories count by their files only.
    pub(super) fn differences(&self, without: &[PathBuf]) -> Vec<FileDifference> {
        let now = Self::take(&self.root, without);
        let mut found = Vec::new();
        for (path, entry) in &now.entries {
            let what = match self.entries.get(path) {
                Some(before) if before == entry => continue,
                Some(_) => "changed",
                // Tools create empty directories that hold no state.
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
