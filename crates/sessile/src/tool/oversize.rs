//! State that is too large to copy: the largest entries of its directory are linked, the rest is copied.
//!
//! A cache that a profile does not list must not stop every command. Only entries that no binding and no target of the tool uses are linked, so a
//! link brings no target into a room that its copies withhold.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::tool::profile::Seed;
use crate::tool::seed::{DEEPEST, LARGEST, MOST_FILES, is_backup, is_like};

/// Entries that are looked at; a directory with more counts as too large.
const MOST_SEEN: usize = 8 * MOST_FILES;

/// Size of an entry.
#[derive(Clone, Copy, Debug, Default)]
struct EntrySize {
    bytes: u64,
    files: usize,
}

impl EntrySize {
    /// Size of an entry that is too large to be measured.
    const UNBOUNDED: EntrySize = EntrySize { bytes: LARGEST + 1, files: MOST_FILES + 1 };

    fn add(&mut self, other: EntrySize) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.files = self.files.saturating_add(other.files);
    }

    fn fits(self) -> bool {
        self.bytes <= LARGEST && self.files <= MOST_FILES
    }
}

/// Entries of a directory to link so that the rest can be copied; `None` if too much would be left. `used` are the paths below
/// the room that bindings and targets use.
pub(super) fn entries_to_link(dir: &Path, seed: &Seed, used: &[PathBuf]) -> Option<Vec<OsString>> {
    let real = dir.canonicalize().ok()?;
    let is_used = |name: &Path| {
        let place = Path::new(&seed.to).join(name);
        used.iter().any(|path| path.starts_with(&place) || place.starts_with(path))
    };
    // A link may lead to the directory itself, or to what it lies in.
    let leads_back = |path: &Path| path.canonicalize().is_ok_and(|target| real.starts_with(target));
    let mut measure = Measure { seed, inside: Vec::new(), seen: 0 };
    measure.enter(dir);
    let mut rest = EntrySize::default();
    let mut linkable = Vec::new();
    for entry in std::fs::read_dir(dir).ok()?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let size = measure.size(&path, Path::new(&name));
        if is_used(Path::new(&name)) || leads_back(&path) {
            rest.add(size);
        } else {
            linkable.push((size, name));
        }
    }
    // The smallest are copied as long as the copies fit.
    linkable.sort_by_key(|(size, name)| (size.bytes, size.files, name.clone()));
    let mut linked = Vec::new();
    for (size, name) in linkable {
        let mut with = rest;
        with.add(size);
        if with.fits() { rest = with } else { linked.push(name) }
    }
    rest.fits().then_some(linked)
}

/// Measurement of what a copy of a directory would take.
struct Measure<'a> {
    seed: &'a Seed,
    /// The directories that are being measured, the outermost first.
    inside: Vec<(u64, u64)>,
    seen: usize,
}

impl Measure<'_> {
    fn enter(&mut self, dir: &Path) {
        self.inside.extend(dir.metadata().ok().map(|found| (found.dev(), found.ino())));
    }

    fn size(&mut self, path: &Path, name: &Path) -> EntrySize {
        let shown = name.to_string_lossy();
        let matches = |patterns: &[String]| patterns.iter().any(|pattern| is_like(pattern, &shown));
        let Ok(found) = path.metadata() else { return EntrySize::default() };
        let is_backup = self.seed.skip_backups && path.file_name().is_some_and(is_backup);
        if is_backup || matches(&self.seed.except) || matches(&self.seed.link) {
            return EntrySize::default();
        }
        self.seen += 1;
        if self.seen > MOST_SEEN || name.components().count() > DEEPEST {
            return EntrySize::UNBOUNDED;
        }
        if found.is_file() {
            return EntrySize { bytes: found.len(), files: 1 };
        }
        let id = (found.dev(), found.ino());
        if !found.is_dir() || self.inside.contains(&id) {
            return EntrySize::default();
        }
        self.inside.push(id);
        let mut size = EntrySize::default();
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            let below = self.size(&entry.path(), &name.join(entry.file_name()));
            size.add(below);
        }
        self.inside.pop();
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse(path: &Path, mebibytes: u64) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(path).unwrap();
        file.set_len(mebibytes << 20).unwrap();
    }

    fn seed() -> Seed {
        Seed { to: "t".to_owned(), except: vec!["left-out".to_owned()], ..Seed::default() }
    }

    #[test]
    fn largest_entries_are_linked_until_the_rest_fits() {
        let root = tempfile::tempdir().unwrap();
        for (name, size) in [("a/one", 200), ("b/two", 100), ("c", 1), ("left-out/x", 900)] {
            sparse(&root.path().join(name), size);
        }
        assert_eq!(entries_to_link(root.path(), &seed(), &[]), Some(vec![OsString::from("a")]));
    }

    #[test]
    fn entries_that_bindings_use_are_never_linked() {
        let root = tempfile::tempdir().unwrap();
        sparse(&root.path().join("contexts/meta/one"), 200);
        sparse(&root.path().join("cache/two"), 100);
        let link = |used: &str| entries_to_link(root.path(), &seed(), &[PathBuf::from(used)]);
        assert_eq!(link("t/contexts/meta"), Some(vec![OsString::from("cache")]));
        assert_eq!(link("t"), None, "every entry is used");
        sparse(&root.path().join("contexts/meta/one"), 300);
        assert_eq!(link("t/contexts/meta"), None, "the used entries are too large");
    }

    #[test]
    fn links_to_the_directory_itself_are_not_linked() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("dir");
        sparse(&dir.join("cache"), 300);
        std::os::unix::fs::symlink(&dir, dir.join("back")).unwrap();
        std::os::unix::fs::symlink(root.path(), dir.join("above")).unwrap();
        let linked = entries_to_link(&dir, &seed(), &[]);
        assert_eq!(linked, Some(vec![OsString::from("cache")]));
    }
}
