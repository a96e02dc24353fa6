//! Directories whose entries somebody else may have arranged, a repository for example.
//!
//! Everything goes through descriptors and one name at a time, so no symbolic link is ever followed, not even one that
//! is put in place meanwhile.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, mkdirat, openat, statat, symlinkat, unlinkat};

/// Depth limit of removal.
// Each level keeps a descriptor and a stack frame, and a stranger decides how deep the tree is.
const DEEPEST: usize = 200;

/// Number of names after which a listing beyond its limit ends.
// A directory of millions of names, which a stranger can make, must not hold a command up.
const MOST_NAMES: usize = 100_000;

/// An open directory.
#[derive(Debug)]
pub(crate) struct NoFollowDir {
    handle: OwnedFd,
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(crate) struct NoFollowEntry {
    /// Name of the entry.
    pub(crate) name: OsString,
    /// Kind of the entry itself: of a link, not of its target.
    pub(crate) kind: FileType,
    /// Size in bytes.
    pub(crate) size: u64,
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl NoFollowDir {
    /// Opens a directory by its path. Links in the path are followed: it must come from the user.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(NoFollowDir { handle: rustix::fs::open(path, DIRECTORY, Mode::empty())? })
    }

    /// Opens a directory in this one. A link in its place is an error.
    pub(crate) fn enter(&self, name: &OsStr) -> io::Result<Self> {
        Ok(NoFollowDir { handle: openat(&self.handle, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())? })
    }

    /// Opens a directory below this one, by a path without links.
    pub(crate) fn walk(&self, relative: &Path) -> io::Result<Self> {
        self.descend(relative, |dir, name| dir.enter(name))
    }

    /// The same, and makes the directories on the way that are missing, for the user alone.
    pub(crate) fn make(&self, relative: &Path) -> io::Result<Self> {
        self.descend(relative, |dir, name| {
            match mkdirat(&dir.handle, name, Mode::RWXU) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            dir.enter(name)
        })
    }

    fn descend(
        &self,
        relative: &Path,
        step: impl Fn(&NoFollowDir, &OsStr) -> io::Result<NoFollowDir>,
    ) -> io::Result<Self> {
        // The walk replaces its directory at each step, and `self` must stay open.
        let mut dir = NoFollowDir { handle: self.handle.try_clone()? };
        for component in relative.components() {
            // `..` and absolute paths would leave the directory.
            let Component::Normal(name) = component else { return Err(io::ErrorKind::InvalidInput.into()) };
            dir = step(&dir, name)?;
        }
        Ok(dir)
    }

    /// The first `limit` entries of the directory in the order of their names, and whether it has more.
    pub(crate) fn entries(&self, limit: usize) -> io::Result<(Vec<NoFollowEntry>, bool)> {
        // Names beyond the limit are read too: a file system lists them in an order of its own, and which entries are
        // within the limit must not depend on it.
        let mut names = BTreeSet::new();
        let mut has_more = false;
        for (count, entry) in Dir::read_from(&self.handle)?.enumerate() {
            if has_more && count >= MOST_NAMES {
                break;
            }
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            names.insert(name.to_owned());
            // Bounded memory, however many names a stranger puts there.
            if names.len() > limit {
                names.pop_last();
                has_more = true;
            }
        }
        let entry = |name: OsString| {
            // It may be gone already.
            let found = statat(&self.handle, &name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let kind = FileType::from_raw_mode(found.st_mode);
            Some(NoFollowEntry { name, kind, size: u64::try_from(found.st_size).unwrap_or(0) })
        };
        Ok((names.into_iter().filter_map(entry).collect(), has_more))
    }

    /// Opens a regular file of the directory for reading; anything else is an error.
    pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        // Without O_NONBLOCK a pipe would be waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.handle, name, flags, Mode::empty())?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Creates a file in the directory; one that exists is an error.
    pub(crate) fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.handle, name, flags, Mode::from_raw_mode(mode))?))
    }

    /// Creates a symbolic link in the directory.
    pub(crate) fn link(&self, target: &Path, name: &OsStr) -> io::Result<()> {
        Ok(symlinkat(target, &self.handle, name)?)
    }

    /// Metadata of the directory itself.
    pub(crate) fn stat(&self) -> io::Result<rustix::fs::Stat> {
        Ok(fstat(&self.handle)?)
    }

    /// Removes a directory of this one with everything in it. Anything else in its place stays and is an error.
    pub(crate) fn remove_tree(&self, name: &OsStr) -> io::Result<()> {
        self.remove_below(name, DEEPEST)
    }

    fn remove_below(&self, name: &OsStr, depth: usize) -> io::Result<()> {
        let dir = self.enter(name)?;
        // Removal has no limit of entries: a remaining one would keep the directory from being removed.
        for entry in dir.entries(usize::MAX)?.0 {
            match entry.kind {
                FileType::Directory if depth == 0 => return Err(io::Error::other("too many directories")),
                FileType::Directory => dir.remove_below(&entry.name, depth - 1)?,
                // A link is removed itself; its target stays.
                _ => unlinkat(&dir.handle, &entry.name, AtFlags::empty())?,
            }
        }
        Ok(unlinkat(&self.handle, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a directory of this one if it is empty.
    pub(crate) fn remove_empty(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.handle, name, AtFlags::REMOVEDIR)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_neither_entered_nor_removed_through() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("real/below")).unwrap();
        std::fs::create_dir_all(root.path().join("tree/below")).unwrap();
        for name in ["link", "tree/link", "tree/below/link"] {
            symlink(root.path().join("real"), root.path().join(name)).unwrap();
        }
        let dir = NoFollowDir::open(root.path()).unwrap();
        assert!(dir.walk(Path::new("real/below")).is_ok());
        for path in ["link", "link/below", "tree/link", "../real", "/"] {
            assert!(dir.walk(Path::new(path)).is_err() && dir.make(Path::new(path)).is_err(), "{path}");
        }
        assert!(dir.remove_tree(OsStr::new("link")).is_err());
        dir.remove_tree(OsStr::new("tree")).unwrap();
        assert!(root.path().join("real/below").is_dir() && root.path().join("link").is_symlink());
        assert!(!root.path().join("tree").exists());
    }

    #[test]
    fn listing_cut_at_its_limit_has_the_first_names() {
        let root = tempfile::tempdir().unwrap();
        for number in (0..100).rev() {
            File::create_new(root.path().join(format!("f{number:02}"))).unwrap();
        }
        let dir = NoFollowDir::open(root.path()).unwrap();
        let names = |limit| {
            let (entries, has_more) = dir.entries(limit).unwrap();
            let names: Vec<_> = entries.into_iter().map(|entry| entry.name.into_string().unwrap()).collect();
            (names, has_more)
        };
        let first = |count: usize| (0..count).map(|number| format!("f{number:02}")).collect::<Vec<_>>();
        assert_eq!(names(5), (first(5), true));
        assert_eq!(names(100), (first(100), false));
        assert_eq!(names(0), (Vec::new(), true));
    }
}
